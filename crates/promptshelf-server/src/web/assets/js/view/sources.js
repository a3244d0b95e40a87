// The sources of a server with several, with their states.

import { all } from '../api.js';
import { features, loads } from '../app.js';
import { h, show } from '../dom.js';
import { language, t } from '../i18n.js';
import { revealed } from '../text/invisible.js';

/**
 * @typedef {object} Source
 * @property {string} name
 * @property {string} kind
 * @property {'current' | 'behind' | 'failed' | 'starting'} state
 * @property {number | null} revision
 * @property {string | null} commit
 * @property {number} prompts
 * @property {string | null} behindSince
 * @property {string | null} problem
 * @property {string[]} leftOut
 */

/** A section that stays hidden until the states are known. @param {AbortSignal} until */
export function sources(until) {
  const list = h('dl.table-of');
  const section = h('section', { hidden: true }, h('h2', null, t('sources.heading')), list);
  const load = async () => {
    if (!features.value.sources) return;
    // Callers without permission see the sources of prompts only.
    /** @type {Source[] | null} */
    const found = await all('/sources', until).catch(() => null);
    if (!found || until.aborted) return;
    section.hidden = false;
    show(list, found.map(row));
  };
  loads.watch(() => void load(), until);
  features.watch(() => void load(), until);
  return section;
}

/** @param {Source} source */
function row({ name, kind, state, revision, commit, prompts, behindSince, problem, leftOut }) {
  return h('div', null, h('dt', null, revealed(name)), [
    h('dd', null, [
      h('span.tag', { class: state === 'current' ? 'tag current' : null }, t(`sources.${state}`)),
      h('span.tag', null, kind),
      h('span', null, t('sources.prompts', { n: prompts })),
      commit
        ? h('span', { title: commit }, ' · ', revealed(t('prompt.commit', { commit: commit.slice(0, 12) })))
        : null,
      revision === null ? null : h('span', null, ' · ', t('sources.revision', { revision })),
      problem && behindSince
        ? h('p.hint', null, revealed(t('sources.since', { time: localTime(behindSince), problem })))
        : null,
      leftOut.length ? h('p.hint', null, t('sources.leftOut')) : null,
      leftOut.length
        ? h(
            'ul.hint',
            null,
            leftOut.map((text) => h('li', null, revealed(text))),
          )
        : null,
    ]),
  ]);
}

/** @param {string} iso */
function localTime(iso) {
  return new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(iso));
}
