// The *Rollouts* view: which share of the callers is served a new version, what each group measured, and every change.

import { all, api, read } from '../api.js';
import { freshId, h, show } from '../dom.js';
import { t } from '../i18n.js';
import { linkTo } from '../link.js';
import { revealed } from '../text/invisible.js';
import { number, percent } from '../usage/numbers.js';
import { announce } from '../view/announce.js';
import { guarded, keptField, pill, problem, when } from './parts.js';

/** Counts change with every call. Each request is in the audit. */
const INTERVAL = 15_000;

/**
 * @typedef {{ calls: number, errors: number, timed: number, slow: number, forms: number, declined: number }} Group
 * @typedef {{ stable: Group, candidate: Group }} Counts
 * @typedef {{ number: number, kind: 'begin' | 'step' | 'set' | 'pause' | 'resume' | 'stop' | 'finish', automatic: boolean, percent: number,
 *   changedBy: string, reason: string, at: string, counts: Counts }} Change
 * @typedef {'running' | 'paused' | 'stopped' | 'failed' | 'finished'} State
 * @typedef {{ channel: string, to: string, percent: number, state: State, changedBy: string, reason: string,
 *   changedAt: string, revision: number, counts: Counts,
 *   plan: { percent: number, errors: number | null, declined: number | null, latency: number | null } | null,
 *   unappliedSince: string | null,
 *   next: { percent: number, notBefore: string, missingCalls: number } | null, history: Change[] }} Rollout
 * @typedef {{ element: HTMLElement, update: (rollout: Rollout) => void }} Entry
 */

/** Whether every caller is served the channel itself. @param {Rollout} rollout */
function isOver({ state }) {
  return state !== 'running' && state !== 'paused';
}

/** @param {import('../route.js').Place} _ @param {AbortSignal} until */
export function view(_, until) {
  const list = h('div.proposals', null, h('p.waiting', null, t('find.loading')));
  const trouble = h('div');
  /** @type {Map<string, Entry>} */
  const entries = new Map();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  const load = async () => {
    clearTimeout(timer);
    try {
      /** @type {Rollout[]} */
      const rollouts = await all('/rollouts', until);
      if (until.aborted) return;
      const keys = rollouts.map(({ channel, to }) => `${channel} ${to}`);
      // A form that is being filled in stays as it is.
      if (!entries.size || keys.join('\n') !== [...entries.keys()].join('\n')) {
        entries.clear();
        for (const [index, key] of keys.entries())
          entries.set(
            key,
            entry(rollouts[index], () => void load(), until),
          );
        const none = h('p.hint', null, t('ch.rollouts-none'));
        show(list, entries.size ? [...entries.values()].map(({ element }) => element) : none);
      }
      for (const [index, key] of keys.entries()) entries.get(key)?.update(rollouts[index]);
      show(trouble);
    } catch (error) {
      if (until.aborted) return;
      if (!entries.size) show(list);
      show(
        trouble,
        problem(error, () => void load()),
      );
      return;
    }
    again();
  };
  const again = () => {
    clearTimeout(timer);
    if (!until.aborted && !document.hidden) timer = setTimeout(() => void load(), INTERVAL);
  };
  document.addEventListener('visibilitychange', () => again(), { signal: until });
  until.addEventListener('abort', () => clearTimeout(timer));
  void load();
  const beginning = begin(() => void load(), until);
  return h('div.channels', null, [h('h1', { tabindex: '-1' }, t('ch.rollouts')), trouble, list, beginning]);
}

/** The form that begins a rollout. @param {() => void} reload @param {AbortSignal} until */
function begin(reload, until) {
  const [channel, to] = [h('select', { id: freshId('channel') }), h('select', { id: freshId('to') })];
  const share = h('input', { id: freshId('share'), type: 'number', min: '1', max: '100', step: '1', required: true });
  const steps = h('input', { id: freshId('steps'), type: 'text', placeholder: '1h' });
  share.value = '10';
  const words = keptField('rollout', 'reason', t('ch.reason'));
  const trouble = h('div', { role: 'status' });
  const field = (/** @type {HTMLElement} */ input, /** @type {string} */ name) =>
    h('div.field.narrow', null, h('label.label', { for: input.id }, name), input);
  const start = async () => {
    if (!share.reportValidity()) return;
    const message = words.input.value.trim();
    const body = { to: to.value, percent: Number(share.value), steps: steps.value.trim() || 'off' };
    try {
      const path = `/channels/${encodeURIComponent(channel.value)}/rollouts`;
      await api(path, { method: 'POST', body: { ...body, ...(message ? { message } : {}) } });
      words.clear();
      show(trouble);
      announce(t('ch.rollout-done'));
    } catch (error) {
      show(trouble, problem(error));
    }
    reload();
  };
  void (async () => {
    try {
      const channels = await all('/channels', until);
      const options = () =>
        channels.map((/** @type {{ name: string }} */ { name }) => h('option', { value: name }, name));
      show(channel, options());
      show(to, options());
      const other = channels.find((/** @type {{ name: string }} */ { name }) => name !== channel.value);
      if (other) to.value = other.name;
    } catch (error) {
      if (!until.aborted) show(trouble, problem(error));
    }
  })();
  return h('details.part', null, [
    h('summary', null, t('ch.rollout-begin')),
    h('div.part-body', null, [
      field(channel, t('ch.rollout-channel')),
      field(to, t('ch.rollout-to')),
      field(share, t('ch.rollout-percent')),
      field(steps, t('ch.rollout-steps')),
      words.field,
      h(
        'div.actions',
        null,
        h('button.primary', { type: 'button', onclick: () => void start() }, t('ch.rollout-begin')),
      ),
      trouble,
    ]),
  ]);
}

