// Words to whoever listens, and a short note for whoever looks.

import { h } from '../dom.js';

const NOTE_TIME = 3_500;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** Says something to a screen reader alone. @param {string} text */
export function say(text) {
  const said = /** @type {HTMLElement} */ (document.getElementById('said'));
  // The same words twice are only heard twice when they go away in between.
  said.textContent = '';
  requestAnimationFrame(() => {
    said.textContent = text;
  });
}

/** @param {string} text */
export function note(text) {
  document.querySelector('.note')?.remove();
  clearTimeout(timer);
  const element = h('div.note', { 'aria-hidden': 'true' }, text);
  document.getElementById('layer')?.append(element);
  timer = setTimeout(() => element.remove(), NOTE_TIME);
  say(text);
}

/**
 * @param {string} text
 * @param {string} done what to say afterwards
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
