// Translations. The words of the first view are loaded at once, each other group before the first module that needs it.

import { en } from './lang/en.js';
import { language as chosen } from './preferences.js';

/**
 * @typedef {typeof en} First
 * @typedef {import('./lang/types.js').Words} Words
 * @typedef {import('./lang/types.js').Group} Group
 */

/** @type {Record<string, { name: string, load: () => Promise<First> }>} */
export const LANGUAGES = {
  en: { name: 'English', load: async () => en },
  zh: { name: '中文', load: async () => (await import('./lang/zh.js')).zh },
  ja: { name: '日本語', load: async () => (await import('./lang/ja.js')).ja },
  de: { name: 'Deutsch', load: async () => (await import('./lang/de.js')).de },
};

/** @type {Partial<Words>} */
let words = en;
export let language = 'en';
/** The groups that have been loaded. @type {Set<Group>} */
const groups = new Set();

/** @param {Group} name @param {string} code @returns {Promise<Partial<Words>>} */
const group = async (name, code) => (await import(`./lang/${name}/${code}.js`))[name];

/** Loads the words of the chosen language, or of the browser's preferred one. */
export async function loadWords() {
  const wanted = [chosen.value, ...navigator.languages].map((tag) => tag.toLowerCase().split('-')[0]);
  const code = wanted.find((tag) => tag in LANGUAGES) ?? 'en';
  try {
    const first = await LANGUAGES[code].load();
    // Open views need the full set of words when the language changes.
    words = Object.assign({}, ...(await Promise.all([...groups].map((name) => group(name, code)))), first);
    language = code;
  } catch {
    // Falls back to English when the language file cannot be loaded.
    [words, language] = [{ ...words, ...en }, 'en'];
  }
  document.documentElement.lang = language === 'zh' ? 'zh-Hans' : language;
}

/** Loads words that the first view does not need. @param {Group} name */
export async function moreWords(name = 'more') {
  if (groups.has(name)) return;
  words = { ...(await group(name, language)), ...words };
  groups.add(name);
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
  const forms = (words[key] ?? '').split('|');
  const one = forms.length > 1 && new Intl.PluralRules(language).select(Number(values.n)) === 'one';
  const text = forms.length > 1 && !one ? forms[1] : forms[0];
  return text.replace(/\{(\w+)\}/g, (all, name) => {
    const value = values[name];
    if (value === undefined) return all;
    return typeof value === 'number' ? new Intl.NumberFormat(language).format(value) : value;
  });
}
