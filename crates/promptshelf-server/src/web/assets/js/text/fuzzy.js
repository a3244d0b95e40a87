// Fuzzy search over prompts. It scans 10,000 entries between two key strokes, so the scoring stays simple.

/**
 * @typedef {{ name: string, title: string, words: string }} Entry lower-cased fields
 * @typedef {{ score: number, index: number }} Match
 */

/** @param {string} text */
export function folded(text) {
  return text
    .toLowerCase()
    .normalize('NFKD')
    .replace(/\p{Mn}/gu, '');
}

/**
 * Scores a term against a text; 0 without a match. Contiguous runs beat scattered letters, the start of a word beats its
 * middle, and a whole word beats its start.
 *
 * @param {string} term
 * @param {string} text
 */
function fit(term, text) {
  const at = text.indexOf(term);
  if (at >= 0) {
    const startsWord = isBoundary(text, at - 1);
    const isWord = startsWord && isBoundary(text, at + term.length);
    return 60 + (startsWord ? 25 : 0) + (isWord ? 5 : 0) + (at === 0 ? 10 : 0) + (text.length === term.length ? 20 : 0);
  }
  if (term.length < 2) return 0;
  let from = 0;
  let gaps = 0;
  for (const letter of term) {
    const next = text.indexOf(letter, from);
    if (next < 0) return 0;
    if (from > 0) gaps += next - from;
    from = next + 1;
  }
  return gaps > term.length * 4 ? 0 : Math.max(1, 40 - gaps * 3);
}

/** Whether no word continues at a position. @param {string} text @param {number} at */
function isBoundary(text, at) {
  return at < 0 || at >= text.length || !/[\p{L}\p{N}]/u.test(text[at]);
}

/**
 * Indices of the entries that match every term, best first; all of them, in order, for an empty query.
 *
 * @param {Entry[]} entries
 * @param {string} query
 * @returns {number[]}
 */
export function find(entries, query) {
  const terms = folded(query).split(/\s+/).filter(Boolean);
  if (!terms.length) return entries.map((_, index) => index);
  /** @type {Match[]} */
  const matches = [];
  entries.forEach((entry, index) => {
    let score = 0;
    for (const term of terms) {
      const inWords = entry.words.includes(term) ? 30 : 0;
      const best = Math.max(fit(term, entry.title) * 1.05, fit(term, entry.name), inWords);
      if (!best) return;
      score += best;
    }
    matches.push({ score: score - entry.name.length / 100, index });
  });
  return matches.sort((a, b) => b.score - a.score || a.index - b.index).map((match) => match.index);
}

/**
 * Ranges of the query's terms in a text, for highlighting.
 *
 * @param {string} text
 * @param {string} query
 * @returns {[number, number][]}
 */
export function ranges(text, query) {
  const lower = text.toLowerCase();
  /** @type {[number, number][]} */
  const found = [];
  for (const term of query.toLowerCase().split(/\s+/).filter(Boolean)) {
    const at = lower.indexOf(term);
    if (at >= 0 && lower.length === text.length) found.push([at, at + term.length]);
  }
  found.sort((a, b) => a[0] - b[0]);
  return found.filter((range, index) => index === 0 || range[0] >= found[index - 1][1]);
}
