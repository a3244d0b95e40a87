// The *Browse* view: the files of a channel by folder, tag, owner, collection and text, with the versions in all channels.

import { read } from '../api.js';
import { debounced, freshId, h, put, show } from '../dom.js';
import { t } from '../i18n.js';
import { linkTo } from '../link.js';
import { go } from '../route.js';
import { revealed } from '../text/invisible.js';
import { announce } from '../view/announce.js';
import { channelLinks, isEverywhere, pill, problem } from './parts.js';

const PAGE = 100;
const QUIET = 300;

/**
 * @typedef {{ name: string, files: number }} Group
 * @typedef {{ name: string, title: string | null, description: string | null, tags: string[], owners: string[],
 *   collections: string[], channels: import('./overview.js').Standing[] }} BrowsedPrompt
 * @typedef {{ path: string, prompts: BrowsedPrompt[], lines: { number: number, text: string }[] }} BrowsedFile
 * @typedef {{ revision: number, total: number, items: BrowsedFile[], next: string | null,
 *   folders: Group[], tags: Group[], owners: Group[], collections: Group[] }} Browsed
 */

/** @param {import('../route.js').Place} place @param {AbortSignal} until */
export function view({ name: channel, values }, until) {
  const id = freshId('search');
  const search = h('input', { id, type: 'search', maxlength: '200', autocomplete: 'off', 'data-focus': true });
  search.value = values.text ?? '';
  const groups = h('nav.groups', { 'aria-label': t('ch.groups') });
  const summary = h('p.summary', { role: 'status' });
  const list = h('ul.files', { role: 'list' });
  const rest = h('div');
  let round = 0;

  /** @param {string | null} after */
  const load = async (after) => {
    const mine = ++round;
    const text = search.value.trim();
    const query = new URLSearchParams({ limit: String(PAGE) });
    for (const [key, value] of Object.entries({ ...limits(values), text, cursor: after ?? '' }))
      if (value) query.set(key, value);
    try {
      /** @type {Browsed} */
      const found = await read(`/channels/${encodeURIComponent(channel)}/browse?${query}`, until);
      if (until.aborted || mine !== round) return;
      if (after === null) {
        show(list);
        show(groups, groupList(channel, found, values));
        show(
          summary,
          t('ch.found', { n: found.total }),
          ' · ',
          h('span', null, t('channels.revision', { n: String(found.revision) })),
        );
        if (text) announce(t('ch.found', { n: found.total }));
      }
      put(
        list,
        found.items.map((file) => entry(channel, found.revision, file)),
      );
      show(
        rest,
        found.next ? h('button', { type: 'button', onclick: () => void load(found.next) }, t('ch.more-files')) : null,
      );
    } catch (error) {
      if (!until.aborted)
        show(
          rest,
          problem(error, () => void load(after)),
        );
    }
  };
  const later = debounced(QUIET, () => {
    // The address follows, so that a link leads to the same search; the view stays.
    history.replaceState(null, '', linkTo('browse', channel, { ...values, text: search.value.trim() }));
    void load(null);
  });
  search.addEventListener('input', later);
  void load(null);
  return h('div.channels', null, [
    channelLinks(channel, 'browse'),
    h('h1', { tabindex: '-1' }, revealed(t('ch.browse-of', { channel }))),
    h('div.field.narrow', null, h('label.label', { for: id }, t('ch.search-texts')), search),
    chosen(channel, values),
    h('div.beside.files-beside', null, groups, h('section', null, summary, list, rest)),
  ]);
}

/** The words by which prompts are grouped, each with the mark of its buttons. */
const FACETS = /** @type {const} */ ({ tag: '#', owner: '@', collection: '' });

/** A name with its mark. @param {keyof typeof FACETS} key @param {string} name */
function markedName(key, name) {
  // An address has the sign already.
  return key === 'owner' && name.includes('@') ? name : FACETS[key] + name;
}

