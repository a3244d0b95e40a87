// The *Proposal* view: the comparison, comments and reviews of a proposal, and everything that can be done with it.

import { ApiProblem, api, read } from '../api.js';
import { h, show } from '../dom.js';
import { t } from '../i18n.js';
import { linkTo } from '../link.js';
import { reasonWords } from '../problem-words.js';
import { revealed } from '../text/invisible.js';
import { announce, note } from '../view/announce.js';
import { lineIcon } from '../view/glyphs.js';
import { compared, comparisonPanel, findingsPart } from './comparison.js';
import { ofProposal } from './contents.js';
import { evaluationsOf, evaluationsPart } from './evaluations.js';
import {
  changedMeanwhile,
  fill,
  guarded,
  keptField,
  kindName,
  pill,
  problem,
  reasonsOf,
  statePill,
  titleOf,
  when,
} from './parts.js';
import { policyChange } from './policy.js';
import { commentsOf, conversation } from './talk.js';
import { lookAgain } from './wanted.js';

/** Changed files that are listed. */
const MOST_FILES = 500;
/** How often the page looks for changes by others. */
const EVERY = 10_000;

/** @param {import('../route.js').Place} place @param {AbortSignal} until */
export function view({ name }, until) {
  const id = /^\d{1,15}$/.test(name) ? Number(name) : 0;
  const head = h('div.proposal-head');
  const notice = h('div');
  const actions = h('section.act');
  const talk = h('section.talk-all');
  const comparison = h('div.comparison');
  const evaluations = h('section');
  const heading = h('h1', { tabindex: '-1' }, t('ch.proposal', { n: String(id) }));
  let shown = { proposal: '', comments: '' };

  const load = async () => {
    const [{ value: proposal, etag }, permissions, comments, results] = await Promise.all([
      api(`/proposals/${id}`, { signal: until }),
      read(`/proposals/${id}/permissions`, until),
      commentsOf(id, until),
      evaluationsOf(id, until),
    ]);
    if (until.aborted) return;
    const hadFocus = element.contains(document.activeElement);
    shown = { proposal: etag, comments: JSON.stringify(comments) };
    show(notice);
    show(head, facts(proposal));
    show(heading, h('span.hint', null, `#${id}`), ' ', revealed(titleOf(proposal)));
    document.title = `${heading.textContent} · promptshelf`;
    const again = () => void reload();
    show(actions, decisions(proposal, etag, permissions, again));
    const { ofFile, whole, count } = conversation(proposal, comments, permissions.comment, again);
    show(talk, whole);
    show(evaluations, evaluationsPart(results));
    if (hadFocus) keepFocus();
    const contents = ofProposal(id, until);
    if (proposal.policy) {
      show(comparison, policyChange(proposal.policy.before, proposal.policy.after));
      return;
    }
    const sides = { after: { proposal: { id } } };
    await fill(comparison, until, async () => {
      const found = await compared(sides, until);
      // The facts above have them.
      if (proposal.findings?.length) found.findings = [];
      const files = proposal.changes.slice(0, MOST_FILES);
      return comparisonPanel(found, sides, until, { files, contents, talk: ofFile, about: count });
    });
    if (hadFocus) keepFocus();
  };
  /** Moves the focus to the heading when its element is gone, so that the keyboard goes on here. */
  const keepFocus = () => {
    if (document.activeElement === document.body) heading.focus({ preventScroll: true });
  };
  const reload = async () => {
    try {
      await load();
    } catch (error) {
      if (!until.aborted)
        show(
          notice,
          problem(error, () => void reload()),
        );
    }
  };

  // Others may change the proposal meanwhile: the page mentions it, and changes nothing under the reader's eyes.
  const look = async () => {
    if (document.hidden || !shown.proposal) return;
    try {
      const [{ etag }, comments] = await Promise.all([
        api(`/proposals/${id}`, { signal: until }),
        commentsOf(id, until),
      ]);
      if (etag === shown.proposal && JSON.stringify(comments) === shown.comments) return;
      if (!notice.hasChildNodes()) {
        announce(t('ch.has-changed'));
        show(
          notice,
          h(
            'p.news',
            null,
            t('ch.has-changed'),
            ' ',
            h('button', { type: 'button', onclick: () => void reload() }, t('ch.show')),
          ),
        );
      }
    } catch {
      // The next look may succeed; the notice of the page reports a lost connection.
    }
  };
  const timer = setInterval(() => void look(), EVERY);
  until.addEventListener('abort', () => clearInterval(timer));
  // At once when the reader returns to this tab.
  document.addEventListener('visibilitychange', () => void look(), { signal: until });

  const element = h('div.channels', null, [
    h('nav.trail', { 'aria-label': t('ch.trail') }, h('a', { href: '#/proposals' }, t('nav.proposals'))),
    heading,
    head,
    notice,
    actions,
    evaluations,
    comparison,
    talk,
  ]);
  void reload();
  return element;
}

