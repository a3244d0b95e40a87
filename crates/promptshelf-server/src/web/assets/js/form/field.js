// Form fields by argument type. Every field returns a string, as MCP's prompt arguments are strings.

import { freshId, h, show } from '../dom.js';
import { t } from '../i18n.js';
import { revealed } from '../text/invisible.js';
import { lineIcon } from '../view/glyphs.js';
import { takesFiles } from './files.js';

/**
 * @typedef {object} FieldKind description of a field, from an argument or from a form's schema
 * @property {string} name
 * @property {string} title
 * @property {string} [description]
 * @property {boolean} required
 * @property {string} type
 * @property {string | null} [default]
 * @property {string[]} [examples]
 * @property {{ value: string, title: string | null }[]} [choices]
 * @property {number | null} [minimum]
 * @property {number | null} [maximum]
 * @property {number | null} [minLength]
 * @property {number | null} [maxLength]
 * @property {string} [format]
 * @property {boolean} [sensitive] whether the value is hidden while typing
 *
 * @typedef {object} Field
 * @property {HTMLElement} element
 * @property {HTMLElement} control the focusable element
 * @property {FieldKind} kind
 * @property {() => string} read
 * @property {(value: string) => boolean} write returns whether the field offers such a value; it is shown in any case
 * @property {(problem: string) => void} complain
 */

const MOST_RADIOS = 4;
const LONGEST_RADIOS = 48;

/**
 * @param {FieldKind} kind
 * @param {(by: 'input' | 'choice') => void} changed
 * @returns {Field}
 */
export function field(kind, changed) {
  const id = freshId('field');
  const problem = h('p.problem', { id: `${id}-problem`, hidden: true });
  const about = kind.description ? h('p.about', { id: `${id}-about` }, revealed(kind.description)) : null;
  const described = [about && `${id}-about`, `${id}-problem`].filter(Boolean).join(' ');
  const attributes = { id, 'aria-describedby': described, 'aria-required': kind.required ? 'true' : null };
  const made = control(kind, attributes, changed, id);
  const mark = kind.required
    ? h('span.must', { title: t('argument.required') }, '*')
    : h('span.may', null, t('argument.optional'));
  const labelled = [h('bdi', null, revealed(kind.title)), ' ', mark];
  const label = made.group ? h('span.label', { id: `${id}-label` }, labelled) : h('label.label', { for: id }, labelled);
  const given = examples(kind, (value) => {
    made.write(value);
    changed('choice');
  });
  const element = h(
    'div.field',
    { 'data-argument': kind.name },
    h('div.field-head', null, label, made.extra),
    about,
    made.body,
    given,
    problem,
  );
  const complain = (/** @type {string} */ text) => {
    problem.hidden = !text;
    show(problem, text ? [lineIcon('warn'), revealed(text)] : null);
    element.classList.toggle('wrong', Boolean(text));
    made.control.setAttribute('aria-invalid', String(Boolean(text)));
  };
  made.control.removeAttribute('aria-invalid');
  return { element, control: made.control, kind, read: made.read, write: made.write, complain };
}

/**
 * @param {FieldKind} kind
 * @param {Record<string, any>} attributes
 * @param {(by: 'input' | 'choice') => void} changed
 * @param {string} id
 * @returns {{ body: HTMLElement, control: HTMLElement, read: () => string, write: (value: string) => boolean,
 *   group?: boolean, extra?: HTMLElement }}
 */
function control(kind, attributes, changed, id) {
  const choices = kind.type === 'boolean' ? booleans() : (kind.choices ?? []);
  if (choices.length && kind.type !== 'list') {
    const length = choices.reduce((sum, choice) => sum + (choice.title ?? choice.value).length, 0);
    const few = choices.length <= MOST_RADIOS && length <= LONGEST_RADIOS;
    return few ? radios(kind, choices, attributes, changed, id) : select(kind, choices, attributes, changed);
  }
  const typed = () => changed('input');
  if (kind.type === 'text' || kind.type === 'json' || kind.type === 'list') {
    const area = h('textarea', {
      ...attributes,
      rows: kind.type === 'text' ? '5' : '3',
      spellcheck: kind.type === 'text' ? null : 'false',
      placeholder: hint(kind),
      oninput: typed,
    });
    area.classList.toggle('code', kind.type === 'json');
    area.classList.toggle('masked', Boolean(kind.sensitive));
    const extra = kind.type === 'text' ? takesFiles(area, typed) : undefined;
    return { body: area, control: area, extra, ...heldBy(area) };
  }
  const types = { integer: 'number', number: 'number', date: 'date' };
  const type =
    types[/** @type {keyof typeof types} */ (kind.type)] ??
    { email: 'email', uri: 'url', 'date-time': 'datetime-local' }[kind.format ?? ''] ??
    'text';
  const input = h('input', {
    ...attributes,
    type: kind.sensitive ? 'password' : type,
    autocomplete: kind.sensitive ? 'off' : null,
    placeholder: type === 'text' ? hint(kind) : null,
    min: type === 'number' ? kind.minimum : null,
    max: type === 'number' ? kind.maximum : null,
    step: type === 'number' ? (kind.type === 'integer' ? '1' : 'any') : null,
    oninput: typed,
  });
  return { body: h('div.holder', null, input), control: input, ...heldBy(input) };
}

