// The frame around every view: navigation, connection state, account.

import { account } from '../account.js';
import { connection, discovery, features, health, isClosed, retry, wanted } from '../app.js';
import { h, show } from '../dom.js';
import { LANGUAGES, language, moreWords, t } from '../i18n.js';
import { language as chosenLanguage, theme } from '../preferences.js';
import { at } from '../root.js';
import { place } from '../route.js';
import { revealed } from '../text/invisible.js';
import { lineIcon } from './glyphs.js';
import { openPalette } from './keys.js';

// Shorter than a second, so that the countdown skips none.
const TICK = 500;

/** @type {AbortController | undefined} */
let built;

export function shell() {
  built?.abort();
  built = new AbortController();
  const until = built.signal;
  const links = [
    navLink('find', '#/', t('nav.prompts')),
    navLink('channels', '#/channels', t('nav.channels')),
    navLink('proposals', '#/proposals', t('nav.proposals')),
    navLink('edit', '#/edit', t('nav.edit')),
    navLink('resources', '#/resources', t('nav.resources')),
    navLink('library', '#/library', t('nav.library')),
    navLink('server', '#/server', t('nav.server')),
    navLink('usage', '#/usage', t('nav.usage')),
  ];
  const badge = h('span.count', { hidden: true });
  links[5].append(badge);
  const reviews = h('span.count', { hidden: true });
  links[2].append(reviews);
  wanted.watch((n) => {
    reviews.hidden = n === 0;
    show(reviews, String(n), h('span.unseen', null, ` ${t('nav.wanted', { n })}`));
  }, until);
  features.watch(({ channels, edit, usage }) => {
    links[1].hidden = links[2].hidden = !channels;
    links[3].hidden = !channels && !edit;
    links[7].hidden = !usage;
  }, until);
  health.watch((value) => {
    const n = value ? value.errors + value.warnings : 0;
    badge.hidden = n === 0;
    badge.classList.toggle('bad', Boolean(value?.errors));
    show(badge, String(n), h('span.unseen', null, ` ${t('health.count', { n })}`));
  }, until);
  place.watch((where) => {
    // Views without a link of their own belong to that of a list.
    const views = links.map((link) => link.dataset.view);
    const parent = where.view === 'prompt' ? 'find' : where.view === 'sign-in' ? '' : 'channels';
    const current = [where.view, `${where.view}s`].find((view) => views.includes(view)) ?? parent;
    for (const link of links) {
      if (link.dataset.view === current) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
  }, until);
  const brand = h('span.brand-name', null, 'promptshelf');
  discovery.watch((value) => {
    const server = value?._meta?.['io.modelcontextprotocol/serverInfo'];
    show(brand, server?.title ?? server?.name ?? 'promptshelf');
  }, until);
  return h(
    'div.shell',
    null,
    h('a.skip', { href: '#main', onclick: toMain }, t('nav.skip')),
    h(
      'header.top',
      null,
      h('a.brand', { href: '#/' }, h('img', { src: at('assets/icon.svg'), alt: '', width: '26', height: '26' }), brand),
      h('nav', { 'aria-label': t('nav.label') }, links),
      h(
        'button.jump',
        {
          type: 'button',
          onclick: () => openPalette(),
          'aria-keyshortcuts': 'Control+K Meta+K',
        },
        [
          lineIcon('search'),
          h('span', null, t('nav.jump')),
          h('kbd', null, /Mac|iP/.test(navigator.platform) ? '⌘K' : 'Ctrl K'),
        ],
      ),
      accountLink(until),
      themeButton(until),
      languagePicker(),
    ),
    notice(until),
    h('main', { id: 'main', tabindex: '-1' }),
  );
}

/** @param {MouseEvent} event */
function toMain(event) {
  // The fragment is used for routing, so the jump is done by script.
  event.preventDefault();
  document.getElementById('main')?.focus();
}

/** @param {string} view @param {string} href @param {string} text */
function navLink(view, href, text) {
  return h('a', { href, 'data-view': view }, text);
}

/** Shown only where sign-in exists. @param {AbortSignal} until */
function accountLink(until) {
  const link = h('a.icon', { href: '#/sign-in', hidden: true }, lineIcon('person'));
  account.watch(({ isIn, isDemanded }) => {
    const name = isIn ? t('sign-in.account') : t('sign-in.heading');
    link.hidden = !isIn && !isDemanded;
    link.classList.toggle('is-in', isIn);
    link.setAttribute('aria-label', name);
    link.title = name;
  }, until);
  return link;
}

/** @param {AbortSignal} until */
function themeButton(until) {
  const order = ['auto', 'light', 'dark'];
  const next = () => theme.keep(order[(order.indexOf(theme.value) + 1) % order.length]);
  const button = h('button.icon', { type: 'button', onclick: next });
  theme.watch((value) => {
    const names = { auto: t('theme.auto'), light: t('theme.light'), dark: t('theme.dark') };
    const name = names[/** @type {'auto' | 'light' | 'dark'} */ (value)];
    show(button, lineIcon(value === 'light' ? 'sun' : value === 'dark' ? 'moon' : 'auto'));
    button.setAttribute('aria-label', t('theme.button', { theme: name }));
    button.title = t('theme.button', { theme: name });
  }, until);
  return button;
}

function languagePicker() {
  const options = Object.entries(LANGUAGES).map(([code, name]) =>
    h('option', { value: code, lang: code, selected: code === language }, name),
  );
  const keep = (/** @type {Event} */ event) =>
    chosenLanguage.keep(/** @type {HTMLSelectElement} */ (event.target).value);
  return h('select.language', { 'aria-label': t('language.label'), onchange: keep }, options);
}

/** Shows connection problems. @param {AbortSignal} until */
function notice(until) {
  const box = h('div.notice', { hidden: true, role: 'status' });
  const countdown = h('span.countdown', { 'aria-hidden': 'true' });
  let shown = '';
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let ticking;
  const count = () => {
    const { state, retryAt } = connection.value;
    const seconds = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
    show(countdown, state === 'lost' ? t('connection.retry', { seconds }) : '');
  };
  const draw = () => {
    const { state } = connection.value;
    document.documentElement.dataset.connection = state;
    // The sign-in view itself shows no hint to sign in.
    const isSignIn = state === 'sign-in' && !isClosed() && place.value.view !== 'sign-in';
    box.hidden = state !== 'lost' && !isSignIn;
    clearInterval(ticking);
    if (state === 'lost') ticking = setInterval(count, TICK);
    count();
    const stateKey = box.hidden ? '' : JSON.stringify([state, isSignIn && account.value.challenge]);
    // Announces a state once, not at every attempt.
    if (stateKey === shown) return;
    shown = stateKey;
    if (state === 'lost') {
      const again = h('button', { type: 'button', onclick: retry }, t('connection.again'));
      show(box, lineIcon('warn'), h('p', null, t('connection.lost'), ' ', countdown), again);
    } else if (isSignIn) {
      // The sign-in module is loaded on demand.
      void Promise.all([import('./sign-in.js'), moreWords()]).then(([{ reason, toSignIn }]) => {
        const begin = () => void toSignIn(account.value.challenge);
        const button = h('button.primary', { type: 'button', onclick: begin }, t('sign-in.button'));
        show(box, lineIcon('warn'), h('p', null, revealed(reason())), button);
      });
    } else {
      show(box);
    }
  };
  connection.watch(draw, until);
  account.watch(draw, until);
  place.watch(draw, until);
  until.addEventListener('abort', () => clearInterval(ticking));
  return box;
}
