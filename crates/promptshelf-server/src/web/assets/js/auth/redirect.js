// How to sign in at this server, and the way to its authorization server and back. Loaded on first use.

import { account, noteAccount } from '../account.js';
import { allDrafts, draft } from '../drafts.js';
import { at } from '../root.js';
import { beginSignIn, endSignIn } from './flow.js';
import { SignInProblem } from './problem.js';
import { session } from './session.js';

/** @typedef {import('./challenge.js').Challenge} Challenge */

/** @type {Promise<void> | null} */
let discovered = null;

/** Fetches the sign-in options of this server, once. */
export function howToSignIn() {
  discovered ??= (async () => {
    try {
      const response = await fetch(at('sign-in'), { cache: 'no-store', redirect: 'error' });
      const { needed, clientId } = response.ok ? await response.json() : { needed: true, clientId: null };
      noteAccount({ isDemanded: needed === true, clientId: typeof clientId === 'string' ? clientId : null });
    } catch {
      // Without metadata the field for a token still works, and discovery can be tried again.
      discovered = null;
    }
  })();
  return discovered;
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
  noteAccount({ problem: null });
  const scopes = [...new Set([...(session()?.scopes ?? []), ...(challenge?.scopes ?? [])])];
  try {
    await beginSignIn({
      clientId,
      scopes,
      metadata: challenge?.metadata,
      fragment,
      drafts: allDrafts(),
    });
  } catch (error) {
    noteAccount({
      problem: error instanceof SignInProblem ? error : new SignInProblem('failed', { reason: String(error) }),
    });
  }
}

/** Completes a sign-in. Returns whether the page was opened by the redirect. */
export async function comeBack() {
  const back = await endSignIn();
  if (!back) return false;
  for (const [name, values] of back.drafts) draft(name, values);
  noteAccount({ problem: back.problem });
  return true;
}