/** @param {FieldKind} kind */
function hint(kind) {
  if (kind.default) return kind.default;
  return kind.type === 'list' ? t('argument.list') : null;
}

/** @param {HTMLInputElement | HTMLTextAreaElement} element */
function heldBy(element) {
  return {
    read: () => element.value,
    write: (/** @type {string} */ value) => {
      element.value = value;
      if (element.value === value || !(element instanceof HTMLInputElement)) return true;
      // An input for numbers or days empties itself. As text, the value stays to be seen and corrected.
      element.type = 'text';
      element.value = value;
      return false;
    },
  };
}

function booleans() {
  return [
    { value: 'true', title: t('argument.yes') },
    { value: 'false', title: t('argument.no') },
  ];
}

/**
 * @param {FieldKind} kind
 * @param {{ value: string, title: string | null }[]} choices
 * @param {Record<string, any>} attributes
 * @param {(by: 'input' | 'choice') => void} changed
 */
function select(kind, choices, attributes, changed) {
  const none = kind.default || kind.required ? [] : [h('option', { value: '' }, t('argument.none'))];
  const ask = kind.required && !kind.default ? [h('option', { value: '' }, t('argument.choose'))] : [];
  const options = choices.map(({ value, title }) => h('option', { value }, title ?? value));
  const element = h('select', { ...attributes, onchange: () => changed('choice') }, none, ask, options);
  /** @type {HTMLOptionElement | null} */
  let foreign = null;
  const write = (/** @type {string} */ value) => {
    foreign?.remove();
    foreign = null;
    const isOffered = [...element.options].some((option) => option.value === value);
    if (!isOffered && value) {
      foreign = h('option', { value }, value);
      element.append(foreign);
    }
    element.value = value;
    return isOffered;
  };
  write(kind.default ?? '');
  return { body: element, control: element, read: () => element.value, write };
}

/**
 * @param {FieldKind} kind
 * @param {{ value: string, title: string | null }[]} choices
 * @param {Record<string, any>} attributes
 * @param {(by: 'input' | 'choice') => void} changed
 * @param {string} id
 */
function radios(kind, choices, attributes, changed, id) {
  const all = kind.default || kind.required ? choices : [...choices, { value: '', title: t('argument.none') }];
  const radio = (/** @type {string} */ value) =>
    h('input', { type: 'radio', name: id, value, onchange: () => changed('choice') });
  /** @type {HTMLInputElement[]} */
  const inputs = all.map(({ value }) => radio(value));
  const body = h(
    'div.radios',
    {
      role: 'radiogroup',
      'aria-labelledby': `${id}-label`,
      'aria-describedby': attributes['aria-describedby'],
      'aria-required': attributes['aria-required'],
    },
    all.map(({ value, title }, index) => h('label', null, inputs[index], h('span', null, revealed(title ?? value)))),
  );
  const write = (/** @type {string} */ value) => {
    if (inputs.length > all.length) inputs.pop()?.closest('label')?.remove();
    const isOffered = all.some((choice) => choice.value === value);
    if (!isOffered && value) {
      const foreign = radio(value);
      inputs.push(foreign);
      body.append(h('label', null, foreign, h('span', null, revealed(value))));
    }
    for (const input of inputs) input.checked = input.value === value;
    return isOffered;
  };
  write(kind.default ?? '');
  const read = () => inputs.find((input) => input.checked)?.value ?? '';
  return { body, control: body, read, write, group: true };
}

/**
 * Example values, inserted by a click.
 *
 * @param {FieldKind} kind
 * @param {(value: string) => void} use
 */
function examples(kind, use) {
  const some = (kind.examples ?? []).slice(0, 6);
  if (!some.length) return null;
  const buttons = some.map((value) =>
    h('button.example', { type: 'button', onclick: () => use(value) }, revealed(value)),
  );
  return h('p.examples', null, h('span', null, t('argument.examples')), buttons);
}
