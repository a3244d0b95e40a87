// Results of evaluations of a proposal's prompts, before and after, with the cases that differ.

import { read } from '../api.js';
import { h } from '../dom.js';
import { language, t } from '../i18n.js';
import { revealed } from '../text/invisible.js';
import { pill } from './parts.js';

/**
 * @typedef {{ name: string, score: number | null, passed: boolean | null, reason: string }} Case
 * @typedef {{ passed: boolean, scores: Record<string, number>, thresholds: Record<string, number>,
 *   model: string | null, cost: number | null, seconds: number }} Result
 * @typedef {{ evaluation: string, before: Result | null, after: Result | null,
 *   cases: { name: string, before: Case | null, after: Case | null }[] }} ResultChange
 * @typedef {{ required: string[], all: number, prompts: { name: string, evaluations: ResultChange[] }[] }} Evaluations
 */

/** @param {number} id @param {AbortSignal} until @returns {Promise<Evaluations>} */
export function evaluationsOf(id, until) {
  return read(`/proposals/${id}/evaluations`, until);
}

/** The section of a proposal; nothing without results and requirements. @param {Evaluations} evaluations */
export function evaluationsPart({ required, prompts, all }) {
  const rows = prompts.flatMap(({ name, evaluations }) =>
    evaluations.map((one) => row(name, one, required.includes(one.evaluation))),
  );
  if (!rows.length) return [];
  const left = all - prompts.length;
  return [
    h('h2', null, t('ch.evaluations')),
    h('ul.words', null, rows),
    left > 0 ? h('p.hint', null, t('ch.more', { n: left })) : null,
  ];
}

/** @param {string} prompt @param {ResultChange} change @param {boolean} isRequired */
function row(prompt, { evaluation, before, after, cases }, isRequired) {
  const names = Object.keys({ ...before?.scores, ...after?.scores }).sort();
  const scores = names.map((name) => `${name} ${number(before?.scores[name])} → ${number(after?.scores[name])}`);
  const facts = [after?.model, after?.cost ? t('ch.cost', { cost: number(after.cost) }) : null];
  return h('li', null, [
    verdict(before, after, isRequired),
    h('span', null, [
      h('code', null, revealed(`${prompt} / ${evaluation}`)),
      ' ',
      revealed([scores.join(', '), ...facts].filter(Boolean).join(' · ')),
    ]),
    cases.length
      ? h('details.part', null, [
          h('summary', null, t('ch.cases-changed', { n: cases.length })),
          h('div.part-body', null, h('ul.words', null, cases.map(caseRow))),
        ])
      : null,
  ]);
}

/** @param {Result | null} before @param {Result | null} after @param {boolean} isRequired */
function verdict(before, after, isRequired) {
  if (!after) return pill(isRequired ? 'bad' : 'plain', t('ch.no-result'));
  if (!after.passed) return pill('bad', t('ch.test.failed'));
  const counts = (/** @type {string} */ name) => name in after.thresholds || !Object.keys(after.thresholds).length;
  const isWorse = Object.entries(before?.scores ?? {}).some(
    ([name, score]) => counts(name) && (after.scores[name] ?? -Infinity) < score,
  );
  return isWorse ? pill('warn', t('ch.worse')) : pill('good', t('ch.test.passed'));
}

/** @param {ResultChange['cases'][number]} change */
function caseRow({ name, before, after }) {
  const isBad = after?.passed === false || (after?.score ?? 0) < (before?.score ?? 0);
  return h(
    'li',
    null,
    pill(isBad ? 'bad' : 'plain', `${result(before)} → ${result(after)}`),
    h('span', null, h('code', null, revealed(name)), ' ', revealed(after?.reason ?? '')),
  );
}

/** @param {Case | null} one */
function result(one) {
  if (!one) return t('ch.test.missing');
  const verdict = one.passed === null ? null : t(one.passed ? 'ch.test.passed' : 'ch.test.failed');
  return [one.score === null ? null : number(one.score), verdict].filter(Boolean).join(' ') || '–';
}

/** @param {number | null | undefined} value */
function number(value) {
  return value === null || value === undefined
    ? '–'
    : new Intl.NumberFormat(language, { maximumFractionDigits: 4 }).format(value);
}
