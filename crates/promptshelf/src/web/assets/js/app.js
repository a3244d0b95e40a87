// What the page knows, and how it comes to know it. How it looks is not here.

import { Client, SignInNeeded } from './mcp/client.js';
import { listen } from './mcp/listen.js';
import { wholeList } from './mcp/lists.js';
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
 *   maxLength: number | null, minimum: number | null, maximum: number | null, completes: boolean, asked?: boolean }} TypedArgument
 * @typedef {{ path: string | null, version: string | null, tags: string[], arguments: TypedArgument[] }} TypedPrompt
 */

export const client = new Client(new URL('mcp', location.origin).href);

/** @type {Cell<Library>} */
export const library = new Cell(
  /** @type {Library} */ ({ prompts: [], byName: new Map(), shelf: new Map(), entries: [], pages: 0, whole: false }),
);
/** @type {Cell<Connection>} */
export const connection = new Cell(/** @type {Connection} */ ({ state: 'connecting', retryAt: 0 }));
export const discovery = new Cell(/** @type {Discovery | null} */ (null));
/** Counts loads of the library that the page has heard of. */
export const loads = new Cell(0);
/** How many errors and warnings the library has; `null` until it is known. */
export const health = new Cell(/** @type {{ errors: number, warnings: number } | null} */ (null));

/**
 * What lies beside MCP on the same server. `null` where there is no such thing:
 * the page then does without.
 * @param {string} path
 * @param {AbortSignal} [signal]
 */
export async function beside(path, signal) {
  const headers = client.token ? { Authorization: `Bearer ${client.token}` } : undefined;
  try {
    const response = await fetch(`/library/${path}`, { headers, signal, cache: 'no-store' });
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
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

export async function loadDiscovery() {
  discovery.set(await client.request('server/discover'));
}

export async function loadHealth() {
  const answer = await beside('diagnostics');
  if (!answer) return;
  const errors = answer.diagnostics.filter((/** @type {any} */ one) => one.severity === 'error').length;
  health.set({ errors, warnings: answer.total - errors });
}

/** Reads everything anew, after the server was away or may have changed. */
async function refresh() {
  try {
    await Promise.all([loadDiscovery(), loadLibrary(), loadHealth()]);
  } catch (error) {
    if (error instanceof SignInNeeded) connection.set({ state: 'sign-in', retryAt: 0 });
  }
}

/** @type {ReturnType<typeof listen>} */
let stream;

export function start() {
  client.heard = (error) => {
    if (error instanceof SignInNeeded) connection.set({ state: 'sign-in', retryAt: 0 });
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
  });
}

export function retry() {
  stream.retry();
}

/** @param {string | null} token */
export function signIn(token) {
  client.token = token;
  void refresh();
  stream.retry();
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
    if (String(answer.loads) !== known) {
      if (known !== '') {
        loads.set(answer.loads);
        void loadHealth();
      }
      known = String(answer.loads);
    }
  }
  following = false;
}
