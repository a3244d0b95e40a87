// Sign-in state of the page: the challenge, the ways to sign in, and the last problem.

import { session, storeSession } from './auth/session.js';
import { forgetDrafts } from './drafts.js';
import { Cell } from './store.js';

/**
 * @typedef {import('./auth/challenge.js').Challenge} Challenge
 * @typedef {object} Account
 * @property {boolean} isIn whether there is a token
 * @property {boolean} isDemanded whether the server requires sign-in
 * @property {string | null} clientId the page's client id at the authorization server, if configured
 * @property {Challenge | null} challenge the last challenge
 * @property {import('./auth/problem.js').SignInProblem | null} problem why signing in did not work
 */

/** @type {Cell<Account>} */
export const account = new Cell(
  /** @type {Account} */ ({
    isIn: session() !== null,
    isDemanded: false,
    clientId: null,
    challenge: null,
    problem: null,
  }),
);

/** @param {Partial<Account>} change */
export function noteAccount(change) {
  account.set({ ...account.value, isIn: session() !== null, ...change });
}

// The authorization flow is loaded on first use: most servers need no sign-in.
const flow = () => import('./auth/flow.js');

/** Renews an expired token where possible. */
export async function renew() {
  return session()?.refresh ? (await flow()).renew() : false;
}

/** Records that the server requires sign-in. @param {Challenge} challenge */
export function requireSignIn(challenge) {
  // An invalid token without a refresh token cannot be renewed, so it is removed.
  if (challenge.error === 'invalid_token' && !session()?.refresh) storeSession(null);
  // Keeps the reason for an earlier refusal when the next challenge carries none.
  const isKnown = !challenge.error && account.value.challenge?.error;
  noteAccount({ isDemanded: true, ...(isKnown ? {} : { challenge }) });
  void import('./auth/redirect.js').then((way) => way.howToSignIn(), console.warn);
}

/** @param {string} token */
export function bringToken(token) {
  storeSession({ token, scopes: [] });
  noteAccount({ challenge: null, problem: null });
}

/** Signs out here and, best effort, revokes the token. */
export function signOut() {
  const known = session();
  storeSession(null);
  if (known?.revocationEndpoint) void flow().then((it) => it.revoke(known));
  forgetDrafts();
  noteAccount({ challenge: null, problem: null });
}
