// Every word of the page in the reader's language.

import { language as chosen } from './kept.js';
import { en } from './lang/en.js';

/** @typedef {typeof en} Words */

/** @type {Record<string, { name: string, load: () => Promise<Words> }>} */
export const LANGUAGES = {
  en: { name: 'English', load: async () => en },
  zh: { name: '中文', load: async () => (await import('./lang/zh.js')).zh },
  ja: { name: '日本語', load: async () => (await import('./lang/ja.js')).ja },
  de: { name: 'Deutsch', load: async () => (await import('./lang/de.js')).de },
};

/** @type {Words} */
let words = en;
export let language = 'en';

/** Loads the words of the chosen language, else of the first one that the browser asks for. */
export async function loadWords() {
  const wanted = [chosen.value, ...navigator.languages].map((tag) => tag.toLowerCase().split('-')[0]);
  const code = wanted.find((tag) => tag in LANGUAGES) ?? 'en';
  try {
    words = await LANGUAGES[code].load();
    language = code;
  } catch {
    // Without its file, English is better than nothing.
    [words, language] = [en, 'en'];
  }
  document.documentElement.lang = language === 'zh' ? 'zh-Hans' : language;
}

/**
 * A sentence, with what stands in braces filled in. Of two forms, divided by
 * `|`, the first is for one thing.
 * @param {keyof Words} key
 * @param {Record<string, string | number>} [values]
 */
export function t(key, values = {}) {
  const forms = words[key].split('|');
  const one = forms.length > 1 && new Intl.PluralRules(language).select(Number(values.n)) === 'one';
  const text = forms.length > 1 && !one ? forms[1] : forms[0];
  return text.replace(/\{(\w+)\}/g, (all, name) => {
    const value = values[name];
    if (value === undefined) return all;
    return typeof value === 'number' ? new Intl.NumberFormat(language).format(value) : value;
  });
}
