// The *Browse* view: the files of a channel by folder, tag and text.

import { read } from '../api.js';
import { debounced, freshId, h, put, show } from '../dom.js';
import { t } from '../i18n.js';
import { linkTo } from '../link.js';
import { go } from '../route.js';
import { revealed } from '../text/invisible.js';
import { announce } from '../view/announce.js';
import { channelLinks, problem } from './parts.js';

const PAGE = 100;
const QUIET = 300;

/**
 * @typedef {{ name: string, title: string | null, description: string | null, tags: string[] }} BrowsedPrompt
 * @typedef {{ path: string, prompts: BrowsedPrompt[], lines: { number: number, text: string }[] }} BrowsedFile
 * @typedef {{ revision: number, total: number, files: BrowsedFile[], next: string | null,
 *   folders: { name: string, files: number }[], tags: { name: string, files: number }[] }} Browsed
 */

/** @param {import('../route.js').Place} place @param {AbortSignal} until */
export function view({ name: channel, values }, until) {
  const { folder = '', tag = '' } = values;
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
    for (const [key, value] of Object.entries({ text, folder, tag, after: after ?? '' }))
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
          ' ',
          h('span', null, t('channels.revision', { n: String(found.revision) })),
        );
        if (text) announce(t('ch.found', { n: found.total }));
      }
      put(
        list,
        found.files.map((file) => entry(channel, found.revision, file)),
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

/** The limits of the list, with links that lift it. @param {string} channel @param {Record<string, string>} values */
function chosen(channel, { text, folder, tag }) {
  const limits = [];
  if (folder) {
    const parent = folder.split('/').slice(0, -1).join('/');
    limits.push(
      h(
        'a.button',
        { href: linkTo('browse', channel, { text, tag, folder: parent }) },
        t('ch.leave'),
        ' ',
        revealed(folder),
      ),
    );
  }
  if (tag)
    limits.push(
      h('a.button', { href: linkTo('browse', channel, { text, folder }) }, t('ch.leave'), ' ', revealed(`#${tag}`)),
    );
  return limits.length ? h('p.links', null, limits) : null;
}

/** @param {string} channel @param {Browsed} found @param {Record<string, string>} values */
function groupList(channel, { folders, tags }, values) {
  /** @param {string} title @param {{ name: string, files: number }[]} items @param {'folder' | 'tag'} key */
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
  return [part(t('ch.folders'), folders, 'folder'), part(t('find.tags'), tags, 'tag')];
}

/** @param {string} channel @param {number} revision @param {BrowsedFile} file */
function entry(channel, revision, { path, prompts, lines }) {
  const link = linkTo('revision', `${channel}/${revision}`, { path });
  const titles = prompts.map(({ name, title, description, tags }) => [
    h(
      'p',
      null,
      h('strong', null, revealed(title ?? name)),
      ' ',
      h('code', null, revealed(name)),
      ' ',
      h(
        'a',
        { href: linkTo('history', channel, { prompt: name }) },
        t('ch.history'),
        h('span.unseen', null, ` ${name}`),
      ),
    ),
    description ? h('p.hint', null, revealed(description)) : null,
    tags.length
      ? h(
          'p.links',
          null,
          tags.map((tag) =>
            h('button.tag', { type: 'button', onclick: () => go(linkTo('browse', channel, { tag })) }, revealed(tag)),
          ),
        )
      : null,
  ]);
  return h('li', null, [
    h('a', { href: link }, h('code', null, revealed(path))),
    titles,
    lines.map(({ number, text }) =>
      h('p.found-line', null, h('span.number', null, String(number)), h('code', null, revealed(text))),
    ),
  ]);
}
