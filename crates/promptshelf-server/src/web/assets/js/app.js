// What the page knows, and how it comes to know it. How it looks is not here.

import { bringToken, comeBack, demanded, signOut as forgetSession, renew } from './account.js';
import { session } from './auth/session.js';
import { Client, SignInNeeded } from './mcp/client.js';
import { listen } from './mcp/listen.js';
import { wholeList } from './mcp/lists.js';
import { place, read } from './route.js';
import { Cell } from './store.js';
import { folded } from './text/fuzzy.js';

/**
 * @typedef {import('./mcp/types.js').Prompt} Prompt
 * @typedef {import('./mcp/types.js').Discovery} Discovery
 * @typedef {{ name: string, path: string | null, tags: string[], texts: string[] }} Shelved
 * @typedef {object} Library
 * @property {Prompt[]} prompts
 * @property {Map<string, Prompt>} byName
 * @property {Map<string, Shelved>} shelf
 * @property {import('./text/fuzzy.js').Entry[]} entries
 * @property {number} pages
 * @property {boolean} whole whether everything has come
 * @typedef {{ state: 'connecting' | 'live' | 'lost' | 'paused' | 'sign-in', retryAt: number }} Connection
 * @typedef {{ name: string, type: string, default: string | null, examples: string[],
 *   choices: { value: string, title: string | null }[], pattern: string | null, minLength: number | null,
 *   maxLength: number | null, minimum: number | null, maximum: number | null, completes: boolean, asked?: boolean,
 *   sensitive?: boolean }} TypedArgument
 * @typedef {{ path: string | null, version: string | null, tags: string[], arguments: TypedArgument[] }} TypedPrompt
 */

export const client = new Client(new URL('mcp', location.origin).href);
client.token = () => session()?.token ?? null;
client.renew = renew;

/** @returns {Library} */
const nothing = () => ({ prompts: [], byName: new Map(), shelf: new Map(), entries: [], pages: 0, whole: false });
/** @type {Cell<Library>} */
export const library = new Cell(nothing());
/** @type {Cell<Connection>} */
export const connection = new Cell(/** @type {Connection} */ ({ state: 'connecting', retryAt: 0 }));
export const discovery = new Cell(/** @type {Discovery | null} */ (null));
/** Counts loads of the library that the page has heard of. */
export const loads = new Cell(0);
/** How many errors and warnings the library has; `null` until it is known. */
export const health = new Cell(/** @type {{ errors: number, warnings: number } | null} */ (null));

/**
 * What lies beside MCP on the same server.
 * @param {string} path
 * @param {AbortSignal} [signal]
 */
export async function ask(path, signal) {
  const response = await client.fetch(`/library/${path}`, { signal });
  return response.ok ? await response.json() : null;
}

/**
 * The same; `null` where there is no such thing, or not for this caller: the
 * page then does without.
 * @param {string} path
 * @param {AbortSignal} [signal]
 */
export async function beside(path, signal) {
  return ask(path, signal).catch(() => null);
}

/** @param {string} name @returns {Promise<TypedPrompt | null>} */
export function typed(name) {
  return beside(`prompts/${encodeURIComponent(name)}`);
}

let latest = 0;

export async function loadLibrary() {
  const mine = ++latest;
  const shelf = beside('prompts').then((answer) => {
    /** @type {[string, Shelved][]} */
    const rows = (answer?.prompts ?? []).map((/** @type {Shelved} */ row) => [row.name, row]);
    return new Map(rows);
  });
  const first = library.value.prompts.length === 0;
  const { items, pages } = await wholeList(client, 'prompts/list', 'prompts', (soFar) => {
    // What has come of a long list is shown while the rest is on its way.
    if (first && mine === latest) library.set(arranged([...soFar], library.value.shelf, 0, false));
  });
  const known = await shelf;
  if (mine === latest) library.set(arranged(items, known, pages, true));
}

/**
 * @param {Prompt[]} prompts
 * @param {Map<string, Shelved>} shelf
 * @param {number} pages
 * @param {boolean} whole
 * @returns {Library}
 */
function arranged(prompts, shelf, pages, whole) {
  const byName = new Map(prompts.map((prompt) => [prompt.name, prompt]));
  const entries = prompts.map((prompt) => ({
    name: folded(prompt.name),
    title: folded(prompt.title ?? prompt.name),
    words: folded(`${prompt.description ?? ''} ${(shelf.get(prompt.name)?.tags ?? []).join(' ')}`),
  }));
  return { prompts, byName, shelf, entries, pages, whole };
}

/** Counts who was signed in: answers for others come too late. */
let epoch = 0;

export async function loadDiscovery() {
  const mine = epoch;
  const found = await client.request('server/discover');
  if (mine === epoch) discovery.set(found);
}

export async function loadHealth() {
  const mine = epoch;
  const answer = await beside('diagnostics');
  if (!answer || mine !== epoch) return;
  const errors = answer.diagnostics.filter((/** @type {any} */ one) => one.severity === 'error').length;
  health.set({ errors, warnings: answer.total - errors });
}

/** Reads everything anew, after the server was away or may have changed. */
async function refresh() {
  try {
    await Promise.all([loadDiscovery(), loadLibrary(), loadHealth()]);
  } catch (error) {
    if (error instanceof SignInNeeded) wanted(error);
  }
}

/** Nothing can be had before somebody signs in. @param {SignInNeeded} error */
function wanted(error) {
  demanded(error.challenge);
  connection.set({ state: 'sign-in', retryAt: 0 });
}

/** @type {ReturnType<typeof listen>} */
let stream;

export async function start() {
  if (await comeBack()) place.set(read(location.hash));
  client.heard = (error) => {
    // That a single prompt takes more is said where it is asked for.
    if (error instanceof SignInNeeded && !error.isStepUp) wanted(error);
  };
  let wasLive = false;
  void refresh();
  stream = listen(client, {
    state(state, retryIn = 0) {
      // What was missed in between is asked for, and what could not be shown is shown.
      if (state === 'live' && (wasLive || !library.value.whole)) void refresh();
      if (state === 'live' && wasLive) loads.set(loads.value);
      wasLive ||= state === 'live';
      connection.set({ state, retryAt: state === 'lost' ? Date.now() + retryIn : 0 });
      if (state === 'live') void followLoads();
    },
    notification(method) {
      if (method === 'notifications/prompts/list_changed') void refresh();
    },
    challenged: wanted,
  });
}

export function retry() {
  stream.retry();
}

/** @param {string} token */
export function signIn(token) {
  bringToken(token);
  void refresh();
  stream.retry();
}

export function signOut() {
  forgetSession();
  // Whoever comes next sees nothing of it.
  epoch++;
  latest++;
  library.set(nothing());
  discovery.set(null);
  health.set(null);
  stream.retry();
}

/** Whether there is nothing to show before somebody signs in. */
export function isClosed() {
  return connection.value.state === 'sign-in' && library.value.prompts.length === 0;
}

let following = false;

// MCP tells when a list changes. When only the words of a prompt do, or what is
// wrong with a file, the library says so here.
async function followLoads() {
  if (following) return;
  following = true;
  let known = '';
  while (connection.value.state === 'live' && !document.hidden) {
    const answer = await beside(`changes?known=${known}`);
    if (!answer) break;
    // The first answer counts as well: what is shown may be older than it.
    if (String(answer.loads) !== known) {
      loads.set(answer.loads);
      if (known !== '') void loadHealth();
      known = String(answer.loads);
    }
  }
  following = false;
}
