// Suggestion list below a field, shared by completion, slash commands and the palette.

import { debounced, freshId, h, show } from '../dom.js';
import { t } from '../i18n.js';
import { stylesheet } from '../stylesheet.js';
import { announce } from './announce.js';

void stylesheet('fields');

/**
 * @typedef {object} Option
 * @property {string} value
 * @property {(import('../dom.js').Child)[]} label
 * @property {string} [detail]
 * @property {() => void} [run]
 *
 * @typedef {object} Settings
 * @property {string} label accessible name of the list
 * @property {(signal: AbortSignal) => Option[] | Promise<Option[]>} source
 * @property {(option: Option) => void} choose
 * @property {number} [quiet] how long typing has to pause, in milliseconds
 * @property {() => boolean} [eager] whether Enter chooses the first option without more ado
 * @property {boolean} [completes] whether Tab chooses the first option, as in a shell
 * @property {boolean} [lasting] whether it stays open, as in a dialog
 */

/**
 * @param {HTMLInputElement | HTMLTextAreaElement} field
 * @param {Settings} settings
 * @returns {{ popup: HTMLElement, refresh: () => void, close: () => void, isOpen: () => boolean }}
 */
export function listbox(
  field,
  { label, source, choose, quiet = 0, eager = () => false, completes = false, lasting = false },
) {
  const id = freshId('options');
  const popup = h('ul.options', { id, role: 'listbox', 'aria-label': label, hidden: true });
  // A multi-line field cannot have the role `combobox`; it only references the active option.
  const isLine = field instanceof HTMLInputElement;
  /** @type {Option[]} */
  let options = [];
  let active = -1;
  /** Whether the input has changed since the options arrived. */
  let isStale = false;
  let asking = new AbortController();

  field.setAttribute('aria-autocomplete', 'list');
  field.setAttribute('autocomplete', 'off');
  if (isLine) {
    field.setAttribute('role', 'combobox');
    field.setAttribute('aria-controls', id);
    field.setAttribute('aria-expanded', 'false');
  }

  const paint = (/** @type {boolean} */ isOpen) => {
    popup.hidden = !isOpen;
    if (isLine) field.setAttribute('aria-expanded', String(isOpen));
    if (isOpen && active >= 0) field.setAttribute('aria-activedescendant', `${id}-${active}`);
    else field.removeAttribute('aria-activedescendant');
    [...popup.children].forEach((item, index) => {
      item.setAttribute('aria-selected', String(index === active));
      if (index === active) item.scrollIntoView({ block: 'nearest' });
    });
  };

  const close = () => {
    asking.abort();
    later.cancel();
    if (lasting) return;
    active = -1;
    paint(false);
  };

  const pick = (/** @type {Option} */ option) => {
    close();
    if (option.run) option.run();
    else choose(option);
  };

  /** Fetches options; resolves to `false` if a newer query replaced this one. */
  const refresh = async () => {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    let found;
    try {
      found = await source(signal);
    } catch {
      // Suggestions are optional: input works without them.
      found = /** @type {Option[]} */ ([]);
    }
    if (signal.aborted || (!lasting && document.activeElement !== field)) return false;
    options = found;
    isStale = false;
    active = eager() && options.length ? 0 : -1;
    show(
      popup,
      options.map((option, index) =>
        h(
          'li',
          {
            id: `${id}-${index}`,
            role: 'option',
            // Keeps the focus in the field.
            onpointerdown: (/** @type {Event} */ event) => event.preventDefault(),
            onclick: () => pick(option),
          },
          h('span.option-label', null, option.label),
          option.detail ? h('span.option-detail', null, option.detail) : null,
        ),
      ),
    );
    paint(options.length > 0);
    if (options.length) announce(t('options.count', { n: options.length }));
    return true;
  };
  const later = debounced(quiet, () => void refresh());

  field.addEventListener('input', () => {
    isStale = true;
    // Aborts the previous query, so that a late response cannot replace newer suggestions.
    asking.abort();
    // A new set of options resets the selection.
    active = -1;
    paint(!popup.hidden);
    if (quiet) later();
    else void refresh();
  });
  field.addEventListener('blur', () => close());
  field.addEventListener('keydown', (/** @type {any} */ typed) => {
    // The type checker loses the event's type for a union of two element types.
    const event = /** @type {KeyboardEvent} */ (typed);
    if (event.isComposing) return;
    const isOpen = !popup.hidden && options.length > 0;
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    // In a multi-line field the arrow keys move the cursor until options are open.
    if (step && (isOpen || (isLine && step > 0)) && !event.altKey) {
      event.preventDefault();
      if (!isOpen) return void refresh();
      active = active < 0 ? (step > 0 ? 0 : options.length - 1) : (active + step + options.length) % options.length;
      paint(true);
    } else if (event.key === 'Enter' && isStale && eager()) {
      // Keys typed before the options arrive apply to the coming options.
      event.preventDefault();
      event.stopImmediatePropagation();
      later.cancel();
      void refresh().then((isNew) => isNew && options[active] && pick(options[active]));
    } else if (event.key === 'Enter' && isOpen && active >= 0) {
      event.preventDefault();
      event.stopImmediatePropagation();
      pick(options[active]);
    } else if (event.key === 'Tab' && isOpen && !lasting && !event.shiftKey && (active >= 0 || completes)) {
      event.preventDefault();
      later.cancel();
      void (isStale ? refresh() : Promise.resolve(true)).then((isNew) => {
        const option = options[Math.max(0, active)];
        if (isNew && option) pick(option);
      });
    } else if (event.key === 'Escape' && isOpen && !lasting) {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  });
  return { popup, refresh: () => void refresh(), close, isOpen: () => !popup.hidden };
}
