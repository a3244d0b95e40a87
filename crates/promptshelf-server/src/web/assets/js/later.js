// Views that are loaded when they are opened. All of them use the API.

import { moreWords } from './i18n.js';
import { stylesheet } from './stylesheet.js';

/**
 * Modules of views that are loaded when they are opened. Their folder is the group of their words and their stylesheet.
 *
 * @type {Record<string, string>}
 */
const LATER = {
  browse: 'channels/browse',
  channels: 'channels/overview',
  compare: 'channels/compare',
  edit: 'edit/view',
  history: 'channels/history',
  proposal: 'channels/proposal',
  proposals: 'channels/proposals',
  revision: 'channels/revision',
  rollouts: 'channels/rollouts',
  tokens: 'channels/tokens',
  usage: 'usage/view',
  webhooks: 'channels/webhooks',
};

/** Loads a view with its words and its stylesheet. @param {import('./route.js').View} view */
export async function open(view) {
  const group = /** @type {import('./i18n.js').Group} */ (LATER[view].split('/')[0]);
  const words = [moreWords(group), moreWords('problems')];
  return (await Promise.all([import(`./${LATER[view]}.js`), stylesheet(group), ...words]))[0];
}
