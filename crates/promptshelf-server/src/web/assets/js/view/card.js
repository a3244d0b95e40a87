// A prompt's header: icon, title, name, tags.

import { h } from '../dom.js';
import { t } from '../i18n.js';
import { pinned, togglePin } from '../preferences.js';
import { ranges } from '../text/fuzzy.js';
import { revealed } from '../text/invisible.js';
import { lineIcon } from './glyphs.js';

/** @typedef {import('../mcp/types.js').Prompt} Prompt */

const HUES = 6;

/**
 * A prompt's icon if it is a `data:` URI. Remote icons are not loaded: a request would reveal which prompts a reader
 * opens.
 *
 * @param {Prompt} prompt
 */
export function picture(prompt) {
  const icon = prompt.icons?.find((candidate) => /^data:image\//i.test(candidate.src));
  if (icon) return h('img.picture', { src: icon.src, alt: '', loading: 'lazy' });
  const name = prompt.title ?? prompt.name;
  let sum = 0;
  for (const character of prompt.name) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 9973;
  const letter = [...name.replace(/[^\p{L}\p{N}]/gu, '')][0] ?? '·';
  return h(`span.picture.hue-${sum % HUES}`, { 'aria-hidden': 'true' }, letter.toUpperCase());
}

/** @param {string} text @param {string} query */
export function marked(text, query) {
  const parts = [];
  let from = 0;
  for (const [start, end] of query ? ranges(text, query) : []) {
    parts.push(...revealed(text.slice(from, start)), h('mark', null, text.slice(start, end)));
    from = end;
  }
  return [...parts, ...revealed(text.slice(from))];
}

/** @param {Prompt} prompt @param {AbortSignal} until */
export function pinButton(prompt, until) {
  const title = prompt.title ?? prompt.name;
  const button = h('button.icon.pin', { type: 'button', onclick: () => togglePin(prompt.name) }, lineIcon('pin'));
  pinned.watch((names) => {
    const isPinned = names.includes(prompt.name);
    button.setAttribute('aria-pressed', String(isPinned));
    button.setAttribute('aria-label', t('pin.label', { title }));
    button.title = isPinned ? t('pin.remove') : t('pin.add');
  }, until);
  return button;
}

/** Where a prompt comes from, if its server has several sources or reads a repository. @param {Prompt} prompt */
export function origin({ _meta }) {
  const of = (/** @type {string} */ key) => {
    const value = _meta?.[`dev.promptshelf/${key}`];
    return typeof value === 'string' ? value : null;
  };
  const [source, commit, signer] = [of('source'), of('commit'), of('signer')];
  return [
    source ? h('span', null, revealed(t('prompt.source', { source }))) : null,
    _meta?.['dev.promptshelf/foreign'] === true ? h('span', null, t('prompt.foreign')) : null,
    commit ? h('span', { title: commit }, revealed(t('prompt.commit', { commit: commit.slice(0, 12) }))) : null,
    signer ? h('span', null, revealed(t('prompt.signed', { signer }))) : null,
  ];
}
