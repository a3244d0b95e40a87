// Duplicate, rename, delete, and discard a draft.

import { freshId, h, show } from '../dom.js';
import { t } from '../i18n.js';
import { linkTo } from '../link.js';
import { go } from '../route.js';
import { note } from '../view/announce.js';
import { draftOf, dropDraft, keepDraft } from './drafts.js';
import { pathForm } from './path-form.js';

/**
 * @param {object} options
 * @param {import('./view.js').AnyBackend} options.backend
 * @param {string} options.library
 * @param {string} options.path
 * @param {import('./backend.js').Stored | null} options.base
 * @param {() => Uint8Array} options.bytes
 * @param {() => boolean} options.isDirty
 * @param {() => Promise<void>} options.discard
 * @param {(error: unknown) => void} options.fail
 * @param {AbortSignal} options.until
 */
export function fileActions({ backend, library, path, base, bytes, isDirty, discard, fail, until }) {
  const id = freshId('action');
  const opened = h('div.edit-action', { id });
  /** @param {string} target */
  const open = (target) => go(linkTo('edit', target, { channel: backend.channel }));
  const home = () => go(linkTo('edit', '', { channel: backend.channel }));

  /** @param {string} target */
  const copy = async (target) => {
    const isThere = await backend.read(target, until).then(
      () => true,
      () => false,
    );
    if (isThere || (await draftOf(library, target))) return t('edit.exists');
    await keepDraft({ library, path: target, bytes: bytes(), base: null, baseBytes: null });
    return '';
  };
  const duplicate = () =>
    pathForm({
      label: t('edit.copy-path'),
      hint: t('edit.new-hint'),
      button: t('edit.duplicate'),
      initial: path.replace(/(\.[^./]+)?$/, '-copy$1'),
      submit: async (target) => {
        const problem = await copy(target);
        if (!problem) open(target);
        return problem;
      },
    });
  const rename = () =>
    pathForm({
      label: t('edit.rename-path'),
      hint: 'rename' in backend ? t('edit.rename-hint') : t('edit.new-hint'),
      button: t('edit.rename'),
      initial: path,
      submit: async (target) => {
        if ('rename' in backend && base) {
          if (isDirty()) return t('edit.save-first');
          const { changed, left } = await backend.rename(path, target, base.digest);
          note(
            left.length
              ? t('edit.references-left', { paths: left.join(', ') })
              : t('edit.renamed', { n: changed.length }),
          );
        } else {
          const problem = await copy(target);
          if (problem) return problem;
          if (base) await keepDraft({ library, path, bytes: null, base: base.digest, baseBytes: base.bytes });
          else await dropDraft(library, path);
        }
        open(target);
        return '';
      },
    });
  const remove = async () => {
    try {
      if (!base) await dropDraft(library, path);
      else if ('remove' in backend) {
        await backend.remove(path, base.digest);
        await dropDraft(library, path);
      } else await keepDraft({ library, path, bytes: null, base: base.digest, baseBytes: base.bytes });
      note(t('edit.deleted'));
      home();
    } catch (error) {
      fail(error);
    }
  };
  /** @param {() => { element: HTMLElement, input: HTMLInputElement }} made */
  const shows = (made) => () => {
    const form = made();
    show(opened, form.element);
    form.input.focus();
  };
  const confirm = () => {
    const sure = h('button', { type: 'button', onclick: () => void remove() }, t('edit.delete-sure', { path }));
    show(opened, sure);
    sure.focus();
  };
  return [
    h('button', { type: 'button', onclick: shows(duplicate) }, t('edit.duplicate')),
    h('button', { type: 'button', onclick: shows(rename) }, t('edit.rename')),
    h('button', { type: 'button', onclick: confirm }, t('edit.delete')),
    h(
      'button',
      {
        type: 'button',
        onclick: async () => {
          if (base) return void discard();
          await dropDraft(library, path);
          home();
        },
      },
      t('edit.discard'),
    ),
    opened,
  ];
}
