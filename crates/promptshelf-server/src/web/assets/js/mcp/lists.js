// Lists of any length, page by page.

/** @typedef {import('./client.js').Client} Client */

// A server that never stops giving cursors is not followed for ever.
const MOST_PAGES = 2_000;

/**
 * @template T
 * @param {Client} client
 * @param {string} method
 * @param {string} member
 * @param {(items: T[]) => void} [onPage] gets what has come so far, after each page but the last
 * @returns {Promise<{ items: T[], pages: number }>}
 */
export async function wholeList(client, method, member, onPage) {
  /** @type {T[]} */
  const items = [];
  const seen = new Set();
  let cursor;
  for (let pages = 1; ; pages++) {
    const result = await client.request(method, cursor === undefined ? {} : { cursor });
    items.push(...(result[member] ?? []));
    cursor = result.nextCursor;
    if (cursor === undefined || seen.has(cursor) || pages >= MOST_PAGES) return { items, pages };
    seen.add(cursor);
    onPage?.(items);
  }
}
