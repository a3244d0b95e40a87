// Days of a chart, without gaps.

/** @typedef {import('./view.js').Day} Day */

const DAY = 24 * 60 * 60 * 1000;
/** The most days of a chart. */
const MOST = 400;

/**
 * Returns every day of the period in UTC, with zeros for days without calls.
 *
 * @param {Day[]} days those with calls, in order
 * @param {string | null} since the start of the first day
 * @param {number} period its length in days
 * @returns {Day[]}
 */
export function wholeDays(days, since, period) {
  const known = new Map(days.map((one) => [one.day, one]));
  const begin = since ? Date.parse(since) : Date.parse(days[0]?.day ?? '') || Date.now();
  // The present day is one of them.
  const last = Math.max(begin + (period - 1) * DAY, Date.parse(days.at(-1)?.day ?? '') || 0);
  const whole = [];
  for (let at = begin; whole.length < MOST; at += DAY) {
    const day = new Date(at).toISOString().slice(0, 10);
    if (Date.parse(day) > last) break;
    whole.push(known.get(day) ?? { day, calls: 0, failed: 0, p50Ms: 0, p95Ms: 0 });
  }
  return whole;
}
