// Translations. The words of the first view are loaded at once, the others before the first module that needs them.

import { en } from './lang/en.js';
import { language as chosen } from './preferences.js';

/**
 * @typedef {typeof en} First
 * @typedef {typeof import('./lang/more/en.js').more} More
 * @typedef {First & More} Words
 */

/** @type {Record<string, { name: string, load: () => Promise<First>, more: () => Promise<{ more: More }> }>} */
export const LANGUAGES = {
  en: { name: 'English', load: async () => en, more: () => import('./lang/more/en.js') },
  zh: { name: '中文', load: async () => (await import('./lang/zh.js')).zh, more: () => import('./lang/more/zh.js') },
  ja: { name: '日本語', load: async () => (await import('./lang/ja.js')).ja, more: () => import('./lang/more/ja.js') },
  de: { name: 'Deutsch', load: async () => (await import('./lang/de.js')).de, more: () => import('./lang/more/de.js') },
};

/** @type {Partial<Words>} */
let words = en;
export let language = 'en';
let hasMore = false;

/** Loads the words of the chosen language, or of the browser's preferred one. */
export async function loadWords() {
  const wanted = [chosen.value, ...navigator.languages].map((tag) => tag.toLowerCase().split('-')[0]);
  const code = wanted.find((tag) => tag in LANGUAGES) ?? 'en';
  try {
    const first = await LANGUAGES[code].load();
    // Open views need the full set of words when the language changes.
    words = hasMore ? { ...first, ...(await LANGUAGES[code].more()).more } : first;
    language = code;
  } catch {
    // Falls back to English when the language file cannot be loaded.
    [words, language] = [{ ...words, ...en }, 'en'];
  }
  document.documentElement.lang = language === 'zh' ? 'zh-Hans' : language;
}

/** Loads the words that the first view does not need. */
export async function moreWords() {
  if (hasMore) return;
  const { more } = await LANGUAGES[language].more();
  words = { ...more, ...words };
  hasMore = true;
}

/**
 * Translates a key and fills in `{placeholders}`. Of two forms separated by `|`, the first is the singular.
 *
 * @param {keyof Words} key
 * @param {Record<string, string | number>} [values]
 */
export function t(key, values = {}) {
  const forms = (words[key] ?? '').split('|');
  const one = forms.length > 1 && new Intl.PluralRules(language).select(Number(values.n)) === 'one';
  const text = forms.length > 1 && !one ? forms[1] : forms[0];
  return text.replace(/\{(\w+)\}/g, (all, name) => {
    const value = values[name];
    if (value === undefined) return all;
    return typeof value === 'number' ? new Intl.NumberFormat(language).format(value) : value;
  });
}
