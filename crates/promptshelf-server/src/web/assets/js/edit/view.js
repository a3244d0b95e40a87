// The *Edit* view: the files of a library, or one file.

import { ask, features } from '../app.js';
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

/** The last known account: it stays while the server is away and after a token has ended. @type {string | null} */
let account = null;

/** @param {import('../route.js').Place} place @param {AbortSignal} until */
export function view({ name, values }, until) {
  const body = h('div.edit', null, h('h1', { tabindex: '-1' }, h('bdi', null, name ? revealed(name) : t('nav.edit'))));
  const open = async () => {
    // Accounts of one browser have drafts of their own.
    try {
      const facts = await ask('facts', until);
      if (facts) account = facts.caller ?? '';
    } catch (error) {
      // Without the account, drafts could be kept where their author does not find them again.
      if (account === null && !until.aborted) {
        const again = h('button', { type: 'button', onclick: () => void open() }, t('connection.again'));
        show(body, body.firstElementChild, h('p.problem', { role: 'alert' }, lineIcon('warn'), reason(error)), again);
        return;
      }
    }
    if (!values.channel) {
      show(body, body.firstElementChild, h('p.waiting', null, t('find.loading')));
      await whenKnown(until);
    }
    if (until.aborted) return;
    const backend = values.channel ? channel(values.channel) : features.value.edit ? folder : null;
    if (!backend) {
      show(body, body.firstElementChild, await channels());
      return;
    }
    const library = `${account ?? ''}@${backend.id}`;
    const content = name ? fileView(backend, library, name, until) : filesView(backend, library, until);
    show(body, body.firstElementChild, content);
  };
  void open();
  return body;
}

/** Waits until the features of the server are known: a large library takes seconds. @param {AbortSignal} until */
function whenKnown(until) {
  return new Promise((resolve) => {
    until.addEventListener('abort', () => resolve(undefined));
    features.watch(({ isKnown }) => {
      if (isKnown) resolve(undefined);
    }, until);
  });
}

/** The channels that can be edited, where no folder is served. */
async function channels() {
  const { all } = await import('../api.js');
  try {
    /** @type {{ name: string }[]} */
    const found = await all('/channels');
    const links = found.map(({ name }) =>
      h('li', null, h('a', { href: linkTo('edit', '', { channel: name }) }, revealed(name))),
    );
    return [h('p.lead', null, t('edit.choose-channel')), h('ul.edit-channels', null, links)];
  } catch (error) {
    return h('p.problem', { role: 'alert' }, lineIcon('warn'), reason(error));
  }
}