/** @param {any} proposal */
function facts(proposal) {
  const warnings = (proposal.warnings ?? []).map(reasonWords);
  const rest = proposal.message.split('\n').slice(1).join('\n').trim();
  const { channel, author, at, kind, state, revision, checks, findings, reviews, digest, lacks, reasons, source } =
    proposal;
  return [
    h('p.facts', null, [
      statePill(state),
      pill('plain', kindName(kind)),
      h('a', { href: linkTo('history', channel) }, revealed(channel)),
      source
        ? h(
            'a',
            { href: linkTo('revision', `${source.channel}/${source.revision}`) },
            revealed(t('ch.revision-of', { n: String(source.revision), channel: source.channel })),
          )
        : null,
      h('strong', null, revealed(author)),
      when(at),
      revision
        ? h(
            'a',
            { href: linkTo('revision', `${channel}/${revision}`) },
            t('channels.revision', { n: String(revision) }),
          )
        : null,
      checks.tests
        ? h('span', null, t('ch.tests-of', { passed: checks.tests.passed, failed: checks.tests.failed }))
        : null,
    ]),
    rest ? h('p.message', null, revealed(rest)) : null,
    reviews.length
      ? h(
          'ul.words',
          { 'aria-label': t('ch.reviews') },
          reviews.map((/** @type {any} */ one) => review(one, digest)),
        )
      : null,
    warnings.map((/** @type {string} */ one) => h('p.problem', null, revealed(one))),
    state === 'open' && lacks.length
      ? h(
          'div.lacks',
          null,
          h('h2', null, t('ch.lacks')),
          h(
            'ul',
            null,
            reasonsOf(reasons, lacks).map((one) => h('li', null, revealed(one))),
          ),
        )
      : null,
    state === 'open' && findings?.length ? findingsPart(findings, checks) : null,
  ];
}

/** @param {any} one @param {string} digest */
function review({ reviewer, verdict, note: words, at, digest: of, lapsed }, digest) {
  const isApproval = verdict === 'approve';
  return h('li', null, [
    pill(isApproval ? 'good' : 'bad', isApproval ? t('ch.approved') : t('ch.rejected')),
    h('strong', null, revealed(reviewer)),
    when(at),
    of === digest ? null : pill('plain', t('ch.outdated')),
    of === digest && lapsed ? pill('plain', t('ch.lapsed')) : null,
    words ? h('span.message', null, revealed(words)) : null,
  ]);
}

/**
 * @param {any} proposal
 * @param {string} etag
 * @param {import('./parts.js').ProposalPermissions} permissions
 * @param {() => void} reload
 */
