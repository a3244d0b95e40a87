// The page from its first line to its first view.

import { connection, isClosed, library, start } from './app.js';
import { h } from './dom.js';
import { loadWords, moreWords, t } from './i18n.js';
import { language as chosenLanguage, theme } from './kept.js';
import { place } from './route.js';
import { paletteKey, readyPalette } from './view/keys.js';
import { shell } from './view/shell.js';

const AFTER_FIRST_PAINT = 1_000;

/** @type {Record<string, () => Promise<{ view: (place: import('./route.js').Place, until: AbortSignal) => Element }>>} */
const VIEWS = {
  find: () => import('./view/find.js'),
  prompt: () => import('./view/prompt.js'),
  resources: () => import('./view/resources.js'),
  library: () => import('./view/care.js'),
  server: () => import('./view/facts.js'),
  'sign-in': () => import('./view/sign-in.js'),
};

const page = /** @type {HTMLElement} */ (document.getElementById('page'));
let open = new AbortController();
let shown = '';

/** @type {Promise<unknown> | undefined} */
let styled;

// The first view has no messages to show, so it does not wait for how they look,
// nor for what is said about them.
function rest() {
  styled ??= Promise.all(['prompt', 'library'].map(stylesheet));
  return Promise.all([styled, moreWords()]);
}

/** @param {string} name @returns {Promise<void>} */
function stylesheet(name) {
  const link = document.createElement('link');
  link.rel = 'stylesheet';
  link.href = `/assets/style/${name}.css`;
  document.head.append(link);
  return new Promise((resolve) => {
    link.onload = () => resolve();
    link.onerror = () => resolve();
  });
}

async function render() {
  // Before anything can be shown, every address leads to the same door.
  const where = isClosed() ? /** @type {const} */ ({ ...place.value, view: 'sign-in' }) : place.value;
  open.abort();
  open = new AbortController();
  const { signal } = open;
  const main = /** @type {HTMLElement} */ (document.getElementById('main'));
  let content;
  try {
    const [{ view }] = await Promise.all([VIEWS[where.view](), where.view === 'find' ? null : rest()]);
    if (signal.aborted) return;
    content = view(where, signal);
  } catch (error) {
    // The server went before this part of the page had come.
    if (signal.aborted) return;
    content = h('p.waiting', { role: 'alert' }, t('connection.lost'));
    console.warn(error);
  }
  main.replaceChildren(content);
  const key = `${where.view}/${where.name}`;
  if (shown && shown !== key) {
    // Whoever comes by keyboard or screen reader is led to the new heading.
    window.scrollTo(0, 0);
    /** @type {HTMLElement | null} */ (content.querySelector('[data-focus], h1'))?.focus({ preventScroll: true });
  }
  shown = key;
  const titles = {
    find: t('nav.prompts'),
    prompt: where.name,
    resources: t('nav.resources'),
    library: t('nav.library'),
    server: t('nav.server'),
    'sign-in': t('sign-in.heading'),
  };
  document.title = `${titles[where.view]} · promptshelf`;
}

async function build() {
  await loadWords();
  page.replaceChildren(shell());
  place.set(place.value);
}

theme.watch((value) => {
  document.documentElement.dataset.theme = value;
});
await loadWords();
page.replaceChildren(shell());
place.watch(() => void render());
let wasClosed = false;
const look = () => {
  // Whoever is at the door already stays there, with what is typed.
  if (isClosed() !== wasClosed && place.value.view !== 'sign-in') void render();
  wasClosed = isClosed();
};
connection.watch(look);
library.watch(look);
let known = chosenLanguage.value;
chosenLanguage.watch((value) => {
  if (value !== known) void build();
  known = value;
});
window.addEventListener('keydown', paletteKey);
document.addEventListener('contextmenu', async (event) => {
  // With Shift, the browser's own menu comes.
  if (event.shiftKey || !String(getSelection()).trim() || !library.value.prompts.length) return;
  if (event.target instanceof Element && event.target.closest('input, textarea')) return;
  event.preventDefault();
  const [{ openMenu }] = await Promise.all([import('./view/selection.js'), moreWords()]);
  openMenu(event.clientX, event.clientY);
});
void start();
// What a key or a link opens is there before it is asked for, and when the server
// is away too; but what is seen comes first.
setTimeout(async () => {
  const later = [readyPalette(), rest(), import('./view/slash.js'), ...Object.values(VIEWS).map((load) => load())];
  await Promise.allSettled(later);
}, AFTER_FIRST_PAINT);
