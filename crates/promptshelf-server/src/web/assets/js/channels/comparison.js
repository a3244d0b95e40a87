// A comparison of two states of a channel: words for callers, prompts with renderings, tests, clients, files.

import { api } from '../api.js';
import { h, show } from '../dom.js';
import { language, moreWords, t } from '../i18n.js';
import { revealed } from '../text/invisible.js';
import { lineIcon } from '../view/glyphs.js';
import { quirkWords } from '../view/incompatibilities.js';
import { diffTable } from './diff-table.js';
import { differenceParts } from './difference-words.js';
import { changePill, fill, pill } from './parts.js';
import { renderings } from './renderings.js';

/**
 * @typedef {{ before?: object, after: object }} Sides the sides of a comparison, as the API takes them
 * @typedef {{ path: string, before: string | null, after: string | null }} FileChange with digests
 * @typedef {{ calls: number, affected: number, clients: number }} RecentCalls of the last 30 days
 * @typedef {{ impact: 'breaking' | 'opening' | 'notice', subject: string, name: string, code: string,
 *   values: Record<string, string>, text: string, recent: RecentCalls | null }} Difference
 * @typedef {{ name: string, change: 'added' | 'changed' | 'removed', path: string, through: string[] }} ComparedPrompt
 * @typedef {{ prompt: string, test: string, before: boolean | null, after: boolean | null, reason: string | null }} ComparedTest
 * @typedef {{ channel: string, revision: number | null, source: string | null, sourceRevision: number | null }} SideName
 * @typedef {object} Comparison
 * @property {SideName} before
 * @property {SideName} after
 * @property {FileChange[]} files
 * @property {number} filesTotal
 * @property {Difference[]} differences
 * @property {ComparedPrompt[]} prompts
 * @property {number} promptsTotal
 * @property {ComparedTest[]} tests
 * @property {number} testsRun
 * @property {{ client: string, quirk: string, text: string, prompts: string[] }[]} clients
 * @property {{ errors: number, warnings: number }} summary
 * @property {string[]} findings
 *
 * @typedef {{ before: string | null, after: string | null, isBinary: boolean }} Texts
 * @typedef {(change: FileChange) => Promise<Texts>} Contents
 */

/** Files and prompts that are open at first. */
const OPEN = 5;

/** @param {Sides} sides @param {AbortSignal} until @returns {Promise<Comparison>} */
export async function compared(sides, until) {
  const comparing = api('/compare', { method: 'POST', body: sides, signal: until });
  return (await Promise.all([comparing, moreWords('differences'), moreWords()]))[0].value;
}

/**
 * @param {Comparison} comparison
 * @param {Sides} sides
 * @param {AbortSignal} until
 * @param {{ files: FileChange[], contents: Contents, talk?: (path: string) => import('./diff-table.js').Talk,
 *   about?: (path: string) => import('../dom.js').Child }} options
 */
export function comparisonPanel(comparison, sides, until, { files, contents, talk, about }) {
  const total = Math.max(comparison.filesTotal, files.length);
  return [
    h('h2', null, t('ch.for-callers')),
    inWords(comparison),
    h('div.beside', null, [
      h('section', null, [
        h('h2', null, t('ch.files', { n: total })),
        files.map((change, index) => filePart(change, index < OPEN, until, contents, talk?.(change.path), about)),
        more(total - files.length),
      ]),
      h('section', null, [
        h('h2', null, t('ch.prompts', { n: comparison.promptsTotal })),
        comparison.prompts.length ? null : h('p.hint', null, t('ch.no-prompts')),
        comparison.prompts.map((prompt, index) => promptPart(prompt, index < OPEN, sides, until)),
        more(comparison.promptsTotal - comparison.prompts.length),
      ]),
    ]),
  ];
}

/** @param {number} left */
function more(left) {
  return left > 0 ? h('p.hint', null, t('ch.more', { n: left })) : null;
}

/** The effects of a change for callers, tests and clients. @param {Comparison} comparison */
export function inWords({ differences, tests, testsRun, clients, findings, summary }) {
  const parts = [];
  if (differences.some((one) => one.impact === 'breaking' && one.recent?.affected))
    parts.push(h('p.problem', { role: 'note' }, lineIcon('warn'), t('ch.recent-breaks')));
  if (findings.length) parts.push(findingsPart(findings, summary));
  parts.push(
    differences.length ? h('ul.words', null, differences.map(difference)) : h('p.hint', null, t('ch.same-for-callers')),
  );
  if (clients.length)
    parts.push(
      section(
        t('ch.clients'),
        clients.map(({ client, quirk, text, prompts }) => {
          // Its number is in the server's sentence alone.
          const does = quirk === 'most-arguments' ? text : quirkWords(quirk, 1);
          return item('warn', client, `${does}: ${prompts.join(', ')}`);
        }),
      ),
    );
  parts.push(testsPart(tests, testsRun));
  return h('div.in-words', null, parts);
}

