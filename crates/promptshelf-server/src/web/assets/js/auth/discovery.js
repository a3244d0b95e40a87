// Discovers the authorization server: from this server's protected resource metadata (RFC 9728) to the authorization
// server's metadata (RFC 8414, OpenID Connect Discovery). Both are validated before use.

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
 * The authorization server trusted by this server, and the page's client id there.
 *
 * @param {string} [metadataUrl] where a challenge says that the metadata is
 * @returns {Promise<{ issuer: string, resource: string, scopes: string[] }>}
 */
export async function resourceMetadata(metadataUrl) {
  // Only metadata of this page's origin is accepted.
  const own =
    metadataUrl && URL.canParse(metadataUrl) && new URL(metadataUrl).origin === location.origin
      ? metadataUrl
      : WELL_KNOWN;
  const found = await document(own).catch(() => null);
  const issuer = found?.authorization_servers?.[0];
  const { resource } = found ?? {};
  if (typeof issuer !== 'string' || typeof resource !== 'string' || !URL.canParse(resource))
    throw new SignInProblem('no-metadata');
  // A token for another resource would be useless here and must not be requested.
  const { origin } = new URL(resource);
  if (origin !== location.origin) throw new SignInProblem('elsewhere', { origin });
  return { issuer, resource, scopes: texts(found.scopes_supported) };
}

/** @param {string} [metadataUrl] @returns {Promise<Found>} */
export async function discover(metadataUrl) {
  const { issuer, resource, scopes } = await resourceMetadata(metadataUrl);
  const host = new URL(issuer).host;
  let found = null;
  let reached = false;
  for (const url of places(issuer)) {
    try {
      found = await document(url);
      reached = true;
    } catch {
      // Unreachable, or CORS forbids this origin.
    }
    // The metadata's issuer must equal the issuer it was fetched for (RFC 8414, 3.3).
    if (found && found.issuer !== issuer) throw new SignInProblem('wrong-issuer', { host });
    if (found) break;
  }
  if (!found) throw new SignInProblem(reached ? 'no-server' : 'unreachable', { host });
  const { authorization_endpoint: authorize, token_endpoint: token, revocation_endpoint: revoke } = found;
  if (!isSafe(authorize) || !isSafe(token)) throw new SignInProblem('no-server', { host });
  // The page's Content-Security-Policy allows requests to the issuer's origin only.
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

/** Locations of an issuer's metadata, in the order of the MCP specification. @param {string} issuer */
function places(issuer) {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/+$/, '');
  const all = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
  ];
  return path ? [...all, `${origin}${path}/.well-known/openid-configuration`] : all;
}

/** Whether a code or a token may be sent to a URL. @param {unknown} url */
function isSafe(url) {
  if (typeof url !== 'string' || !URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || (protocol === 'http:' && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname));
}

/** @param {unknown} value @returns {string[]} */
function texts(value) {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}
