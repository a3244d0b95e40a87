// Who uses the page: whether somebody has to sign in, how, and what went wrong.

import { SignInProblem } from './auth/problem.js';
import { keepSession, session } from './auth/session.js';
import { allDrafts, draft, forgetDrafts } from './drafts.js';
import { Cell } from './store.js';

/**
 * @typedef {import('./auth/challenge.js').Challenge} Challenge
 * @typedef {object} Account
 * @property {boolean} isIn whether there is a token
 * @property {boolean} isDemanded whether the server answers nobody who does not sign in
 * @property {string | null} clientId what the page is called at the authorization server, if people can sign in there
 * @property {Challenge | null} challenge what the server said when it wanted to know more
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
let asked = null;

/** Asks the server how people sign in here; once. */
export function howToSignIn() {
  asked ??= (async () => {
    try {
      const response = await fetch('/sign-in', { cache: 'no-store', redirect: 'error' });
      const { needed, clientId } = response.ok ? await response.json() : { needed: true, clientId: null };
      now({ isDemanded: needed === true, clientId: typeof clientId === 'string' ? clientId : null });
    } catch {
      // Without an answer there is still the field for a token; and it can be asked again.
      asked = null;
    }
  })();
  return asked;
}

// What is only needed by who signs in somewhere else is loaded then.
const flow = () => import('./auth/flow.js');

/** Gets a new token for one that has ended, where that is possible. */
export async function renew() {
  return session()?.refresh ? (await flow()).renew() : false;
}

/** The server wants to know who asks. @param {Challenge} challenge */
export function demanded(challenge) {
  // A token that is of no use any more is forgotten.
  if (challenge.error === 'invalid_token' && !session()?.refresh) keepSession(null);
  // Why a token was refused still counts when the next question comes without one.
  const isKnown = !challenge.error && account.value.challenge?.error;
  now({ isDemanded: true, ...(isKnown ? {} : { challenge }) });
  void howToSignIn();
}

/** @param {string} token */
export function bringToken(token) {
  keepSession({ token, scopes: [] });
  now({ challenge: null, problem: null });
}

/**
 * Goes to the authorization server, for what a challenge asks for and what there is already.
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

/** Comes back from the authorization server, if that is how the page was opened. */
export async function comeBack() {
  if (!new URLSearchParams(location.search).has('state')) return false;
  const back = await (await flow()).endSignIn();
  if (!back) return false;
  for (const [name, values] of back.drafts) draft(name, values);
  now({ problem: back.problem });
  return true;
}

/** Forgets who is signed in, here and, as far as it can be told, there. */
async function endSession() {
  const known = session();
  keepSession(null);
  if (known?.revocationEndpoint) (await flow()).revoke(known);
}

export function signOut() {
  void endSession();
  forgetDrafts();
  now({ challenge: null, problem: null });
}
