// The view of one prompt: form on one side, live preview on the other.

import { client, features, library, loads, typed } from '../app.js';
import { debounced, h, show } from '../dom.js';
import { draft, draftOf } from '../drafts.js';
import { promptForm } from '../form/form.js';
import { hasWords, t } from '../i18n.js';
import { linkTo } from '../link.js';
import { Refusal, SignInNeeded } from '../mcp/client.js';
import { remember } from '../preferences.js';
import { revealed } from '../text/invisible.js';
import { announce, note } from './announce.js';
import { origin, picture, pinButton } from './card.js';
import { lineIcon } from './glyphs.js';
import { guide } from './guided.js';
import { preview } from './preview.js';
import { profiles } from './profiles.js';
import { usePanel } from './use.js';

/**
 * @typedef {import('../mcp/types.js').Prompt} Prompt
 * @typedef {import('../mcp/types.js').Message} Message
 * @typedef {import('../mcp/types.js').PromptResult} PromptResult
 * @typedef {object} Outcome
 * @property {Record<string, string>} given the form's values
 * @property {Record<string, string>} values the form's values and the answers to guided steps
 * @property {Message[]} messages
 * @property {string} url the endpoint that they come from
 * @property {Record<string, any>} request the last request
 * @property {import('./guided.js').Step[]} steps of a guided prompt
 */

const same = (/** @type {unknown} */ a, /** @type {unknown} */ b) => JSON.stringify(a) === JSON.stringify(b);

const QUIET = 250;

/** @param {import('../route.js').Place} place @param {AbortSignal} until */
export function view({ name, values }, until) {
  const body = h('div.prompt');
  if (Object.keys(values).length) draft(name, values);
  let shown = '';
  /** @type {AbortController | null} */
  let inner = null;
  library.watch(async ({ byName, whole }) => {
    const prompt = byName.get(name);
    if (!prompt) {
      if (!whole || !shown)
        show(
          body,
          h('h1', { tabindex: '-1' }, name),
          h('p.waiting', null, whole ? t('prompt.unknown', { name }) : t('find.loading')),
          h('p', null, h('a', { href: '#/' }, t('prompt.all'))),
        );
      // A removed prompt stays open, to keep unsaved input.
      else if (inner) note(t('prompt.gone'));
      return;
    }
    const types = await typed(name);
    const key = JSON.stringify([prompt, types]);
    if (until.aborted || key === shown) return;
    const isUpdate = shown !== '';
    shown = key;
    inner?.abort();
    inner = new AbortController();
    until.addEventListener('abort', () => inner?.abort());
    const open = body.contains(document.activeElement) ? document.activeElement?.id : '';
    show(body, draw(prompt, types, inner.signal));
    if (isUpdate) note(t('prompt.updated'));
    if (open)
      /** @type {HTMLElement | null} */ (body.querySelector('.form input, .form textarea, .form select'))?.focus();
  }, until);
  return body;
}

/**
 * @param {Prompt} prompt
 * @param {import('../types.js').TypedPrompt | null} types
 * @param {AbortSignal} until
 */
