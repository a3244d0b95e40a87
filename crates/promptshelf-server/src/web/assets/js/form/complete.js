// Completion for form fields, with the other fields' values as context.

import { client } from '../app.js';
import { t } from '../i18n.js';
import { marked } from '../view/card.js';
import { listbox } from '../view/listbox.js';

const QUIET = 150;
const MOST_SUGGESTIONS = 50;

/**
 * @typedef {import('./field.js').Field} Field
 * @typedef {{ type: 'ref/prompt', name: string } | { type: 'ref/resource', uri: string }} Reference
 */

/**
 * Attaches completion to a text field; other fields offer their own choices.
 *
 * @param {Field} made
 * @param {Reference} ref the prompt or resource template of the field
 * @param {() => Record<string, string>} read returns the values of all fields
 * @param {() => void} chosen
 */
export function completed(made, ref, read, chosen) {
  const { control, kind } = made;
  const isOpen = control instanceof HTMLInputElement ? control.type === 'text' : control instanceof HTMLTextAreaElement;
  if (!isOpen) return;
  const box = listbox(/** @type {HTMLInputElement | HTMLTextAreaElement} */ (control), {
    label: t('options.for', { title: kind.title }),
    quiet: QUIET,
    source: async (signal) => {
      const { [kind.name]: _, ...others } = read();
      const typed = made.read();
      const argument = { name: kind.name, value: typed };
      const params = { ref, argument, context: { arguments: others } };
      const { completion } = await client.request('completion/complete', params, signal);
      const values = /** @type {string[]} */ (completion.values).filter((value) => value !== typed);
      return values.slice(0, MOST_SUGGESTIONS).map((value) => ({ value, label: marked(value, typed) }));
    },
    choose: (option) => {
      made.write(option.value);
      made.complain('');
      chosen();
    },
  });
  control.after(box.popup);
  control.addEventListener('focus', () => {
    if (!made.read()) box.refresh();
  });
}
