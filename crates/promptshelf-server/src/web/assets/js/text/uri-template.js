// URI templates (RFC 6570) with the operators that this server supports: `{x}`, `{+x}`, `{/x}`, `{?x,y}` and `{&x}`.

const EXPRESSION = /\{([+/?&]?)([\w.,%-]+)\}/g;

/** The variables of a template, in order. @param {string} template @returns {string[]} */
export function variables(template) {
  const names = [...template.matchAll(EXPRESSION)].flatMap(([, , list]) => list.split(','));
  return [...new Set(names)];
}

/**
 * Expands a template. Undefined variables are omitted.
 *
 * @param {string} template
 * @param {Record<string, string>} values
 */
export function expand(template, values) {
  return template.replace(EXPRESSION, (_, operator, /** @type {string} */ list) => {
    const given = list.split(',').filter((name) => values[name]);
    const parts = given.map((name) => encoded(values[name], operator === '+'));
    if (operator !== '?' && operator !== '&') {
      return parts.map((part) => (operator === '/' ? `/${part}` : part)).join(operator === '/' ? '' : ',');
    }
    const pairs = given.map((name, index) => `${name}=${parts[index]}`);
    return pairs.length ? operator + pairs.join('&') : '';
  });
}

/** @param {string} text @param {boolean} isPath */
function encoded(text, isPath) {
  const all = encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  return isPath ? all.replace(/%(2F|3A|40|21|24|26|27|28|29|2A|2B|2C|3B|3D)/g, decodeURIComponent) : all;
}
