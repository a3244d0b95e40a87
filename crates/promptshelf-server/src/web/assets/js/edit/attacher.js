// Attaches files to a prompt: they are stored beside it, and the prompt refers to them.

import { ApiProblem } from '../api.js';
import { t } from '../i18n.js';
import { note } from '../view/announce.js';
import { accepted } from './attach.js';
import { keepDraft } from './drafts.js';
import { reason } from './reason.js';
import { isTaken } from './taken.js';

/**
 * @param {object} options
 * @param {import('./view.js').AnyBackend} options.backend
 * @param {string} options.library
 * @param {string} options.path of the prompt
 * @param {(text: string) => void} options.insert
 */
export function attacher({ backend, library, path, insert }) {
  const folder = path.includes('/') ? path.slice(0, path.lastIndexOf('/') + 1) : '';
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
        if ('write' in backend) await backend.write(target, bytes, null);
        else if (await isTaken(backend, library, target)) {
          note(t('edit.exists'));
          continue;
        } else await keepDraft({ library, path: target, bytes, base: null, baseBytes: null });
        insert(`{{ attach("${target}") }}`);
        note(t('edit.attached', { name }));
      } catch (error) {
        note(error instanceof ApiProblem && error.kind === 'exists' ? t('edit.exists') : reason(error));
      }
    }
  };
}
