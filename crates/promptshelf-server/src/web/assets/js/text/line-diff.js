// Line diff: finds the lines of a text that are new, and those that two texts share.

const MOST_LINES = 2_000;

/**
 * Line numbers (from 0) of `after` that are not in the longest common subsequence with `before`.
 *
 * @param {string} before
 * @param {string} after
 * @returns {Set<number>}
 */
export function changedLines(before, after) {
  const [a, b] = [before.split('\n'), after.split('\n')];
  const changed = new Set(b.keys());
  for (const [, kept] of commonLines(a, b)) changed.delete(kept);
  return changed;
}

/**
 * A longest common subsequence of lines as pairs of indices; of long texts only the common start and end.
 *
 * @param {string[]} a
 * @param {string[]} b
 * @returns {[number, number][]}
 */
export function commonLines(a, b) {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const [x, y] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  /** @type {[number, number][]} */
  const pairs = Array.from({ length: head }, (_, index) => [index, index]);
  if (x.length * y.length <= MOST_LINES * MOST_LINES)
    for (const [i, j] of common(x, y)) pairs.push([head + i, head + j]);
  for (let left = tail; left > 0; left--) pairs.push([a.length - left, b.length - left]);
  return pairs;
}

/**
 * Pairs of indices of a longest common subsequence.
 *
 * @param {string[]} x
 * @param {string[]} y
 * @returns {[number, number][]}
 */
function common(x, y) {
  const width = y.length + 1;
  const lengths = new Uint16Array((x.length + 1) * width);
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        x[i] === y[j]
          ? lengths[(i + 1) * width + j + 1] + 1
          : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  /** @type {[number, number][]} */
  const kept = [];
  for (let i = 0, j = 0; i < x.length && j < y.length; ) {
    if (x[i] === y[j]) {
      kept.push([i, j]);
      i++;
      j++;
    } else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i++;
    else j++;
  }
  return kept;
}
