// The *Compare* view: two revisions, or the plan of a rollback or a promotion, which is carried out from here.

import { ApiProblem, api, read } from '../api.js';
import { h, show } from '../dom.js';
import { t } from '../i18n.js';
import { linkTo } from '../link.js';
import { go } from '../route.js';
import { revealed } from '../text/invisible.js';
import { note } from '../view/announce.js';
import { compared, comparisonPanel } from './comparison.js';
import { ofRevisions } from './contents.js';
import { channelLinks, fill, guarded, keptField, problem, whyNot } from './parts.js';

/** Prompts of a promotion that can be chosen; the rest comes with all of them. */
const MOST_CHOICES = 300;

/**
 * @typedef {object} Plan a rollback or a promotion
 * @property {'rollback' | 'promote'} operation
 * @property {Record<string, unknown>} body
 * @property {import('./comparison.js').Sides} sides
 */

/** @param {import('../route.js').Place} place @param {AbortSignal} until */
export function view({ name: channel, values }, until) {
  const body = h('div.comparison');
  const heading = h('h1', { tabindex: '-1' }, revealed(title(channel, values)));
  if (values.promote) void fill(body, until, () => promotion(channel, values.promote, until));
  else if (values.rollback) void fill(body, until, () => rollback(channel, values, until));
  else void fill(body, until, () => revisions(channel, values, until));
  return h('div.channels', null, [channelLinks(channel, ''), heading, body]);
}

/** @param {string} channel @param {Record<string, string>} values */
function title(channel, values) {
  if (values.promote) return t('ch.promote-to', { from: values.promote, to: channel });
  if (values.rollback && values.prompt)
    return t('ch.rollback-prompt-to', { prompt: values.prompt, n: values.rollback });
  if (values.rollback) return t('ch.rollback-to', { channel, n: values.rollback });
  const right = values.to ? `${values.toChannel ?? channel}@${values.to}` : (values.toChannel ?? channel);
  const left = values.from === undefined ? '' : `${channel}@${values.from}`;
  return t('ch.compare-of', { left: left || t('ch.previous'), right });
}

/** @param {string | undefined} text */
function number(text) {
  return text && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** @param {string} channel @param {Record<string, string>} values @param {AbortSignal} until */
async function revisions(channel, values, until) {
  const from = number(values.from);
  const sides = {
    ...(from === undefined ? {} : { before: { channel, revision: from } }),
    after: { revision: { channel: values.toChannel ?? channel, revision: number(values.to) } },
  };
  return panel(sides, until);
}

/** @param {import('./comparison.js').Sides} sides @param {AbortSignal} until */
async function panel(sides, until) {
  const comparison = await compared(sides, until);
  if (!comparison.filesTotal) return h('p.lead', null, t('ch.equal'));
  return comparisonPanel(comparison, sides, until, {
    files: comparison.files,
    contents: ofRevisions(comparison, until),
  });
}

/** @param {string} channel @param {Record<string, string>} values @param {AbortSignal} until */
async function rollback(channel, values, until) {
  const to = number(values.rollback) ?? 0;
  const prompt = values.prompt || undefined;
  const revision = await read(`/channels/${encodeURIComponent(channel)}/revisions/${to}`, until);
  const plan = {
    operation: /** @type {const} */ ('rollback'),
    body: { to, prompt },
    sides: { after: { rollback: { channel, to, prompt } } },
  };
  return [
    h('p.lead', null, revealed(t('ch.rollback-about', { author: revision.author, message: revision.message }))),
    await planned(channel, plan, until),
  ];
}

/** @param {string} channel @param {string} from @param {AbortSignal} until */
async function promotion(channel, from, until) {
  const target = await read(`/channels/${encodeURIComponent(channel)}`, until);
  const query = `from=${target.head.revision}&toChannel=${encodeURIComponent(from)}&limit=1`;
  const diff = await read(`/channels/${encodeURIComponent(channel)}/diff?${query}`, until);
  /** @type {{ name: string, from: number | null, to: number | null }[]} */
  const differing = diff.prompts;
  /** @type {Set<string>} */
  const chosen = new Set();
  const outcome = h('div');
  const equal = /** @type {HTMLInputElement} */ (h('input', { type: 'checkbox', onchange: () => redraw() }));
  let round = new AbortController();
  const redraw = () => {
    round.abort();
    round = new AbortController();
    const signal = AbortSignal.any([round.signal, until]);
    const prompts = [...chosen];
    const plan = {
      operation: /** @type {const} */ ('promote'),
      body: { from, prompts, all: equal.checked },
      sides: { after: { promote: { from, to: channel, prompts, all: equal.checked } } },
    };
    show(outcome);
    void fill(outcome, signal, () => planned(channel, plan, signal));
  };
  // A prompt that the source no longer has comes only with everything.
  const choices = differing.filter((one) => one.to !== null).slice(0, MOST_CHOICES);
  const boxes = choices.map((one) => {
    /** @param {Event} event */
    const onchange = (event) => {
      if (/** @type {HTMLInputElement} */ (event.target).checked) chosen.add(one.name);
      else chosen.delete(one.name);
      redraw();
    };
    const versions = `${one.from === null ? '–' : `v${one.from}`} → v${one.to}`;
    return h(
      'label.choice',
      null,
      h('input', { type: 'checkbox', onchange }),
      h('code', null, revealed(one.name)),
      h('span.hint', null, versions),
    );
  });
  redraw();
  return [
    boxes.length
      ? h(
          'fieldset.choices',
          null,
          h('legend.label', null, t('ch.choose-prompts')),
          h('p.hint', null, t('ch.choose-none')),
          boxes,
        )
      : null,
    h('label.choice', null, equal, h('span', null, revealed(t('ch.equal-to', { from, to: channel })))),
    outcome,
  ];
}

/** Shows the effect of a plan, with the button that carries it out. @param {string} channel @param {Plan} plan @param {AbortSignal} until */
async function planned(channel, plan, until) {
  const path = `/channels/${encodeURIComponent(channel)}`;
  // The version of the channel that the comparison shows: another one refuses the plan.
  const { etag } = await api(path, { signal: until });
  const [shown, permissions] = await Promise.all([panel(plan.sides, until), read(`${path}/permissions`, until)]);
  const message = keptField(`plan:${channel}`, 'message', t('ch.message'), { hint: t('ch.message-hint') });
  const outcome = h('div');
  let isSent = false;
  const carryOut = async () => {
    if (isSent) return;
    isSent = true;
    try {
      const body = { ...plan.body, message: message.input.value };
      const { value } = await api(`${path}/${plan.operation}`, { method: 'POST', body, match: etag });
      message.clear();
      const { proposal } = value;
      note(
        proposal.state === 'published'
          ? t('ch.done-revision', { n: String(proposal.revision) })
          : t('ch.done-proposal'),
      );
      go(proposal.state === 'published' ? linkTo('history', channel) : linkTo('proposal', proposal.id));
    } catch (error) {
      isSent = false;
      const isStale = error instanceof ApiProblem && error.status === 412;
      show(outcome, isStale ? h('p.problem', { role: 'alert' }, t('ch.channel-changed')) : problem(error));
    }
  };
  const label = plan.operation === 'rollback' ? t('ch.rollback') : t('ch.promote');
  return [
    h('section.act', null, [
      message.field,
      guarded(label, permissions.propose, () => void carryOut(), 'button.primary'),
      permissions.propose.allowed && !permissions.publish.allowed
        ? h('p.hint', null, revealed(t('ch.becomes-proposal', { reason: whyNot(permissions.publish) })))
        : null,
      outcome,
    ]),
    shown,
  ];
}
