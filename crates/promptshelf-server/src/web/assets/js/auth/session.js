// The signed-in session of this tab, stored in `sessionStorage`: it survives a reload and ends with the tab.
//
// An access token is sent to this page's origin only, a refresh token to its authorization server only.

const SESSION = 'promptshelf.session';
const PENDING = 'promptshelf.pending';

/**
 * @typedef {import('../types.js').Session} Session
 * @typedef {import('../types.js').PendingSignIn} PendingSignIn
 */

/** Fallback for blocked storage: lasts as long as the page. @type {Map<string, string>} */
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
  const stored = read(SESSION);
  return typeof stored?.token === 'string' && Array.isArray(stored.scopes) ? stored : null;
}

/** @param {Session | null} value */
export function storeSession(value) {
  write(SESSION, value);
}

/** @param {PendingSignIn} value */
export function storePending(value) {
  write(PENDING, value);
}

/** Returns the started sign-in and removes it. @returns {PendingSignIn | null} */
export function takePending() {
  const stored = read(PENDING);
  write(PENDING, null);
  return typeof stored?.state === 'string' ? stored : null;
}
