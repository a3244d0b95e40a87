// Guided prompts (multi round-trip requests): one form after the other, with a way back.
//
// The server keeps no state. `requestState` is returned byte for byte with the answer, so *Back* shows an earlier
// question again and answers it with its own state. An edit of the prompt invalidates the state; the unchanged questions
// are answered again as before.

import { client } from '../app.js';
import { h } from '../dom.js';
import { field } from '../form/field.js';
import { content, kinds } from '../form/schema.js';
import { t } from '../i18n.js';
import { Refusal } from '../mcp/client.js';
import { webAddress } from '../text/inline.js';
import { revealed } from '../text/invisible.js';
import { lineIcon } from './glyphs.js';

/**
 * @typedef {import('../mcp/types.js').PromptResult} PromptResult
 * @typedef {import('../mcp/types.js').Message} Message
 * @typedef {{ action: string, content?: Record<string, any> }} Reply
 * @typedef {{ question: string, response: PromptResult, replies: Record<string, Reply>, typed: Record<string, string> }} Step
 */

/**
 * @param {object} options
 * @param {Record<string, any>} options.params of the request that was answered with a question
 * @param {PromptResult} options.response
 * @param {string} options.url the endpoint that sent it
 * @param {Record<string, string>} options.types the types of the prompt's arguments
 * @param {Step[]} options.answered steps of an earlier run, whose replies answer the same questions again
 * @param {(element: HTMLElement) => void} options.show
 * @param {(messages: Message[], answers: Record<string, string>, again: () => void, last: { request: Record<string, any>,
 *   steps: Step[] }) => void} options.done receives the answers as arguments, a function that reopens the last question,
 *   and the last request with all steps
 * @param {(text: string, back: () => void) => void} options.failed receives the reason, and a function that reopens the
 *   question
 * @param {AbortSignal} options.until
 */
export function guide({ params, response, url, types, answered, show, done, failed, until }) {
  /** @type {Step[]} */
  const steps = [];
  const left = [...answered];
  let at = 0;

  /** @param {PromptResult} question */
  const add = (question) => {
    const known = steps[at];
    // An unchanged question keeps its typed values.
    const isSame =
      known &&
      JSON.stringify(Object.keys(known.response.inputRequests ?? {})) ===
        JSON.stringify(Object.keys(question.inputRequests ?? {}));
    steps.splice(at, isSame ? 1 : steps.length, {
      // Stays the same when the server asks again, with the reason why it did not accept an answer.
      question: JSON.stringify(question.inputRequests),
      response: question,
      replies: isSame ? known.replies : {},
      typed: isSame ? known.typed : {},
    });
    const before = left.findIndex((step) => step.question === steps[at].question);
    if (before < 0) return draw();
    const [{ replies, typed }] = left.splice(before, 1);
    steps[at].typed = typed;
    void answer(replies);
  };

  /** @param {Record<string, Reply>} replies */
  const answer = async (replies) => {
    const step = steps[at];
    step.replies = replies;
    /** @type {Record<string, any>} */
    const retry = { ...params, inputResponses: replies };
    // `requestState` is returned only if the server sent one.
    if (step.response.requestState !== undefined) retry.requestState = step.response.requestState;
    try {
      const result = /** @type {PromptResult} */ (await client.request('prompts/get', retry, until, url));
      if (result.resultType === 'input_required') {
        // The same question again means that the answer was not accepted.
        const isAgain = keys(result) === keys(step.response);
        if (isAgain) step.response = result;
        else at++;
        return isAgain ? draw() : add(result);
      }
      done(result.messages, answers(), draw, { request: retry, steps: steps.slice(0, at + 1) });
    } catch (error) {
      if (until.aborted) return;
      failed(error instanceof Refusal ? error.message : t('connection.lost'), draw);
    }
  };

  /** The answers so far, in the form of a first request. */
  const answers = () => {
    const contents = steps
      .slice(0, at + 1)
      .flatMap(({ replies }) => Object.values(replies).map((one) => one.content ?? {}));
    const text = (/** @type {any} */ value) => (typeof value === 'object' ? JSON.stringify(value) : String(value));
    return Object.fromEntries(contents.flatMap(Object.entries).map(([name, value]) => [name, text(value)]));
  };

  /** @param {PromptResult} result */
  const keys = (result) => Object.keys(result.inputRequests ?? {}).join('\n');

  const draw = () => {
    const step = steps[at];
    const requests = Object.entries(step.response.inputRequests ?? {});
    // A result with a state and without questions requests a retry.
    if (!requests.length) return void answer({});
    const collected = requests.map(([key, request]) => ({ key, ...part(request, step.typed, key, types) }));
    // A refusal of what the prompt needs would only end in an error.
    const isNeeded = requests.some(([, { params }]) => params.requestedSchema?.required?.length);
    const submit = (/** @type {Event} */ event) => {
      event.preventDefault();
      void answer(Object.fromEntries(collected.map(({ key, reply }) => [key, reply()])));
    };
    const refuse = (/** @type {string} */ action) => () =>
      void answer(Object.fromEntries(requests.map(([key]) => [key, { action }])));
    const back = () => {
      at--;
      draw();
    };
    const dots = steps.map((_, index) =>
      h(
        'li',
        { class: index < at ? 'past' : index === at ? 'now' : null, 'aria-current': index === at ? 'step' : null },
        h('span.unseen', null, t('guide.step', { n: String(index + 1) })),
      ),
    );
    const form = h('form.guide', { onsubmit: submit, novalidate: true }, [
      h(
        'div.guide-head',
        null,
        h('ol.dots', { 'aria-label': t('guide.progress') }, dots),
        h('p', { 'aria-live': 'polite' }, t('guide.step', { n: String(at + 1) })),
      ),
      collected.map(({ element }) => element),
      h('div.guide-foot', null, [
        at > 0 ? h('button', { type: 'button', onclick: back }, lineIcon('back'), t('guide.back')) : null,
        h('span.space'),
        isNeeded ? null : h('button.quiet', { type: 'button', onclick: refuse('decline') }, t('guide.skip')),
        h('button.primary', null, t('guide.next')),
      ]),
    ]);
    show(form);
    /** @type {HTMLElement | null} */ (form.querySelector('.field input, .field textarea, .field select'))?.focus({
      preventScroll: true,
    });
  };
  add(response);
}

