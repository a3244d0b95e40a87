// Three versions of a file side by side: the one that the author started from, the present one, and the author's.

import { h } from '../dom.js';
import { t } from '../i18n.js';
import { revealed } from '../text/invisible.js';
import { changedLines } from '../text/line-diff.js';
import { textOf } from './backend.js';

/** The most lines of each side; the rest can be seen in the editor. */
const MOST_LINES = 2_000;

/** The space above the first difference, in pixels. */
const CONTEXT = 48;

/**
 * @param {object} options
 * @param {Uint8Array | null} options.base
 * @param {Uint8Array | null} options.theirs null if the file was deleted
 * @param {string} options.mine
 * @param {string} [options.about] the reason, if it is not a change by someone else
 * @param {string} [options.theirName] of the second version, if it is not the present one
 * @param {() => void} options.keepMine
 * @param {() => Promise<void>} options.takeTheirs
 */
export function conflictView({ base, theirs, mine, about, theirName, keepMine, takeTheirs }) {
  const before = base === null ? '' : (textOf(base) ?? '');
  const now = (theirs === null ? null : textOf(theirs)) ?? '';
  const [theirsAt, mineAt] = [firstDifference(before, now), firstDifference(before, mine)];
  const first = Math.min(theirsAt ?? mineAt ?? 0, mineAt ?? theirsAt ?? 0);
  return h(
    'section.conflict',
    { 'aria-label': t('edit.conflict'), tabindex: '-1' },
    h('h2', null, t('edit.conflict')),
    h('p', null, about ?? (theirs === null ? t('edit.conflict-gone') : t('edit.conflict-about'))),
    h(
      'div.conflict-sides',
      null,
      side(t('edit.side-base'), before, before, first),
      side(theirName ?? t('edit.side-theirs'), before, now, theirsAt ?? first),
      side(t('edit.side-mine'), before, mine, mineAt ?? first),
    ),
    h(
      'p.ways',
      null,
      h('button.primary', { type: 'button', onclick: keepMine }, t('edit.keep-mine')),
      h('button', { type: 'button', onclick: takeTheirs }, t('edit.take-theirs')),
    ),
  );
}

/** The first line that differs, from 0. @param {string} before @param {string} after */
function firstDifference(before, after) {
  const [lines, others] = [before.split('\n'), after.split('\n')];
  const longer = lines.length > others.length ? lines : others;
  const found = longer.findIndex((_, index) => lines[index] !== others[index]);
  return found < 0 ? null : found;
}

/** @param {string} title @param {string} before @param {string} text @param {number} first the line to scroll to */
function side(title, before, text, first) {
  const changed = changedLines(before, text);
  const lines = text.split('\n').slice(0, MOST_LINES);
  const rows = lines.map((line, index) =>
    h(
      changed.has(index) ? 'span.line.changed' : 'span.line',
      null,
      changed.has(index) ? h('ins', null, revealed(line)) : revealed(line),
      '\n',
    ),
  );
  const source = h('pre.source', { tabindex: '0', role: 'group', 'aria-label': title }, rows);
  // Once it is in the document. Lines that are missing were at its end.
  requestAnimationFrame(() => {
    const row = rows[Math.min(first, rows.length - 1)];
    source.scrollTop += row.getBoundingClientRect().top - source.getBoundingClientRect().top - CONTEXT;
  });
  return h('div.conflict-side', null, h('h3', null, title), source);
}
