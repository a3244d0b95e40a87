// OAuth 2.1 in a browser: the authorization code flow with PKCE (RFC 7636), for
// this server alone (RFC 8707), with an answer of the very server that was asked
// (RFC 9207). The page is a public client: it has no secret to keep.

import { discover } from './discovery.js';
import { SignInProblem } from './problem.js';
import { beginTrip, endTrip, keepSession, session } from './session.js';

/**
 * Goes to the authorization server. Whoever comes back is where it was.
 * @param {object} options
 * @param {string} options.clientId
 * @param {string[]} options.scopes what it takes; everything that can be asked for where nothing is said
 * @param {string} [options.metadata] where a challenge says that the metadata is
 * @param {string} options.fragment where on the page to come back to
 * @param {[string, Record<string, string>][]} options.drafts
 */
export async function beginSignIn({ clientId, scopes, metadata, fragment, drafts }) {
  // Browsers have it on https and on this machine only.
  if (!crypto.subtle) throw new SignInProblem('insecure');
  const found = await discover(metadata);
  const wanted = scopes.length ? scopes : found.scopes;
  const [state, verifier] = [random(), random()];
  const redirect = `${location.origin}/`;
  const url = new URL(found.authorizationEndpoint);
  const asked = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirect,
    scope: [...new Set([...wanted, ...(found.canStay ? ['offline_access'] : [])])].join(' '),
    state,
    code_challenge: await challengeOf(verifier),
    code_challenge_method: 'S256',
    resource: found.resource,
  };
  for (const [name, value] of Object.entries(asked)) if (value) url.searchParams.set(name, value);
  const { issuer, saysIssuer, tokenEndpoint, revocationEndpoint, resource } = found;
  beginTrip({
    ...{ state, verifier, issuer, saysIssuer, clientId, tokenEndpoint, revocationEndpoint, resource, redirect },
    ...{ scopes: wanted, fragment, drafts },
  });
  location.assign(url);
}

/**
 * Ends what began with `beginSignIn`, where the page was opened by its answer.
 * @returns {Promise<{ drafts: [string, Record<string, string>][], problem: SignInProblem | null } | null>}
 */
export async function endSignIn() {
  const answer = new URLSearchParams(location.search);
  if (!answer.has('state') || !(answer.has('code') || answer.has('error'))) return null;
  const trip = endTrip();
  // A code is used once, and is seen in no history.
  history.replaceState(null, '', `${location.pathname}${trip?.fragment ?? ''}`);
  try {
    if (!trip || answer.get('state') !== trip.state) throw new SignInProblem('stale');
    await exchange(trip, answer);
    return { drafts: trip.drafts, problem: null };
  } catch (error) {
    const problem = error instanceof SignInProblem ? error : new SignInProblem('failed', { reason: String(error) });
    return { drafts: trip?.drafts ?? [], problem };
  }
}

/** @param {import('./session.js').Trip} trip @param {URLSearchParams} answer */
async function exchange(trip, answer) {
  const host = new URL(trip.issuer).host;
  const issuer = answer.get('iss');
  // Before anything of the answer is believed, its errors included.
  if (issuer === null ? trip.saysIssuer : issuer !== trip.issuer) throw new SignInProblem('wrong-issuer', { host });
  const code = answer.get('code');
  if (code === null) {
    const reason = answer.get('error_description') || answer.get('error') || '';
    throw new SignInProblem('refused', { host, reason: reason.slice(0, 300) });
  }
  const given = await tokens(trip.tokenEndpoint, {
    grant_type: 'authorization_code',
    code,
    redirect_uri: trip.redirect,
    client_id: trip.clientId,
    code_verifier: trip.verifier,
    resource: trip.resource,
  });
  const { clientId, tokenEndpoint, revocationEndpoint, resource } = trip;
  keepSession({ ...given, scopes: given.scopes ?? trip.scopes, clientId, tokenEndpoint, revocationEndpoint, resource });
}

/** @type {Promise<boolean> | null} */
let renewing = null;

/** Gets a new token for one that has ended. Whether there is one now. */
export function renew() {
  // A refresh token is often good for one use: many requests wait for the same answer.
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
    keepSession({ ...known, ...given, refresh: given.refresh ?? known.refresh, scopes: given.scopes ?? known.scopes });
    return true;
  } catch (error) {
    // What is refused once is refused again; what could not be asked can be asked later.
    if (error instanceof SignInProblem && error.key === 'refused') keepSession({ ...known, refresh: undefined });
    return false;
  }
}

/**
 * Tells the authorization server that a session has ended (RFC 7009).
 * @param {import('./session.js').Session} known
 */
export function revoke({ revocationEndpoint, clientId, refresh, token }) {
  if (!revocationEndpoint || !clientId) return;
  const body = new URLSearchParams({ token: refresh ?? token, client_id: clientId });
  // Whether it hears of it or not, here the token is gone.
  fetch(revocationEndpoint, { method: 'POST', body, credentials: 'omit', keepalive: true }).catch(() => {});
}

/**
 * @param {string} endpoint
 * @param {Record<string, string>} asked
 * @returns {Promise<{ token: string, refresh?: string, scopes?: string[] }>}
 */
async function tokens(endpoint, asked) {
  const { host } = new URL(endpoint);
  let response;
  try {
    const body = new URLSearchParams(asked);
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

/** 256 random bits as text. */
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