/** @param {Rollout} first @param {() => void} reload @param {AbortSignal} until @returns {Entry} */
function entry(first, reload, until) {
  const { channel, to } = first;
  const figures = h('div.in-words');
  const changes = h('div.in-words');
  const controls = h('div.in-words');
  let seen = '';
  /** @type {import('./parts.js').Permission | undefined} */
  let permission;
  /** @type {Rollout} */
  let present = first;

  const update = (/** @type {Rollout} */ rollout) => {
    const key = JSON.stringify(rollout);
    if (key === seen) return;
    seen = key;
    if (isOver(rollout) && !isOver(present)) announce(t('ch.rollout-stopped'));
    show(figures, figuresOf(rollout));
    if (present === first || present.changedAt !== rollout.changedAt) show(changes, history(rollout));
    const hasOtherState = rollout.state !== present.state;
    present = rollout;
    if (hasOtherState) control();
  };
  const control = () => {
    if (permission)
      show(
        controls,
        form(() => present, permission, reload),
      );
  };
  void (async () => {
    try {
      ({ publish: permission } = await read(`/channels/${encodeURIComponent(channel)}/permissions`, until));
      if (!until.aborted) control();
    } catch (error) {
      if (!until.aborted) show(controls, problem(error));
    }
  })();
  const name = t('ch.rollout-of', { to, channel });
  const element = h('article.proposal', { 'aria-label': name }, [
    h('h2', null, revealed(name)),
    figures,
    controls,
    h('details.part', null, h('summary', null, t('ch.history')), h('div.part-body', null, changes)),
  ]);
  return { element, update };
}

/** The share, the next step and the figures. @param {Rollout} rollout */
function figuresOf(rollout) {
  const over = isOver(rollout);
  const {
    channel,
    to,
    state,
    next,
    unappliedSince,
    changedAt,
    changedBy,
    reason,
    history: [last],
  } = rollout;
  const share = t('ch.rollout-share', { n: rollout.percent });
  return [
    h('p.facts', null, [statePill(rollout), h('strong', null, share)]),
    h('progress.share', { max: 100, value: rollout.percent, 'aria-label': share }),
    over
      ? h(state === 'finished' ? 'p.hint' : 'p.problem', null, [
          h('span', null, revealed(state === 'finished' ? reason : t('ch.rollout-reason', { reason }))),
        ])
      : h('p.hint', null, nextWords(rollout)),
    next && !over ? h('p.hint', null, t('ch.rollout-earliest'), ' ', when(next.notBefore)) : null,
    unappliedSince && !over
      ? h('p.problem', null, h('span', null, t('ch.rollout-unapplied'), ' ', when(unappliedSince)))
      : null,
    h('p.facts', null, [
      h('span', null, t('ch.rollout-last')),
      when(changedAt),
      h('strong', null, last?.automatic ? t('ch.rollout-server') : revealed(changedBy)),
    ]),
    measured(rollout),
    h('p.links', null, [
      h('a', { href: linkTo('compare', channel, { promote: to }) }, t('ch.promote-from', { from: to, to: channel })),
      h('a', { href: linkTo('history', to) }, revealed(t('ch.history-of-channel', { channel: to }))),
    ]),
  ];
}

/** @param {Rollout} rollout */
function statePill({ state, unappliedSince, percent: share }) {
  if (state === 'finished') return pill('good', t('ch.rollout-finished'));
  if (state === 'stopped' || state === 'failed') return pill('bad', t('ch.rollout-stopped'));
  if (unappliedSince) return pill('bad', t('ch.rollout-idle'));
  if (state === 'paused' || share === 0) return pill('plain', t('ch.rollout-paused'));
  return share === 100 ? pill('good', t('ch.rollout-all')) : pill('warn', t('ch.rollout-running'));
}

/** @param {Rollout} rollout */
function nextWords({ next }) {
  if (!next) return t('ch.rollout-by-hand');
  const words = t('ch.rollout-next', { n: next.percent });
  return next.missingCalls ? `${words} ${t('ch.rollout-missing', { n: next.missingCalls })}` : words;
}

