// Signing in and out, through the configured authorization server or with a token.

import { account } from '../account.js';
import { client, pageApi, signIn, signOut } from '../app.js';
import { resourceMetadata } from '../auth/discovery.js';
import { goToSignIn, howToSignIn } from '../auth/redirect.js';
import { session } from '../auth/session.js';
import { freshId, h, show } from '../dom.js';
import { t } from '../i18n.js';
import { go, lastPlace, place } from '../route.js';
import { revealed } from '../text/invisible.js';
import { announce } from './announce.js';
import { lineIcon } from './glyphs.js';

/** @param {import('../route.js').Place} _ @param {AbortSignal} until */
export function view(_, until) {
  const body = h('div.sign-in-body');
  const problem = h('div', { role: 'alert' });
  // One form for the lifetime of the view: a server response may arrive while the user types.
  const form = tokenForm();
  let drawnAs = '';
  account.watch((value) => {
    const { isIn, challenge, clientId, isDemanded } = value;
    show(problem, value.problem ? alarm(problemText(value.problem)) : null);
    const key = JSON.stringify([isIn, challenge, clientId, isDemanded]);
    if (key === drawnAs) return;
    drawnAs = key;
    const typing = form.contains(document.activeElement) ? document.activeElement : null;
    show(body, isIn && !challenge ? whoIsIn(until) : ways(form, until));
    if (typing instanceof HTMLElement) typing.focus();
  }, until);
  void howToSignIn();
  return h('div.sign-in', null, [h('h1', { tabindex: '-1' }, t('sign-in.heading')), problem, body]);
}

/** @param {string} text */
function alarm(text) {
  return h('p.problem', null, lineIcon('warn'), revealed(text));
}

/** @param {import('../auth/problem.js').SignInProblem} problem */
export function problemText({ key, values }) {
  return t(/** @type {keyof import('../i18n.js').Words} */ (`sign-in.${key}`), values);
}

/** The reason why sign-in is required. */
export function reason() {
  const { challenge, isDemanded } = account.value;
  if (challenge?.error === 'insufficient_scope') return t('sign-in.more', { scopes: challenge.scopes.join(' ') });
  if (challenge?.error) {
    const description = challenge.description || challenge.error;
    const isInvalid = challenge.error === 'invalid_token';
    return t('sign-in.ended', { reason: isInvalid ? t('sign-in.invalid_token', { description }) : description });
  }
  return isDemanded ? t('sign-in.needed') : t('sign-in.not-needed');
}

/**
 * Starts the authorization flow, or shows the field for a token.
 *
 * @param {import('../account.js').Challenge | null} challenge
 */
export async function toSignIn(challenge) {
  await howToSignIn();
  if (account.value.clientId === null) return go('#/sign-in');
  await goToSignIn(challenge, place.value.view === 'sign-in' ? lastPlace() : location.hash);
  if (account.value.problem && place.value.view !== 'sign-in') go('#/sign-in');
}

/**
 * @param {Element} form
 * @param {AbortSignal} until
 */
function ways(form, until) {
  const { clientId, challenge } = account.value;
  const elsewhere = h('section.way');
  if (clientId !== null) {
    const where = h('p.hint');
    const begin = h('button.primary', { type: 'button', onclick: () => void toSignIn(challenge) }, t('sign-in.button'));
    show(elsewhere, begin, where);
    // Shows the destination before leaving the page.
    resourceMetadata(challenge?.metadata).then(
      ({ issuer }) => until.aborted || show(where, t('sign-in.at', { host: new URL(issuer).host })),
      () => {},
    );
  }
  return [
    h('p.lead', null, reason()),
    clientId === null ? null : elsewhere,
    clientId === null ? null : h('h2', null, t('sign-in.or')),
    form,
  ];
}

function tokenForm() {
  const id = freshId('token');
  const field = h('input', {
    id,
    type: 'password',
    autocomplete: 'off',
    spellcheck: 'false',
    autocapitalize: 'off',
    'aria-describedby': `${id}-hint ${id}-problem`,
  });
  const problem = h('p.problem', { id: `${id}-problem`, hidden: true });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const token = field.value.trim().replace(/^bearer\s+/i, '');
    // Syntax of a bearer token (RFC 6750, section 2.1).
    const isToken = /^[\w.~+/-]+=*$/.test(token);
    problem.hidden = isToken;
    show(problem, isToken ? null : [lineIcon('warn'), t('sign-in.no-token')]);
    field.setAttribute('aria-invalid', String(!isToken));
    if (!isToken) return field.focus();
    field.value = '';
    signIn(token);
    if (place.value.view === 'sign-in') go(lastPlace());
  };
  return h('form.way', { onsubmit: submit, novalidate: true }, [
    h('label', { for: id }, t('sign-in.token')),
    h('div.token', null, field, h('button', null, t('sign-in.use-token'))),
    problem,
    h('p.hint', { id: `${id}-hint` }, t('sign-in.hint')),
  ]);
}

/** @param {AbortSignal} until */
function whoIsIn(until) {
  const who = h('p.lead', null, t('sign-in.in'));
  const scopes = session()?.scopes ?? [];
  pageApi('facts', until).then((facts) => {
    if (facts?.caller && !until.aborted) show(who, revealed(t('sign-in.as', { name: facts.caller })));
  });
  const leave = () => {
    signOut();
    announce(t('sign-in.left'));
  };
  return [
    who,
    scopes.length
      ? h(
          'p.names',
          null,
          t('sign-in.scopes'),
          ' ',
          scopes.map((scope) => h('span.tag', null, revealed(scope))),
        )
      : null,
    h('p.hint', null, t('sign-in.server'), ' ', h('code', null, client.url)),
    h('p', null, h('button', { type: 'button', onclick: leave }, t('sign-in.out'))),
  ];
}
