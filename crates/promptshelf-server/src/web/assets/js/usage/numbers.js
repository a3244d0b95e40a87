// Numbers in the language of the page.

import { language } from '../i18n.js';

/** @param {number} value */
export function number(value) {
  return new Intl.NumberFormat(language).format(value);
}

/** A share; one that is not zero is never shown as zero. @param {number} part @param {number} whole */
export function percent(part, whole) {
  const share = whole ? part / whole : 0;
  const format = new Intl.NumberFormat(language, { style: 'percent', maximumFractionDigits: share < 0.1 ? 1 : 0 });
  return share > 0 && share < 0.001 ? `< ${format.format(0.001)}` : format.format(share);
}

/** A latency with two significant digits. @param {number} value in milliseconds */
export function millis(value) {
  const format = new Intl.NumberFormat(language, { maximumSignificantDigits: 2 });
  return `${format.format(value)} ms`;
}
