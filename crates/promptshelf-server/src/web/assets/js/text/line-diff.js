// Line diff: finds the lines of a text that are new.

const MOST_LINES = 2_000;

/**
 * Line numbers (from 0) of `after` that are not in the longest common subsequence with `before`.
 *
 * @param {string} before
 * @param {string} after
 * @returns {Set<number>}
 */
export function changedLines(before, after) {
  const a = before.split('\n');
  const b = after.split('\n');
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const [x, y] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  const changed = new Set(y.map((_, index) => head + index));
  if (x.length * y.length > MOST_LINES * MOST_LINES) return changed;
  for (const kept of common(x, y)) changed.delete(head + kept);
  return changed;
}

/**
 * Indices into `y` of a longest common subsequence.
 *
 * @param {string[]} x
 * @param {string[]} y
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
  const kept = [];
  for (let i = 0, j = 0; i < x.length && j < y.length; ) {
    if (x[i] === y[j]) {
      kept.push(j);
      i++;
      j++;
    } else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i++;
    else j++;
  }
  return kept;
}
