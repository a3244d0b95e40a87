// Policies in words, and their changes.

import { h } from '../dom.js';
import { t } from '../i18n.js';
import { revealed } from '../text/invisible.js';

/**
 * @typedef {{ approvals: number, fourEyes: boolean, checks: 'errors' | 'warnings' | 'off', tests: boolean,
 *   evaluations: string[], noRegression: boolean, noBreaking: boolean, roles: Record<string, string[]> }} Policy
 */

const VERBS = /** @type {const} */ (['propose', 'review', 'publish', 'administer']);

/**
 * A policy in short words.
 *
 * @param {Policy} policy
 * @param {boolean} [isExact] whether to name what another condition includes or makes void, too
 * @returns {string[]}
 */
export function inWords(policy, isExact = false) {
  const { approvals, fourEyes, checks, tests, evaluations, noRegression, noBreaking, roles } = policy;
  const words = [];
  const needed = isExact ? approvals : Math.max(approvals, fourEyes ? 1 : 0);
  words.push(needed || fourEyes ? t('ch.policy.approvals', { n: needed }) : t('ch.policy.open'));
  if (fourEyes) words.push(t('ch.policy.four-eyes'));
  if (checks !== 'off') words.push(checks === 'errors' ? t('ch.policy.errors') : t('ch.policy.warnings'));
  if (tests) words.push(t('ch.policy.tests'));
  if (evaluations.length) words.push(t('ch.policy.evaluations', { names: evaluations.join(', ') }));
  if ((isExact || evaluations.length) && noRegression) words.push(t('ch.policy.no-regression'));
  if (noBreaking) words.push(t('ch.policy.no-breaking'));
  for (const verb of VERBS) {
    const names = roles?.[verb] ?? [];
    if (names.length) words.push(t(`ch.policy.role.${verb}`, { names: names.join(', ') }));
  }
  return words;
}

/** The policy before and after a change, with marks on what differs. @param {Policy | null} before @param {Policy} after */
export function policyChange(before, after) {
  /** @param {string} name @param {Policy} policy @param {Policy | null} other */
  const side = (name, policy, other) => {
    const others = other ? inWords(other, true) : [];
    const words = inWords(policy, true).map((word, index) => [
      index ? ', ' : '',
      others.includes(word) ? revealed(word) : h('strong', null, revealed(word)),
    ]);
    return [h('dt', null, name), h('dd', null, words)];
  };
  return h('dl.facts-list', null, [
    before ? side(t('ch.before'), before, after) : null,
    side(t('ch.after'), after, before),
  ]);
}
