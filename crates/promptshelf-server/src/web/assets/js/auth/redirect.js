// Leaves for the authorization server, and comes back. Loaded on first use, as the flow itself.

import { account, noteAccount } from '../account.js';
import { allDrafts, draft } from '../drafts.js';
import { beginSignIn, endSignIn } from './flow.js';
import { SignInProblem } from './problem.js';
import { session } from './session.js';

/** @typedef {import('./challenge.js').Challenge} Challenge */

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
    noteAccount({ problem: error instanceof SignInProblem ? error : new SignInProblem('failed', { reason: String(error) }) });
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
