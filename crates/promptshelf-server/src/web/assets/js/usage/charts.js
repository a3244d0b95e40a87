// Charts as SVG. Colours are those of the stylesheet; each chart has its figures in a table beside it.

import { language, t } from '../i18n.js';
import { millis, number } from './numbers.js';

/** @typedef {import('./view.js').Day} Day */

const SVG = 'http://www.w3.org/2000/svg';
// Labels keep their size: a small screen gets a narrower drawing, not a smaller one.
const WIDTH = matchMedia('(max-width: 600px)').matches ? 340 : 1120;
const HEIGHT = 200;
/** Space for the labels of the axes. */
const LEFT = 56;
const BOTTOM = 24;
const TOP = 10;

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {...(Node | string)} children
 */
function s(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/** A round number that is not below a value. @param {number} value */
export function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 3, 4, 5, 6, 8, 10].find((one) => one * power >= value) ?? 10;
  return step * power;
}

/** @param {string} day */
function shortDay(day) {
  return new Intl.DateTimeFormat(language, { month: 'short', day: 'numeric', timeZone: 'UTC' }).format(new Date(day));
}

/**
 * The frame of a chart: three lines with their values, and the first, the middle and the last day.
 *
 * @param {Day[]} days
 * @param {number} most
 * @param {(value: number) => string} format
 * @param {string} label
 * @param {Element[]} marks
 */
function frame(days, most, format, label, marks) {
  const bottom = HEIGHT - BOTTOM;
  const lines = [0, 0.5, 1].flatMap((share) => {
    const y = bottom - share * (bottom - TOP);
    return [
      s('line', { class: 'grid', x1: LEFT, x2: WIDTH, y1: y, y2: y }),
      s('text', { x: LEFT - 6, y: y + 4, 'text-anchor': 'end' }, format(most * share)),
    ];
  });
  const step = (WIDTH - LEFT) / days.length;
  const places = [...new Set([0, Math.floor((days.length - 1) / 2), days.length - 1])];
  const names = places.map((index) => {
    const anchor = index === 0 ? 'start' : index === days.length - 1 ? 'end' : 'middle';
    const x = index === 0 ? LEFT : index === days.length - 1 ? WIDTH : LEFT + (index + 0.5) * step;
    return s('text', { x, y: HEIGHT - 6, 'text-anchor': anchor }, shortDay(days[index].day));
  });
  const box = { class: 'chart', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': label };
  return s('svg', box, ...lines, ...marks, ...names);
}

/** Bars of calls by day, failed ones at the foot. @param {Day[]} days */
export function callsChart(days) {
  const largest = days.reduce((best, one) => (one.calls > best.calls ? one : best), days[0]);
  const most = ceiling(Math.max(2, largest.calls));
  const step = (WIDTH - LEFT) / days.length;
  const height = HEIGHT - BOTTOM - TOP;
  const bars = days.flatMap((one, index) => {
    const bar = (/** @type {string} */ kind, /** @type {number} */ calls, /** @type {number} */ from) => {
      const size = (calls / most) * height;
      const y = HEIGHT - BOTTOM - (from / most) * height - size;
      return s('rect', { class: kind, x: LEFT + index * step + step * 0.1, y, width: step * 0.8, height: size });
    };
    const title = s('title', {}, `${one.day}: ${number(one.calls)}, ${t('usage.failed')}: ${number(one.failed)}`);
    return one.calls
      ? [s('g', {}, title, bar('failed', one.failed, 0), bar('calls', one.calls - one.failed, one.failed))]
      : [];
  });
  const total = days.reduce((sum, one) => sum + one.calls, 0);
  const label = t('usage.trend-label', { n: total, most: number(largest.calls), day: shortDay(largest.day) });
  return frame(days, most, number, label, bars);
}

/** Lines of the median and the 95th percentile of the latency by day. @param {Day[]} days */
export function latencyChart(days) {
  const largest = days.reduce((best, one) => (one.p95Ms > best.p95Ms ? one : best), days[0]);
  const most = ceiling(largest.p95Ms);
  const step = (WIDTH - LEFT) / days.length;
  const height = HEIGHT - BOTTOM - TOP;
  const x = (/** @type {number} */ index) => LEFT + (index + 0.5) * step;
  const y = (/** @type {number} */ value) => HEIGHT - BOTTOM - (value / most) * height;
  /** @param {string} kind @param {'p50Ms' | 'p95Ms'} figure */
  const line = (kind, figure) => {
    let path = '';
    const dots = [];
    for (const [index, one] of days.entries()) {
      // A day without calls has no latency: the line has a gap.
      if (!one.calls) continue;
      const isFirst = index === 0 || !days[index - 1].calls;
      const isAlone = isFirst && !days[index + 1]?.calls;
      path += `${isFirst ? 'M' : 'L'}${x(index).toFixed(1)} ${y(one[figure]).toFixed(1)}`;
      if (isAlone) dots.push(s('circle', { class: kind, cx: x(index), cy: y(one[figure]), r: 3 }));
    }
    return [s('path', { class: kind, d: path }), ...dots];
  };
  const words = { most: millis(largest.p95Ms), day: shortDay(largest.day) };
  const label = t('usage.latency-label', words);
  return frame(days, most, millis, label, [...line('p95', 'p95Ms'), ...line('p50', 'p50Ms')]);
}

/** A bar for the share of a group, decoration beside its figure. @param {number} calls @param {number} failed @param {number} most */
export function shareBar(calls, failed, most) {
  const width = (/** @type {number} */ part) => (most ? Math.max(part ? 1 : 0, (part / most) * 100) : 0);
  return s(
    'svg',
    { class: 'bar', viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    s('rect', { class: 'calls', width: width(calls), height: 8 }),
    s('rect', { class: 'failed', width: width(failed), height: 8 }),
  );
}
