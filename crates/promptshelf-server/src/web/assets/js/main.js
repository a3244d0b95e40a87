// Entry point: starts the application and renders the current view.

import { connection, features, isClosed, library, start } from './app.js';
import { h } from './dom.js';
import { chooseLanguage, moreWords, t } from './i18n.js';
import { language as chosenLanguage, theme } from './preferences.js';
import { place } from './route.js';
import { stylesheet } from './stylesheet.js';
import { paletteKey, readyPalette } from './view/keys.js';
import { shell } from './view/shell.js';

const AFTER_FIRST_PAINT = 1_000;

/** @typedef {() => Promise<{ view: (place: import('./route.js').Place, until: AbortSignal) => Element }>} Load */

/** @type {Record<import('./route.js').FirstView, Load>} */
const VIEWS = {
  find: () => import('./view/find.js'),
  prompt: () => import('./view/prompt.js'),
  resources: () => import('./view/resources.js'),
  library: () => import('./view/library.js'),
  server: () => import('./view/server.js'),
  'sign-in': () => import('./view/sign-in.js'),
};

const page = /** @type {HTMLElement} */ (document.getElementById('page'));
let open = new AbortController();
let shown = '';

// Loads modules that the first view does not need: message rendering and its words.
function rest() {
  return Promise.all([...['fields', 'prompt', 'library'].map(stylesheet), moreWords()]);
}

/** @param {import('./route.js').View} view */
async function load(view) {
  const first = VIEWS[/** @type {import('./route.js').FirstView} */ (view)];
  if (first) return (await Promise.all([first(), view === 'find' ? null : rest()]))[0];
  const later = import('./later.js').then(({ open }) => open(view));
  return (await Promise.all([later, rest()]))[0];
}

async function render() {
  // Before sign-in, every address shows the sign-in view.
  const where = isClosed() ? /** @type {const} */ ({ ...place.value, view: 'sign-in' }) : place.value;
  open.abort();
  open = new AbortController();
  const { signal } = open;
  const main = /** @type {HTMLElement} */ (document.getElementById('main'));
  let content;
  try {
    const { view } = await load(where.view);
    if (signal.aborted) return;
    content = view(where, signal);
  } catch (error) {
    // The view was left before its module had loaded.
    if (signal.aborted) return;
    content = h('p.waiting', { role: 'alert' }, t('connection.lost'));
    console.warn(error);
  }
  main.replaceChildren(content);
  const key = `${where.view}/${where.name}`;
  if (shown && shown !== key) {
    // Moves the focus to the new heading, for keyboard and screen reader users.
    window.scrollTo(0, 0);
    /** @type {HTMLElement | null} */ (content.querySelector('[data-focus], h1'))?.focus({ preventScroll: true });
  }
  shown = key;
  // The heading of a view is its title.
  const heading = content.querySelector('h1')?.textContent;
  const title = where.view === 'find' ? t('nav.prompts') : where.view === 'prompt' ? where.name : heading;
  document.title = `${title} · promptshelf`;
}

function build() {
  chooseLanguage();
  page.replaceChildren(shell());
  place.set(place.value);
}

theme.watch((value) => {
  document.documentElement.dataset.theme = value;
});
chooseLanguage();
page.replaceChildren(shell());
place.watch(() => void render());
let wasClosed = false;
const look = () => {
  // An open sign-in view stays as it is, with its input.
  if (isClosed() !== wasClosed && place.value.view !== 'sign-in') void render();
  wasClosed = isClosed();
};
connection.watch(look);
library.watch(look);
let known = chosenLanguage.value;
chosenLanguage.watch((value) => {
  if (value !== known) build();
  known = value;
});
window.addEventListener('keydown', paletteKey);
document.addEventListener('contextmenu', async (event) => {
  // Shift opens the browser's own context menu.
  if (event.shiftKey || !String(getSelection()).trim() || !library.value.prompts.length) return;
  if (event.target instanceof Element && event.target.closest('input, textarea')) return;
  event.preventDefault();
  const [{ openMenu }] = await Promise.all([import('./view/selection.js'), moreWords()]);
  openMenu(event.clientX, event.clientY);
});
void start();
features.watch(async ({ channels }) => {
  if (channels) (await import('./channels/wanted.js')).followWanted();
});
// Preloads modules that keys and links open, so that they also work when the server is unreachable later.
setTimeout(async () => {
  const later = [readyPalette(), rest(), import('./view/slash.js'), ...Object.values(VIEWS).map((load) => load())];
  await Promise.allSettled(later);
}, AFTER_FIRST_PAINT);
