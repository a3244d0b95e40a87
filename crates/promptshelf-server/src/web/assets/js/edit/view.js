// The *Edit* view: the files of a library, or one file.

import { features, pageApi } from '../app.js';
import { h, show } from '../dom.js';
import { t } from '../i18n.js';
import { linkTo } from '../link.js';
import { revealed } from '../text/invisible.js';
import { lineIcon } from '../view/glyphs.js';
import { channel, folder } from './backend.js';
import { fileView } from './file.js';
import { filesView } from './files.js';
import { reason } from './reason.js';

/** @typedef {ReturnType<typeof channel> | typeof folder} AnyBackend */

/** The last known account: it stays while the server is away. */
let account = '';

/** @param {import('../route.js').Place} place @param {AbortSignal} until */
export function view({ name, values }, until) {
  const body = h('div.edit', null, h('h1', { tabindex: '-1' }, h('bdi', null, name ? revealed(name) : t('nav.edit'))));
  const open = async () => {
    // Accounts of one browser have drafts of their own.
    const facts = await pageApi('facts', until);
    if (until.aborted) return;
    if (facts) account = facts.caller ?? '';
    const backend = values.channel ? channel(values.channel) : features.value.edit ? folder : null;
    if (!backend) {
      show(body, body.firstElementChild, await channels());
      return;
    }
    const library = `${account}@${backend.id}`;
    const content = name ? fileView(backend, library, name, until) : filesView(backend, library, until);
    show(body, body.firstElementChild, content);
  };
  void open();
  return body;
}

/** The channels that can be edited, where no folder is served. */
async function channels() {
  const { read } = await import('../api.js');
  try {
    /** @type {{ channels: { name: string }[] }} */
    const found = await read('/channels');
    const links = found.channels.map(({ name }) =>
      h('li', null, h('a', { href: linkTo('edit', '', { channel: name }) }, revealed(name))),
    );
    return [h('p.lead', null, t('edit.choose-channel')), h('ul.edit-channels', null, links)];
  } catch (error) {
    return h('p.problem', { role: 'alert' }, lineIcon('warn'), reason(error));
  }
}
