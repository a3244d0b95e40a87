// Slash commands in the search field: completion of names, arguments and values.

import { client, library } from '../app.js';
import { t } from '../i18n.js';
import { go, promptLink } from '../route.js';
import { parse, quoted } from '../text/command.js';
import { find } from '../text/fuzzy.js';
import { note } from './announce.js';
import { marked } from './card.js';
import { listbox } from './listbox.js';

/** @typedef {import('./listbox.js').Option} Option */

const MOST = 12;

/**
 * Attaches completion of slash commands to a field.
 *
 * @param {HTMLInputElement} field
 */
export function slash(field) {
  const put = (/** @type {number} */ from, /** @type {string} */ text) => {
    field.value = field.value.slice(0, from) + text;
    field.setSelectionRange(field.value.length, field.value.length);
    field.dispatchEvent(new Event('input'));
  };

  /** @param {AbortSignal} signal @returns {Promise<Option[]>} */
  const source = async (signal) => {
    if (!field.value.startsWith('/')) return [];
    const { name, values, at } = parse(field.value);
    const { prompts, byName, entries } = library.value;
    if (at.kind === 'name') {
      return find(entries, at.typed)
        .slice(0, MOST)
        .map((index) => {
          const prompt = prompts[index];
          const run = () => put(1, `${prompt.name} `);
          return { value: prompt.name, label: ['/', ...marked(prompt.name, at.typed)], detail: prompt.title, run };
        });
    }
    const prompt = byName.get(name);
    if (!prompt) return [];
    if (at.kind === 'argument') {
      const open = (prompt.arguments ?? []).filter(
        (argument) => values[argument.name] === undefined && argument.name.startsWith(at.typed),
      );
      return open.map((argument) => ({
        value: argument.name,
        label: [`${argument.name}=`],
        detail: argument.required ? t('argument.required') : (argument.description ?? ''),
        run: () => put(at.from, `${argument.name}=`),
      }));
    }
    const { [at.argument]: _, ...others } = values;
    const { completion } = await client.request(
      'completion/complete',
      {
        ref: { type: 'ref/prompt', name },
        argument: { name: at.argument, value: at.typed },
        context: { arguments: others },
      },
      signal,
    );
    return completion.values.slice(0, MOST).map((/** @type {string} */ value) => ({
      value,
      label: marked(value, at.typed),
      run: () => put(at.from, `${quoted(value)} `),
    }));
  };
  // Enter runs a complete command; Tab continues typing.
  const eager = () => {
    const { at } = parse(field.value);
    return field.value.startsWith('/') && (at.kind === 'name' || (at.kind === 'argument' && at.typed !== ''));
  };
  return listbox(field, {
    label: t('slash.options'),
    source,
    choose: () => {},
    quiet: 60,
    eager,
    completes: true,
  });
}

/** Opens the prompt named by a command. @param {string} text */
export function runCommand(text) {
  const { name, values, strays } = parse(text);
  if (!library.value.byName.has(name)) return note(t('slash.unknown', { name }));
  if (strays.length) note(t('slash.strays', { words: strays.join(' ') }));
  go(promptLink(name, values));
}
