// The difference of two texts as a table of lines, with comments at lines.

import { h } from '../dom.js';
import { t } from '../i18n.js';
import { revealed } from '../text/invisible.js';
import { folded, rows } from '../text/side-lines.js';

/** Rows that one table shows: more would make the page slow. */
const MOST_ROWS = 3_000;
const MOST_CHARACTERS = 2_000;

/**
 * @typedef {{ side: 'before' | 'after', number: number }} Line
 * @typedef {object} Talk comments at lines
 * @property {(line: Line) => import('../dom.js').Children} at the comments at a line
 * @property {(line: Line, row: HTMLElement) => void} [begin] opens a form for a comment below a row
 */

/**
 * @param {string} name accessible name of the table
 * @param {string | null} before
 * @param {string | null} after
 * @param {Talk} [talk]
 */
export function diffTable(name, before, after, talk) {
  const all = rows(before, after);
  if (all.every((row) => row.kind === 'same') && !talk)
    return h('p.hint', null, before === after ? t('ch.no-difference') : t('ch.only-end'));
  const comments = new Map();
  if (talk)
    for (const row of all)
      comments.set(
        row,
        sides(row).flatMap((line) => talk.at(line)),
      );
  const shown = folded(all, (row) => comments.get(row)?.length > 0);
  const body = h('tbody');
  for (const row of shown.slice(0, MOST_ROWS)) {
    if (row.kind === 'gap') body.append(gap(row.lines));
    else body.append(line(row, talk));
    const below = comments.get(row) ?? [];
    if (below.length) body.append(h('tr.talk', null, h('td', { colspan: '3' }, below)));
  }
  const left = shown.length - MOST_ROWS;
  if (left > 0) body.append(gap(left));
  const table = h('table.diff', { onkeydown: arrows }, h('caption.unseen', null, name), head(), body);
  const first = table.querySelector('button.line-number');
  if (first) first.tabIndex = 0;
  return h('div.diff-box', { tabindex: '0', role: 'group', 'aria-label': name }, table);
}

function head() {
  const names = [t('ch.before'), t('ch.after'), t('ch.text')];
  return h(
    'thead.unseen',
    null,
    h(
      'tr',
      null,
      names.map((name) => h('th', { scope: 'col' }, name)),
    ),
  );
}

/** @param {number} lines */
function gap(lines) {
  return h('tr.gap', null, h('td', { colspan: '3' }, t('ch.equal-lines', { n: lines })));
}

/** The line of a row that comments are about: the new one, if there is one. @param {import('../text/side-lines.js').Row} row */
function commentable(row) {
  return sides(row).pop();
}

/** @param {import('../text/side-lines.js').Row} row @returns {Line[]} */
function sides({ before, after }) {
  /** @type {Line[]} */
  const found = [];
  if (before !== null) found.push({ side: 'before', number: before });
  if (after !== null) found.push({ side: 'after', number: after });
  return found;
}

/** @param {import('../text/side-lines.js').Row} row @param {Talk} [talk] */
function line(row, talk) {
  const target = commentable(row);
  const begin = talk?.begin;
  /** @param {'before' | 'after'} side @param {number | null} number */
  const cell = (side, number) => {
    if (number === null) return h('td.number');
    if (!begin || target?.side !== side) return h('td.number', null, String(number));
    const label = side === 'before' ? 'ch.comment-before' : 'ch.comment-at';
    const button = h(
      'button.line-number',
      {
        type: 'button',
        tabindex: '-1',
        'aria-label': t(label, { n: String(number) }),
        onclick: () => begin({ side, number }, element),
      },
      String(number),
    );
    return h('td.number', null, button);
  };
  const sign = { same: ' ', added: '+', removed: '−' }[row.kind];
  const word =
    row.kind === 'same' ? null : h('span.unseen', null, row.kind === 'added' ? t('ch.added') : t('ch.removed'));
  const isLong = row.text.length > MOST_CHARACTERS;
  const text = isLong ? `${row.text.slice(0, MOST_CHARACTERS)}…` : row.text;
  const code = h(
    'td.code',
    null,
    h('span.sign', { 'aria-hidden': 'true' }, sign),
    word,
    h('code', null, revealed(text)),
  );
  const element = h(`tr.${row.kind}`, null, cell('before', row.before), cell('after', row.after), code);
  return element;
}

/** Arrow keys move between the numbers of lines, which are one stop of the Tab key. @param {KeyboardEvent} event */
function arrows(event) {
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
  const table = /** @type {HTMLElement} */ (event.currentTarget);
  /** @type {HTMLButtonElement[]} */
  const buttons = [...table.querySelectorAll('button.line-number')].map((one) => /** @type {any} */ (one));
  const at = buttons.indexOf(/** @type {any} */ (document.activeElement));
  if (at < 0) return;
  const next = buttons[at + (event.key === 'ArrowDown' ? 1 : -1)];
  if (!next) return;
  event.preventDefault();
  buttons[at].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