/**
 * @param {{ method: string, params: import('../mcp/types.js').Question }} request
 * @param {Record<string, string>} typed
 * @param {string} key
 * @param {Record<string, string>} types
 * @returns {{ element: HTMLElement, reply: () => Reply }}
 */
function part(request, typed, key, types) {
  const question = request.params;
  // Requests outside the declared capabilities are declined.
  if (request.method !== 'elicitation/create')
    return { element: h('p.hint', null, request.method), reply: () => ({ action: 'decline' }) };
  const message = h('p.question', null, revealed(question.message));
  if (question.mode === 'url') {
    const href = webAddress(question.url ?? '');
    const host = href ? new URL(href).host : '';
    const open = href
      ? h(
          'a.button',
          { href, target: '_blank', rel: 'noopener noreferrer' },
          lineIcon('open'),
          t('guide.open', { host }),
        )
      : null;
    const element = h(
      'div',
      null,
      message,
      h('p.hint', null, t('guide.url')),
      h('p', null, h('code.address', null, revealed(question.url ?? ''))),
      open,
    );
    return { element, reply: () => ({ action: 'accept' }) };
  }
  const properties = question.requestedSchema?.properties ?? {};
  const fields = kinds(question, types).map((kind) => {
    const made = field(kind, () => {
      typed[`${key}/${kind.name}`] = made.read();
    });
    const before = typed[`${key}/${kind.name}`] ?? kind.default;
    if (before) made.write(before);
    return made;
  });
  const reply = () => {
    const filled = fields
      .filter((one) => one.read() !== '')
      .map((one) => [one.kind.name, content(properties[one.kind.name], one.read())]);
    return { action: 'accept', content: Object.fromEntries(filled) };
  };
  return {
    element: h(
      'fieldset',
      null,
      h('legend.question', null, revealed(question.message)),
      fields.map((one) => one.element),
    ),
    reply,
  };
}
