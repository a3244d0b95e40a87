// The form of a prompt: its arguments as fields, with completion.

import { h } from '../dom.js';
import { t } from '../i18n.js';
import { completed } from './complete.js';
import { field } from './field.js';
import { unknownArguments } from './unknown.js';

/**
 * @typedef {import('../mcp/types.js').Prompt} Prompt
 * @typedef {import('../types.js').TypedPrompt} TypedPrompt
 * @typedef {import('./field.js').Field} Field
 */

/**
 * @param {Prompt} prompt
 * @param {TypedPrompt | null} typed
 * @param {Record<string, string>} given initial values
 * @param {(values: Record<string, string>, by: 'input' | 'choice') => void} changed
 */
export function promptForm(prompt, typed, given, changed) {
  const types = new Map(typed?.arguments.map((one) => [one.name, one]));
  // Arguments of the prompt's own guided steps are left out, so that they are requested only once.
  const here = (prompt.arguments ?? []).filter(({ name }) => !types.get(name)?.asked || given[name] !== undefined);
  /** @type {Field[]} */
  const fields = here.map((argument) => {
    const known = types.get(argument.name);
    const type = known?.type ?? 'string';
    const kind = {
      ...known,
      // An input of one line would remove the line breaks of a value.
      type: type === 'string' && given[argument.name]?.includes('\n') ? 'text' : type,
      name: argument.name,
      title: argument.title ?? argument.name,
      description: argument.description,
      required: argument.required ?? false,
    };
    const made = field(kind, (by) => {
      made.complain('');
      changed(read(), by);
    });
    // Without type information every argument may have completion.
    const completes = !known || known.completes || (known.examples.length > 0 && known.type !== 'text');
    const ref = /** @type {const} */ ({ type: 'ref/prompt', name: prompt.name });
    if (completes) completed(made, ref, read, () => changed(read(), 'choice'));
    return made;
  });

  /** The form's values; empty fields are omitted. */
  function read() {
    return Object.fromEntries(fields.map((one) => [one.kind.name, one.read()]).filter(([, value]) => value !== ''));
  }

  const element = h(
    'form.form',
    { novalidate: true, onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    fields.map((one) => one.element),
  );
  for (const one of fields) {
    const value = given[one.kind.name];
    if (value !== undefined && !one.write(value)) one.complain(t('argument.foreign', { value: shortened(value) }));
  }
  const names = (prompt.arguments ?? []).map((argument) => argument.name);
  const unknown = unknownArguments(given, names, () => changed(read(), 'choice'));
  element.prepend(...unknown.elements);
  return {
    element,
    fields,
    read,
    /** Values of a link or a command for arguments that the prompt does not have. They are shown and never sent. */
    unknown: unknown.values,
    /** Names of sensitive arguments, whose values stay on this page. */
    secrets: fields.filter((one) => one.kind.sensitive).map((one) => one.kind.name),
    /** Whether the prompt has arguments beyond this form. */
    asksMore: here.length < (prompt.arguments?.length ?? 0),
    /** Titles of required fields that are still empty. */
    missing() {
      return fields.filter((one) => one.kind.required && !one.read()).map((one) => one.kind.title);
    },
    /**
     * Shows the server's problems at their fields, and returns those without a field.
     *
     * @param {{ argument: string, reason: string }[]} problems
     * @param {boolean} focus whether to go to the first one
     */
    complain(problems, focus) {
      const left = [];
      for (const one of fields) one.complain('');
      for (const { argument, reason } of problems) {
        const one = fields.find((candidate) => candidate.kind.name === argument);
        if (one) one.complain(reason);
        else left.push(`${argument}: ${reason}`);
      }
      const first = fields.find((one) => problems.some(({ argument }) => argument === one.kind.name));
      if (focus && first) {
        const target = first.control.matches('input, textarea, select')
          ? first.control
          : first.control.querySelector('input');
        /** @type {HTMLElement | null} */ (target)?.focus();
      }
      return left;
    },
  };
}

/** @param {string} value */
function shortened(value) {
  return value.length > 60 ? `${value.slice(0, 59)}…` : value;
}