function decisions(proposal, etag, permissions, reload) {
  if (proposal.state !== 'open') return [];
  const { id, digest } = proposal;
  const owner = `review:${id}`;
  const words = keptField(owner, 'note', t('ch.note'), { hint: t('ch.note-hint') });
  const reason = keptField(owner, 'reason', t('ch.reason'), { hint: t('ch.reason-hint') });
  const outcome = h('div');
  const effects = confirmations(proposal, permissions.caller);
  let isSent = false;
  /** @param {string} path @param {string} method @param {unknown} body @param {string} done */
  const act = async (path, method, body, done) => {
    if (isSent) return;
    isSent = true;
    show(outcome);
    try {
      const { value } = await api(`/proposals/${id}${path}`, { method, body, match: etag });
      words.clear();
      reason.clear();
      const revision = value.proposal?.revision;
      note(revision ? t('ch.done-revision', { n: String(revision) }) : done);
      lookAgain();
      reload();
    } catch (error) {
      const isStale = error instanceof ApiProblem && (error.status === 412 || error.kind === 'stale-review');
      show(outcome, isStale ? changedMeanwhile(reload) : problem(error));
    } finally {
      isSent = false;
    }
  };
  const judge = (/** @type {'approve' | 'reject'} */ verdict) => {
    if (verdict === 'approve' && effects.isMissing()) return;
    const confirmed = verdict === 'approve' ? effects.confirmed() : [];
    void act(
      '/reviews',
      'POST',
      { verdict, digest, note: words.input.value, confirmed },
      t(verdict === 'approve' ? 'ch.approved' : 'ch.rejected'),
    );
  };
  const publish = () => void act('/publish', 'POST', { digest }, t('ch.done-proposal'));
  const withdraw = () => void act('', 'DELETE', undefined, t('ch.state.withdrawn'));
  const pass = () => {
    if (!reason.input.value.trim()) return void reason.input.focus();
    void act('/publish', 'POST', { digest, emergency: reason.input.value }, t('ch.done-proposal'));
  };
  return [
    h('h2', null, t('ch.decide')),
    words.field,
    permissions.approve.allowed ? effects.fields : null,
    h('div.decisions', null, [
      guarded(t('ch.approve'), permissions.approve, () => judge('approve'), 'button.primary'),
      guarded(t('ch.reject'), permissions.reject, () => judge('reject')),
      guarded(t('ch.publish'), permissions.publish, publish),
      guarded(t('ch.withdraw'), permissions.withdraw, withdraw),
    ]),
    h('details.part', null, [
      h('summary', null, t('ch.emergency')),
      h('div.part-body', null, [
        permissions.emergency.allowed ? reason.field : null,
        guarded(t('ch.emergency-publish'), permissions.emergency, pass, 'button.danger'),
      ]),
    ]),
    outcome,
  ];
}

/** The effects that an approval confirms by name. @param {any} proposal @param {string} caller */
function confirmations(proposal, caller) {
  /** @type {import('../problem-words.js').Reason[]} */
  const reasons = proposal.reasons ?? [];
  const boxes = reasons.flatMap(({ code, values }) => {
    if ((code !== 'opening' && code !== 'breaking') || !values?.name) return [];
    // An author leaves an opening to others, unless the server lets them confirm it.
    const isRequired = code === 'breaking' || proposal.author !== caller;
    const input = h('input', { type: 'checkbox', value: values.name });
    return [{ input, isRequired, effect: values.effect ?? '' }];
  });
  const problem = h('p.problem', { role: 'alert', hidden: true });
  const fields = boxes.length
    ? h('fieldset.confirmations', null, [
        h('legend', null, t('ch.confirm-first')),
        boxes.map(({ input, effect }) => h('label.choice', null, input, ' ', revealed(t('ch.confirm', { effect })))),
        problem,
      ])
    : null;
  /** Whether a box is empty that must not be; the page says so. */
  const isMissing = () => {
    const empty = boxes.find(({ input, isRequired }) => isRequired && !input.checked);
    problem.hidden = !empty;
    show(problem, empty ? [lineIcon('warn'), t('ch.confirm-missing')] : null);
    empty?.input.focus();
    return empty !== undefined;
  };
  const confirmed = () => boxes.filter(({ input }) => input.checked).map(({ input }) => input.value);
  return { fields, isMissing, confirmed };
}
