// Virtual list: only visible rows are in the DOM. It scrolls with the page; rows of one kind share a height.

import { h } from '../dom.js';

const BEYOND = 600;

/**
 * @template T
 * @param {object} options
 * @param {(row: T) => number} options.height
 * @param {(row: T, index: number, until: AbortSignal) => HTMLElement} options.draw creates a row; its watchers end with the signal
 * @param {string} options.label
 * @param {AbortSignal} options.until
 */
export function virtualList({ height, draw, label, until }) {
  const list = h('ul.virtual', { role: 'list', 'aria-label': label });
  /** @type {T[]} */
  let rows = [];
  /** Offsets of all rows, and the end of the last one. */
  let tops = new Float64Array(1);
  /** @type {Map<number, { element: HTMLElement, end: AbortController }>} */
  const drawn = new Map();

  const indexAt = (/** @type {number} */ y) => {
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (tops[middle + 1] <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  /** @param {number} index */
  const drop = (index) => {
    const row = drawn.get(index);
    row?.end.abort();
    row?.element.remove();
    drawn.delete(index);
  };

  const paint = () => {
    const top = list.getBoundingClientRect().top;
    const from = indexAt(-top - BEYOND);
    const to = Math.min(rows.length, indexAt(innerHeight - top + BEYOND) + 1);
    for (const [index, { element }] of drawn) {
      // A focused row is kept, to keep the focus.
      if ((index < from || index >= to) && !element.contains(document.activeElement)) drop(index);
    }
    for (let index = from; index < to; index++) {
      if (drawn.has(index)) continue;
      const end = new AbortController();
      const element = draw(rows[index], index, end.signal);
      element.style.transform = `translateY(${tops[index]}px)`;
      element.style.height = `${height(rows[index])}px`;
      drawn.set(index, { element, end });
      const after = [...drawn.keys()].filter((other) => other > index).sort((a, b) => a - b)[0];
      list.insertBefore(element, after === undefined ? null : (drawn.get(after)?.element ?? null));
    }
  };

  let isScheduled = false;
  const later = () => {
    if (isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(() => {
      isScheduled = false;
      if (!until.aborted) paint();
    });
  };
  until.addEventListener('abort', () => {
    for (const index of [...drawn.keys()]) drop(index);
  });
  window.addEventListener('scroll', later, { passive: true, signal: until });
  window.addEventListener('resize', later, { signal: until });

  return {
    list,
    /** @param {T[]} next */
    set(next) {
      rows = next;
      tops = new Float64Array(rows.length + 1);
      rows.forEach((row, index) => {
        tops[index + 1] = tops[index] + height(row);
      });
      list.style.height = `${tops[rows.length]}px`;
      for (const index of [...drawn.keys()]) drop(index);
      paint();
      later();
    },
    /** Scrolls a row into view and returns its element. @param {number} index */
    reveal(index) {
      const top = list.getBoundingClientRect().top + tops[index];
      const bottom = top + height(rows[index]);
      const margin = 120;
      if (top < margin) window.scrollBy({ top: top - margin, behavior: 'instant' });
      else if (bottom > innerHeight - 40) window.scrollBy({ top: bottom - innerHeight + 40, behavior: 'instant' });
      paint();
      return drawn.get(index)?.element;
    },
  };
}
