// Renders invisible and text-reordering characters as visible marks, so that readers see everything a prompt
// contains.

import { h } from '../dom.js';

const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to find
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: each is matched by itself
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** @type {Record<number, string>} */
const NAMES = {
  0: 'NULL',
  13: 'CARRIAGE RETURN',
  27: 'ESCAPE',
  173: 'SOFT HYPHEN',
  1564: 'ARABIC LETTER MARK',
  8203: 'ZERO WIDTH SPACE',
  8204: 'ZERO WIDTH NON-JOINER',
  8205: 'ZERO WIDTH JOINER',
  8206: 'LEFT-TO-RIGHT MARK',
  8207: 'RIGHT-TO-LEFT MARK',
  8232: 'LINE SEPARATOR',
  8233: 'PARAGRAPH SEPARATOR',
  8234: 'LEFT-TO-RIGHT EMBEDDING',
  8235: 'RIGHT-TO-LEFT EMBEDDING',
  8236: 'POP DIRECTIONAL FORMATTING',
  8237: 'LEFT-TO-RIGHT OVERRIDE',
  8238: 'RIGHT-TO-LEFT OVERRIDE',
  8288: 'WORD JOINER',
  8294: 'LEFT-TO-RIGHT ISOLATE',
  8295: 'RIGHT-TO-LEFT ISOLATE',
  8296: 'FIRST STRONG ISOLATE',
  8297: 'POP DIRECTIONAL ISOLATE',
  65279: 'ZERO WIDTH NO-BREAK SPACE',
};

/**
 * Whether a joiner is legitimate: inside an emoji, or between letters of a script that needs it.
 *
 * @param {string} text
 * @param {number} at
 */
function joins(text, at) {
  const before = text.slice(Math.max(0, at - 3), at);
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: each is matched by itself
  return /[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f\p{Script=Arabic}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Malayalam}\p{Script=Tamil}\p{Script=Sinhala}]$/u.test(
    before,
  );
}

/**
 * The text as nodes, with a mark for each hidden character.
 *
 * @param {string} text
 * @returns {(string | HTMLElement)[]}
 */
export function revealed(text) {
  /** @type {(string | HTMLElement)[]} */
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    const point = match[0].codePointAt(0) ?? 0;
    if ((point === 0x200c || point === 0x200d) && joins(text, match.index)) continue;
    if (point === 0x0d && text[match.index + 1] === '\n') continue;
    if (match.index > from) parts.push(text.slice(from, match.index));
    const code = `U+${point.toString(16).toUpperCase().padStart(4, '0')}`;
    const named = NAMES[point] ? `${code} ${NAMES[point]}` : code;
    parts.push(h('span.hidden-mark', { title: named, role: 'img', 'aria-label': named }, code));
    from = match.index + match[0].length;
  }
  if (from < text.length) parts.push(text.slice(from));
  return parts;
}

/** Number of hidden characters. @param {string} text */
export function countHidden(text) {
  return revealed(text).filter((part) => typeof part !== 'string').length;
}
