// A prompt rendered before and after a change, with the values of a test or with typed ones.

import { api } from '../api.js';
import { debounced, freshId, h, show } from '../dom.js';
import { t } from '../i18n.js';
import { revealed } from '../text/invisible.js';
import { diffTable } from './diff-table.js';
import { problem } from './parts.js';

const QUIET = 400;

/**
 * @typedef {{ text?: string, failure?: string } | null} Rendering
 * @typedef {{ arguments: string[], samples: { test: string, values: Record<string, string> }[], before: Rendering,
 *   after: Rendering, values: Record<string, string> }} Renderings
 */

/**
 * @param {string} prompt
 * @param {import('./comparison.js').Sides} sides
 * @param {AbortSignal} until
 */
export async function renderings(prompt, sides, until) {
  /** @param {Record<string, string>} values @param {AbortSignal} signal @returns {Promise<Renderings>} */
  const ask = async (values, signal) => {
    const body = { ...sides, prompt, arguments: values };
    return (await api('/compare/renderings', { method: 'POST', body, signal })).value;
  };
  const first = await ask({}, until);
  const result = h('div.renderings', { 'aria-live': 'polite' }, draw(prompt, first));
  if (!first.arguments.length) return result;
  /** @type {AbortController | undefined} */
  let running;
  /** @type {Map<string, HTMLTextAreaElement>} */
  const inputs = new Map();
  const render = async () => {
    running?.abort();
    running = new AbortController();
    const { signal } = running;
    const filled = [...inputs].filter(([, input]) => input.value !== '');
    try {
      const found = await ask(
        Object.fromEntries(filled.map(([name, input]) => [name, input.value])),
        AbortSignal.any([signal, until]),
      );
      show(result, draw(prompt, found));
    } catch (error) {
      if (!signal.aborted && !until.aborted) show(result, problem(error));
    }
  };
  const later = debounced(QUIET, () => void render());
  const fields = first.arguments.map((name) => {
    const id = freshId('value');
    const input = h('textarea.code', { id, rows: '1', spellcheck: 'false', oninput: later });
    input.value = first.values[name] ?? '';
    inputs.set(name, input);
    return h('div.field', null, h('label.label', { for: id }, h('code', null, revealed(name))), input);
  });
  /** @param {Record<string, string>} values */
  const use = (values) => {
    for (const [name, input] of inputs) input.value = values[name] ?? '';
    later.cancel();
    void render();
  };
  const samples = first.samples.map(({ test, values }) =>
    h('button.example', { type: 'button', onclick: () => use(values) }, revealed(test)),
  );
  return [
    h('details.values', null, [
      h('summary', null, t('ch.values')),
      samples.length ? h('p.examples', null, t('ch.values-of-tests'), samples) : null,
      fields,
    ]),
    result,
  ];
}

/** @param {string} prompt @param {Renderings} found */
function draw(prompt, { before, after }) {
  const failures = [
    before?.failure ? [t('ch.before'), before.failure] : null,
    after?.failure ? [t('ch.after'), after.failure] : null,
  ];
  const text = (/** @type {Rendering} */ side) => side?.text ?? null;
  return [
    failures.map((one) => (one ? h('p.problem', null, `${one[0]}: `, revealed(one[1])) : null)),
    before?.text === undefined && after?.text === undefined
      ? null
      : text(before) === text(after)
        ? h('p.hint', null, t('ch.renders-same'))
        : diffTable(t('ch.rendering-of', { name: prompt }), text(before), text(after)),
  ];
}