/** What both groups measured, and the bounds. @param {Rollout} rollout */
function measured({ counts: { candidate, stable }, plan, revision }) {
  const part = (/** @type {number} */ some, /** @type {number} */ all) =>
    all ? `${percent(some, all)} (${number(some)} / ${number(all)})` : '–';
  const bound = (/** @type {number | null | undefined} */ factor) => (factor ? `${number(factor)}×` : '–');
  const rows = [
    [t('ch.rollout-calls'), number(candidate.calls), number(stable.calls), '–'],
    [
      t('ch.rollout-errors'),
      part(candidate.errors, candidate.calls),
      part(stable.errors, stable.calls),
      bound(plan?.errors),
    ],
    [
      t('ch.rollout-slow'),
      part(candidate.slow, candidate.timed),
      part(stable.slow, stable.timed),
      bound(plan?.latency),
    ],
    [
      t('ch.rollout-declined'),
      part(candidate.declined, candidate.forms),
      part(stable.declined, stable.forms),
      bound(plan?.declined),
    ],
  ];
  const label = t('ch.rollout-measured', { n: String(revision) });
  const heads = [t('ch.rollout-measure'), t('ch.rollout-new'), t('ch.rollout-rest'), t('ch.rollout-bound')];
  return h(
    'div.scroller',
    { tabindex: '0', role: 'group', 'aria-label': label },
    h('table.matrix', null, [
      h('caption.unseen', null, label),
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          heads.map((head) => h('th', { scope: 'col' }, head)),
        ),
      ),
      h(
        'tbody',
        null,
        rows.map(([name, ...cells]) =>
          h(
            'tr',
            null,
            h('th', { scope: 'row' }, name),
            cells.map((cell) => h('td', null, cell)),
          ),
        ),
      ),
    ]),
  );
}

/** @param {() => Rollout} present @param {import('./parts.js').Permission} publish @param {() => void} reload */
function form(present, publish, reload) {
  const { channel, to, state, next, plan, percent: share } = present();
  const over = isOver(present());
  const [id, hint] = [freshId('share'), freshId('hint')];
  const range = { min: '0', max: '100', step: '1', required: true };
  const input = h('input', { id, type: 'number', 'aria-describedby': hint, ...range });
  input.value = String(next?.percent ?? (over ? plan?.percent : null) ?? share);
  const words = keptField(`rollout:${channel}:${to}`, 'reason', t('ch.reason'));
  const trouble = h('div', { role: 'status' });
  /** @param {Record<string, unknown>} body @param {{ method: string, route: string }} [how] */
  const change = async (body, { method, route } = { method: 'PATCH', route: '' }) => {
    try {
      const path = `/channels/${encodeURIComponent(channel)}/rollouts${route}`;
      const message = words.input.value.trim();
      await api(path, { method, body: { to, ...(message ? { message } : {}), ...body } });
      words.clear();
      show(trouble);
      announce(t('ch.rollout-done'));
    } catch (error) {
      show(trouble, problem(error));
    }
    reload();
  };
  const set = () => {
    if (input.reportValidity()) void change({ percent: Number(input.value), seen: present().changedAt });
  };
  if (state === 'finished') return null;
  if (!publish.allowed) return guarded(t('ch.rollout-set'), publish, () => {});
  return [
    h('div.field.narrow', null, [
      h('label.label', { for: id }, t('ch.rollout-percent')),
      h('p.hint', { id: hint }, t('ch.rollout-hint')),
      input,
    ]),
    words.field,
    h('div.actions', null, [
      guarded(t('ch.rollout-set'), publish, set, 'button.primary'),
      state === 'running' ? guarded(t('ch.rollout-pause'), publish, () => void change({ state: 'paused' })) : null,
      state === 'paused' ? guarded(t('ch.rollout-resume'), publish, () => void change({ state: 'running' })) : null,
      over
        ? null
        : guarded(t('ch.rollout-finish'), publish, () => void change({}, { method: 'POST', route: '/finish' })),
      state === 'stopped'
        ? null
        : guarded(t('ch.rollout-stop'), publish, () => void change({ state: 'stopped' }), 'button.danger'),
    ]),
    trouble,
  ];
}

/** @param {Rollout} rollout */
function history({ history: changes }) {
  return h('ol.words', { role: 'list' }, changes.map(changed));
}

/** @param {Change} change */
function changed({ kind, automatic, percent: share, changedBy, reason, at, counts: { candidate, stable } }) {
  const kinds = /** @type {const} */ ({ begin: 'plain', step: 'good', set: 'good', stop: 'bad', finish: 'good' });
  const hasReason = kind === 'stop' || !automatic;
  return h('li', null, [
    pill(
      /** @type {Record<string, 'plain' | 'good' | 'bad'>} */ (kinds)[kind] ?? 'plain',
      t(`ch.rollout-kind.${kind}`),
    ),
    kind === 'stop' || kind === 'finish' ? null : h('b', null, percent(share, 100)),
    when(at),
    h('strong', null, automatic ? t('ch.rollout-server') : revealed(changedBy)),
    hasReason ? h('span', null, revealed(reason)) : null,
    candidate.calls
      ? h(
          'span.recent',
          null,
          t('ch.rollout-figures', {
            failed: number(candidate.errors),
            calls: number(candidate.calls),
            others: number(stable.calls),
            theirs: number(stable.errors),
          }),
        )
      : null,
  ]);
}
