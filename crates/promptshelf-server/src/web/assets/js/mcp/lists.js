// Fetches paged lists to their end.

/** @typedef {import('./client.js').Client} Client */

// Bound for servers that never stop returning cursors.
const MOST_PAGES = 2_000;

/**
 * @template T
 * @param {Client} client
 * @param {string} method
 * @param {string} member
 * @param {(items: T[]) => void} [onPage] receives the items so far, after each page but the last
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
