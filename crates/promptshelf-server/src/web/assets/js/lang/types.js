// Types of the words. Type-checking only: this file is never loaded.

/**
 * @typedef {'en' | 'zh' | 'ja' | 'de'} Code a language
 * @typedef {Record<string, Record<Code, string>>} Texts words of a group in every language
 * @typedef {typeof import('./first.js').first} First
 * @typedef {typeof import('./more.js').more} More
 * @typedef {typeof import('./channels.js').channels} Channels
 * @typedef {typeof import('./differences.js').differences} Differences
 * @typedef {typeof import('./edit.js').edit} Edit
 * @typedef {typeof import('./problems.js').problems} Problems
 * @typedef {typeof import('./usage.js').usage} Usage
 * @typedef {First & More & Channels & Differences & Edit & Problems & Usage} Words
 * @typedef {'more' | 'channels' | 'differences' | 'edit' | 'problems' | 'usage'} Group a file of `lang/`, and the name that it exports
 */

export {};
