// Policies in words, and their changes.

import { h } from '../dom.js';
import { t } from '../i18n.js';
import { revealed } from '../text/invisible.js';

/**
 * @typedef {{ approvals: number, fourEyes: boolean, checks: 'errors' | 'warnings' | 'off', tests: boolean,
 *   evaluations: string[], noRegression: boolean, noBreaking: boolean, roles: Record<string, string[]> }} Policy
 */

/** A policy in short words. @param {Policy} policy @returns {string[]} */
export function inWords({ approvals, fourEyes, checks, tests, evaluations, noRegression, noBreaking, roles }) {
  const words = [];
  const needed = Math.max(approvals, fourEyes ? 1 : 0);
  words.push(needed ? t('ch.policy.approvals', { n: needed }) : t('ch.policy.open'));
  if (fourEyes) words.push(t('ch.policy.four-eyes'));
  if (checks !== 'off') words.push(checks === 'errors' ? t('ch.policy.errors') : t('ch.policy.warnings'));
  if (tests) words.push(t('ch.policy.tests'));
  if (evaluations.length) words.push(t('ch.policy.evaluations', { names: evaluations.join(', ') }));
  if (evaluations.length && noRegression) words.push(t('ch.policy.no-regression'));
  if (noBreaking) words.push(t('ch.policy.no-breaking'));
  for (const [verb, names] of Object.entries(roles ?? {})) {
    if (names.length) words.push(`${verb}: ${names.join(', ')}`);
  }
  return words;
}

/** The policy before and after a change. @param {Policy | null} before @param {Policy} after */
export function policyChange(before, after) {
  const side = (/** @type {string} */ name, /** @type {Policy} */ policy) => [
    h('dt', null, name),
    h('dd', null, revealed(inWords(policy).join(', '))),
  ];
  return h('dl.facts-list', null, [before ? side(t('ch.before'), before) : null, side(t('ch.after'), after)]);
}
