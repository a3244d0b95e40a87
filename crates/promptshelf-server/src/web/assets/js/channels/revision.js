// The *Revision* view: the files of a revision, read-only.

import { file, read } from '../api.js';
import { h, put, show } from '../dom.js';
import { language, t } from '../i18n.js';
import { linkTo } from '../link.js';
import { go } from '../route.js';
import { revealed } from '../text/invisible.js';
import { size } from '../text/measure.js';
import { channelLinks, fill, kindName, pill, problem, when } from './parts.js';

const PAGE = 200;
/** Characters of a file that are shown. */
const MOST_CHARACTERS = 500_000;

/** @param {import('../route.js').Place} place @param {AbortSignal} until */
export function view({ name, values }, until) {
  const [channel, text] = name.split('/');
  const number = /^\d{1,15}$/.test(text ?? '') ? Number(text) : 0;
  const about = h('div');
  const files = h('ul.files', { role: 'list' });
  const rest = h('div');
  const content = h('section.file', { 'aria-live': 'polite' });
  const url = `/channels/${encodeURIComponent(channel)}`;

  /** @param {string} path */
  const link = (path) => linkTo('revision', `${channel}/${number}`, { path });
  /** @param {string | null} after the cursor of the page */
  const load = async (after) => {
    try {
      const query = `revision=${number}&limit=${PAGE}${after ? `&cursor=${after}` : ''}`;
      const page = await read(`${url}/tree?${query}`, until);
      if (until.aborted) return;
      put(
        files,
        page.items.map((/** @type {any} */ one) =>
          h('li', null, [
            h(
              'a',
              { href: link(one.path), 'aria-current': one.path === values.path ? 'true' : null },
              h('code', null, revealed(one.path)),
            ),
            h('span.hint', null, size(one.size, language)),
          ]),
        ),
      );
      show(
        rest,
        page.next ? h('button', { type: 'button', onclick: () => void load(page.next) }, t('ch.more-files')) : null,
      );
    } catch (error) {
      if (!until.aborted)
        show(
          rest,
          problem(error, () => void load(after)),
        );
    }
  };
  void load(null);
  void fill(about, until, async () => {
    const one = await read(`${url}/revisions/${number}`, until);
    return [
      h('p.message', null, revealed(one.message)),
      h('p.facts', null, [pill('plain', kindName(one.kind)), h('strong', null, revealed(one.author)), when(one.at)]),
    ];
  });
  if (values.path) {
    void fill(content, until, async () => {
      const found = await file(channel, values.path, number, until);
      const heading = h('h2', null, h('code', null, revealed(values.path)));
      if (found.text === null) return [heading, h('p.hint', null, t('ch.binary'))];
      const shown = found.text.slice(0, MOST_CHARACTERS);
      return [
        heading,
        h('pre.source.whole', { tabindex: '0', role: 'group', 'aria-label': values.path }, revealed(shown)),
        shown.length < found.text.length ? h('p.hint', null, t('ch.cut')) : null,
      ];
    });
  } else {
    show(content, h('p.hint', null, t('ch.choose-file')));
  }
  const compare = () => go(linkTo('compare', channel, { from: number }));
  return h('div.channels', null, [
    channelLinks(channel, ''),
    h('h1', { tabindex: '-1' }, revealed(t('ch.revision-of', { channel, n: String(number) }))),
    about,
    h('div.actions', null, [
      h('button', { type: 'button', onclick: compare }, t('ch.compare-newest')),
      h('a.button', { href: linkTo('compare', channel, { rollback: number }) }, t('ch.rollback')),
    ]),
    h('div.beside.files-beside', null, h('nav', { 'aria-label': t('ch.files-label') }, files, rest), content),
  ]);
}
