// The sentences of differences for callers in the language of the page.

import { h } from '../dom.js';
import { hasWords, t } from '../i18n.js';
import { revealed } from '../text/invisible.js';

/** @typedef {keyof import('../i18n.js').Words} Key */

/**
 * The sentence of a difference, with the names in it as code.
 *
 * @param {import('./comparison.js').Difference} difference
 */
export function differenceParts(difference) {
  const words = differenceWords(difference);
  const parts = words.split('`');
  // A value can have such a mark, too.
  if (parts.length % 2 === 0) return revealed(words);
  return parts.map((part, index) => (index % 2 ? h('code', null, revealed(part)) : h('span', null, revealed(part))));
}

/**
 * The sentence of a difference. Codes without words have the server's sentence, in English.
 *
 * @param {import('./comparison.js').Difference} difference
 */
function differenceWords({ impact, code, values, text }) {
  const key = `difference.${code}`;
  if (!hasWords(key)) return text;
  /** @type {Record<string, string>} */
  const filled = { ...values };
  if ('what' in values) {
    const what = `difference.what.${values.what}`;
    if (hasWords(what)) filled.what = t(/** @type {Key} */ (what));
  }
  // No rule closes it.
  for (const rules of ['before', 'now']) if (values[rules] === '') filled[rules] = t('difference.everyone');
  const sentence = t(/** @type {Key} */ (key), filled);
  const parts = [sentence, values.message];
  // These differences can make values invalid.
  if (code.startsWith('value-') && impact === 'breaking') parts.push(t('difference.fails'));
  return parts.filter(Boolean).join(' ');
}
