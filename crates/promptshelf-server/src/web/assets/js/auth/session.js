// Who is signed in, for this tab alone: it outlives a reload, and nothing else.
//
// Tokens never leave this file but to the server that the page is from, and a
// refresh token never but to the authorization server that gave it.

const SESSION = 'promptshelf.session';
const TRIP = 'promptshelf.trip';

/**
 * @typedef {object} Session
 * @property {string} token
 * @property {string} [refresh]
 * @property {string[]} scopes
 * @property {string} [clientId]
 * @property {string} [tokenEndpoint]
 * @property {string} [revocationEndpoint]
 * @property {string} [resource]
 *
 * @typedef {object} Trip what has to be known when somebody comes back from the authorization server
 * @property {string} state
 * @property {string} verifier
 * @property {string} issuer
 * @property {boolean} saysIssuer whether that server names itself in its answers
 * @property {string} clientId
 * @property {string} tokenEndpoint
 * @property {string} [revocationEndpoint]
 * @property {string} resource
 * @property {string} redirect
 * @property {string[]} scopes
 * @property {string} fragment where on the page it began
 * @property {[string, Record<string, string>][]} drafts what was filled in there
 */

/** Where storage is forbidden, what is kept lasts as long as the page. @type {Map<string, string>} */
const memory = new Map();

/** @param {string} key */
function read(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? memory.get(key) ?? 'null');
  } catch {
    return JSON.parse(memory.get(key) ?? 'null');
  }
}

/** @param {string} key @param {unknown} value */
function write(key, value) {
  const text = JSON.stringify(value);
  try {
    if (value === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, text);
    memory.delete(key);
  } catch {
    if (value === null) memory.delete(key);
    else memory.set(key, text);
  }
}

/** @returns {Session | null} */
export function session() {
  const kept = read(SESSION);
  return typeof kept?.token === 'string' && Array.isArray(kept.scopes) ? kept : null;
}

/** @param {Session | null} value */
export function keepSession(value) {
  write(SESSION, value);
}

/** @param {Trip} value */
export function beginTrip(value) {
  write(TRIP, value);
}

/** What was begun, once. @returns {Trip | null} */
export function endTrip() {
  const kept = read(TRIP);
  write(TRIP, null);
  return typeof kept?.state === 'string' ? kept : null;
}
