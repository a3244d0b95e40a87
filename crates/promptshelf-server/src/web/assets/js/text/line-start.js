// The start of a Markdown block, decided by one line. Each test takes time linear in the line: no regular expression
// here has two neighbouring repetitions that match the same characters.

const DEEPEST_INDENT = 3;

/**
 * The fence of a code block, with its language.
 *
 * @param {string} line
 * @returns {{ mark: string, language: string } | null}
 */
export function fenceOf(line) {
  const at = indent(line);
  const mark = run(line, at);
  if (at > DEEPEST_INDENT || mark.length < 3 || (mark[0] !== '`' && mark[0] !== '~')) return null;
  const rest = line.slice(at + mark.length);
  // Such a line is text with a code span.
  if (mark[0] === '`' && rest.includes('`')) return null;
  return { mark, language: rest.trim().split(/\s/, 1)[0] };
}

/** Whether a line ends the code block of a fence. @param {string} line @param {string} mark */
export function isFenceEnd(line, mark) {
  const end = line.trim();
  return end.length >= mark.length && run(end, 0).length === end.length && end[0] === mark[0];
}

/** @param {string} line @returns {{ level: number, text: string } | null} */
export function headingOf(line) {
  const at = indent(line);
  const mark = run(line, at);
  const text = line.slice(at + mark.length);
  if (at > DEEPEST_INDENT || mark[0] !== '#' || mark.length > 6 || !/^\s/.test(text)) return null;
  return { level: mark.length, text: withoutClosing(text.trim()) };
}

/** Removes the `#` at the end of a heading; those of `C#` belong to the text. @param {string} text */
function withoutClosing(text) {
  let end = text.length;
  while (text[end - 1] === '#') end--;
  return end === 0 || /\s/.test(text[end - 1]) ? text.slice(0, end).trimEnd() : text;
}

/** Whether a line is a thematic break. @param {string} line */
export function isRule(line) {
  if (indent(line) > DEEPEST_INDENT) return false;
  const marks = line.replace(/\s/g, '');
  return marks.length >= 3 && '-*_'.includes(marks[0]) && run(marks, 0).length === marks.length;
}

/**
 * The marker of a list item.
 *
 * @param {string} line
 * @returns {{ indent: number, ordered: boolean, number: number, width: number } | null} `width` reaches to the text
 */
export function itemOf(line) {
  const found = /^( {0,9})([-*+]|\d{1,9}[.)])(\s+|$)/.exec(line);
  if (!found) return null;
  const number = Number.parseInt(found[2], 10);
  return { indent: found[1].length, ordered: !Number.isNaN(number), number, width: found[0].length };
}

/** The text of a quoted line. @param {string} line @returns {string | null} */
export function quotedOf(line) {
  const at = indent(line);
  if (at > DEEPEST_INDENT || line[at] !== '>') return null;
  return line.slice(line[at + 1] === ' ' ? at + 2 : at + 1);
}

/** Whether a line separates the head of a table from its rows. @param {string} line */
export function isTableRule(line) {
  if (!line.includes('|')) return false;
  const parts = line.trim().replace(/^\|/, '').split('|');
  const last = parts.pop() ?? '';
  return parts.length > 0 && parts.every((part) => /^:?-+:?$/.test(part.trim())) && /^:?-*:?$/.test(last.trim());
}

/** The cells of a table's row. @param {string} line */
export function cellsOf(line) {
  const whole = line.trim().replace(/^\|/, '');
  const cells = whole.split(/(?<!\\)\|/).map((cell) => cell.trim());
  if (cells.length > 1 && cells[cells.length - 1] === '') cells.pop();
  return cells;
}

/** Whether a line begins a block other than a paragraph and a table. @param {string} line */
export function startsBlock(line) {
  return Boolean(fenceOf(line) || headingOf(line) || isRule(line) || quotedOf(line) !== null || itemOf(line));
}

/** Number of leading spaces. @param {string} line */
function indent(line) {
  let count = 0;
  while (line[count] === ' ') count++;
  return count;
}

/** The run of equal characters at a position. @param {string} line @param {number} at */
function run(line, at) {
  let end = at;
  while (end < line.length && line[end] === line[at]) end++;
  return line.slice(at, end);
}
