// OAuth 2.1 in a browser: authorization code flow with PKCE (RFC 7636), resource indicators (RFC 8707) and issuer
// identification (RFC 9207). The page is a public client without a secret.

import { root } from '../root.js';
import { discover } from './discovery.js';
import { SignInProblem } from './problem.js';
import { session, storePending, storeSession, takePending } from './session.js';

/**
 * Starts the authorization code flow; the redirect returns to the current view.
 *
 * @param {object} options
 * @param {string} options.clientId
 * @param {string[]} options.scopes to request; all supported scopes if empty
 * @param {string} [options.metadata] where a challenge says that the metadata is
 * @param {string} options.fragment where on the page to come back to
 * @param {[string, Record<string, string>][]} options.drafts
 */
export async function beginSignIn({ clientId, scopes, metadata, fragment, drafts }) {
  // `crypto.subtle` exists in secure contexts only: https, or loopback.
  if (!crypto.subtle) throw new SignInProblem('insecure');
  const found = await discover(metadata);
  const wanted = scopes.length ? scopes : found.scopes;
  const [state, verifier] = [random(), random()];
  const redirect = root.href;
  const url = new URL(found.authorizationEndpoint);
  const parameters = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirect,
    scope: [...new Set([...wanted, ...(found.canStay ? ['offline_access'] : [])])].join(' '),
    state,
    code_challenge: await challengeOf(verifier),
    code_challenge_method: 'S256',
    resource: found.resource,
  };
  for (const [name, value] of Object.entries(parameters)) if (value) url.searchParams.set(name, value);
  const { issuer, saysIssuer, tokenEndpoint, revocationEndpoint, resource } = found;
  storePending({
    ...{ state, verifier, issuer, saysIssuer, clientId, tokenEndpoint, revocationEndpoint, resource, redirect },
    ...{ scopes: wanted, fragment, drafts },
  });
  location.assign(url);
}

/**
 * Finishes the flow if the page was opened by its redirect.
 *
 * @returns {Promise<{ drafts: [string, Record<string, string>][], problem: SignInProblem | null } | null>}
 */
export async function endSignIn() {
  const answer = new URLSearchParams(location.search);
  if (!answer.has('state') || !(answer.has('code') || answer.has('error'))) return null;
  const pending = takePending();
  // Removes the single-use code from the address and the history.
  history.replaceState(null, '', `${location.pathname}${pending?.fragment ?? ''}`);
  try {
    if (!pending || answer.get('state') !== pending.state) throw new SignInProblem('stale');
    await exchange(pending, answer);
    return { drafts: pending.drafts, problem: null };
  } catch (error) {
    const problem = error instanceof SignInProblem ? error : new SignInProblem('failed', { reason: String(error) });
    return { drafts: pending?.drafts ?? [], problem };
  }
}

/** @param {import('./session.js').PendingSignIn} pending @param {URLSearchParams} answer */
async function exchange(pending, answer) {
  const host = new URL(pending.issuer).host;
  const issuer = answer.get('iss');
  // The issuer is checked before any other part of the response is trusted, errors included.
  if (issuer === null ? pending.saysIssuer : issuer !== pending.issuer)
    throw new SignInProblem('wrong-issuer', { host });
  const code = answer.get('code');
  if (code === null) {
    const reason = answer.get('error_description') || answer.get('error') || '';
    throw new SignInProblem('refused', { host, reason: reason.slice(0, 300) });
  }
  const given = await tokens(pending.tokenEndpoint, {
    grant_type: 'authorization_code',
    code,
    redirect_uri: pending.redirect,
    client_id: pending.clientId,
    code_verifier: pending.verifier,
    resource: pending.resource,
  });
  const { clientId, tokenEndpoint, revocationEndpoint, resource } = pending;
  storeSession({
    ...given,
    scopes: given.scopes ?? pending.scopes,
    clientId,
    tokenEndpoint,
    revocationEndpoint,
    resource,
  });
}

/** @type {Promise<boolean> | null} */
let renewing = null;

/** Renews an expired token. Resolves to whether a valid token exists now. */
export function renew() {
  // Refresh tokens are often single-use, so concurrent requests share one refresh.
  renewing ??= renewOnce().finally(() => {
    renewing = null;
  });
  return renewing;
}

async function renewOnce() {
  const known = session();
  if (!known?.refresh || !known.tokenEndpoint || !known.clientId) return false;
  try {
    const given = await tokens(known.tokenEndpoint, {
      grant_type: 'refresh_token',
      refresh_token: known.refresh,
      client_id: known.clientId,
      resource: known.resource ?? '',
    });
    storeSession({ ...known, ...given, refresh: given.refresh ?? known.refresh, scopes: given.scopes ?? known.scopes });
    return true;
  } catch (error) {
    // A refused refresh token is dropped; one that could not be tried is kept for a later attempt.
    if (error instanceof SignInProblem && error.key === 'refused') storeSession({ ...known, refresh: undefined });
    return false;
  }
}

/**
 * Revokes the session's token at the authorization server (RFC 7009).
 *
 * @param {import('./session.js').Session} known
 */
export function revoke({ revocationEndpoint, clientId, refresh, token }) {
  if (!revocationEndpoint || !clientId) return;
  const body = new URLSearchParams({ token: refresh ?? token, client_id: clientId });
  // Revocation is best effort: the local copy is removed either way.
  fetch(revocationEndpoint, { method: 'POST', body, credentials: 'omit', keepalive: true }).catch(() => {});
}

/**
 * @param {string} endpoint
 * @param {Record<string, string>} parameters
 * @returns {Promise<{ token: string, refresh?: string, scopes?: string[] }>}
 */
async function tokens(endpoint, parameters) {
  const { host } = new URL(endpoint);
  let response;
  try {
    const body = new URLSearchParams(parameters);
    const how = /** @type {const} */ ({ method: 'POST', credentials: 'omit', redirect: 'error', cache: 'no-store' });
    response = await fetch(endpoint, { ...how, body, headers: { Accept: 'application/json' } });
  } catch {
    throw new SignInProblem('unreachable', { host });
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok && response.status >= 500) throw new SignInProblem('unreachable', { host });
  if (!response.ok || typeof answer.access_token !== 'string' || !/^bearer$/i.test(answer.token_type ?? '')) {
    const reason = String(answer.error_description ?? answer.error ?? response.status).slice(0, 300);
    throw new SignInProblem('refused', { host, reason });
  }
  return {
    token: answer.access_token,
    ...(typeof answer.refresh_token === 'string' ? { refresh: answer.refresh_token } : {}),
    ...(typeof answer.scope === 'string' ? { scopes: answer.scope.split(' ').filter(Boolean) } : {}),
  };
}

/** 256 random bits, base64url. */
function random() {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

/** @param {string} verifier */
export async function challengeOf(verifier) {
  return base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))));
}

/** @param {Uint8Array} bytes */
function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}
