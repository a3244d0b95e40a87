// Parses `WWW-Authenticate` challenges (RFC 6750, RFC 9728).

/**
 * @typedef {{ error: string, description: string, scopes: string[], metadata: string }} Challenge
 */

/** @param {string | null} header the value of `WWW-Authenticate` @returns {Challenge} */
export function challenge(header) {
  /** @type {Record<string, string>} */
  const parameters = {};
  const given = /^bearer\s+(.*)$/is.exec((header ?? '').slice(0, 8_192))?.[1] ?? '';
  for (const [, name, quoted, bare] of given.matchAll(/([\w-]+)\s*=\s*(?:"([^"]*)"|([^\s,"]+))/g))
    parameters[name.toLowerCase()] = quoted ?? bare;
  return {
    error: parameters.error ?? '',
    description: parameters.error_description ?? '',
    scopes: (parameters.scope ?? '').split(' ').filter(Boolean),
    metadata: parameters.resource_metadata ?? '',
  };
}
