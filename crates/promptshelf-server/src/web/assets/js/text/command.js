// Slash commands (`/name key=value other="several words"`): parsing, and the part at the cursor.

/**
 * @typedef {object} Command
 * @property {string} name
 * @property {Record<string, string>} values
 * @property {string[]} strays words without `=`
 * @property {{ kind: 'name' | 'argument' | 'value', from: number, typed: string, argument: string }} at
 */

const WORD = /([^\s="]+)(?:=("(?:[^"\\]|\\.)*"?|[^\s"]*))?/g;

const CLOSED = /^"(?:[^"\\]|\\.)*"$/;

/** @param {string} text @returns {Command} */
export function parse(text) {
  const name = /^\/\S*/.exec(text)?.[0].slice(1) ?? '';
  /** @type {Command} */
  const command = { name, values: {}, strays: [], at: { kind: 'name', from: 1, typed: name, argument: '' } };
  if (text.length === name.length + 1) return command;
  const start = name.length + 1;
  command.at = { kind: 'argument', from: text.length, typed: '', argument: '' };
  for (const match of text.slice(start).matchAll(WORD)) {
    const [all, key, raw] = match;
    const from = start + match.index;
    const isLast = from + all.length === text.length;
    if (raw === undefined) {
      command.strays.push(key);
      if (isLast) command.at = { kind: 'argument', from, typed: key, argument: '' };
      continue;
    }
    const value = unquoted(raw);
    command.values[key] = value;
    const isOpen = !CLOSED.test(raw);
    if (isLast && isOpen) command.at = { kind: 'value', from: from + key.length + 1, typed: value, argument: key };
  }
  return command;
}

/** @param {string} raw */
function unquoted(raw) {
  if (!raw.startsWith('"')) return raw;
  const inner = CLOSED.test(raw) ? raw.slice(1, -1) : raw.slice(1);
  return inner.replace(/\\(.)/g, (_, c) => (c === 'n' ? '\n' : c));
}

/** @param {string} value */
export function quoted(value) {
  if (value && !/[\s"=\\]/.test(value)) return value;
  return `"${value.replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n')}"`;
}
