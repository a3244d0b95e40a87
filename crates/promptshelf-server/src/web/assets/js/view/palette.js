// Command palette: jumps to every prompt and view.

import { account } from '../account.js';
import { features, library, retry } from '../app.js';
import { h } from '../dom.js';
import { LANGUAGES, t } from '../i18n.js';
import { language as chosenLanguage, pinned, recent, theme } from '../preferences.js';
import { go, promptLink } from '../route.js';
import { find, folded } from '../text/fuzzy.js';
import { marked } from './card.js';
import { lineIcon } from './glyphs.js';
import { listbox } from './listbox.js';
import { chosenText, uses } from './selection.js';
import { runCommand } from './slash.js';

/** @typedef {import('./listbox.js').Option} Option */

const MOST = 40;

/** @param {string} [typed] */
export function openPalette(typed = '') {
  if (document.querySelector('dialog.palette')) return;
  // Reads the selection before the dialog takes the focus.
  const selected = chosenText();
  const field = h('input', {
    type: 'text',
    value: typed,
    placeholder: t('palette.placeholder'),
    'aria-label': t('palette.label'),
    spellcheck: 'false',
  });
  const dialog = h('dialog.palette', { 'aria-label': t('palette.label') });
  const end = () => {
    dialog.close();
    dialog.remove();
  };
  const source = () =>
    options(field.value, selected).map((option) => ({
      ...option,
      run: () => {
        end();
        option.run?.();
      },
    }));
  const box = listbox(field, {
    label: t('palette.options'),
    source,
    choose: () => {},
    eager: () => true,
    lasting: true,
  });
  field.addEventListener(
    'keydown',
    (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== 'Enter' || !field.value.includes(' ') || !field.value.startsWith('/')) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      end();
      runCommand(field.value);
    },
    { capture: true },
  );
  dialog.addEventListener('click', (/** @type {MouseEvent} */ event) => event.target === dialog && end());
  dialog.addEventListener('close', () => dialog.remove());
  dialog.append(h('div.palette-field', null, lineIcon('search'), field, h('kbd', null, 'esc')), box.popup);
  document.getElementById('layer')?.append(dialog);
  dialog.showModal();
  field.focus();
  box.refresh();
}

/** @param {string} typed @param {string} selected @returns {Option[]} */
function options(typed, selected) {
  const { prompts, entries, byName } = library.value;
  const query =
    typed.replace(/^\//, '').split(' ')[0] && typed.startsWith('/') ? typed.slice(1) : typed.replace(/^\//, '');
  const words = query.trim();
  /** @param {string} name @returns {Option | null} */
  const promptOption = (name) => {
    const prompt = byName.get(name);
    if (!prompt) return null;
    return {
      value: name,
      label: [h('span.option-kind', null, t('palette.prompt')), h('bdi', null, marked(prompt.title ?? name, words))],
      detail: name,
      run: () => go(promptLink(name)),
    };
  };
  const actions = places().filter((action) => !words || folded(action.value).includes(folded(words)));
  const fromSelection = selected
    ? uses(selected).filter((use) => !words || folded(use.value).includes(folded(words)))
    : [];
  if (!words) {
    const first = [...new Set([...pinned.value, ...recent.value])];
    const rest = prompts.slice(0, MOST).map((prompt) => prompt.name);
    const names = [...new Set([...first, ...rest])].slice(0, MOST);
    return [...fromSelection, ...present(names.map(promptOption)), ...(typed.startsWith('/') ? [] : actions)];
  }
  const found = find(entries, words)
    .slice(0, MOST)
    .map((index) => promptOption(prompts[index].name));
  return [...fromSelection, ...present(found), ...actions];
}

/** @param {(Option | null)[]} all */
function present(all) {
  return all.filter((option) => option !== null);
}

/** @returns {Option[]} */
function places() {
  /** @param {string} text @param {() => void} run @returns {Option} */
  const action = (text, run) => ({ value: text, label: [h('span.option-kind', null, t('palette.action')), text], run });
  return [
    action(t('nav.prompts'), () => go('#/')),
    ...(features.value.channels
      ? [action(t('nav.channels'), () => go('#/channels')), action(t('nav.proposals'), () => go('#/proposals'))]
      : []),
    action(t('nav.resources'), () => go('#/resources')),
    action(t('nav.library'), () => go('#/library')),
    action(t('nav.server'), () => go('#/server')),
    action(account.value.isIn ? t('sign-in.account') : t('sign-in.heading'), () => go('#/sign-in')),
    action(t('theme.to-light'), () => theme.keep('light')),
    action(t('theme.to-dark'), () => theme.keep('dark')),
    action(t('theme.to-auto'), () => theme.keep('auto')),
    action(t('connection.again'), retry),
    ...Object.entries(LANGUAGES).map(([code, name]) =>
      action(t('language.to', { name }), () => chosenLanguage.keep(code)),
    ),
  ];
}
