// The list of a library's files, with the drafts among them, and new prompts.

import { loads, pageApi } from '../app.js';
import { debounced, h, show } from '../dom.js';
import { language, t } from '../i18n.js';
import { linkTo } from '../link.js';
import { go } from '../route.js';
import { revealed } from '../text/invisible.js';
import { size } from '../text/measure.js';
import { announce, note } from '../view/announce.js';
import { lineIcon } from '../view/glyphs.js';
import { accepted } from './attach.js';
import { acceptDraft, draftsOf, keepDraft } from './drafts.js';
import { pathForm } from './path-form.js';
import { isInternal, withEnding } from './paths.js';
import { proposalForm } from './propose.js';
import { reason } from './reason.js';
import { pathProblem } from './taken.js';

/**
 * @typedef {import('./view.js').AnyBackend} AnyBackend
 * @typedef {{ bytes: number | null, isDraft: boolean }} FileState
 */

/** The most rows; the filter finds the others. */
const MOST_ROWS = 300;
const QUIET = 120;

/**
 * @param {AnyBackend} backend
 * @param {string} library
 * @param {AbortSignal} until
 */
export function filesView(backend, library, until) {
  const list = h('ul.edit-files');
  const count = h('p.hint', { role: 'status' });
  const proposing = h('div');
  const problem = h('p.problem', { hidden: true, role: 'alert' });
  /** @type {Map<string, FileState>} */
  let files = new Map();
  /** The paths of files with errors: they are not served, or an earlier version of them is. @type {Set<string>} */
  let broken = new Set();
  let shown = '';
  /** The drafts that the form proposes. */
  let offered = '';

  const draw = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [...files].filter(([path]) =>
      words.every((/** @type {string} */ word) => path.toLowerCase().includes(word)),
    );
    show(list, found.slice(0, MOST_ROWS).map(row));
    const more = found.length - MOST_ROWS;
    show(count, t('edit.files', { n: found.length }), more > 0 ? ` ${t('edit.more', { n: more })}` : '');
  };
  /** @param {[string, FileState]} entry */
  const row = ([path, { bytes, isDraft }]) =>
    h(
      'li',
      null,
      lineIcon('file'),
      h('a', { href: linkTo('edit', path, { channel: backend.channel }) }, h('bdi', null, revealed(path))),
      isDraft ? h('span.badge', null, t('edit.draft')) : null,
      broken.has(path) ? h('span.badge.broken', null, t('edit.not-served')) : null,
      bytes === null ? null : h('span.hint', null, size(bytes, language)),
    );
  const filter = h('input', {
    type: 'search',
    id: 'edit-filter',
    autocomplete: 'off',
    spellcheck: 'false',
    oninput: debounced(QUIET, draw),
  });

  /** Of a channel the served library has other paths, and what is not served was not published. */
  const findBroken = async () => {
    const { diagnostics = [] } = ('write' in backend && (await pageApi('diagnostics', until))) || {};
    /** @type {{ path: string, severity: string }[]} */
    const found = diagnostics;
    broken = new Set(found.filter(({ severity }) => severity === 'error').map(({ path }) => path));
  };
  const load = async () => {
    const [drafts] = await Promise.all([draftsOf(library), findBroken()]);
    try {
      const listed = await backend.list(until);
      /** @type {import('./backend.js').FileRow[]} */
      const rows = listed.files;
      files = new Map(rows.map(({ path, bytes }) => [path, { bytes, isDraft: false }]));
      problem.hidden = true;
    } catch (error) {
      if (until.aborted) return;
      problem.hidden = false;
      show(problem, lineIcon('warn'), reason(error));
    }
    for (const draft of drafts) acceptDraft(draft);
    for (const draft of drafts) files.set(draft.path, { bytes: draft.bytes?.length ?? 0, isDraft: true });
    files = new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
    const next = JSON.stringify([[...files], [...broken]]);
    // What has not changed keeps the focus, and a message that is being written.
    if (next !== shown) draw();
    shown = next;
    const proposed = JSON.stringify(drafts.map(({ path, time }) => [path, time]));
    if ('propose' in backend && drafts.length && proposed !== offered)
      show(proposing, proposalForm(backend, drafts, load, until));
    offered = proposed;
  };

  /** Opens a new file as a draft. @param {string} path @param {Uint8Array} bytes */
  const begin = async (path, bytes) => {
    const folded = path.toLowerCase();
    // Some systems have space for one of two names that differ in upper and lower case only.
    if ([...files.keys()].some((present) => present.toLowerCase() === folded)) return t('edit.exists');
    const problem = await pathProblem(backend, path, bytes);
    if (problem) return problem;
    await keepDraft({ library, path, bytes, base: null, baseBytes: null });
    go(linkTo('edit', path, { channel: backend.channel }));
    return '';
  };
  const starters = ['text', 'code', 'conversation'];
  const kind = h(
    'select',
    { id: 'edit-starter' },
    starters.map((name) => h('option', { value: name }, t(/** @type {any} */ (`edit.starter-${name}`)))),
  );
  const creating = pathForm({
    label: t('edit.new-path'),
    hint: t('edit.new-hint'),
    button: t('edit.create'),
    initial: '',
    more: [h('label.label', { for: 'edit-starter' }, t('edit.starter')), kind],
    submit: async (written) => {
      const path = withEnding(written, '.md');
      const texts = (await pageApi('starters')) ?? {};
      const title = (path.split('/').pop() ?? '').replace(/\.md$/, '').replace(/[-_]/g, ' ');
      // A partial is a piece of text, without front matter.
      const text = path.endsWith('.md') && !isInternal(path) ? (texts[kind.value] ?? '') : '';
      const named = text.replace('TITLE', JSON.stringify(title.charAt(0).toUpperCase() + title.slice(1)));
      return begin(path, new TextEncoder().encode(named));
    },
  });

  /** @param {FileList | null | undefined} dropped */
  const take = async (dropped) => {
    for (const file of dropped ?? []) {
      const bytes = await accepted(file);
      if (typeof bytes === 'string') {
        note(bytes);
        continue;
      }
      const refused = files.has(file.name) ? t('edit.exists') : await pathProblem(backend, file.name, bytes);
      if (refused) note(refused);
      else {
        await keepDraft({ library, path: file.name, bytes, base: null, baseBytes: null });
        announce(t('edit.draft'));
      }
    }
    await load();
  };
  const element = h(
    'div.edit-list',
    {
      ondragover: (/** @type {DragEvent} */ event) => {
        if (event.dataTransfer?.types.includes('Files')) event.preventDefault();
      },
      ondrop: (/** @type {DragEvent} */ event) => {
        if (!event.dataTransfer?.files.length) return;
        event.preventDefault();
        void take(event.dataTransfer.files);
      },
    },
    h(
      'p.lead',
      null,
      backend.channel === null ? t('edit.about-folder') : t('edit.about-channel', { name: backend.channel }),
    ),
    problem,
    proposing,
    h('details.edit-new', null, h('summary', null, t('edit.new')), creating.element),
    h('div.field', null, h('label.label', { for: 'edit-filter' }, t('edit.filter')), filter),
    count,
    list,
  );
  // Now, and after each change and each loss of the connection.
  loads.watch(() => void load(), until);
  return element;
}
