// Beside the text: problems of the file, its form, the live preview and its tests.

import { debounced, h, show } from '../dom.js';
import { promptForm } from '../form/form.js';
import { t } from '../i18n.js';
import { linkTo } from '../link.js';
import { revealed } from '../text/invisible.js';
import { announce } from '../view/announce.js';
import { lineIcon } from '../view/glyphs.js';
import { preview } from '../view/preview.js';
import { reason } from './reason.js';

/** @typedef {import('./text-editor.js').Found} Found */

const QUIET = 350;
const MOST_PROBLEMS = 50;
/** The most files with problems that are linked to. */
const MOST_FILES = 5;
/** The number of errors in the Language Server Protocol. */
const ERROR = 1;

/**
 * @param {object} options
 * @param {import('./backend.js').Backend} options.backend
 * @param {string} options.path
 * @param {() => Promise<{ path: string, content: import('./backend.js').Content | null }[]>} options.others further unsaved files
 * @param {(found: Found[]) => void} options.mark
 * @param {(found: Found) => void} options.go
 * @param {AbortSignal} options.until
 */
export function sidePane({ backend, path, others, mark, go, until }) {
  const problems = h('div.edit-problems', { 'aria-label': t('edit.problems'), role: 'group' });
  const fill = h('section.fill', { 'aria-label': t('form.label'), hidden: true });
  const tests = h('section.edit-tests', { 'aria-label': t('edit.tests'), hidden: true });
  const out = preview(until);
  let text = '';
  let asking = new AbortController();
  /** @type {ReturnType<typeof promptForm> | null} */
  let form = null;
  let shape = '';
  let listed = '';
  let said = '';
  let hasMessages = false;
  /** The errors of the file in the last analysis. @type {Found[]} */
  let errors = [];

  /** @param {any} prompt */
  const draw = (prompt) => {
    const next = JSON.stringify(prompt.types);
    if (next === shape) return;
    shape = next;
    const given = form?.read() ?? {};
    // The completion of values belongs to the served prompt, which may be another one.
    const types = prompt.types.map((/** @type {any} */ one) => ({ ...one, completes: false, asked: false }));
    form = promptForm({ ...prompt }, { path, version: null, tags: [], labels: {}, arguments: types }, given, () =>
      later(),
    );
    fill.hidden = !form.fields.length;
    show(fill, h('h2', null, t('form.label')), form.element);
  };

  /** @param {Record<string, Found[]>} diagnostics @param {string | undefined} failure */
  const list = (diagnostics, failure) => {
    const own = diagnostics[path] ?? [];
    mark(own);
    const elsewhere = Object.keys(diagnostics).filter((other) => other !== path);
    errors = own.filter(({ severity }) => severity === ERROR);
    // A link that is drawn again loses the click that has begun on it.
    const next = JSON.stringify([diagnostics, failure]);
    if (next === listed) return;
    listed = next;
    const summary = own.length ? t('edit.found', { n: own.length }) : t('edit.none');
    if (said && said !== summary) announce(summary);
    said = summary;
    show(
      problems,
      h(
        `p.${errors.length || failure ? 'problem' : 'hint'}`,
        null,
        errors.length || failure ? lineIcon('warn') : null,
        revealed(failure ?? summary),
      ),
      h(
        'ul',
        null,
        own
          .slice(0, MOST_PROBLEMS)
          .map((found) =>
            h(
              'li',
              null,
              h(
                'button.quiet',
                { type: 'button', onclick: () => go(found) },
                h('span.where', null, t('edit.line', { n: String(found.range.start.line + 1) })),
                ' ',
                revealed(found.message),
              ),
              cause(found),
            ),
          ),
      ),
      elsewhere.length
        ? h('p.hint', null, t('edit.elsewhere', { n: elsewhere.length }), elsewhere.slice(0, MOST_FILES).map(linked))
        : null,
    );
  };
  /** @param {string} other */
  const linked = (other) => [
    ' ',
    h('a', { href: linkTo('edit', other, { channel: backend.channel }) }, h('bdi', null, revealed(other))),
  ];
  /** A link to the partial in which an error of this file lies. @param {Found} found */
  const cause = (found) => {
    const other = found.relatedInformation?.map(({ location }) => pathOf(location.uri)).find((it) => it !== path);
    return other ? linked(other) : null;
  };

  const question = async () => {
    const own = { path, content: { text } };
    return { path, changes: [...(await others()), own] };
  };

  async function refresh() {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    out.busy(true);
    try {
      const answer = await backend.analyze({ ...(await question()), arguments: form?.read() ?? {} }, signal);
      if (signal.aborted || until.aborted) return;
      list(answer.diagnostics, answer.failure);
      if (answer.prompt) draw(answer.prompt);
      // While a template is being typed, the form and the preview are those of its last valid text, and say so.
      const isOld = !answer.prompt && hasMessages;
      fill.classList.toggle('outdated', isOld);
      out.outdated(isOld ? outdated() : '');
      if (answer.messages) out.set(answer.messages, false);
      else if (answer.refusal) out.tell(answer.refusal, 'hint');
      else if (!hasMessages) out.tell(answer.diagnostics[path] ? t('edit.no-preview') : t('edit.no-prompt'), 'hint');
      hasMessages = answer.messages ? true : answer.refusal ? false : hasMessages;
    } catch (error) {
      hasMessages = false;
      if (!signal.aborted && !until.aborted) out.tell(reason(error), 'problem');
    } finally {
      if (!signal.aborted) out.busy(false);
    }
  }
  const outdated = () =>
    errors.length ? t('edit.outdated', { n: String(errors[0].range.start.line + 1) }) : t('edit.outdated-elsewhere');
  const later = debounced(QUIET, () => void refresh());
  until.addEventListener('abort', () => {
    later.cancel();
    asking.abort();
  });

  return {
    element: h('div.result', null, problems, fill, out.element, tests),
    /** @param {string} next */
    text(next) {
      text = next;
      later();
    },
    /** The number of errors that keep the text from being served; null if that is not known. */
    async errors() {
      later.cancel();
      await refresh();
      return until.aborted ? null : errors.length;
    },
    /** @param {string} now @param {import('./backend.js').Position} place */
    async complete(now, place) {
      const changes = [...(await others()), { path, content: { text: now } }];
      return (await backend.analyze({ path, changes, complete: place }, until)).completions ?? [];
    },
    /** @param {string} now @param {import('./backend.js').Position} place */
    async hover(now, place) {
      const changes = [...(await others()), { path, content: { text: now } }];
      return (await backend.analyze({ path, changes, hover: place }, until)).hover;
    },
    async runTests() {
      tests.hidden = false;
      show(tests, h('h2', null, t('edit.tests')), h('p.hint', null, t('edit.testing')));
      try {
        const answer = await backend.analyze({ ...(await question()), tests: true }, until);
        list(answer.diagnostics, answer.failure);
        const results = answer.tests;
        const failed = results?.filter((/** @type {any} */ one) => one.mismatches.length).length ?? 0;
        const summary = !results
          ? t('edit.no-preview')
          : !results.length
            ? t('edit.no-tests')
            : failed
              ? t('edit.failed', { n: failed })
              : t('edit.passed', { n: results.length });
        show(tests, h('h2', null, t('edit.tests')), h('p', { role: 'status' }, summary), (results ?? []).map(outcome));
      } catch (error) {
        if (!until.aborted)
          show(tests, h('h2', null, t('edit.tests')), h('p.problem', { role: 'alert' }, reason(error)));
      }
    },
  };
}

/** The path of a file in the analysed library. @param {string} uri */
const pathOf = (uri) => decodeURIComponent(uri.replace(/^file:\/\/\//, ''));

/** @param {{ name: string, mismatches: string[] }} test */
function outcome({ name, mismatches }) {
  return h(
    'div.edit-test',
    null,
    h('p', null, lineIcon(mismatches.length ? 'warn' : 'check'), revealed(name)),
    mismatches.map((text) => h('pre.source', { tabindex: '0', role: 'group', 'aria-label': name }, revealed(text))),
  );
}
