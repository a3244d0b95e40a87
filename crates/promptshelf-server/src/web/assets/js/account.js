// Sign-in state of the page: the challenge, the ways to sign in, and the last problem.

import { SignInProblem } from './auth/problem.js';
import { session, storeSession } from './auth/session.js';
import { allDrafts, draft, forgetDrafts } from './drafts.js';
import { at } from './root.js';
import { Cell } from './store.js';

/**
 * @typedef {import('./auth/challenge.js').Challenge} Challenge
 * @typedef {object} Account
 * @property {boolean} isIn whether there is a token
 * @property {boolean} isDemanded whether the server requires sign-in
 * @property {string | null} clientId the page's client id at the authorization server, if configured
 * @property {Challenge | null} challenge the last challenge
 * @property {SignInProblem | null} problem why signing in did not work
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
function now(change) {
  account.set({ ...account.value, isIn: session() !== null, ...change });
}

/** @type {Promise<void> | null} */
let discovered = null;

/** Fetches the sign-in options of this server, once. */
export function howToSignIn() {
  discovered ??= (async () => {
    try {
      const response = await fetch(at('sign-in'), { cache: 'no-store', redirect: 'error' });
      const { needed, clientId } = response.ok ? await response.json() : { needed: true, clientId: null };
      now({ isDemanded: needed === true, clientId: typeof clientId === 'string' ? clientId : null });
    } catch {
      // Without metadata the field for a token still works, and discovery can be tried again.
      discovered = null;
    }
  })();
  return discovered;
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
  now({ isDemanded: true, ...(isKnown ? {} : { challenge }) });
  void howToSignIn();
}

/** @param {string} token */
export function bringToken(token) {
  storeSession({ token, scopes: [] });
  now({ challenge: null, problem: null });
}

/**
 * Redirects to the authorization server, for the scopes of a challenge and those already granted.
 *
 * @param {Challenge | null} challenge
 * @param {string} fragment where on the page to come back to
 */
export async function goToSignIn(challenge, fragment) {
  const { clientId } = account.value;
  if (clientId === null) return;
  now({ problem: null });
  const scopes = [...new Set([...(session()?.scopes ?? []), ...(challenge?.scopes ?? [])])];
  try {
    await (await flow()).beginSignIn({
      clientId,
      scopes,
      metadata: challenge?.metadata,
      fragment,
      drafts: allDrafts(),
    });
  } catch (error) {
    now({ problem: error instanceof SignInProblem ? error : new SignInProblem('failed', { reason: String(error) }) });
  }
}

/** Completes a sign-in if the page was opened by the redirect. */
export async function comeBack() {
  if (!new URLSearchParams(location.search).has('state')) return false;
  const back = await (await flow()).endSignIn();
  if (!back) return false;
  for (const [name, values] of back.drafts) draft(name, values);
  now({ problem: back.problem });
  return true;
}

/** Signs out here and, best effort, revokes the token. */
async function endSession() {
  const known = session();
  storeSession(null);
  if (known?.revocationEndpoint) (await flow()).revoke(known);
}

export function signOut() {
  void endSession();
  forgetDrafts();
  now({ challenge: null, problem: null });
}
