// One file in the editor.

import { ApiProblem } from '../api.js';
import { loads } from '../app.js';
import { debounced, h, show } from '../dom.js';
import { language, t } from '../i18n.js';
import { linkTo } from '../link.js';
import { go } from '../route.js';
import { size } from '../text/measure.js';
import { announce, note } from '../view/announce.js';
import { lineIcon } from '../view/glyphs.js';
import { fileButton } from './attach.js';
import { attacher } from './attacher.js';
import { contentOf, isSame, textOf } from './backend.js';
import { conflictView } from './conflict.js';
import { acceptDraft, draftInBrowser, draftOf, draftsOf, dropDraft, hasUnkept, keepDraft } from './drafts.js';
import { fileActions } from './file-actions.js';
import { reason } from './reason.js';
import { sidePane } from './side.js';
import { textEditor } from './text-editor.js';

const QUIET = 300;

/**
 * @param {import('./view.js').AnyBackend} backend
 * @param {string} library
 * @param {string} path
 * @param {AbortSignal} until
 */
export function fileView(backend, library, path, until) {
  const status = h('p.edit-status', { role: 'status' });
  const problem = h('p.problem', { hidden: true, role: 'alert' });
  const conflict = h('div');
  const actions = h('div.edit-actions');
  const columns = h('div.columns.edit-columns');
  const host = h('div.edit-text');
  /** The content that the author started from. @type {import('./backend.js').Stored | null} */
  let base = null;
  /** @type {Awaited<ReturnType<typeof textEditor>>} */
  let editor = null;
  let isDirty = false;
  let isSaving = false;
  /** Whether the status says that the saved text is not served. */
  let isBroken = false;
  /** The text of the draft in the browser's database, if it has the present base. @type {string | null} */
  let kept = null;

  /** @param {unknown} error */
  const fail = (error) => {
    if (until.aborted) return;
    problem.hidden = !error;
    show(problem, error ? [lineIcon('warn'), reason(error)] : null);
  };
  /** @param {string} text */
  const now = (text) => {
    isBroken = false;
    show(status, text);
  };
  /** Says whether the saved text is served. @param {string} fine the status if it is */
  const tell = async (fine) => {
    const errors = 'write' in backend && editor ? await side.errors() : 0;
    const outcome = errors ? t('edit.saved-broken', { n: errors }) : fine;
    if (until.aborted || isDirty) return outcome;
    now(outcome);
    isBroken = Boolean(errors);
    return outcome;
  };

  const others = async () => {
    // A draft of the folder is not saved with others, so each is checked against the saved files.
    if (backend.channel === null) return [];
    const drafts = await draftsOf(library);
    const unsaved = drafts.filter((draft) => draft.path !== path);
    return unsaved.map((draft) => ({ path: draft.path, content: draft.bytes && contentOf(draft.bytes) }));
  };
  const side = sidePane({
    backend,
    path,
    others,
    mark: (found) => editor?.mark(found),
    go: (found) => editor?.go(found.range.start),
    until,
  });

  /** The content of a file that is not text; `null` of a file that is to be deleted. @type {Uint8Array | null} */
  let whole = null;
  const bytes = () => (editor ? new TextEncoder().encode(editor.text()) : whole);
  const keep = async () => {
    later.cancel();
    // Only a text changes here.
    if (!isDirty || !editor) return;
    const text = editor.text();
    if (text === kept) return;
    if (base && text === textOf(base.bytes)) {
      // Undone to the saved text.
      isDirty = false;
      kept = null;
      await dropDraft(library, path);
      void tell(t('edit.unchanged'));
      return;
    }
    const draft = { library, path, bytes: bytes(), base: base?.digest ?? null, baseBytes: base?.bytes ?? null };
    const outcome = await keepDraft(draft);
    if (outcome === 'kept') kept = text;
    if (until.aborted || !isDirty) return;
    if (outcome === 'other-tab') return compareTabs();
    now(outcome === 'kept' ? t('edit.kept') : t('edit.not-kept'));
  };
  const later = debounced(QUIET, () => void keep());

  /** Shows the unsaved text of another tab, which this page has not replaced. */
  const compareTabs = async () => {
    // Typing goes on while the texts are compared.
    if (conflict.hasChildNodes()) return;
    const other = await draftInBrowser(library, path);
    if (!other || until.aborted) return;
    now(t('edit.conflict'));
    const settle = () => {
      acceptDraft(other);
      kept = null;
      show(conflict);
      isDirty = true;
      void keep();
      editor?.focus();
    };
    show(
      conflict,
      conflictView({
        base: base?.bytes ?? null,
        theirs: other.bytes,
        mine: editor?.text() ?? '',
        about: t('edit.conflict-tab'),
        theirName: t('edit.side-tab'),
        keepMine: settle,
        takeTheirs: async () => {
          base = other.base && other.baseBytes ? { bytes: other.baseBytes, digest: other.base } : null;
          editor?.set((other.bytes && textOf(other.bytes)) ?? '');
          settle();
          drawActions();
        },
      }),
    );
    announce(t('edit.conflict-tab'));
  };

  /**
   * @param {import('./backend.js').Stored | null} theirs
   * @param {boolean} isAsked whether the author waits for it; typing is not interrupted
   */
  const compare = (theirs, isAsked) => {
    const settle = () => {
      show(conflict);
      editor?.focus();
    };
    show(
      conflict,
      conflictView({
        base: base?.bytes ?? null,
        theirs: theirs?.bytes ?? null,
        mine: editor?.text() ?? '',
        keepMine: () => {
          base = theirs;
          isDirty = true;
          kept = null;
          void keep();
          drawActions();
          settle();
          announce(t('edit.keep-mine'));
        },
        takeTheirs: async () => {
          await take(theirs);
          settle();
          if (!theirs) go(linkTo('edit', '', { channel: backend.channel }));
        },
      }),
    );
    if (isAsked) /** @type {HTMLElement | null} */ (conflict.querySelector('.conflict'))?.focus();
    else announce(t('edit.conflict'));
  };

  /** Replaces the text by the saved one. @param {import('./backend.js').Stored | null} stored */
  const take = async (stored) => {
    base = stored;
    const text = stored && textOf(stored.bytes);
    editor?.set(text ?? '');
    later.cancel();
    isDirty = false;
    kept = null;
    await dropDraft(library, path);
    drawActions();
    void tell(t('edit.unchanged'));
  };

  /** @param {import('./backend.js').Stored} stored */
  const saved = async (stored) => {
    base = stored;
    kept = null;
    // Typing goes on while a file is saved.
    isDirty = editor !== null && editor.text() !== textOf(stored.bytes);
    if (isDirty) return later();
    await dropDraft(library, path);
    note(await tell(t('edit.saved')));
    drawActions();
  };
  const save = async () => {
    if (!('write' in backend)) {
      await keep();
      go(linkTo('edit', '', { channel: backend.channel }));
      return;
    }
    await keep();
    fail(null);
    const written = bytes();
    // A file that is not there, or that is to be deleted, has nothing to be saved.
    if (!written) return;
    isSaving = true;
    try {
      const digest = await backend.write(path, written, base?.digest ?? null);
      await saved({ bytes: written, digest });
    } catch (error) {
      if (error instanceof ApiProblem && ['changed', 'exists', 'not-found'].includes(error.kind)) {
        await backend
          .read(path, until)
          .catch(missing)
          .then((theirs) => {
            // The answer to an earlier attempt may have been lost.
            if (theirs && isSame(theirs.bytes, written)) return saved(theirs);
            // The author may have decided already, while the save was under way.
            if (theirs?.digest !== base?.digest || !base) compare(theirs, true);
          }, fail);
      } else fail(error);
    } finally {
      isSaving = false;
    }
  };

  const asking = h('div');
  const insert = (/** @type {string} */ text) => editor?.insert(text);
  const attach = attacher({ backend, library, path, insert, ask: (question) => show(asking, question) });
  const drawActions = () => {
    show(
      actions,
      h(
        'button.primary',
        { type: 'button', onclick: () => void save(), 'aria-keyshortcuts': 'Control+S Meta+S' },
        'write' in backend ? t('edit.save') : t('edit.to-propose'),
      ),
      editor ? h('button', { type: 'button', onclick: () => void side.runTests() }, t('edit.run-tests')) : null,
      editor && path.endsWith('.md') ? fileButton((files) => void attach(files)) : null,
      fileActions({
        backend,
        library,
        path,
        base,
        bytes: () => bytes() ?? base?.bytes ?? new Uint8Array(),
        isDirty: () => isDirty,
        discard: () => take(base),
        fail,
        until,
      }),
    );
  };

  /** @param {unknown} error */
  const missing = (error) => {
    if (error instanceof ApiProblem && error.status === 404) return null;
    throw error;
  };
  const open = async () => {
    const draft = await draftOf(library, path);
    /** @type {import('./backend.js').Stored | null} */
    let stored = null;
    try {
      stored = await backend.read(path, until).catch(missing);
    } catch (error) {
      fail(error);
      // A draft can be read and changed without the server.
      if (!draft) return;
      stored = draft.base && draft.baseBytes ? { bytes: draft.baseBytes, digest: draft.base } : null;
    }
    if (until.aborted) return;
    if (!stored && !draft) return fail(new ApiProblem(404, { detail: t('edit.missing', { path }) }));
    base = draft ? (draft.base && draft.baseBytes ? { bytes: draft.baseBytes, digest: draft.base } : null) : stored;
    const shown = draft ? draft.bytes : (stored?.bytes ?? null);
    whole = shown;
    isDirty = Boolean(draft);
    kept = draft?.bytes ? textOf(draft.bytes) : null;
    const text = shown && textOf(shown);
    if (text === null) {
      show(
        columns,
        h('p.waiting', null, shown ? t('edit.binary', { size: size(shown.length, language) }) : t('edit.deleted')),
      );
      return drawActions();
    }
    show(columns, h('div.edit-main', null, h('p.hint', null, t('edit.keys')), host), side.element);
    editor = await textEditor(
      host,
      {
        path,
        text,
        isReadOnly: false,
        changed: (next) => {
          isDirty = true;
          side.text(next);
          later();
        },
        complete: side.complete,
        hover: side.hover,
      },
      until,
    );
    if (until.aborted) return;
    side.text(text);
    drawActions();
    if (draft) now(t('edit.restored', { time: new Date(draft.time).toLocaleString(language) }));
    else void tell(t('edit.unchanged'));
    if (draft && (stored?.digest ?? null) !== draft.base) compare(stored, true);
  };

  // The library is followed: a change by someone else is shown, or compared with the unsaved text.
  let isFirst = true;
  loads.watch(async () => {
    if (isFirst || !editor) {
      isFirst = false;
      return;
    }
    const stored = await backend.read(path, until).catch(() => undefined);
    // The change that is being saved is not that of someone else.
    if (until.aborted || isSaving || !stored) return;
    // Another file may have corrected the errors of this one.
    if (stored.digest === base?.digest) return void tell(isBroken ? t('edit.unchanged') : (status.textContent ?? ''));
    if (isDirty) compare(stored, false);
    else {
      await take(stored);
      note(t('edit.reloaded'));
    }
  }, until);
  window.addEventListener(
    'keydown',
    (event) => {
      if (event.key.toLowerCase() !== 's' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey)
        return;
      event.preventDefault();
      void save();
    },
    { signal: until },
  );
  window.addEventListener('pagehide', () => void keep(), { signal: until });
  window.addEventListener(
    'beforeunload',
    (event) => {
      // Until the database has it, the last text is an unkept draft.
      void keep();
      if (hasUnkept()) event.preventDefault();
    },
    { signal: until },
  );
  until.addEventListener('abort', () => void keep());
  void open();
  const view = h(
    'div.edit-file',
    null,
    h('a.back', { href: linkTo('edit', '', { channel: backend.channel }) }, lineIcon('back'), t('edit.all')),
    status,
    problem,
    actions,
    asking,
    conflict,
    columns,
  );
  const receive = (/** @type {DragEvent} */ event) => {
    if (!editor || !path.endsWith('.md') || !event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.type === 'drop') void attach(event.dataTransfer.files);
  };
  // Before the text editor, which would insert the text of the file; elsewhere the browser would leave the page.
  for (const type of ['dragover', 'drop']) view.addEventListener(type, receive, { capture: true });
  return view;
}
