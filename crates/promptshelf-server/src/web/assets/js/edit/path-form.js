// A form with the path of a file: for new files, copies and renames.

import { freshId, h, show } from '../dom.js';
import { revealed } from '../text/invisible.js';
import { lineIcon } from '../view/glyphs.js';
import { reason } from './reason.js';

/**
 * @param {object} options
 * @param {string} options.label
 * @param {string} options.hint
 * @param {string} options.button
 * @param {string} options.initial
 * @param {import('../dom.js').Children} [options.more] further fields
 * @param {(path: string) => Promise<string>} options.submit returns a problem, or an empty text
 */
export function pathForm({ label, hint, button, initial, more = [], submit }) {
  const id = freshId('path');
  const problem = h('p.problem', { id: `${id}-problem`, hidden: true, role: 'alert' });
  const input = h('input', {
    id,
    type: 'text',
    value: initial,
    required: true,
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    'aria-describedby': `${id}-hint ${id}-problem`,
  });
  /** @param {string} text */
  const complain = (text) => {
    problem.hidden = !text;
    show(problem, text ? [lineIcon('warn'), revealed(text)] : null);
    input.setAttribute('aria-invalid', String(Boolean(text)));
    if (text) input.focus();
  };
  const element = h(
    'form.edit-path',
    {
      novalidate: true,
      onsubmit: async (/** @type {Event} */ event) => {
        event.preventDefault();
        const path = input.value.trim().replace(/^\/+/, '');
        if (!path) return input.focus();
        complain(await submit(path).catch(reason));
      },
    },
    h(
      'div.field',
      null,
      h('label.label', { for: id }, label),
      h('p.about', { id: `${id}-hint` }, hint),
      input,
      problem,
    ),
    h('div.field', null, more),
    h('button.primary', { type: 'submit' }, button),
  );
  return { element, input };
}
