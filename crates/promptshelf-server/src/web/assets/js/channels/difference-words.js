// The sentences of differences for callers in the language of the page.

import { h } from '../dom.js';
import { hasWords, t } from '../i18n.js';
import { revealed } from '../text/invisible.js';

/** @typedef {keyof import('../i18n.js').Words} Key */

/** Stands for a backtick of an author's text, which marks no code. The first character escapes itself. */
const BACKTICK = '\ue000\ue001';

/** @param {string} text */
function doubled(text) {
  return text.replaceAll('\ue000', '\ue000\ue000');
}

/** @param {string} text */
function restored(text) {
  return text.replace(/\ue000([\ue000\ue001])/g, (_, one) => (one === '\ue001' ? '`' : one));
}

/**
 * The sentence of a difference as nodes: parts in backticks are code.
 *
 * @param {import('./comparison.js').Difference} difference
 * @returns {import('../dom.js').Children[]}
 */
export function differenceParts(difference) {
  return sentence(difference)
    .split(/`([^`]+)`/)
    .map((part, index) => {
      const text = revealed(restored(part));
      return index % 2 ? h('code', null, text) : text;
    });
}

/**
 * The sentence with escaped values. Codes without words have the server's sentence, in English.
 *
 * @param {import('./comparison.js').Difference} difference
 */
function sentence({ impact, code, values, text }) {
  const key = `difference.${code}`;
  if (!hasWords(key)) return doubled(text);
  /** @type {Record<string, string>} */
  const filled = {};
  // Lists have backticks of the server: `a`, `b`. In other values they are an author's.
  const isAccess = /^(access|diagnostics|new)/.test(code);
  for (const [name, value] of Object.entries(values)) {
    const isList = name === 'values' || (isAccess && ['before', 'now'].includes(name));
    filled[name] = isList ? doubled(value) : doubled(value).replaceAll('`', BACKTICK);
  }
  if ('what' in values) {
    const what = `label.${values.what}`;
    if (hasWords(what)) filled.what = t(/** @type {Key} */ (what));
  }
  // No rule closes it.
  for (const rules of ['before', 'now']) if (values[rules] === '') filled[rules] = t('difference.everyone');
  const parts = [t(/** @type {Key} */ (key), filled), filled.message];
  // These differences can make values invalid.
  if (code.startsWith('value-') && impact === 'breaking') parts.push(t('difference.fails'));
  return parts.filter(Boolean).join(' ');
}
