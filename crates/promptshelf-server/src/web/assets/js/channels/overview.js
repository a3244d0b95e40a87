// The *Channels* view: all channels, and the version of each prompt in each of them.

import { api } from '../api.js';
import { loads } from '../app.js';
import { debounced, freshId, h, put, show } from '../dom.js';
import { t } from '../i18n.js';
import { linkTo } from '../link.js';
import { revealed } from '../text/invisible.js';
import { announce } from '../view/announce.js';
import { isEverywhere, pill, problem } from './parts.js';
import { inWords } from './policy.js';

const PAGE = 100;
const QUIET = 250;

/**
 * @typedef {{ name: string, head: { revision: number }, policy: import('./policy.js').Policy }} Channel
 * @typedef {{ channel: string, version: number, digest: string, since: number }} Standing
 */

/** @param {import('../route.js').Place} place @param {AbortSignal} until */
export function view({ values }, until) {
  const cards = h('div.channel-list');
  const table = h('div.matrix-box');
  const rest = h('div');
  const id = freshId('search');
  const search = h('input', { id, type: 'search', maxlength: '200', autocomplete: 'off', spellcheck: 'false' });
  search.value = values.text ?? '';
  let etag = '';
  /** @type {HTMLElement | undefined} */
  let body;
  /** @type {Channel[]} */
  let channels = [];
  let round = 0;

  /** @param {string | null} after */
  const load = async (after) => {
    const mine = ++round;
    const text = search.value.trim();
    const query = new URLSearchParams({
      limit: String(PAGE),
      ...(text ? { text } : {}),
      ...(after ? { cursor: after } : {}),
    });
    try {
      const page = await api(`/standings?${query}`, { signal: until });
      if (until.aborted || mine !== round) return;
      const { items: prompts, next } = page.value;
      if (after === null) {
        if (page.etag === etag) return;
        etag = page.etag;
        channels = page.value.channels;
        show(
          cards,
          channels.length ? channels.map((one) => card(one, channels)) : h('p.lead', null, t('channels.empty')),
        );
        const fresh = h('tbody');
        body = fresh;
        show(table, channels.length ? matrix(channels, fresh) : null);
        if (text) announce(t('find.found', { n: prompts.length }));
      }
      if (body)
        put(
          body,
          prompts.map((/** @type {any} */ one) => row(one, channels)),
        );
      const more = h('button', { type: 'button', onclick: () => void load(next) }, t('ch.more-prompts'));
      const isEmpty = after === null && !prompts.length && channels.length;
      show(
        rest,
        next
          ? more
          : isEmpty
            ? h('p.hint', null, text ? t('find.nothing', { query: text }) : t('ch.nothing-published'))
            : null,
      );
    } catch (error) {
      if (until.aborted) return;
      show(
        rest,
        problem(error, () => void load(after)),
      );
    }
  };
  const later = debounced(QUIET, () => {
    etag = '';
    void load(null);
  });
  search.addEventListener('input', later);
  loads.watch(() => void load(null), until);
  return h('div.channels', null, [
    h('h1', { tabindex: '-1' }, t('nav.channels')),
    cards,
    h('h2', null, t('ch.at-a-glance')),
    h('div.field.narrow', null, h('label.label', { for: id }, t('ch.search-names')), search),
    table,
    rest,
    h('p.links', null, [
      h('a', { href: linkTo('rollouts') }, t('ch.rollouts')),
      h('a', { href: linkTo('webhooks') }, t('ch.webhooks')),
      h('a', { href: linkTo('tokens') }, t('ch.tokens')),
    ]),
  ]);
}

/** @param {Channel} channel @param {Channel[]} all */
function card({ name, head, policy }, all) {
  const sources = all.filter((one) => one.name !== name && one.head.revision > 0);
  return h('article.channel', null, [
    h('h2', null, h('a', { href: linkTo('history', name) }, revealed(name))),
    h('p.hint', null, head.revision ? t('channels.revision', { n: String(head.revision) }) : t('channels.unused')),
    h(
      'p.facts',
      null,
      inWords(policy).map((text) => pill('plain', text)),
    ),
    h('p.links', null, [
      h('a', { href: linkTo('history', name) }, t('ch.history'), h('span.unseen', null, ` ${name}`)),
      h('a', { href: linkTo('browse', name) }, t('ch.browse'), h('span.unseen', null, ` ${name}`)),
      sources.map((one) =>
        h(
          'a',
          { href: linkTo('compare', name, { promote: one.name }) },
          t('ch.promote-from', { from: one.name, to: name }),
        ),
      ),
    ]),
  ]);
}

/** @param {Channel[]} channels @param {HTMLElement} body */
function matrix(channels, body) {
  const label = t('ch.at-a-glance');
  return h(
    'div.scroller',
    { tabindex: '0', role: 'group', 'aria-label': label },
    h('table.matrix', null, [
      h('caption.unseen', null, label),
      h(
        'thead',
        null,
        h('tr', null, [
          h('th', { scope: 'col' }, t('ch.prompt')),
          channels.map(({ name }) => h('th', { scope: 'col' }, revealed(name))),
        ]),
      ),
      body,
    ]),
  );
}

/** @param {{ name: string, channels: Standing[] }} prompt @param {Channel[]} channels */
function row({ name, channels: standings }, channels) {
  const cells = channels.map((channel) => {
    const at = standings.find((one) => one.channel === channel.name);
    if (!at) return h('td.absent', null, '–');
    const kind = isEverywhere(standings) ? 'good' : 'plain';
    const link = h('a', { href: linkTo('history', channel.name, { prompt: name }) }, pill(kind, `v${at.version}`));
    return h('td', null, link, ' ', h('span.hint', null, t('ch.since', { n: String(at.since) })));
  });
  return h('tr', null, h('th', { scope: 'row' }, h('code', null, revealed(name))), cells);
}