/** @param {Record<string, string>} values of the address @returns {Record<string, string>} */
function limits({ folder = '', tag = '', owner = '', collection = '' }) {
  return { folder, tag, owner, collection };
}

/** The limits of the list, with links that lift it. @param {string} channel @param {Record<string, string>} values */
function chosen(channel, values) {
  const { text } = values;
  const now = limits(values);
  /** @param {Record<string, string>} wider @param {string} name */
  const leave = (wider, name) =>
    h('a.button', { href: linkTo('browse', channel, { text, ...now, ...wider }) }, t('ch.leave'), ' ', revealed(name));
  const links = /** @type {(keyof typeof FACETS)[]} */ (Object.keys(FACETS))
    .filter((key) => now[key])
    .map((key) => leave({ [key]: '' }, markedName(key, now[key])));
  if (now.folder) links.unshift(leave({ folder: now.folder.split('/').slice(0, -1).join('/') }, now.folder));
  return links.length ? h('p.links', null, links) : null;
}

/** @param {string} channel @param {Browsed} found @param {Record<string, string>} values */
function groupList(channel, { folders, tags, owners, collections }, values) {
  /** @param {string} title @param {Group[]} items @param {string} key */
  const part = (title, items, key) =>
    items.length
      ? [
          h('h2', null, title),
          h(
            'ul',
            { role: 'list' },
            items.map(({ name, files }) =>
              h(
                'li',
                null,
                h('a', { href: linkTo('browse', channel, { ...values, [key]: name }) }, revealed(name)),
                h('span.hint', null, ` ${files}`),
              ),
            ),
          ),
        ]
      : null;
  return [
    part(t('ch.folders'), folders, 'folder'),
    part(t('ch.collections'), collections, 'collection'),
    part(t('ch.owners'), owners, 'owner'),
    part(t('find.tags'), tags, 'tag'),
  ];
}

/** The version of a prompt in every channel. @param {BrowsedPrompt} prompt */
function standings({ name, channels }) {
  const kind = isEverywhere(channels) ? 'good' : 'plain';
  const items = channels.map(({ channel, version }) =>
    h(
      'li',
      null,
      h('span', null, revealed(channel)),
      ' ',
      h(
        'a',
        { href: linkTo('history', channel, { prompt: name }) },
        pill(kind, `v${version}`),
        h('span.unseen', null, ` ${name}`),
      ),
    ),
  );
  return items.length ? h('ul.standings', { role: 'list', 'aria-label': t('ch.at-a-glance') }, items) : null;
}

/** @param {string} channel @param {BrowsedPrompt} prompt */
function facets(channel, { tags, owners, collections }) {
  /** @param {keyof typeof FACETS} key @param {string[]} names */
  const buttons = (key, names) =>
    names.map((name) =>
      h(
        'button.tag',
        { type: 'button', onclick: () => go(linkTo('browse', channel, { [key]: name })) },
        revealed(key === 'tag' ? name : markedName(key, name)),
      ),
    );
  const all = [...buttons('collection', collections), ...buttons('owner', owners), ...buttons('tag', tags)];
  return all.length ? h('p.links', null, all) : null;
}

/** @param {string} channel @param {number} revision @param {BrowsedFile} file */
function entry(channel, revision, { path, prompts, lines }) {
  const link = linkTo('revision', `${channel}/${revision}`, { path });
  const titles = prompts.map((prompt) => [
    h('p', null, h('strong', null, revealed(prompt.title ?? prompt.name)), ' ', h('code', null, revealed(prompt.name))),
    prompt.description ? h('p.hint', null, revealed(prompt.description)) : null,
    facets(channel, prompt),
    standings(prompt),
  ]);
  return h('li', null, [
    h('a', { href: link }, h('code', null, revealed(path))),
    titles,
    lines.map(({ number, text }) =>
      h('p.found-line', null, h('span.number', null, String(number)), h('code', null, revealed(text))),
    ),
  ]);
}
