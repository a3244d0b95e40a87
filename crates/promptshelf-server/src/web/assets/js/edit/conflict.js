// Three versions of a file side by side: the one that the author started from, the present one, and the author's.

import { h } from '../dom.js';
import { t } from '../i18n.js';
import { revealed } from '../text/invisible.js';
import { changedLines } from '../text/line-diff.js';
import { textOf } from './backend.js';

/** The most lines of each side; the rest can be seen in the editor. */
const MOST_LINES = 2_000;

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
  const now = theirs === null ? null : textOf(theirs);
  return h(
    'section.conflict',
    { 'aria-label': t('edit.conflict'), tabindex: '-1' },
    h('h2', null, t('edit.conflict')),
    h('p', null, about ?? (theirs === null ? t('edit.conflict-gone') : t('edit.conflict-about'))),
    h(
      'div.conflict-sides',
      null,
      side(t('edit.side-base'), before, before),
      side(theirName ?? t('edit.side-theirs'), before, now ?? ''),
      side(t('edit.side-mine'), before, mine),
    ),
    h(
      'p.ways',
      null,
      h('button.primary', { type: 'button', onclick: keepMine }, t('edit.keep-mine')),
      h('button', { type: 'button', onclick: takeTheirs }, t('edit.take-theirs')),
    ),
  );
}

/** @param {string} title @param {string} before @param {string} text */
function side(title, before, text) {
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
  return h(
    'div.conflict-side',
    null,
    h('h3', null, title),
    h('pre.source', { tabindex: '0', role: 'group', 'aria-label': title }, rows),
  );
}
