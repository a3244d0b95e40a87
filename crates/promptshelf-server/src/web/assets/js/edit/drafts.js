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
 * @property {string} [tab] the page that kept it
 */

const NAME = 'promptshelf-drafts';
const STORE = 'drafts';
/** The most bytes of a draft: the server's default limit for a body. */
export const MOST_BYTES = 4 << 20;
const MOST_DRAFTS = 200;

/** This page, among all tabs of the browser. Not a secret. */
const TAB = Math.random().toString(36).slice(2);
/** The version of each draft that this page has read or written. @type {Map<string, string>} */
const seen = new Map();

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

/** @param {Draft} draft */
const versionOf = ({ time, tab }) => `${tab} ${time}`;
/** @param {Draft} draft */
const see = (draft) => seen.set(draft.key, versionOf(draft));

/** @param {string} library @param {string} path @returns {Promise<Draft | null>} */
export async function draftOf(library, path) {
  const key = keyOf(library, path);
  const stored = await within('readonly', (store) => store.get(key));
  if (stored) see(stored);
  return memory.get(key) ?? stored ?? null;
}

/** The draft in the database, which may be that of another tab. @param {string} library @param {string} path */
export async function draftInBrowser(library, path) {
  return (
    (await within(
      'readonly',
      (store) => /** @type {IDBRequest<Draft | undefined>} */ (store.get(keyOf(library, path))),
    )) ?? null
  );
}

/** Permits this page to replace or remove a draft that its author has seen. @param {Draft} draft */
export const acceptDraft = (draft) => void see(draft);

/** All drafts of a library, by path. Those of other tabs stay protected until they are accepted. @param {string} library @returns {Promise<Draft[]>} */
export async function draftsOf(library) {
  const range = IDBKeyRange.bound(`${library}\n`, `${library}\n\uffff`);
  const kept = (await within('readonly', (store) => store.getAll(range))) ?? [];
  const all = new Map(kept.map((draft) => [draft.key, draft]));
  for (const [key, draft] of memory) if (draft.library === library) all.set(key, draft);
  return [...all.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/**
 * Keeps a draft. A newer one of another tab is never replaced before this page has read it.
 *
 * @param {Omit<Draft, 'key' | 'time' | 'tab'>} draft
 * @returns {Promise<'kept' | 'not-kept' | 'other-tab'>} `not-kept` if it lasts as long as the page
 */
export async function keepDraft(draft) {
  const full = { ...draft, key: keyOf(draft.library, draft.path), time: Date.now(), tab: TAB };
  memory.set(full.key, full);
  if ((draft.bytes?.length ?? 0) > MOST_BYTES) return 'not-kept';
  const outcome = await put(full);
  // A later draft may have come meanwhile.
  if (outcome === 'kept' && memory.get(full.key) === full) memory.delete(full.key);
  return outcome;
}

/**
 * Compares and puts in one transaction, so that a page that is being closed needs a single turn.
 *
 * @param {Draft} draft
 * @returns {Promise<'kept' | 'not-kept' | 'other-tab'>}
 */
async function put(draft) {
  const open = await database();
  if (!open) return 'not-kept';
  return new Promise((resolve) => {
    /** @type {'kept' | 'not-kept' | 'other-tab'} */
    let outcome = 'not-kept';
    try {
      const transaction = open.transaction(STORE, 'readwrite');
      const store = transaction.objectStore(STORE);
      const count = store.count();
      const present = store.get(draft.key);
      present.onsuccess = () => {
        /** @type {Draft | undefined} */
        const stored = present.result;
        if (stored && stored.tab !== TAB && versionOf(stored) !== seen.get(draft.key)) outcome = 'other-tab';
        else if (stored || count.result < MOST_DRAFTS) {
          store.put(draft);
          outcome = 'kept';
        }
      };
      transaction.oncomplete = () => {
        if (outcome === 'kept') see(draft);
        resolve(outcome);
      };
      transaction.onabort = () => resolve('not-kept');
      transaction.onerror = () => resolve('not-kept');
    } catch {
      resolve('not-kept');
    }
  });
}

/**
 * Removes a draft that was saved or given up, unless another tab has kept a newer one.
 *
 * @param {string} library
 * @param {string} path
 */
export async function dropDraft(library, path) {
  const key = keyOf(library, path);
  memory.delete(key);
  const open = await database();
  if (!open) return;
  await new Promise((resolve) => {
    try {
      const transaction = open.transaction(STORE, 'readwrite');
      const store = transaction.objectStore(STORE);
      const present = store.get(key);
      present.onsuccess = () => {
        if (present.result && versionOf(present.result) === seen.get(key)) store.delete(key);
      };
      transaction.oncomplete = resolve;
      transaction.onabort = resolve;
      transaction.onerror = resolve;
    } catch {
      resolve(undefined);
    }
  });
}

/** Whether drafts would be lost with the page. */
export const hasUnkept = () => memory.size > 0;