/**
 * The findings of a check, which are errors, failed tests and warnings in this order.
 *
 * @param {string[]} findings
 * @param {{ errors: number, warnings: number, tests?: { failed: number } | null }} summary
 */
export function findingsPart(findings, { errors, warnings, tests }) {
  const bad = errors + (tests?.failed ?? 0);
  const label = (/** @type {number} */ at) =>
    at < errors ? t('ch.check') : at < bad ? t('ch.test.failed') : t('ch.warning');
  return section(
    t('ch.findings', { n: bad + warnings }),
    findings.map((one, at) => item(at < bad ? 'bad' : 'warn', label(at), one)),
  );
}

/** @param {string} title @param {import('../dom.js').Children[]} items */
function section(title, items) {
  return [h('h3', null, title), h('ul.words', null, items)];
}

/** @param {'good' | 'bad' | 'warn' | 'plain'} kind @param {string} label @param {string} text */
function item(kind, label, text) {
  return h('li', null, pill(kind, label), h('span', null, revealed(text)));
}

/** @param {Difference} one */
function difference(one) {
  const { impact, name, recent } = one;
  const kinds = /** @type {const} */ ({ breaking: 'bad', opening: 'warn', notice: 'plain' });
  const label = t(`ch.impact.${impact}`);
  return h(
    'li',
    null,
    pill(kinds[impact] ?? 'plain', label),
    h('span', null, name ? h('code', null, revealed(name)) : t('ch.library'), ': ', differenceParts(one)),
    recent ? h('span.recent', null, recentCalls(recent)) : null,
  );
}

/** @param {RecentCalls} recent */
function recentCalls({ calls, affected, clients }) {
  if (!calls) return t('ch.recent-none');
  return t('ch.recent', { affected: number(affected), calls: number(calls), n: clients });
}

/** @param {number} value */
function number(value) {
  return new Intl.NumberFormat(language).format(value);
}

/** @param {ComparedTest[]} tests @param {number} run */
function testsPart(tests, run) {
  if (!run && !tests.length) return h('p.hint', null, t('ch.no-tests'));
  if (!tests.length) return h('p.hint.fine', null, lineIcon('check'), t('ch.tests-pass', { n: run }));
  const word = (/** @type {boolean | null} */ result) =>
    result === null ? t('ch.test.missing') : result ? t('ch.test.passed') : t('ch.test.failed');
  const rows = tests.map((one) =>
    h(
      'li',
      null,
      pill(one.after === false ? 'bad' : 'good', `${word(one.before)} → ${word(one.after)}`),
      h('span', null, h('code', null, revealed(`${one.prompt} / ${one.test}`)), ' ', revealed(one.reason ?? '')),
    ),
  );
  return section(t('ch.tests', { n: run }), rows);
}

/**
 * A part that loads when it is opened.
 *
 * @param {import('../dom.js').Children} title
 * @param {boolean} isOpen
 * @param {AbortSignal} until
 * @param {() => Promise<import('../dom.js').Children>} load
 */
export function lazyPart(title, isOpen, until, load) {
  const box = h('div.part-body');
  const part = h('details.part', { open: isOpen }, h('summary', null, title), box);
  let isLoaded = false;
  const open = () => {
    if (!part.open || isLoaded) return;
    isLoaded = true;
    void fill(box, until, load);
  };
  part.addEventListener('toggle', open);
  open();
  return part;
}

/**
 * @param {FileChange} change
 * @param {boolean} isOpen
 * @param {AbortSignal} until
 * @param {Contents} contents
 * @param {import('./diff-table.js').Talk} [talk]
 * @param {(path: string) => import('../dom.js').Child} [about]
 */
function filePart(change, isOpen, until, contents, talk, about) {
  const kind = change.before === null ? 'added' : change.after === null ? 'removed' : 'changed';
  const title = [h('code', null, revealed(change.path)), ' ', changePill(kind), about?.(change.path)];
  return lazyPart(title, isOpen, until, async () => {
    const { before, after, isBinary } = await contents(change);
    if (isBinary) return h('p.hint', null, t('ch.binary'));
    return diffTable(t('ch.diff-of', { path: change.path }), before, after, talk);
  });
}

/** @param {ComparedPrompt} prompt @param {boolean} isOpen @param {Sides} sides @param {AbortSignal} until */
function promptPart(prompt, isOpen, sides, until) {
  const title = [h('code', null, revealed(prompt.name)), ' ', changePill(prompt.change)];
  return lazyPart(title, isOpen, until, async () => {
    const through = prompt.through.length
      ? h('p.hint', null, revealed(t('ch.through', { paths: prompt.through.join(', ') })))
      : null;
    const box = h('div');
    show(box, await renderings(prompt.name, sides, until));
    return [through, box];
  });
}
