// Announcements for screen readers, and short notes on screen.

import { h } from '../dom.js';

const NOTE_TIME = 3_500;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** Announces a text to screen readers only. @param {string} text */
export function announce(text) {
  const region = /** @type {HTMLElement} */ (document.getElementById('announcer'));
  // Screen readers announce a repeated text only after it was removed in between.
  region.textContent = '';
  requestAnimationFrame(() => {
    region.textContent = text;
  });
}

/** @param {string} text */
export function note(text) {
  document.querySelector('.note')?.remove();
  clearTimeout(timer);
  const element = h('div.note', { 'aria-hidden': 'true' }, text);
  document.getElementById('layer')?.append(element);
  timer = setTimeout(() => element.remove(), NOTE_TIME);
  announce(text);
}

/**
 * @param {string} text
 * @param {string} done text to announce afterwards
 * @param {string} failed
 */
export async function copy(text, done, failed) {
  try {
    await navigator.clipboard.writeText(text);
    note(done);
  } catch {
    note(failed);
  }
}
