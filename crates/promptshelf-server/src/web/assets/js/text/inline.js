// Inline Markdown as DOM nodes, in time linear in the text.
//
// One pass finds code, links and bare URLs, and pairs the marks of emphasis with a stack; a second one builds the nodes.
// No construct crosses a line.

import { h } from '../dom.js';
import { revealed } from './invisible.js';

/**
 * @typedef {{ mark: string, role: 'text' | 'start' | 'end' }} Mark a mark of emphasis; plain text until it is paired
 * @typedef {string | HTMLElement | Mark} Piece
 */

const SPECIAL = /[\\`*_~[]|!\[|https?:\/\//g;
const ESCAPABLE = /[\\`*_{}[\]()#+\-.!~|<>]/;
const BRACKET = /[[\]]/g;
// Each attempt ends at the second `(` or `"` at the latest, so all attempts of a text together take linear time.
const TARGET = /([^()\s]+(?:\([^()\s]*\))?)(?: "[^"]*")?\)/y;
const ADDRESS = /https?:\/\/[^\s<>"'`)\]]+/y;
const ELEMENTS = { '**': 'strong', __: 'strong', '*': 'em', _: 'em', '~~': 's' };
const DEEPEST = 6;

/**
 * @param {string} text
 * @param {boolean} [isLabel] whether the text is inside a link, which contains no further link
 * @returns {(string | HTMLElement)[]}
 */
export function inline(text, isLabel = false) {
  return built(
    text.split('\n').flatMap((line, index) => (index ? ['\n', ...pieces(line, isLabel)] : pieces(line, isLabel))),
  );
}

/** @param {string} line @param {boolean} isLabel @returns {Piece[]} */
function pieces(line, isLabel) {
  /** @type {Piece[]} */
  const found = [];
  const codeEnd = codeEnds(line);
  const marks = new Emphasis(found);
  let from = 0;
  while (from < line.length) {
    SPECIAL.lastIndex = from;
    const special = SPECIAL.exec(line);
    const at = special ? special.index : line.length;
    if (at > from) found.push(line.slice(from, at));
    if (!special) break;
    from = at + special[0].length;
    const [kind] = special[0];
    if (kind === '\\') {
      const isEscape = ESCAPABLE.test(line[from] ?? '');
      found.push(isEscape ? line[from++] : '\\');
    } else if (kind === '`') {
      from = runEnd(line, at);
      const end = codeEnd(at, from - at);
      if (end === undefined) {
        found.push(line.slice(at, from));
      } else {
        found.push(h('code', null, revealed(line.slice(from, end).replace(/^ (.*) $/, '$1'))));
        from = end + from - at;
      }
    } else if (kind === 'h') {
      const url = isLabel ? '' : address(line, at);
      found.push(url ? anchor(url, revealed(url)) : special[0]);
      if (url) from = at + url.length;
    } else if (kind === '[' || kind === '!') {
      const link = isLabel ? null : linkAt(line, from);
      found.push(link ? linked(link.label, link.target, kind === '!') : special[0]);
      if (link) from = link.end;
    } else {
      from = runEnd(line, at);
      marks.add(line.slice(at, from), line[at - 1] ?? ' ', line[from] ?? ' ');
    }
  }
  return found;
}

/** Pairs the marks of one line. */
class Emphasis {
  /** @type {Mark[]} */
  #open = [];
  /** @type {Map<string, number>} */
  #counts = new Map();

  /** @param {Piece[]} found where the marks go */
  constructor(found) {
    this.found = found;
  }

  /**
   * @param {string} run equal characters
   * @param {string} before
   * @param {string} after
   */
  add(run, before, after) {
    const [kind] = run;
    const isWordy = (/** @type {string} */ other) => run !== '**' && kind !== '~' && /\w/.test(other);
    const starts = /\S/.test(after) && !isWordy(before);
    const ends = /\S/.test(before) && !isWordy(after);
    const isMark = kind === '~' ? run.length === 2 : run.length <= 3;
    if (!isMark) return void this.found.push(run);
    if (run.length < 3) return this.#mark(run, starts, ends);
    const both = [kind + kind, kind];
    if (ends && this.#open.at(-1)?.mark === kind) both.reverse();
    for (const mark of both) this.#mark(mark, starts, ends);
  }

  /** @param {string} mark @param {boolean} starts @param {boolean} ends */
  #mark(mark, starts, ends) {
    const count = this.#counts.get(mark) ?? 0;
    if (ends && count > 0) {
      // Marks in between stay plain text. Each is removed once, so that this is linear in total.
      for (let top = this.#open.pop(); top; top = this.#open.pop()) {
        this.#counts.set(top.mark, (this.#counts.get(top.mark) ?? 0) - 1);
        if (top.mark !== mark) continue;
        top.role = 'start';
        this.found.push({ mark, role: 'end' });
        return;
      }
    }
    if (!starts) return void this.found.push(mark);
    /** @type {Mark} */
    const open = { mark, role: 'text' };
    this.#open.push(open);
    this.#counts.set(mark, count + 1);
    this.found.push(open);
  }
}

/** @param {Piece[]} pieces @returns {(string | HTMLElement)[]} */
function built(pieces) {
  /** @type {(string | HTMLElement)[][]} */
  const stack = [[]];
  let text = '';
  const flush = () => {
    for (const part of revealed(text)) stack[stack.length - 1].push(part);
    text = '';
  };
  // Elements deeper than this are left out, and their contents stay.
  let tooDeep = 0;
  for (const piece of pieces) {
    if (typeof piece === 'string') text += piece;
    else if (piece instanceof HTMLElement) {
      flush();
      stack[stack.length - 1].push(piece);
    } else if (piece.role === 'text') text += piece.mark;
    else if (piece.role === 'start') {
      if (stack.length > DEEPEST) tooDeep++;
      else {
        flush();
        stack.push([]);
      }
    } else if (tooDeep) tooDeep--;
    else {
      flush();
      const inside = stack.pop() ?? [];
      stack[stack.length - 1].push(h(ELEMENTS[/** @type {keyof typeof ELEMENTS} */ (piece.mark)], null, inside));
    }
  }
  flush();
  return stack[0];
}

/**
 * Finds the ends of code spans: the next run of as many backticks.
 *
 * @param {string} line
 * @returns {(at: number, length: number) => number | undefined} for calls with growing positions
 */
function codeEnds(line) {
  /** @type {Map<number, number[]>} */
  const runs = new Map();
  // In reverse, so that the next one is the last of its list.
  const all = line.includes('`') ? [...line.matchAll(/`+/g)].reverse() : [];
  for (const { 0: run, index } of all) {
    const known = runs.get(run.length);
    if (known) known.push(index);
    else runs.set(run.length, [index]);
  }
  return (at, length) => {
    const next = runs.get(length);
    while (next?.length && next[next.length - 1] <= at) next.pop();
    return next?.at(-1);
  };
}

/** @param {string} line @param {number} at @returns {number} the end of the run of equal characters */
function runEnd(line, at) {
  let end = at;
  while (end < line.length && line[end] === line[at]) end++;
  return end;
}

/** A bare URL, without the punctuation that follows it. @param {string} line @param {number} at */
function address(line, at) {
  ADDRESS.lastIndex = at;
  const url = ADDRESS.exec(line)?.[0] ?? '';
  let end = url.length;
  while (end > 0 && '.,;:!?*_~'.includes(url[end - 1])) end--;
  return /^https?:\/\/./.test(url.slice(0, end)) ? url.slice(0, end) : '';
}

/**
 * The link whose label begins at a position.
 *
 * @param {string} line
 * @param {number} from
 */
function linkAt(line, from) {
  BRACKET.lastIndex = from;
  const bracket = BRACKET.exec(line);
  if (bracket?.[0] !== ']' || line[bracket.index + 1] !== '(') return null;
  TARGET.lastIndex = bracket.index + 2;
  const found = TARGET.exec(line);
  if (!found) return null;
  return { label: line.slice(from, bracket.index), target: found[1], end: TARGET.lastIndex };
}

/**
 * @param {string} label
 * @param {string} target
 * @param {boolean} isImage
 */
function linked(label, target, isImage) {
  // Remote images are not loaded: a request would reveal the reader to another server.
  if (isImage) return h('span.no-image', { title: target }, revealed(label || target));
  return anchor(target, label ? inline(label, true) : revealed(target));
}

/**
 * A link to an http(s) URL; other targets are displayed and not linked.
 *
 * @param {string} target
 * @param {(string | HTMLElement)[]} content
 */
export function anchor(target, content) {
  const href = webAddress(target);
  if (!href) return h('span.no-link', { title: target }, content);
  return h('a', { href, target: '_blank', rel: 'noopener noreferrer nofollow', title: href }, content);
}

/** @param {string} target */
export function webAddress(target) {
  try {
    const url = new URL(target);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}
