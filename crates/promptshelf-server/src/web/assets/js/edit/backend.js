// The places that the editor reads from and saves to: the served folder, and channels.

import { all, api, pages, send } from '../api.js';
import { at } from '../root.js';

/**
 * @typedef {{ path: string, bytes: number | null }} FileRow
 * @typedef {{ bytes: Uint8Array, digest: string }} Stored
 * @typedef {{ line: number, character: number }} Position a line from 0, and UTF-16 units in it
 * @typedef {object} Question about a file that may be unsaved
 * @property {string} path
 * @property {{ path: string, content: Content | null }[]} changes
 * @property {Position} [complete]
 * @property {Position} [hover]
 * @property {Record<string, string>} [arguments]
 * @property {boolean} [tests]
 * @typedef {{ text?: string, base64?: string }} Content
 *
 * @typedef {object} Backend
 * @property {string} id distinguishes the drafts of libraries
 * @property {string | null} channel null for the folder
 * @property {(until?: AbortSignal) => Promise<{ files: FileRow[], mayWrite: boolean }>} list
 * @property {(path: string, until?: AbortSignal) => Promise<Stored>} read
 * @property {(question: Question, until?: AbortSignal) => Promise<any>} analyze
 */

/** @param {string} path */
const encoded = (path) => path.split('/').map(encodeURIComponent).join('/');
/** @param {string} digest */
const tag = (digest) => `"${digest}"`;

/** @param {string} url @param {AbortSignal} [signal] @returns {Promise<Stored>} */
async function stored(url, signal) {
  const response = await send(url, { signal });
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { bytes, digest: (response.headers.get('ETag') ?? '').replaceAll('"', '') };
}

/**
 * The text of a file; `null` if it is not text. A byte order mark stays, because every byte is saved again.
 *
 * @param {Uint8Array} bytes
 */
export function textOf(bytes) {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.includes('\0') ? null : text;
  } catch {
    return null;
  }
}

/** @param {Uint8Array} bytes @returns {Content} */
export function contentOf(bytes) {
  const text = textOf(bytes);
  if (text !== null) return { text };
  let binary = '';
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return { base64: btoa(binary) };
}

/** @param {Content} content */
export function bytesOf({ text, base64 }) {
  if (text !== undefined) return new TextEncoder().encode(text);
  return Uint8Array.from(atob(base64 ?? ''), (letter) => letter.charCodeAt(0));
}

/** Whether two contents are the same. @param {Uint8Array} one @param {Uint8Array} other */
export function isSame(one, other) {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}

export const folder = {
  id: 'folder',
  channel: null,
  /** @param {AbortSignal} [until] */
  async list(until) {
    /** @type {{ path: string, bytes: number }[]} */
    const files = [];
    let mayWrite = false;
    for await (const page of pages('/folder/files', until)) {
      files.push(...page.items);
      ({ mayWrite } = page);
    }
    return { files, mayWrite };
  },
  /** @param {string} path @param {AbortSignal} [until] */
  read: (path, until) => stored(at(`api/v1/folder/files/${encoded(path)}`), until),
  /** @param {Question} body @param {AbortSignal} [signal] */
  analyze: async (body, signal) => (await api('/folder/analysis', { method: 'POST', body, signal })).value,
  /**
   * Writes a file and returns its new digest.
   *
   * @param {string} path
   * @param {Uint8Array} bytes
   * @param {string | null} base the digest of the replaced content; `null` for a new file
   */
  async write(path, bytes, base) {
    const version = base === null ? { isNew: true } : { match: tag(base) };
    const body = { content: contentOf(bytes) };
    return (await api(`/folder/files/${encoded(path)}`, { method: 'PUT', body, ...version })).value.digest;
  },
  /** @param {string} path @param {string} digest */
  async remove(path, digest) {
    await api(`/folder/files/${encoded(path)}`, { method: 'DELETE', match: tag(digest) });
  },
  /**
   * Renames a file and every reference to it.
   *
   * @param {string} from
   * @param {string} to
   * @param {string} digest
   * @returns {Promise<{ changed: string[], left: string[] }>}
   */
  async rename(from, to, digest) {
    return (await api('/folder/rename', { method: 'POST', body: { from, to, digest } })).value;
  },
};

/** @param {string} name */
export function channel(name) {
  const root = `/channels/${encodeURIComponent(name)}`;
  return {
    id: `channel ${name}`,
    channel: name,
    /** @param {AbortSignal} [until] */
    async list(until) {
      /** @type {FileRow[]} */
      const files = (await all(`${root}/tree`, until)).map(({ path, size }) => ({ path, bytes: size ?? null }));
      return { files, mayWrite: true };
    },
    /** @param {string} path @param {AbortSignal} [until] */
    read: (path, until) => stored(at(`api/v1${root}/files/${encoded(path)}`), until),
    /** @param {Question} body @param {AbortSignal} [signal] */
    analyze: async (body, signal) => (await api(`${root}/analysis`, { method: 'POST', body, signal })).value,
    /**
     * Returns the new texts of the files that refer to a renamed file. Nothing is stored.
     *
     * @param {string} from
     * @param {string} to
     * @param {{ path: string, content: Content | null }[]} changes the unsaved files
     * @returns {Promise<{ path: string, text: string }[]>}
     */
    async references(from, to, changes) {
      const body = { from, to, changes };
      return (await api(`${root}/rename`, { method: 'POST', body })).value.references;
    },
    /**
     * Proposes drafts, and returns the outcome.
     *
     * @param {string} message
     * @param {import('./drafts.js').Draft[]} drafts
     */
    async propose(message, drafts) {
      const { value } = await api(root);
      const changes = drafts.map(({ path, base, bytes }) => ({
        path,
        before: base,
        content: bytes && contentOf(bytes),
      }));
      const body = { base: value.head?.revision ?? 0, message, changes };
      return (await api(`${root}/proposals`, { method: 'POST', body })).value;
    },
  };
}
