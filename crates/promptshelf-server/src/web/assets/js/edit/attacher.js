// Attaches files to a prompt: they are stored next to it, and the prompt refers to them.

import { ApiProblem } from '../api.js';
import { h } from '../dom.js';
import { t } from '../i18n.js';
import { revealed } from '../text/invisible.js';
import { note } from '../view/announce.js';
import { accepted } from './attach.js';
import { isSame } from './backend.js';
import { draftOf, keepDraft } from './drafts.js';
import { reason } from './reason.js';

/**
 * @param {object} options
 * @param {import('./view.js').AnyBackend} options.backend
 * @param {string} options.library
 * @param {string} options.path of the prompt
 * @param {(text: string) => void} options.insert
 * @param {(question: HTMLElement | null) => void} options.ask shows a question, or none
 */
export function attacher({ backend, library, path, insert, ask }) {
  const folder = path.includes('/') ? path.slice(0, path.lastIndexOf('/') + 1) : '';
  /** @param {string} target */
  const refer = (target) => {
    insert(`{{ attach("${target}") }}`);
    note(t('edit.attached', { name: target.slice(folder.length) }));
  };
  /** The content at a path, saved or not; null without one. @param {string} target */
  const present = async (target) => {
    const draft = await draftOf(library, target);
    if (draft) return draft.bytes;
    try {
      return (await backend.read(target)).bytes;
    } catch (error) {
      if (error instanceof ApiProblem && error.status === 404) return null;
      throw error;
    }
  };
  /** @param {string} target @param {Uint8Array} bytes */
  const store = async (target, bytes) => {
    if ('write' in backend) await backend.write(target, bytes, null);
    else await keepDraft({ library, path: target, bytes, base: null, baseBytes: null });
    refer(target);
  };
  /** The first free path of the form `logo-2.png`. @param {string} target */
  const free = async (target) => {
    for (let number = 2; ; number++) {
      const next = target.replace(/(\.[^./]+)?$/, `-${number}$1`);
      if (!(await present(next))) return next;
    }
  };
  /**
   * Asks which file is meant, and waits for the answer.
   *
   * @param {string} target
   * @param {Uint8Array} bytes
   */
  const choose = (target, bytes) =>
    new Promise((resolve) => {
      /** @param {string} label @param {() => unknown} act @param {string} [kind] */
      const way = (label, act, kind = 'button') =>
        h(
          kind,
          {
            type: 'button',
            onclick: async () => {
              ask(null);
              try {
                await act();
              } catch (error) {
                note(reason(error));
              }
              resolve(undefined);
            },
          },
          label,
        );
      const use = way(t('edit.use-present'), () => refer(target), 'button.primary');
      ask(
        h(
          'div.edit-choice',
          { role: 'group', 'aria-label': t('edit.attach') },
          h('p', { role: 'status' }, revealed(t('edit.present', { path: target }))),
          use,
          way(t('edit.keep-both'), async () => store(await free(target), bytes)),
          way(t('edit.attach-none'), () => {}),
        ),
      );
      use.focus();
    });

  /** @param {FileList | null} files */
  return async (files) => {
    for (const file of files ?? []) {
      const bytes = await accepted(file);
      if (typeof bytes === 'string') {
        note(bytes);
        continue;
      }
      // A name that no file system and no template misunderstands.
      const name = file.name.replace(/[^\p{L}\p{N}._ -]+/gu, '-').replace(/^[._ ]+/, '');
      const target = `${folder}${name}`;
      try {
        const known = await present(target);
        if (!known) await store(target, bytes);
        else if (isSame(known, bytes)) refer(target);
        else await choose(target, bytes);
      } catch (error) {
        note(reason(error));
      }
    }
  };
}
