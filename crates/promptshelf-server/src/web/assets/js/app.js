// Application state: the library, its diagnostics, the connection and the sign-in that they depend on. Rendering is
// in `view/`.

import { bringToken, signOut as forgetSession, renew, requireSignIn } from './account.js';
import { session } from './auth/session.js';
import { Client, SignInNeeded } from './mcp/client.js';
import { listen } from './mcp/listen.js';
import { wholeList } from './mcp/lists.js';
import { shared } from './mcp/shared.js';
import { at, root } from './root.js';
import { place, read } from './route.js';
import { Cell } from './store.js';
import { folded } from './text/fuzzy.js';

/**
 * @typedef {import('./mcp/types.js').Discovery} Discovery
 * @typedef {import('./types.js').Library} Library
 * @typedef {import('./types.js').Connection} Connection
 * @typedef {import('./types.js').PromptDetails} PromptDetails
 * @typedef {import('./types.js').Prompt} Prompt
 */

export const client = new Client(new URL('mcp', root).href);
client.token = () => session()?.token ?? null;
client.renew = renew;

/** @returns {Library} */
const nothing = () => ({ prompts: [], byName: new Map(), details: new Map(), entries: [], pages: 0, whole: false });
/** @type {Cell<Library>} */
export const library = new Cell(nothing());
/** @type {Cell<Connection>} */
export const connection = new Cell(/** @type {Connection} */ ({ state: 'connecting', retryAt: 0 }));
export const discovery = new Cell(/** @type {Discovery | null} */ (null));
/** Counts observed loads of the library. */
export const loads = new Cell(0);
/** The parts of the server that the page has views for, once they are known. */
export const features = new Cell({
  command: 'promptshelf',
  channels: false,
  edit: false,
  sources: false,
  usage: false,
  isKnown: false,
});
/** Number of proposals that wait for a review of the caller. */
export const wanted = new Cell(0);
/** Number of errors and warnings of the library; `null` until known. */
export const health = new Cell(/** @type {{ errors: number, warnings: number } | null} */ (null));

/**
 * Requests the page API of this server.
 *
 * @param {string} path
 * @param {AbortSignal} [signal]
 */
export async function ask(path, signal) {
  const response = await client.fetch(at(`library/${path}`), { signal });
  return response.ok ? await response.json() : null;
}

/**
 * Requests the page API; `null` if the path does not exist or the caller has no access.
 *
 * @param {string} path
 * @param {AbortSignal} [signal]
 */
export async function pageApi(path, signal) {
  return ask(path, signal).catch(() => null);
}

/** @param {string} name @returns {Promise<import('./types.js').TypedPrompt | null>} */
export function typed(name) {
  return pageApi(`prompts/${encodeURIComponent(name)}`);
}

let latest = 0;

export async function loadLibrary() {
  const mine = ++latest;
  const details = pageApi('prompts').then((answer) => {
    if (answer?.features && mine === latest) features.set({ ...features.value, ...answer.features, isKnown: true });
    /** @type {[string, PromptDetails][]} */
    const rows = (answer?.prompts ?? []).map((/** @type {PromptDetails} */ row) => [row.name, row]);
    return new Map(rows);
  });
  const first = library.value.prompts.length === 0;
  const { items, pages } = await wholeList(client, 'prompts/list', 'prompts', (soFar) => {
    // Shows the pages of a long list as they arrive.
    if (first && mine === latest) library.set(arranged([...soFar], library.value.details, 0, false));
  });
  const known = await details;
  if (mine === latest) library.set(arranged(items, known, pages, true));
}

/**
 * @param {Prompt[]} prompts
 * @param {Map<string, PromptDetails>} details
 * @param {number} pages
 * @param {boolean} whole
 * @returns {Library}
 */
function arranged(prompts, details, pages, whole) {
  const byName = new Map(prompts.map((prompt) => [prompt.name, prompt]));
  const entries = prompts.map((prompt) => ({
    name: folded(prompt.name),
    title: folded(prompt.title ?? prompt.name),
    words: folded(`${prompt.description ?? ''} ${(details.get(prompt.name)?.tags ?? []).join(' ')}`),
  }));
  return { prompts, byName, details, entries, pages, whole };
}

