// Preferences in the browser's storage: pins, recent prompts, theme, language. They are never sent. Where storage is
// blocked, they last as long as the page.

import { Cell } from './store.js';

const PREFIX = 'promptshelf.';
const MOST_RECENT = 8;

/**
 * @template T
 * @param {string} key
 * @param {T} fallback
 * @param {(value: any) => boolean} fits
 * @returns {Cell<T> & { keep: (value: T) => void }}
 */
function stored(key, fallback, fits) {
  const read = () => {
    try {
      const value = JSON.parse(localStorage.getItem(PREFIX + key) ?? 'null');
      return fits(value) ? value : fallback;
    } catch {
      return fallback;
    }
  };
  const cell = new Cell(read());
  window.addEventListener('storage', (event) => {
    if (event.key === PREFIX + key) cell.set(read());
  });
  return Object.assign(cell, {
    /** @param {T} value */
    keep(value) {
      try {
        localStorage.setItem(PREFIX + key, JSON.stringify(value));
      } catch {
        // Storage is full or blocked.
      }
      cell.set(value);
    },
  });
}

/** @param {any} value */
const isNames = (value) => Array.isArray(value) && value.every((name) => typeof name === 'string');

export const pinned = stored('pinned', /** @type {string[]} */ ([]), isNames);
export const recent = stored('recent', /** @type {string[]} */ ([]), isNames);
export const theme = stored('theme', 'auto', (value) => ['auto', 'light', 'dark'].includes(value));
export const language = stored('language', '', (value) => typeof value === 'string');
export const asMarkdown = stored('as-markdown', true, (value) => typeof value === 'boolean');
/** The name of the delivery profile that previews use. */
export const profile = stored('profile', '', (value) => typeof value === 'string');
export const useFormat = stored('use-format', 'text', (value) => typeof value === 'string');

/** @param {string} name */
export function togglePin(name) {
  const names = pinned.value;
  pinned.keep(names.includes(name) ? names.filter((other) => other !== name) : [...names, name]);
}

/** @param {string} name */
export function remember(name) {
  recent.keep([name, ...recent.value.filter((other) => other !== name)].slice(0, MOST_RECENT));
}
