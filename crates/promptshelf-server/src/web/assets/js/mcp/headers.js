// Request headers of revision 2026-07-28 (Streamable HTTP).

export const REVISION = '2026-07-28';

/**
 * Encodes a header value: unchanged where possible, else Base64 between sentinels.
 *
 * @param {string} text
 */
export function headerValue(text) {
  const plain = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?');
  return plain ? text : `=?base64?${toBase64(text)}?=`;
}

/** @param {string} text */
export function toBase64(text) {
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/**
 * @param {string} method
 * @param {Record<string, any>} params
 * @param {string | null} token
 */
export function headersFor(method, params, token) {
  /** @type {Record<string, string>} */
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    'MCP-Protocol-Version': REVISION,
    'Mcp-Method': method,
  };
  const name = method === 'resources/read' ? params.uri : params.name;
  if (typeof name === 'string') headers['Mcp-Name'] = headerValue(name);
  if (token) headers.Authorization = `Bearer ${token}`;
  return headers;
}