/** Counts changes of identity, to discard responses for an earlier one. */
let epoch = 0;

export async function loadDiscovery() {
  const mine = epoch;
  const found = await client.request('server/discover');
  if (mine === epoch) discovery.set(found);
}

export async function loadHealth() {
  const mine = epoch;
  const answer = await pageApi('diagnostics');
  if (!answer || mine !== epoch) return;
  const errors = answer.diagnostics.filter((/** @type {any} */ one) => one.severity === 'error').length;
  health.set({ errors, warnings: answer.total - errors });
}

/** Loads everything, at first and after a possible change. */
async function refresh() {
  try {
    await Promise.all([loadDiscovery(), loadLibrary(), loadHealth()]);
  } catch (error) {
    if (error instanceof SignInNeeded) showSignIn(error);
  }
}

/** Nothing can be loaded before sign-in. @param {SignInNeeded} error */
function showSignIn(error) {
  requireSignIn(error.challenge);
  connection.set({ state: 'sign-in', retryAt: 0 });
}

/** @type {ReturnType<typeof shared>} */
let stream;

export async function start() {
  if (await hasComeBack()) place.set(read(location.hash));
  client.onResponse = (error) => {
    // A step-up challenge for one prompt is shown at that prompt.
    if (error instanceof SignInNeeded && !error.isStepUp) showSignIn(error);
  };
  void refresh();
  stream = shared({
    group,
    follow: (until, tell) =>
      listen(client, until, { tell, live: (lost) => followLoads(lost, tell), challenged: showSignIn }),
    hear(heard) {
      if ('state' in heard) return hearState(heard);
      if ('loads' in heard) return hearLoads(heard.loads);
      if (heard.method === 'notifications/prompts/list_changed') void refresh();
    },
  });
}

/** Completes a sign-in if the page was opened by the redirect. */
async function hasComeBack() {
  return new URLSearchParams(location.search).has('state') && (await import('./auth/redirect.js')).comeBack();
}

/** Pages of one account share. Locks need a secure context. */
async function group() {
  if (!('locks' in navigator)) return null;
  const facts = session() ? await pageApi('facts') : {};
  return facts && `promptshelf ${root} ${facts.caller ?? ''}`;
}

let wasLive = false;

/** @param {import('./mcp/shared.js').State} heard */
function hearState({ state, retryAt = 0 }) {
  const isLive = state === 'live';
  // Fetches changes missed while disconnected, and retries an incomplete list.
  if (isLive && (wasLive || !library.value.whole)) void refresh();
  if (isLive && wasLive) loads.set(loads.value);
  wasLive ||= isLive;
  if (isLive) known = null;
  connection.set({ state, retryAt });
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
  // Responses to requests of the previous identity are discarded from here on.
  epoch++;
  latest++;
  library.set(nothing());
  discovery.set(null);
  health.set(null);
  stream.retry();
}

/** Whether sign-in is required before anything can be shown. */
export function isClosed() {
  return connection.value.state === 'sign-in' && library.value.prompts.length === 0;
}

/** The loads of the connection that is known. @type {number | null} */
let known = null;

/** @param {number} count */
function hearLoads(count) {
  // The first one counts, too: what is shown may be older.
  if (count === known) return;
  loads.set(count);
  if (known !== null) void loadHealth();
  known = count;
}

/**
 * Follows edits of texts and diagnostics, too: MCP notifies about lists only.
 *
 * @param {AbortSignal} until
 * @param {(heard: import('./mcp/shared.js').Heard) => void} tell
 */
async function followLoads(until, tell) {
  let last = '';
  while (!until.aborted) {
    const answer = await pageApi(`changes?known=${last}`, until);
    if (!answer || until.aborted) return;
    last = String(answer.loads);
    tell({ loads: answer.loads });
  }
}
