// The *Tokens* view: the tokens of the store, with which programs sign in. A new token is shown once.

import { all, api } from '../api.js';
import { freshId, h, show } from '../dom.js';
import { t } from '../i18n.js';
import { revealed } from '../text/invisible.js';
import { codeBlock } from '../text/markdown.js';
import { announce } from '../view/announce.js';
import { fill, pill, problem, when } from './parts.js';

/**
 * @typedef {{ id: number, name: string, scopes: string[], roles: string[], created: string, creator: string,
 *   expires: string | null, revoked: string | null, revoker: string | null, used: string | null }} Token
 */

/** @param {import('../route.js').Place} _ @param {AbortSignal} until */
export function view(_, until) {
  const list = h('div');
  const load = () =>
    fill(list, until, async () => {
      /** @type {Token[]} */
      const tokens = await all('/tokens', until);
      if (!tokens.length) return h('p.hint', null, t('ch.tokens-none'));
      return h(
        'ol.proposals',
        { role: 'list' },
        tokens.map((token) => entry(token, () => void load())),
      );
    });
  void load();
  return h('div.channels', null, [
    h('h1', { tabindex: '-1' }, t('ch.tokens')),
    h('p.hint', null, t('ch.tokens-about')),
    creation(() => void load()),
    list,
  ]);
}

/** The form for a new token, and the place where it is shown. @param {() => void} created */
function creation(created) {
  const name = field('text', 'ch.token-name', 'ch.token-name-about');
  name.input.required = true;
  name.input.maxLength = 128;
  const scopes = field('text', 'ch.token-scopes', 'ch.token-scopes-about');
  const roles = field('text', 'ch.token-roles', 'ch.token-roles-about');
  const end = field('date', 'ch.token-end', 'ch.token-end-about');
  const result = h('div');
  const button = h('button.primary', { type: 'submit' }, t('ch.token-create'));
  const create = async () => {
    button.disabled = true;
    try {
      const body = {
        name: name.input.value.trim(),
        scopes: scopes.input.value.split(/\s+/u).filter(Boolean),
        roles: words(roles.input.value),
        expires: end.input.value ? `${end.input.value}T00:00:00Z` : null,
      };
      const { value } = await api('/tokens', { method: 'POST', body });
      const text = t('ch.token-once');
      show(result, h('p.lead', { role: 'status' }, text), codeBlock(value.token));
      announce(text);
      for (const one of [name, scopes, roles, end]) one.input.value = '';
      created();
    } catch (error) {
      show(result, problem(error));
    } finally {
      button.disabled = false;
    }
  };
  const form = h('form', null, [
    name.element,
    scopes.element,
    roles.element,
    end.element,
    h('div.action', null, button),
  ]);
  form.addEventListener('submit', (/** @type {Event} */ event) => {
    event.preventDefault();
    void create();
  });
  return [h('h2', null, t('ch.token-new')), form, result];
}

/** @param {string} list names between commas */
function words(list) {
  return list
    .split(',')
    .map((word) => word.trim())
    .filter(Boolean);
}

/**
 * @param {'text' | 'date'} type
 * @param {keyof import('../i18n.js').Words} label
 * @param {keyof import('../i18n.js').Words} about
 */
function field(type, label, about) {
  const [id, hint] = [freshId('token'), freshId('hint')];
  const input = h('input', { id, type, 'aria-describedby': hint, autocomplete: 'off' });
  const element = h('div.field.narrow', null, [
    h('label.label', { for: id }, t(label)),
    h('p.hint', { id: hint }, t(about)),
    input,
  ]);
  return { input, element };
}

/** @param {Token} token @param {() => void} changed */
function entry(token, changed) {
  const { id, name, scopes, roles, created, creator, expires, revoked, used } = token;
  const trouble = h('div');
  const isOver = expires !== null && new Date(expires) <= new Date();
  const revoke = async () => {
    if (!confirm(t('ch.token-revoke-sure', { name }))) return;
    try {
      await api(`/tokens/${id}`, { method: 'DELETE' });
      announce(t('ch.token-revoked'));
      changed();
    } catch (error) {
      show(trouble, problem(error));
    }
  };
  const state = revoked
    ? pill('bad', t('ch.token-state-revoked'))
    : isOver
      ? pill('warn', t('ch.token-state-expired'))
      : pill('good', t('ch.token-state-valid'));
  const label = t('ch.token-revoke');
  return h('li.proposal', null, [
    h('h2', null, revealed(name), ' ', h('span.hint', null, `#${id}`)),
    h('p.facts', null, [state, [...scopes, ...roles].map((word) => pill('plain', word))]),
    h('p.facts', null, [
      h('span', null, t('ch.token-created-by', { name: creator }), ' ', when(created)),
      expires ? h('span', null, t('ch.token-until'), ' ', when(expires)) : null,
      h('span', null, t('ch.token-used'), ' ', used ? when(used) : t('ch.token-never')),
    ]),
    revoked
      ? null
      : h(
          'div.action',
          null,
          h('button', { type: 'button', onclick: () => void revoke() }, label, h('span.unseen', null, ` #${id}`)),
        ),
    trouble,
  ]);
}
