// Rows of a line diff: which lines of two texts are equal, removed and added.

import { commonLines } from './line-diff.js';

/** Equal lines that stay visible around a change. */
const CONTEXT = 3;

/**
 * @typedef {{ kind: 'same' | 'removed' | 'added', before: number | null, after: number | null, text: string }} Row
 *   numbers from 1
 * @typedef {{ kind: 'gap', lines: number }} Gap
 */

/** @param {string | null} text */
function linesOf(text) {
  if (text === null || text === '') return [];
  const lines = text.split('\n');
  // The end of the last line begins no other one.
  if (lines[lines.length - 1] === '') lines.pop();
  return lines;
}

/**
 * @param {string | null} before null for a missing text
 * @param {string | null} after
 * @returns {Row[]}
 */
export function rows(before, after) {
  const [a, b] = [linesOf(before), linesOf(after)];
  /** @type {Row[]} */
  const found = [];
  let [i, j] = [0, 0];
  const changesTo = (/** @type {number} */ x, /** @type {number} */ y) => {
    for (; i < x; i++) found.push({ kind: 'removed', before: i + 1, after: null, text: a[i] });
    for (; j < y; j++) found.push({ kind: 'added', before: null, after: j + 1, text: b[j] });
  };
  for (const [x, y] of commonLines(a, b)) {
    changesTo(x, y);
    found.push({ kind: 'same', before: ++i, after: ++j, text: a[x] });
  }
  changesTo(a.length, b.length);
  return found;
}

/**
 * Replaces long runs of equal lines by gaps. `keeps` are rows that stay, such as those with comments.
 *
 * @param {Row[]} all
 * @param {(row: Row) => boolean} keeps
 * @returns {(Row | Gap)[]}
 */
export function folded(all, keeps = () => false) {
  const near = new Uint8Array(all.length);
  all.forEach((row, index) => {
    if (row.kind === 'same' && !keeps(row)) return;
    near.fill(1, Math.max(0, index - CONTEXT), index + CONTEXT + 1);
  });
  /** @type {(Row | Gap)[]} */
  const shown = [];
  for (let index = 0; index < all.length; ) {
    if (near[index]) {
      shown.push(all[index++]);
      continue;
    }
    const start = index;
    while (index < all.length && !near[index]) index++;
    shown.push({ kind: 'gap', lines: index - start });
  }
  return shown;
}
