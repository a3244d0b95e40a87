// Block-level Markdown as DOM nodes: the subset that prompts use, in time linear in the text.
//
// HTML inside a prompt is text for a model, and is displayed as text. Why this is not a library: docs/design/page.md.

import { h } from '../dom.js';
import { inline } from './inline.js';
import { revealed } from './invisible.js';
import {
  cellsOf,
  fenceOf,
  headingOf,
  isFenceEnd,
  isRule,
  isTableRule,
  itemOf,
  quotedOf,
  startsBlock,
} from './line-start.js';

/** @typedef {{ text: string, number: number }} Line */

const DEEPEST = 8;

/**
 * @param {string} text
 * @param {Set<number>} [changed] lines (from 0) to mark as changed
 * @returns {HTMLElement[]}
 */
export function markdown(text, changed = new Set()) {
  const lines = text.split(/\r?\n/).map((line, number) => ({ text: line, number }));
  return blocks(lines, changed, 0);
}

/**
 * @param {Line[]} lines
 * @param {Set<number>} changed
 * @param {number} depth
 * @returns {HTMLElement[]}
 */
function blocks(lines, changed, depth) {
  /** @type {HTMLElement[]} */
  const made = [];
  let at = 0;
  /** @param {number} count @param {HTMLElement} element */
  const take = (count, element) => {
    if (lines.slice(at, at + count).some((line) => changed.has(line.number))) element.classList.add('changed');
    made.push(element);
    at += count;
  };
  while (at < lines.length) {
    const { text } = lines[at];
    if (!text.trim()) {
      at++;
      continue;
    }
    const fence = fenceOf(text);
    if (fence) {
      const { count, isClosed } = fenced(lines, at, fence.mark);
      const body = lines.slice(at + 1, at + count - (isClosed ? 1 : 0)).map((line) => line.text);
      take(count, codeBlock(body.join('\n'), fence.language));
      continue;
    }
    const heading = headingOf(text);
    if (heading) {
      // The page itself uses heading levels 1 and 2, so a prompt's headings begin at level 3.
      take(1, h(`h${Math.min(6, heading.level + 2)}`, { class: `rank-${heading.level}` }, inline(heading.text)));
      continue;
    }
    if (isRule(text)) {
      take(1, h('hr', null));
      continue;
    }
    if (depth < DEEPEST && quotedOf(text) !== null) {
      const count = runOf(lines, at, (line) => quotedOf(line) !== null);
      const inner = lines.slice(at, at + count).map((line) => ({ ...line, text: quotedOf(line.text) ?? '' }));
      take(count, h('blockquote', null, blocks(inner, changed, depth + 1)));
      continue;
    }
    if (depth < DEEPEST && itemOf(text)) {
      const [count, list] = items(lines, at, changed, depth);
      take(count, list);
      continue;
    }
    if (text.includes('|') && isTableRule(lines[at + 1]?.text ?? '')) {
      const count = runOf(lines, at, (line) => line.includes('|'));
      take(count, table(lines.slice(at, at + count)));
      continue;
    }
    const count = runOf(lines, at, (line, index) => index === 0 || (Boolean(line.trim()) && !startsBlock(line)));
    const paragraph = lines.slice(at, at + count).map((line) => line.text.trimStart());
    take(count, h('p', null, inline(paragraph.join('\n'))));
  }
  return made;
}

/**
 * @param {Line[]} lines
 * @param {number} from
 * @param {(line: string, index: number) => boolean} fits
 */
function runOf(lines, from, fits) {
  let count = 0;
  while (from + count < lines.length && fits(lines[from + count].text, count)) count++;
  return count;
}

/**
 * Number of lines of a code block; one without an end reaches to the end of the text.
 *
 * @param {Line[]} lines
 * @param {number} from
 * @param {string} mark
 */
function fenced(lines, from, mark) {
  for (let at = from + 1; at < lines.length; at++) {
    if (isFenceEnd(lines[at].text, mark)) return { count: at + 1 - from, isClosed: true };
  }
  return { count: lines.length - from, isClosed: false };
}

/**
 * @param {string} text
 * @param {string} [language]
 */
export function codeBlock(text, language) {
  const code = h('code', null, revealed(text));
  // Long lines scroll, and scrollable regions must be reachable by keyboard.
  return h('pre', { tabindex: '0', 'data-language': language || null }, code);
}

/**
 * @param {Line[]} lines
 * @param {number} from
 * @param {Set<number>} changed
 * @param {number} depth
 * @returns {[number, HTMLElement]}
 */
function items(lines, from, changed, depth) {
  const first = /** @type {NonNullable<ReturnType<typeof itemOf>>} */ (itemOf(lines[from].text));
  const { ordered } = first;
  const list = h(ordered ? 'ol' : 'ul', ordered && first.number !== 1 ? { start: first.number } : null);
  let at = from;
  while (at < lines.length) {
    const item = itemOf(lines[at].text);
    if (!item || item.ordered !== ordered || item.indent > first.indent + 1 || isRule(lines[at].text)) break;
    const inner = [{ number: lines[at].number, text: lines[at].text.slice(item.width) }];
    let next = at + 1;
    for (; next < lines.length; next++) {
      const { text, number } = lines[next];
      const isBlank = !text.trim();
      const follows = isBlank && lines[next + 1] && /^\s{2,}\S/.test(lines[next + 1].text);
      const isInside = text.length - text.trimStart().length;
      if (isBlank ? !follows : isInside < Math.min(item.width, 2) && startsBlock(text)) break;
      inner.push({ number, text: isBlank ? '' : text.slice(Math.min(isInside, item.width)) });
    }
    const made = blocks(inner, changed, depth + 1);
    const isTight = made.length > 0 && made[0].tagName === 'P' && made.slice(1).every((block) => block.tagName !== 'P');
    if (isTight) made.splice(0, 1, h('span', { class: made[0].className || null }, [...made[0].childNodes]));
    list.append(h('li', null, made));
    at = next;
    if (lines[at] && !lines[at].text.trim() && itemOf(lines[at + 1]?.text ?? '')) at++;
  }
  return [Math.max(1, at - from), list];
}

/** @param {Line[]} lines */
function table(lines) {
  const head = cellsOf(lines[0].text);
  // A short row stays short: filling it up would make the table larger than the text, by any factor.
  const rows = lines.slice(2).map((line) => cellsOf(line.text).slice(0, head.length));
  const headRow = h(
    'tr',
    null,
    head.map((cell) => h('th', { scope: 'col' }, inline(cell))),
  );
  const bodyRows = rows.map((row) =>
    h(
      'tr',
      null,
      row.map((cell) => h('td', null, inline(cell))),
    ),
  );
  return h(
    'div.table',
    { tabindex: '0', role: 'group' },
    h('table', null, h('thead', null, headRow), h('tbody', null, bodyRows)),
  );
}
