// Unsaved files, in the browser's database: they survive a reload, a closed tab, a lost connection and an expired token.
// They never leave the browser unless they are saved. Where the database is blocked, they last as long as the page.

/**
 * @typedef {object} Draft
 * @property {string} key
 * @property {string} library the backend and the account
 * @property {string} path
 * @property {Uint8Array | null} bytes `null` for a file that is to be deleted
 * @property {string | null} base the digest of the content that the author started from; `null` for a new file
 * @property {Uint8Array | null} baseBytes that content
 * @property {number} time of the last change, in milliseconds
 */

const NAME = 'promptshelf-drafts';
const STORE = 'drafts';
/** The most bytes of a draft: the server's default limit for a body. */
export const MOST_BYTES = 4 << 20;
const MOST_DRAFTS = 200;

/** Drafts that the database did not take. @type {Map<string, Draft>} */
const memory = new Map();
/** @type {Promise<IDBDatabase | null> | undefined} */
let opened;

function database() {
  opened ??= new Promise((resolve) => {
    try {
      const request = indexedDB.open(NAME, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: 'key' });
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => resolve(null);
      request.onblocked = () => resolve(null);
    } catch {
      resolve(null);
    }
  });
  return opened;
}

/**
 * @template T
 * @param {IDBTransactionMode} mode
 * @param {(store: IDBObjectStore) => IDBRequest<T>} act
 * @returns {Promise<T | null>} `null` if the database refuses it
 */
async function within(mode, act) {
  const open = await database();
  if (!open) return null;
  return new Promise((resolve) => {
    try {
      const transaction = open.transaction(STORE, mode);
      const request = act(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => resolve(null);
      transaction.onerror = () => resolve(null);
    } catch {
      resolve(null);
    }
  });
}

/** @param {string} library @param {string} path */
const keyOf = (library, path) => `${library}\n${path}`;

/** @param {string} library @param {string} path @returns {Promise<Draft | null>} */
export async function draftOf(library, path) {
  const key = keyOf(library, path);
  return memory.get(key) ?? (await within('readonly', (store) => store.get(key))) ?? null;
}

/** All drafts of a library, by path. @param {string} library @returns {Promise<Draft[]>} */
export async function draftsOf(library) {
  const range = IDBKeyRange.bound(`${library}\n`, `${library}\n\uffff`);
  const kept = (await within('readonly', (store) => store.getAll(range))) ?? [];
  const all = new Map(kept.map((draft) => [draft.key, draft]));
  for (const [key, draft] of memory) if (draft.library === library) all.set(key, draft);
  return [...all.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/**
 * Keeps a draft, and returns whether it outlives the page.
 *
 * @param {Omit<Draft, 'key' | 'time'>} draft
 */
export async function keepDraft(draft) {
  const full = { ...draft, key: keyOf(draft.library, draft.path), time: Date.now() };
  memory.set(full.key, full);
  if ((draft.bytes?.length ?? 0) > MOST_BYTES) return false;
  const count = await within('readonly', (store) => store.count());
  const isKnown = (await within('readonly', (store) => store.getKey(full.key))) !== undefined;
  if (count === null || (count >= MOST_DRAFTS && !isKnown)) return false;
  if ((await within('readwrite', (store) => store.put(full))) === null) return false;
  // A later draft may have come meanwhile.
  if (memory.get(full.key) === full) memory.delete(full.key);
  return true;
}

/** @param {string} library @param {string} path */
export async function dropDraft(library, path) {
  memory.delete(keyOf(library, path));
  await within('readwrite', (store) => store.delete(keyOf(library, path)));
}

/** Whether drafts would be lost with the page. */
export const hasUnkept = () => memory.size > 0;
