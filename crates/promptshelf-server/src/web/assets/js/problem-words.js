// The sentences of the API's problems in the language of the page.

import { hasWords, t } from './i18n.js';

/**
 * The sentence of a problem. Kinds without words of their own have the server's sentence, in English.
 *
 * @param {import('./api.js').ApiProblem} problem
 */
export function problemWords(problem) {
  if (problem.reasons.length && problem.kind !== 'policy') return problem.reasons.map(reasonWords).join(' ');
  const key = /** @type {keyof import('./i18n.js').Words} */ (`problem.${problem.kind}`);
  return hasWords(key) ? t(key) : problem.message;
}

/**
 * A reason against an operation, as the API names it.
 *
 * @typedef {{ code: string, values?: Record<string, string>, text: string }} Reason
 */

/** The sentence of a reason. Codes without words have the server's sentence, in English. @param {Reason} reason */
export function reasonWords({ code, values, text }) {
  const key = /** @type {keyof import('./i18n.js').Words} */ (`reason.${code}`);
  if (!hasWords(key)) return text;
  const state = values?.state && `ch.state.${values.state}`;
  const named = state && hasWords(state) ? t(/** @type {keyof import('./i18n.js').Words} */ (state)) : values?.state;
  return t(key, { ...values, ...(named ? { state: named } : {}) });
}
