// Context menu for selected text: use it as an argument of a prompt.

import { library } from '../app.js';
import { h } from '../dom.js';
import { draft } from '../drafts.js';
import { t } from '../i18n.js';
import { pinned, recent } from '../preferences.js';
import { go, promptLink } from '../route.js';
import { stylesheet } from '../stylesheet.js';
import { lineIcon } from './glyphs.js';

void stylesheet('fields');

const MOST = 12;

/** The selected text of the page. */
export function chosenText() {
  return String(getSelection() ?? '').trim();
}

/**
 * Prompts that can take a text: those with a multi-line argument, pinned and recent ones first.
 *
 * @param {string} text
 * @returns {import('./listbox.js').Option[]}
 */
export function uses(text) {
  const { prompts, details, byName } = library.value;
  const liked = [...new Set([...pinned.value, ...recent.value])];
  const names = new Set([...liked, ...prompts.map((prompt) => prompt.name)]);
  const found = [];
  for (const name of names) {
    const prompt = byName.get(name);
    const argument = details.get(name)?.texts[0];
    if (!prompt || !argument) continue;
    const titled = prompt.arguments?.find((one) => one.name === argument)?.title ?? argument;
    const title = prompt.title ?? name;
    found.push({
      value: title,
      label: [lineIcon('file'), t('selection.use', { argument: titled, prompt: title })],
      run: () => {
        draft(name, { [argument]: text });
        go(promptLink(name));
      },
    });
    if (found.length >= MOST) break;
  }
  return found;
}

/** @param {number} x @param {number} y */
export function openMenu(x, y) {
  const text = chosenText();
  const options = uses(text);
  document.querySelector('.menu')?.remove();
  const before = document.activeElement;
  const close = () => {
    menu.remove();
    if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  };
  const copyText = () => navigator.clipboard.writeText(text).catch(() => {});
  const items = [...options, { value: '', label: [lineIcon('copy'), t('selection.copy')], run: copyText }];
  const menu = h(
    'ul.menu',
    { role: 'menu', 'aria-label': t('selection.label'), tabindex: '-1' },
    items.map((option) => {
      const run = () => {
        close();
        option.run?.();
      };
      return h(
        'li',
        { role: 'none' },
        h('button', { type: 'button', role: 'menuitem', tabindex: '-1', onclick: run }, option.label),
      );
    }),
  );
  document.getElementById('layer')?.append(menu);
  menu.style.left = `${Math.max(8, Math.min(x, innerWidth - menu.offsetWidth - 8))}px`;
  menu.style.top = `${Math.max(8, Math.min(y, innerHeight - menu.offsetHeight - 8))}px`;
  const buttons = /** @type {HTMLElement[]} */ ([...menu.querySelectorAll('button')]);
  buttons[0].focus();
  menu.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    const at = buttons.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) buttons[(at + step + buttons.length) % buttons.length].focus();
    else if (event.key === 'Home') buttons[0].focus();
    else if (event.key === 'End') buttons[buttons.length - 1].focus();
    else if (event.key === 'Escape' || event.key === 'Tab') close();
    else return;
    event.preventDefault();
  });
  menu.addEventListener('focusout', (/** @type {FocusEvent} */ event) => {
    // Deferred, because the menu may be in the middle of its own removal.
    if (!menu.contains(/** @type {Node | null} */ (event.relatedTarget))) setTimeout(() => menu.remove());
  });
}
