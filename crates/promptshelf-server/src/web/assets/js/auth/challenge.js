// What a refusal says about how to sign in (RFC 6750, RFC 9728).

/**
 * @typedef {{ error: string, description: string, scopes: string[], metadata: string }} Challenge
 */

/** @param {string | null} header the value of `WWW-Authenticate` @returns {Challenge} */
export function challenge(header) {
  /** @type {Record<string, string>} */
  const said = {};
  const given = /^bearer\s+(.*)$/is.exec((header ?? '').slice(0, 8_192))?.[1] ?? '';
  for (const [, name, quoted, bare] of given.matchAll(/([\w-]+)\s*=\s*(?:"([^"]*)"|([^\s,"]+))/g))
    said[name.toLowerCase()] = quoted ?? bare;
  return {
    error: said.error ?? '',
    description: said.error_description ?? '',
    scopes: (said.scope ?? '').split(' ').filter(Boolean),
    metadata: said.resource_metadata ?? '',
  };
}
