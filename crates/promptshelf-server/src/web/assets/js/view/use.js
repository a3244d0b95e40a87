// Ways to use the result: text, model API messages, shell command, link.

import { client, features } from '../app.js';
import { freshId, h, show } from '../dom.js';
import { without } from '../drafts.js';
import { t } from '../i18n.js';
import { remember, useFormat } from '../preferences.js';
import { promptLink } from '../route.js';
import { codeBlock } from '../text/markdown.js';
import { curlCommand, getCommand } from '../use/commands.js';
import { anthropic, asText, leftOut, openai } from '../use/formats.js';
import { copy } from './announce.js';
import { lineIcon } from './glyphs.js';

/** @typedef {import('../mcp/types.js').Message} Message */
/** @typedef {{ url: string, values: Record<string, string>, messages: Message[] }} Result */

const pretty = (/** @type {any} */ value) => JSON.stringify(value, null, 2);
// Long runs of Base64 are shortened for display.
const short = (/** @type {string} */ text) => text.replace(/[A-Za-z0-9+/=]{400,}/g, (run) => `${run.slice(0, 60)}…`);

/** @type {Record<string, { name: () => string, make: (name: string, values: Record<string, string>, result: Result) => string }>} */
const FORMATS = {
  text: { name: () => t('use.text'), make: (_, __, { messages }) => asText(messages) },
  openai: { name: () => 'OpenAI', make: (_, __, { messages }) => pretty(openai(messages)) },
  anthropic: { name: () => 'Anthropic', make: (_, __, { messages }) => pretty(anthropic(messages)) },
  mcp: { name: () => 'MCP', make: (_, __, { messages }) => pretty(messages) },
  command: {
    name: () => t('use.command'),
    make: (name, values, { url }) => getCommand(features.value.command, url, name, values),
  },
  curl: { name: () => 'curl', make: (name, values, { url }) => curlCommand(client, url, name, values) },
  link: {
    name: () => t('use.link'),
    make: (name, values) => location.origin + location.pathname + promptLink(name, values),
  },
};

/**
 * @param {string} name
 * @param {() => Promise<Result | null>} result
 *   the result to use; `null` if the form is invalid, which the form then shows
 * @param {string[]} secrets arguments that are in no command and no link: both end up in histories
 */
export function usePanel(name, result, secrets) {
  const id = freshId('use');
  const panel = h('div.use-text', { id });
  let format = useFormat.value in FORMATS ? useFormat.value : 'text';

  const made = (/** @type {Result} */ ready) => FORMATS[format].make(name, without(ready.values, secrets), ready);

  const take = async () => {
    const ready = await result();
    if (!ready) return;
    remember(name);
    const text = made(ready);
    const written = { text: asText, openai, anthropic }[format];
    const left = written ? leftOut(ready.messages, written) : 0;
    const done = t('use.copied', { format: FORMATS[format].name() });
    await copy(text, left ? `${done}. ${t('use.left-out', { n: left })}` : done, t('use.not-copied'));
  };
  const button = h('button.primary', { type: 'button', onclick: take });
  /** @type {Result | null} */
  let latest = null;
  const paint = () => {
    show(button, lineIcon(format === 'link' ? 'link' : 'copy'), t('use.copy', { format: FORMATS[format].name() }));
    for (const input of inputs) input.checked = input.value === format;
    const text = latest && format !== 'text' ? made(latest) : '';
    panel.hidden = !text;
    show(panel, text ? codeBlock(short(text)) : null);
  };
  const choose = (/** @type {Event} */ event) => {
    format = /** @type {HTMLInputElement} */ (event.target).value;
    useFormat.keep(format);
    paint();
  };
  /** @type {HTMLInputElement[]} */
  const inputs = Object.keys(FORMATS).map((key) =>
    h('input', { type: 'radio', name: id, value: key, onchange: choose }),
  );
  const radios = inputs.map((input) => h('label', null, input, h('span', null, FORMATS[input.value].name())));
  const element = h(
    'section.use',
    { 'aria-label': t('use.label') },
    h('div.use-bar', null, h('div.radios', { role: 'radiogroup', 'aria-label': t('use.format') }, radios), button),
    panel,
  );
  paint();
  return {
    element,
    /** @param {Result | null} next */
    set(next) {
      latest = next;
      paint();
    },
  };
}
