// Block-level Markdown as DOM nodes: the subset that prompts use.
//
// Markdown libraries return HTML strings, which the page's policy (`trusted-types 'none'`) forbids. HTML inside a
// prompt is text for a model, and is displayed as text.

import { h } from '../dom.js';
import { inline } from './inline.js';
import { revealed } from './invisible.js';

/** @typedef {{ text: string, number: number }} Line */

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`\s]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^( {0,9})([-*+]|\d{1,9}[.)])(\s+|$)/;
const QUOTE = /^ {0,3}> ?/;
const TABLE = /^\s*\|?(?:\s*:?-+:?\s*\|)+\s*:?-*:?\s*$/;
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
    const fence = FENCE.exec(text);
    if (fence) {
      const count = fenced(lines, at, fence[1]);
      const closed = count > 1 && isFenceEnd(lines[at + count - 1].text, fence[1]);
      const body = lines.slice(at + 1, at + count - (closed ? 1 : 0)).map((line) => line.text);
      take(count, codeBlock(body.join('\n'), fence[2]));
      continue;
    }
    const heading = HEADING.exec(text);
    if (heading) {
      // The page itself uses heading levels 1 and 2, so a prompt's headings begin at level 3.
      take(1, h(`h${Math.min(6, heading[1].length + 2)}`, { class: `rank-${heading[1].length}` }, inline(heading[2])));
      continue;
    }
    if (RULE.test(text)) {
      take(1, h('hr', null));
      continue;
    }
    if (QUOTE.test(text) && depth < DEEPEST) {
      const count = runOf(lines, at, (line) => QUOTE.test(line));
      const inner = lines.slice(at, at + count).map((line) => ({ ...line, text: line.text.replace(QUOTE, '') }));
      take(count, h('blockquote', null, blocks(inner, changed, depth + 1)));
      continue;
    }
    if (ITEM.test(text) && depth < DEEPEST) {
      const [count, list] = items(lines, at, changed, depth);
      take(count, list);
      continue;
    }
    if (text.includes('|') && TABLE.test(lines[at + 1]?.text ?? '')) {
      const count = runOf(lines, at, (line) => line.includes('|'));
      take(count, table(lines.slice(at, at + count)));
      continue;
    }
    const count = Math.max(
      1,
      runOf(lines, at, (line, index) => Boolean(line.trim()) && (index === 0 || !starts(line))),
    );
    const paragraph = lines.slice(at, at + count).map((line) => line.text.trimStart());
    take(count, h('p', null, inline(paragraph.join('\n'))));
  }
  return made;
}

/** Whether a line begins a block other than a paragraph. @param {string} line */
function starts(line) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
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

/** @param {string} line @param {string} fence */
function isFenceEnd(line, fence) {
  const end = line.trim();
  return end.length >= fence.length && end === fence[0].repeat(end.length);
}

/** @param {Line[]} lines @param {number} from @param {string} fence */
function fenced(lines, from, fence) {
  const end = lines.findIndex((line, index) => index > from && isFenceEnd(line.text, fence));
  return (end < 0 ? lines.length : end + 1) - from;
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
  const first = /** @type {RegExpExecArray} */ (ITEM.exec(lines[from].text));
  const ordered = /\d/.test(first[2]);
  const list = h(ordered ? 'ol' : 'ul', ordered && first[2] !== '1.' ? { start: Number.parseInt(first[2], 10) } : null);
  let at = from;
  while (at < lines.length) {
    const item = ITEM.exec(lines[at].text);
    if (!item || /\d/.test(item[2]) !== ordered || item[1].length > first[1].length + 1 || RULE.test(lines[at].text))
      break;
    const indent = item[0].length;
    const inner = [{ number: lines[at].number, text: lines[at].text.slice(indent) }];
    let next = at + 1;
    for (; next < lines.length; next++) {
      const { text, number } = lines[next];
      const isBlank = !text.trim();
      const follows = isBlank && lines[next + 1] && /^\s{2,}\S/.test(lines[next + 1].text);
      const isInside = /^\s+/.exec(text)?.[0].length ?? 0;
      if (isBlank ? !follows : isInside < Math.min(indent, 2) && starts(text)) break;
      inner.push({ number, text: isBlank ? '' : text.slice(Math.min(isInside, indent)) });
    }
    const made = blocks(inner, changed, depth + 1);
    const isTight = made.length > 0 && made[0].tagName === 'P' && made.slice(1).every((block) => block.tagName !== 'P');
    if (isTight) made.splice(0, 1, h('span', { class: made[0].className || null }, [...made[0].childNodes]));
    list.append(h('li', null, made));
    at = next;
    if (lines[at] && !lines[at].text.trim() && ITEM.test(lines[at + 1]?.text ?? '')) at++;
  }
  return [Math.max(1, at - from), list];
}

/** @param {Line[]} lines */
function table(lines) {
  /** @param {string} line */
  const cells = (line) =>
    line
      .trim()
      .replace(/^\||\|$/g, '')
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim());
  const head = cells(lines[0].text);
  const rows = lines.slice(2).map((line) => cells(line.text));
  return h(
    'div.table',
    { tabindex: '0', role: 'group' },
    h(
      'table',
      null,
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          head.map((cell) => h('th', { scope: 'col' }, inline(cell))),
        ),
      ),
      h(
        'tbody',
        null,
        rows.map((row) =>
          h(
            'tr',
            null,
            head.map((_, index) => h('td', null, inline(row[index] ?? ''))),
          ),
        ),
      ),
    ),
  );
}
