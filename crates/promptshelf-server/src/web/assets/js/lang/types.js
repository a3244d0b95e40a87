// Types of the words. Type-checking only: this file is never loaded.

/**
 * @typedef {typeof import('./en.js').en} First
 * @typedef {typeof import('./more/en.js').more} More
 * @typedef {typeof import('./channels/en.js').channels} Channels
 * @typedef {typeof import('./differences/en.js').differences} Differences
 * @typedef {typeof import('./edit/en.js').edit} Edit
 * @typedef {typeof import('./problems/en.js').problems} Problems
 * @typedef {typeof import('./usage/en.js').usage} Usage
 * @typedef {First & More & Channels & Differences & Edit & Problems & Usage} Words
 * @typedef {'more' | 'channels' | 'differences' | 'edit' | 'problems' | 'usage'} Group a folder of `lang/`, and the name that its files
 *   export
 */

export {};
