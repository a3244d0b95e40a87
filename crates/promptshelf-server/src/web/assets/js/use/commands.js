// Shell commands that get the same prompt.

import { headersFor } from '../mcp/headers.js';

/**
 * Quotes a word for POSIX shells.
 *
 * @param {string} word
 */
export function shellWord(word) {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/**
 * @param {string} program the words that start promptshelf
 * @param {string} url of the server, so that the command works in any folder
 * @param {string} name
 * @param {Record<string, string>} values
 */
export function getCommand(program, url, name, values) {
  const given = Object.entries(values).map(([key, value]) => {
    const word = shellWord(`${key}=${value}`);
    if (value === '-' || value.startsWith('@')) return `--literal ${word}`;
    return /^[\p{L}\p{N}_-]+$/u.test(key) ? word : `--arg ${word}`;
  });
  return [program, 'get', shellWord(url), shellWord(name), ...given].join(' ');
}

/**
 * @param {import('../mcp/client.js').Client} client
 * @param {string} url of the server
 * @param {string} name
 * @param {Record<string, string>} values
 */
export function curlCommand(client, url, name, values) {
  const params = { name, arguments: values };
  // The token is referenced by a variable, to keep it out of the shell's history.
  const headers = headersFor('prompts/get', params, client.token() ? '$TOKEN' : null);
  const lines = Object.entries(headers).map(([key, value]) => {
    const header = `${key}: ${value}`;
    return `  -H ${key === 'Authorization' ? `"${header}"` : shellWord(header)}`;
  });
  const body = JSON.stringify(client.envelope('prompts/get', params));
  return [`curl ${shellWord(url)}`, ...lines, `  -d ${shellWord(body)}`].join(' \\\n');
}
