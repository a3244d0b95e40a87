// What the browser keeps for its person: pins, recent prompts, theme, language.
// Nothing of it is ever sent. Where storage is forbidden, it lasts as long as
// the page.

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
function kept(key, fallback, fits) {
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
        // Full or forbidden.
      }
      cell.set(value);
    },
  });
}

/** @param {any} value */
const isNames = (value) => Array.isArray(value) && value.every((name) => typeof name === 'string');

export const pinned = kept('pinned', /** @type {string[]} */ ([]), isNames);
export const recent = kept('recent', /** @type {string[]} */ ([]), isNames);
export const theme = kept('theme', 'auto', (value) => ['auto', 'light', 'dark'].includes(value));
export const language = kept('language', '', (value) => typeof value === 'string');
export const asMarkdown = kept('as-markdown', true, (value) => typeof value === 'boolean');
export const useFormat = kept('use-format', 'text', (value) => typeof value === 'string');

/** @param {string} name */
export function togglePin(name) {
  const names = pinned.value;
  pinned.keep(names.includes(name) ? names.filter((other) => other !== name) : [...names, name]);
}

/** @param {string} name */
export function remember(name) {
  recent.keep([name, ...recent.value.filter((other) => other !== name)].slice(0, MOST_RECENT));
}
