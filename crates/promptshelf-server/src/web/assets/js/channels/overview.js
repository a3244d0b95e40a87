// The *Channels* view: all channels with their newest revisions and policies.

import { read } from '../api.js';
import { h, show } from '../dom.js';
import { t } from '../i18n.js';
import { revealed } from '../text/invisible.js';
import { lineIcon } from '../view/glyphs.js';

/** @param {import('../route.js').Place} _ @param {AbortSignal} until */
export function view(_, until) {
  const list = h('div.channel-list');
  const load = async () => {
    try {
      const { channels } = await read('/channels', until);
      show(list, channels.length ? channels.map(card) : h('p.hint', null, t('channels.empty')));
    } catch (error) {
      if (!until.aborted) show(list, h('p.problem', { role: 'alert' }, lineIcon('warn'), String(error)));
    }
  };
  void load();
  return h('div.channels', null, h('h1', { tabindex: '-1' }, t('nav.channels')), list);
}

/** @param {any} channel */
function card({ name, head }) {
  return h(
    'article.channel',
    null,
    h('h2', null, revealed(name)),
    h('p.hint', null, head.revision ? t('channels.revision', { n: String(head.revision) }) : t('channels.unused')),
  );
}
