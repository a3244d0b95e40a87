// Finds the authorization server: from this server's own metadata (RFC 9728) to
// that server's (RFC 8414, OpenID Connect Discovery), and believes neither more
// than it has to.

import { SignInProblem } from './problem.js';

/**
 * @typedef {object} Found
 * @property {string} issuer
 * @property {string} resource
 * @property {string} authorizationEndpoint
 * @property {string} tokenEndpoint
 * @property {string} [revocationEndpoint]
 * @property {boolean} saysIssuer
 * @property {string[]} scopes which clients can ask for here
 * @property {boolean} canStay whether it gives refresh tokens to who asks for `offline_access`
 */

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/** @param {string} url @returns {Promise<any>} `null` where there is nothing of the kind */
async function document(url) {
  const response = await fetch(url, {
    credentials: 'omit',
    redirect: 'error',
    headers: { Accept: 'application/json' },
  });
  if (!response.ok) return null;
  const found = await response.json().catch(() => null);
  return found && typeof found === 'object' ? found : null;
}

/**
 * Which authorization server this server trusts, and as what it is known there.
 * @param {string} [told] where a challenge says that the metadata is
 * @returns {Promise<{ issuer: string, resource: string, scopes: string[] }>}
 */
export async function resourceMetadata(told) {
  // Metadata of another origin says nothing about this one.
  const own = told && URL.canParse(told) && new URL(told).origin === location.origin ? told : WELL_KNOWN;
  const found = await document(own).catch(() => null);
  const issuer = found?.authorization_servers?.[0];
  const { resource } = found ?? {};
  if (typeof issuer !== 'string' || typeof resource !== 'string' || !URL.canParse(resource))
    throw new SignInProblem('no-metadata');
  // A token for another server would be of no use here, and must not be asked for.
  const { origin } = new URL(resource);
  if (origin !== location.origin) throw new SignInProblem('elsewhere', { origin });
  return { issuer, resource, scopes: texts(found.scopes_supported) };
}

/** @param {string} [told] @returns {Promise<Found>} */
export async function discover(told) {
  const { issuer, resource, scopes } = await resourceMetadata(told);
  const host = new URL(issuer).host;
  let found = null;
  let reached = false;
  for (const url of places(issuer)) {
    try {
      found = await document(url);
      reached = true;
    } catch {
      // Away, or one that lets no page read it.
    }
    // Whoever gives itself out for another is none.
    if (found && found.issuer !== issuer) throw new SignInProblem('wrong-issuer', { host });
    if (found) break;
  }
  if (!found) throw new SignInProblem(reached ? 'no-server' : 'unreachable', { host });
  const { authorization_endpoint: authorize, token_endpoint: token, revocation_endpoint: revoke } = found;
  if (!isSafe(authorize) || !isSafe(token)) throw new SignInProblem('no-server', { host });
  // The page's policy lets it ask nobody else.
  if (new URL(token).origin !== new URL(issuer).origin) throw new SignInProblem('split', { host });
  if (!texts(found.code_challenge_methods_supported).includes('S256')) throw new SignInProblem('no-pkce', { host });
  return {
    issuer,
    resource,
    authorizationEndpoint: authorize,
    tokenEndpoint: token,
    revocationEndpoint: isSafe(revoke) && new URL(revoke).origin === new URL(issuer).origin ? revoke : undefined,
    saysIssuer: found.authorization_response_iss_parameter_supported === true,
    scopes,
    canStay: texts(found.scopes_supported).includes('offline_access'),
  };
}

/** Where the metadata of an issuer can stand, in the order in which MCP has them. @param {string} issuer */
function places(issuer) {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/+$/, '');
  const all = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
  ];
  return path ? [...all, `${origin}${path}/.well-known/openid-configuration`] : all;
}

/** Whether a code or a token may go there. @param {unknown} url */
function isSafe(url) {
  if (typeof url !== 'string' || !URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || (protocol === 'http:' && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname));
}

/** @param {unknown} value @returns {string[]} */
function texts(value) {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}
