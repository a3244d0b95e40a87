// Words in the languages of the page. Those of the first view are loaded at once, each other group before the first module that
// needs it.

import { first } from './lang/first.js';
import { language as chosen } from './preferences.js';

/**
 * @typedef {import('./lang/types.js').Code} Code
 * @typedef {import('./lang/types.js').Words} Words
 * @typedef {import('./lang/types.js').Group} Group
 */

/** The names of the languages. @type {Record<Code, string>} */
export const LANGUAGES = { en: 'English', zh: '中文', ja: '日本語', de: 'Deutsch' };

/** @type {import('./lang/types.js').Texts} */
const words = { ...first };
/** @type {Code} */
export let language = 'en';

/** Uses the chosen language, or else the one that the browser prefers. */
export function chooseLanguage() {
  const wanted = [chosen.value, ...navigator.languages].map((tag) => tag.toLowerCase().split('-')[0]);
  language = /** @type {Code} */ (wanted.find((tag) => tag in LANGUAGES) ?? 'en');
  document.documentElement.lang = language === 'zh' ? 'zh-Hans' : language;
}

/** Loads words that the first view does not need. @param {Group} name */
export async function moreWords(name = 'more') {
  Object.assign(words, (await import(`./lang/${name}.js`))[name]);
}

/** Whether a key that comes from elsewhere has words. @param {string} key */
export function hasWords(key) {
  return Object.hasOwn(words, key);
}

/**
 * Translates a key and fills in `{placeholders}`. Of two forms separated by `|`, the first is the singular.
 *
 * @param {keyof Words} key
 * @param {Record<string, string | number>} [values]
 */
export function t(key, values = {}) {
  const forms = (words[key]?.[language] ?? '').split('|');
  const one = forms.length > 1 && new Intl.PluralRules(language).select(Number(values.n)) === 'one';
  const text = forms.length > 1 && !one ? forms[1] : forms[0];
  return text.replace(/\{(\w+)\}/g, (all, name) => {
    const value = values[name];
    if (value === undefined) return all;
    return typeof value === 'number' ? new Intl.NumberFormat(language).format(value) : value;
  });
}
