// Contents of changed files, for comparisons.

import { file, read } from '../api.js';

/** @typedef {import('./comparison.js').Texts} Texts */

/**
 * Reads both sides from revisions.
 *
 * @param {import('./comparison.js').Comparison} comparison
 * @param {AbortSignal} until
 * @returns {import('./comparison.js').Contents}
 */
export function ofRevisions({ before, after }, until) {
  /** @param {import('./comparison.js').SideName} side @param {string} path @param {string | null} digest */
  const text = async (side, path, digest) => {
    if (digest === null || side.source === null) return { text: null, bytes: null };
    return file(side.source, path, side.sourceRevision, until);
  };
  return async (change) => {
    const [left, right] = await Promise.all([
      text(before, change.path, change.before),
      text(after, change.path, change.after),
    ]);
    return { before: left.text, after: right.text, isBinary: left.bytes !== null || right.bytes !== null };
  };
}

/**
 * Reads the changes of a proposal one by one.
 *
 * @param {number} id
 * @param {AbortSignal} until
 * @returns {import('./comparison.js').Contents}
 */
export function ofProposal(id, until) {
  return async ({ path }) => {
    const { items } = await read(`/proposals/${id}/contents?path=${encodeURIComponent(path)}`, until);
    const found = items[0] ?? { before: null, after: null };
    const text = (/** @type {any} */ side) => side?.text ?? null;
    return {
      before: text(found.before),
      after: text(found.after),
      isBinary: [found.before, found.after].some((side) => side?.base64 !== undefined),
    };
  };
}
