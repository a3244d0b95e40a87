// The *History* view: the revisions of a channel or of one prompt, the newest first.

import { read } from '../api.js';
import { loads } from '../app.js';
import { h, put, show } from '../dom.js';
import { t } from '../i18n.js';
import { linkTo } from '../link.js';
import { revealed } from '../text/invisible.js';
import { changePill, channelLinks, kindName, pill, problem, when } from './parts.js';
import { inWords, policyChange } from './policy.js';

const PAGE = 50;
/** Prompts of a revision that are listed. */
const MOST_PROMPTS = 20;

/**
 * @typedef {{ name: string, version: number, change: 'added' | 'changed' | 'removed' }} PromptChange
 * @typedef {import('./policy.js').Policy} Policy
 * @typedef {{ number: number, channel: string, at: string, actor: string, before: Policy | null, after: Policy,
 *   message: string, proposal: number | null, approvedBy: string[], emergency: string | null, byOperator: boolean }} PolicyChange
 * @typedef {{ number: number, kind: 'publish' | 'promote' | 'rollback', author: string, message: string, at: string,
 *   proposal: number, approvedBy: string[], emergency: string | null, policy: Policy | null, prompts: PromptChange[],
 *   checks: { errors: number, warnings: number, tests: { passed: number, failed: number } | null } }} Revision
 */

/** @param {import('../route.js').Place} place @param {AbortSignal} until */
export function view({ name: channel, values }, until) {
  const { prompt } = values;
  const path = `/channels/${encodeURIComponent(channel)}/revisions?limit=${PAGE}`;
  const filter = prompt ? `&prompt=${encodeURIComponent(prompt)}` : '';
  const list = h('ol.revisions', { role: 'list' });
  const rest = h('div');
  let newest = 0;
  /** Changes of the policy that are not listed yet, the newest first. @type {PolicyChange[]} */
  let policies = [];

  /** @param {string | null} before the cursor of the page */
  const load = async (before) => {
    /** @param {string} at */
    const policiesSince = (at) => {
      const newer = policies.filter((change) => change.at >= at);
      policies = policies.slice(newer.length);
      return newer.map(policyEntry);
    };
    try {
      const page = await read(`${path}${filter}${before ? `&cursor=${before}` : ''}`, until);
      if (until.aborted) return;
      if (before === null) {
        const first = page.items[0]?.number ?? 0;
        if (first === newest && newest) return;
        newest = first;
        show(list);
        policies = prompt ? [] : (await read(`/channels/${encodeURIComponent(channel)}/policy/history`, until)).items;
      }
      for (const one of /** @type {Revision[]} */ (page.items)) {
        put(list, policiesSince(one.at), entry(channel, one, newest, prompt));
      }
      if (!page.next) put(list, policiesSince(''));
      const more = h('button', { type: 'button', onclick: () => void load(page.next) }, t('ch.older'));
      show(rest, page.next ? more : newest ? null : h('p.hint', null, t('ch.no-revisions')));
    } catch (error) {
      if (!until.aborted)
        show(
          rest,
          problem(error, () => void load(before)),
        );
    }
  };
  loads.watch(() => void load(null), until);

  const title = prompt ? t('ch.history-of', { name: prompt, channel }) : t('ch.history-of-channel', { channel });
  return h('div.channels', null, [
    channelLinks(channel, 'history'),
    h('h1', { tabindex: '-1' }, revealed(title)),
    prompt ? h('p', null, h('a', { href: linkTo('history', channel) }, t('ch.history-all'))) : null,
    list,
    rest,
  ]);
}

/** @param {string} channel @param {Revision} one @param {number} newest @param {string | undefined} prompt */
function entry(channel, one, newest, prompt) {
  const isNewest = one.number === newest;
  const facts = [
    h('strong', null, revealed(one.author)),
    when(one.at),
    one.approvedBy.length ? h('span', null, revealed(t('ch.approved-by', { names: one.approvedBy.join(', ') }))) : null,
    one.checks.tests ? h('span', null, t('ch.tests-passed', { n: one.checks.tests.passed })) : null,
    one.policy ? h('span', null, revealed(t('ch.published-under', { policy: inWords(one.policy).join(', ') }))) : null,
  ];
  const links = [
    h('a', { href: linkTo('revision', `${channel}/${one.number}`) }, t('ch.open'), label(one)),
    h('a', { href: linkTo('compare', channel, { from: one.number - 1, to: one.number }) }, t('ch.compare'), label(one)),
    h('a', { href: linkTo('proposal', one.proposal) }, t('ch.proposal', { n: String(one.proposal) })),
    isNewest
      ? null
      : h(
          'a',
          { href: linkTo('compare', channel, { rollback: one.number, prompt }) },
          prompt ? t('ch.rollback-prompt') : t('ch.rollback'),
          label(one),
        ),
  ];
  return h('li.revision', null, [
    h(
      'h2',
      null,
      t('channels.revision', { n: String(one.number) }),
      ' ',
      h('span.pills', null, [
        isNewest ? pill('good', t('ch.live')) : null,
        pill('plain', kindName(one.kind)),
        one.emergency ? pill('bad', t('ch.emergency')) : null,
      ]),
    ),
    h('p.message', null, revealed(one.message)),
    one.emergency ? h('p.problem', null, revealed(t('ch.emergency-reason', { reason: one.emergency }))) : null,
    h('p.facts', null, facts),
    promptList(channel, one.prompts),
    h('p.links', null, links),
  ]);
}

/** A change of the policy. @param {PolicyChange} change */
function policyEntry(change) {
  const { actor, at, approvedBy, byOperator, emergency, message, proposal } = change;
  return h('li.revision', null, [
    h(
      'h2',
      null,
      t('ch.policy.changed'),
      ' ',
      h('span.pills', null, emergency ? pill('bad', t('ch.emergency')) : null),
    ),
    message ? h('p.message', null, revealed(message)) : null,
    emergency ? h('p.problem', null, revealed(t('ch.emergency-reason', { reason: emergency }))) : null,
    h('p.facts', null, [
      h('strong', null, revealed(actor)),
      when(at),
      byOperator ? h('span', null, t('ch.policy.by-operator')) : null,
      approvedBy.length ? h('span', null, revealed(t('ch.approved-by', { names: approvedBy.join(', ') }))) : null,
    ]),
    policyChange(change.before, change.after),
    proposal
      ? h('p.links', null, h('a', { href: linkTo('proposal', proposal) }, t('ch.proposal', { n: String(proposal) })))
      : null,
  ]);
}

/** Names the links of revisions for screen readers. @param {Revision} one */
function label(one) {
  return h('span.unseen', null, ` ${t('channels.revision', { n: String(one.number) })}`);
}

/** @param {string} channel @param {PromptChange[]} prompts */
function promptList(channel, prompts) {
  if (!prompts.length) return null;
  const items = prompts
    .slice(0, MOST_PROMPTS)
    .map((one) =>
      h(
        'li',
        null,
        changePill(one.change),
        h('a', { href: linkTo('history', channel, { prompt: one.name }) }, h('code', null, revealed(one.name))),
        one.change === 'removed' ? null : h('span.hint', null, `v${one.version}`),
      ),
    );
  const left = prompts.length - items.length;
  return h('ul.words', null, items, left > 0 ? h('li.hint', null, t('ch.more', { n: left })) : null);
}
