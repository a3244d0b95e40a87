// The sentences of the API's problems in the language of the page.

import { hasWords, t } from './i18n.js';

/**
 * The sentence of a problem. Kinds without words of their own have the server's sentence, in English.
 *
 * @param {import('./api.js').ApiProblem} problem
 */
export function problemWords(problem) {
  const key = /** @type {keyof import('./i18n.js').Words} */ (`problem.${problem.kind}`);
  return hasWords(key) ? t(key) : problem.message;
}
