// Global keyboard shortcuts.

import { moreWords } from '../i18n.js';

/** @type {typeof import('./palette.js') | undefined} */
let palette;

/** Preloads the palette, so that no key after its shortcut is lost. */
export async function readyPalette() {
  if (!palette) [palette] = await Promise.all([import('./palette.js'), moreWords()]);
  return palette;
}

/** @param {string} [typed] */
export function openPalette(typed) {
  if (palette) palette.openPalette(typed);
  else readyPalette().then((loaded) => loaded.openPalette(typed), console.warn);
}

/** @param {KeyboardEvent} event */
export function paletteKey(event) {
  const isPalette = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 'k';
  const target = event.target instanceof HTMLElement ? event.target : document.body;
  const writes = target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
  if (isPalette) {
    event.preventDefault();
    openPalette();
  } else if (event.key === '/' && !writes && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const field = /** @type {HTMLInputElement | null} */ (document.querySelector('.finder input'));
    event.preventDefault();
    if (!field) return openPalette('/');
    field.focus();
    if (!field.value) {
      field.value = '/';
      field.dispatchEvent(new Event('input'));
    }
  }
}
