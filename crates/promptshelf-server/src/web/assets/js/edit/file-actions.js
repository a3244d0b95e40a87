// Duplicate, rename, delete, and discard a draft.

import { freshId, h, show } from '../dom.js';
import { t } from '../i18n.js';
import { linkTo } from '../link.js';
import { go } from '../route.js';
import { note } from '../view/announce.js';
import { contentOf } from './backend.js';
import { acceptDraft, draftsOf, dropDraft, keepDraft } from './drafts.js';
import { pathForm } from './path-form.js';
import { withEnding } from './paths.js';
import { isTaken, pathProblem } from './taken.js';

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

  /** @param {string} target @param {Uint8Array} [content] */
  const copy = async (target, content = bytes()) => {
    if (await isTaken(backend, library, target)) return t('edit.exists');
    const problem = await pathProblem(backend, target, content);
    if (!problem) await keepDraft({ library, path: target, bytes: content, base: null, baseBytes: null });
    return problem;
  };
  /**
   * Keeps drafts of the files that refer to a renamed file. Returns their number, and the content of the file itself.
   *
   * @param {ReturnType<typeof import('./backend.js').channel>} channel
   * @param {string} target
   */
  const refer = async (channel, target) => {
    const drafts = new Map((await draftsOf(library)).map((draft) => [draft.path, draft]));
    const unsaved = [...drafts.values()].filter((draft) => draft.path !== path);
    const changes = unsaved.map((draft) => ({ path: draft.path, content: draft.bytes && contentOf(draft.bytes) }));
    const own = { path, content: contentOf(bytes()) };
    const references = await channel.references(path, target, [...changes, own]);
    const encode = (/** @type {string} */ text) => new TextEncoder().encode(text);
    const referring = references.filter((reference) => reference.path !== target);
    for (const { path: place, text } of referring) {
      const known = drafts.get(place);
      if (known) acceptDraft(known);
      const stored = known ? null : await channel.read(place, until);
      const base = known?.base ?? stored?.digest ?? null;
      const baseBytes = known?.baseBytes ?? stored?.bytes ?? null;
      await keepDraft({ library, path: place, bytes: encode(text), base, baseBytes });
    }
    const self = references.find((reference) => reference.path === target);
    return { count: referring.length, content: self ? encode(self.text) : bytes() };
  };
  const duplicate = () =>
    pathForm({
      label: t('edit.copy-path'),
      hint: t('edit.new-hint'),
      button: t('edit.duplicate'),
      initial: path.replace(/(\.[^./]+)?$/, '-copy$1'),
      submit: async (typed) => {
        const target = withEnding(typed, path);
        const problem = await copy(target);
        if (!problem) open(target);
        return problem;
      },
    });
  const rename = () =>
    pathForm({
      label: t('edit.rename-path'),
      hint: t('edit.rename-hint'),
      button: t('edit.rename'),
      initial: path,
      submit: async (typed) => {
        const target = withEnding(typed, path);
        if ('rename' in backend && base) {
          if (isDirty()) return t('edit.save-first');
          const { changed, left } = await backend.rename(path, target, base.digest);
          note(
            left.length
              ? t('edit.references-left', { paths: left.join(', ') })
              : t('edit.renamed', { n: changed.length }),
          );
        } else {
          const found = 'references' in backend ? await refer(backend, target) : null;
          const problem = await copy(target, found?.content);
          if (problem) return problem;
          if (found) note(t('edit.renamed', { n: found.count }));
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
