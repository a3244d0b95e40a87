// The current view, stored in the URL fragment. Fragments are never sent to a server, so arguments in a link stay
// private to the people who share it.

import { Cell } from './store.js';

/**
 * @typedef {'find' | 'prompt' | 'resources' | 'library' | 'server' | 'sign-in'} FirstView
 * @typedef {import('./view/types.js').LaterView} LaterView
 * @typedef {FirstView | LaterView} View
 * @typedef {{ view: View, name: string, values: Record<string, string> }} Place
 */

const PLAIN = ['resources', 'library', 'server', 'sign-in', 'channels', 'proposals', 'rollouts', 'tokens', 'webhooks'];
/** Views of one thing, whose name may contain `/`. @type {string[]} */
const NAMED = ['history', 'revision', 'compare', 'browse', 'proposal', 'edit', 'usage'];

/** @param {string} fragment @returns {Place} */
export function read(fragment) {
  const [path, query = ''] = fragment.replace(/^#/, '').split('?', 2);
  const [, view = '', ...names] = path.split('/');
  const name = names[0] ?? '';
  const values = Object.fromEntries(new URLSearchParams(query));
  if (view === 'prompt' && name) return { view, name: decoded(name), values };
  if (PLAIN.includes(view)) return { view: /** @type {View} */ (view), name: '', values };
  if (NAMED.includes(view)) return { view: /** @type {View} */ (view), name: decoded(names.join('/')), values };
  return { view: 'find', name: '', values };
}

/**
 * @param {string} name
 * @param {Record<string, string>} [values]
 */
export function promptLink(name, values = {}) {
  const query = new URLSearchParams(values).toString();
  return `#/prompt/${encodeURIComponent(name)}${query ? `?${query}` : ''}`;
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const place = new Cell(read(location.hash));

let before = '#/';
/** The view to return to after a sign-in redirect. */
export const lastPlace = () => before;
place.watch(({ view }) => {
  if (view !== 'sign-in') before = location.hash || '#/';
});
window.addEventListener('hashchange', () => place.set(read(location.hash)));

/** @param {string} fragment */
export function go(fragment) {
  if (location.hash === fragment) place.set(read(fragment));
  else location.hash = fragment;
}
