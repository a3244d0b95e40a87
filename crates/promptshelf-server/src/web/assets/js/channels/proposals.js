// The *Proposals* view: the proposals of all channels, the newest first.

import { read } from '../api.js';
import { wanted } from '../app.js';
import { h, put, show } from '../dom.js';
import { t } from '../i18n.js';
import { linkTo } from '../link.js';
import { go } from '../route.js';
import { revealed } from '../text/invisible.js';
import { kindName, pill, problem, reasonsOf, statePill, titleOf, when } from './parts.js';

const PAGE = 50;
const STATES = /** @type {const} */ (['open', 'published', 'rejected', 'withdrawn']);

/**
 * @typedef {{ id: number, channel: string, kind: 'publish' | 'promote' | 'rollback' | 'policy', message: string, author: string,
 *   state: 'open' | 'published' | 'rejected' | 'withdrawn', at: string, files: number, lacks: string[], reasons: import('./parts.js').Reason[] }} Summary
 */

/** @param {import('../route.js').Place} place @param {AbortSignal} until */
export function view({ values }, until) {
  const chosen = STATES.find((state) => state === values.state) ?? (values.state === 'all' ? 'all' : 'open');
  const list = h('ol.proposals', { role: 'list' });
  const rest = h('div');
  let shown = '';

  /** @param {string | null} before the cursor of the page */
  const load = async (before) => {
    const state = chosen === 'all' ? '' : `&state=${chosen}`;
    try {
      const page = await read(`/reviews?limit=${PAGE}${state}${before ? `&cursor=${before}` : ''}`, until);
      if (until.aborted) return;
      const key = JSON.stringify(page);
      if (before === null) {
        if (key === shown) return;
        shown = key;
        show(list);
      }
      put(list, page.items.map(entry));
      const more = h('button', { type: 'button', onclick: () => void load(page.next) }, t('ch.older'));
      const isEmpty = before === null && !page.items.length;
      show(rest, page.next ? more : isEmpty ? h('p.hint', null, t('ch.no-proposals')) : null);
    } catch (error) {
      if (!until.aborted)
        show(
          rest,
          problem(error, () => void load(before)),
        );
    }
  };
  // The number of wanted reviews is polled; a change of it means another list.
  wanted.watch(() => void load(null), until);

  const filter = h('fieldset.radios', null, [
    h('legend.unseen', null, t('ch.state')),
    [...STATES, /** @type {const} */ ('all')].map((state) =>
      h('label', null, [
        h('input', {
          type: 'radio',
          name: 'state',
          checked: state === chosen,
          onchange: () => go(linkTo('proposals', '', { state })),
        }),
        h('span', null, t(`ch.states.${state}`)),
      ]),
    ),
  ]);
  return h('div.channels', null, [h('h1', { tabindex: '-1' }, t('nav.proposals')), filter, list, rest]);
}

/** @param {{ proposal: Summary, reviewWanted: boolean }} one */
function entry({ proposal, reviewWanted }) {
  return h('li.proposal', null, [
    h(
      'h2',
      null,
      h(
        'a',
        { href: linkTo('proposal', proposal.id) },
        h('span.hint', null, `#${proposal.id}`),
        ' ',
        revealed(titleOf(proposal)),
      ),
    ),
    h('p.facts', null, [
      statePill(proposal.state),
      reviewWanted ? pill('warn', t('ch.wanted')) : null,
      pill('plain', kindName(proposal.kind)),
      h('span', null, revealed(proposal.channel)),
      h('strong', null, revealed(proposal.author)),
      when(proposal.at),
      h('span', null, t('ch.files', { n: proposal.files })),
    ]),
    proposal.state === 'open' && proposal.lacks.length
      ? h('p.hint', null, revealed(reasonsOf(proposal.reasons, proposal.lacks).join(' ')))
      : null,
  ]);
}