function draw(prompt, types, until) {
  const { name } = prompt;
  const delivery = profiles(types?.profiles ?? [], () => {
    later.cancel();
    void refresh('edit');
  });
  const out = preview(until, delivery.element);
  /** @type {Outcome | null} */
  let latest = null;
  let isAsking = false;
  /**
   * Answered steps of the version before an edit, until they are answered again. Another load may come in between.
   *
   * @type {import('./guided.js').Step[]}
   */
  let unfinished = [];
  let asking = new AbortController();

  const form = promptForm(prompt, types, draftOf(name) ?? {}, (values, by) => {
    draft(name, { ...form.unknown(), ...values }, form.secrets);
    if (by === 'choice') later.cancel();
    if (by === 'choice') void refresh('edit');
    else later();
  });
  const later = debounced(QUIET, () => void refresh('edit'));
  const use = usePanel(name, ready, form.secrets);

  /** @param {Outcome | null} next */
  const settle = (next) => {
    latest = next;
    use.element.hidden = false;
    use.set(next);
  };

  /**
   * @param {'edit' | 'reload' | 'use'} why
   * @param {import('./guided.js').Step[]} [answered] steps whose state the server no longer accepts
   */
  async function refresh(why, answered = why === 'reload' ? unfinished : []) {
    unfinished = answered;
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const given = form.read();
    // Sends the collected answers again, so that a guided prompt does not repeat its questions. Passing them as
    // arguments would lose answers that were left open on purpose.
    const { url } = delivery;
    const known = latest && latest.url === url && same(latest.given, given) ? latest : null;
    isAsking = false;
    const missing = form.missing();
    if (missing.length && why !== 'use') {
      settle(null);
      out.tell(t('preview.needs', { n: missing.length, titles: missing.join(', ') }), 'hint');
      return;
    }
    out.busy(true);
    const plain = { name, arguments: given };
    const steps = known?.steps ?? answered;
    /** @type {Record<string, any>} */
    const params = known?.request ?? plain;
    try {
      const isPreview = why !== 'use';
      const result = /** @type {PromptResult} */ (await client.request('prompts/get', params, signal, url, isPreview));
      form.complain([], false);
      if (result.resultType === 'input_required') {
        settle(null);
        ask(plain, result, url, signal, steps, why === 'reload');
      } else if (result.resultType && result.resultType !== 'complete') {
        settle(null);
        out.tell(t('preview.strange', { type: result.resultType }), 'problem');
      } else {
        const { messages } = result;
        finish({ given, values: known?.values ?? given, messages, url, request: params, steps }, why === 'reload');
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refusal && params.requestState !== undefined) {
        // Signed answers expire, and end with an edit of the prompt.
        settle(null);
        return void refresh(why, steps);
      }
      fail(error, why === 'use');
    } finally {
      if (!signal.aborted) out.busy(false);
    }
  }

  /** @param {Outcome} next @param {boolean} isReload */
  function finish(next, isReload) {
    const isSame = latest !== null && same(latest, next);
    isAsking = false;
    unfinished = [];
    if (isReload && isSame) return;
    if (isReload && latest) announce(t('preview.announce-changed'));
    settle(next);
    out.set(next.messages, isReload);
  }

  /**
   * @param {Record<string, any>} params
   * @param {PromptResult} response
   * @param {string} url
   * @param {AbortSignal} signal
   * @param {import('./guided.js').Step[]} answered
   * @param {boolean} isReload
   */
  function ask(params, response, url, signal, answered, isReload) {
    let isShown = false;
    guide({
      params,
      response,
      url,
      types: Object.fromEntries((types?.arguments ?? []).map((argument) => [argument.name, argument.type])),
      answered,
      until: signal,
      show: (element) => {
        isAsking = true;
        isShown = true;
        unfinished = [];
        settle(null);
        use.element.hidden = true;
        out.instead(element);
      },
      failed: (text, back) => {
        const again = () => void refresh('edit');
        const ways = h(
          'p.ways',
          null,
          h('button', { type: 'button', onclick: back }, lineIcon('back'), t('guide.back')),
          h('button', { type: 'button', onclick: again }, t('guide.again')),
        );
        out.tell(text, 'problem', ways);
      },
      done: (messages, answers, again, last) => {
        const given = params.arguments;
        // Without a question in between, this is the edited prompt, and its changes are marked.
        finish({ given, values: { ...given, ...answers }, messages, url, ...last }, isReload && !isShown);
        out.element
          .querySelector('.messages')
          ?.prepend(
            h(
              'p.guide-done',
              null,
              lineIcon('check'),
              t('guide.done'),
              h('button.quiet', { type: 'button', onclick: again }, lineIcon('back'), t('guide.back')),
            ),
          );
        if (isShown) announce(t('guide.done'));
      },
    });
  }

  /** @param {unknown} error @param {boolean} focus */
  function fail(error, focus) {
    settle(null);
    if (error instanceof Refusal) {
      const left = form.complain(error.problems, focus);
      const listed = error.problems.length - left.length;
      out.tell(listed ? t('preview.problems', { n: listed }) : error.message, 'problem');
    } else if (error instanceof SignInNeeded) {
      void explain(error.challenge, error.isStepUp);
    } else {
      out.tell(t('preview.unreachable'), 'problem');
    }
  }

  /**
   * Shows that sign-in, or a further scope, is required, with a link to it.
   *
   * @param {import('../auth/challenge.js').Challenge} challenge
   * @param {boolean} isStepUp
   */
  async function explain(challenge, isStepUp) {
    if (!isStepUp) return out.tell(t('sign-in.needed'), 'problem');
    const mine = asking.signal;
    const { toSignIn } = await import('./sign-in.js');
    if (mine.aborted || until.aborted) return;
    const more = h('button', { type: 'button', onclick: () => void toSignIn(challenge) }, t('sign-in.ask-more'));
    out.tell(t('sign-in.step-up', { scopes: challenge.scopes.join(' ') }), 'problem', more);
  }

  /** The current result to use; without one, the form shows the reason. */
  async function ready() {
    later.cancel();
    if (latest && latest.url === delivery.url && same(latest.given, form.read())) {
      // The preview did not count as a call; its use does.
      client.request('prompts/get', latest.request, until, latest.url).catch(() => {});
      return latest;
    }
    await refresh('use');
    if (latest) remember(name);
    return latest;
  }

  let first = true;
  loads.watch(() => {
    if (first) first = false;
    // A reload does not interrupt a guided prompt in progress.
    else if (!isAsking) void refresh('reload');
  }, until);
  until.addEventListener('abort', () => asking.abort());
  queueMicrotask(() => void refresh('edit'));

  const tags = types?.tags ?? [];
  const facts = [
    types?.path ? h('span', null, lineIcon('file'), types.path) : null,
    types?.path && features.value.edit ? h('a', { href: linkTo('edit', types.path) }, t('nav.edit')) : null,
    types?.version ? h('span', null, t('prompt.version', { version: types.version })) : null,
    ...Object.entries(types?.labels ?? {}).map(([key, values]) => label(key, values)),
    origin(prompt),
  ];
  return [
    h('header.prompt-head', null, [
      h('a.back', { href: '#/' }, lineIcon('back'), t('prompt.all')),
      h(
        'div.prompt-title',
        null,
        picture(prompt),
        h(
          'div',
          null,
          h('h1', { tabindex: '-1' }, h('bdi', null, revealed(prompt.title ?? name))),
          h(
            'p.names',
            null,
            h('code', null, `/${name}`),
            facts,
            tags.map((tag) => h('span.tag', null, tag)),
          ),
        ),
        pinButton(prompt, until),
      ),
      prompt.description ? h('p.lead', null, h('bdi', null, revealed(prompt.description))) : null,
      deprecation(prompt),
    ]),
    h('div.columns', null, [
      h(
        'section.fill',
        { 'aria-label': t('form.label') },
        h('h2', null, t('form.label')),
        form.element.firstChild ? form.element : null,
        form.asksMore
          ? h('p.hint', null, t('form.asks-more'))
          : form.fields.length
            ? null
            : h('p.hint', null, t('form.empty')),
      ),
      h('div.result', null, delivery.listed, out.element, use.element),
    ]),
  ];
}

/** What tells people about the prompt, such as whom they ask. @param {string} key @param {string[]} values */
function label(key, values) {
  const word = `label.${key}`;
  const name = hasWords(word) ? t(/** @type {keyof import('../i18n.js').Words} */ (word)) : key;
  return h('span', null, h('bdi', null, revealed(`${name}: ${values.join(', ')}`)));
}

/** A notice with the author's message and a link to the replacement. @param {Prompt} prompt */
function deprecation({ _meta }) {
  const deprecated = _meta?.['dev.promptshelf/deprecated'];
  if (!deprecated) return null;
  const { message, replacement } = deprecated;
  const link = replacement && h('a', { href: linkTo('prompt', replacement) }, revealed(replacement));
  return h('p.problem', null, lineIcon('warn'), [
    h('span', null, t('prompt.deprecated'), ' ', message && h('bdi', null, revealed(message))),
    link && h('span', null, t('prompt.use-instead'), ' ', link),
  ]);
}
