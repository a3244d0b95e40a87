// The *Usage* view: who uses which prompts, by day, client and version; errors; unused and deprecated prompts.

import { ApiProblem, read } from '../api.js';
import { loads } from '../app.js';
import { freshId, h, show } from '../dom.js';
import { t } from '../i18n.js';
import { linkTo } from '../link.js';
import { SignInNeeded } from '../mcp/client.js';
import { go, promptLink } from '../route.js';
import { revealed } from '../text/invisible.js';
import { announce } from '../view/announce.js';
import { lineIcon } from '../view/glyphs.js';
import { callsChart, latencyChart, shareBar } from './charts.js';
import { wholeDays } from './days.js';
import { millis, number, percent } from './numbers.js';

/**
 * @typedef {{ name: string, calls: number, failed: number, callers: number | null, p50Ms: number, p95Ms: number,
 *   p99Ms: number }} Group
 * @typedef {{ day: string, calls: number, failed: number, p50Ms: number, p95Ms: number }} Day
 * @typedef {object} Overview
 * @property {string | null} since
 * @property {Group} total
 * @property {Day[]} days
 * @property {Group[]} clients
 * @property {Group[]} prompts
 * @property {Group[]} sources
 * @property {Group[]} versions
 * @property {Group[]} outcomes
 * @property {string[]} unused
 * @property {number} unusedTotal
 * @property {{ name: string, calls: number, clients: number, replacement: string | null }[]} deprecated
 */

/** The periods to choose from, in days. */
const PERIODS = [7, 30, 90];

/** @param {import('../route.js').Place} place @param {AbortSignal} until */
export function view({ name, values }, until) {
  const days = PERIODS.find((one) => String(one) === values.days) ?? 30;
  const body = h('div.usage-body', null, h('p.waiting', null, t('find.loading')));
  let shown = '';

  const load = async () => {
    const query = new URLSearchParams({ since: `${days}d`, ...(name ? { prompt: name } : {}) });
    try {
      /** @type {Overview} */
      const overview = await read(`/usage/overview?${query}`, until);
      const key = JSON.stringify(overview);
      if (until.aborted || key === shown) return;
      if (shown) announce(t('usage.updated'));
      shown = key;
      show(body, overview.total.calls ? drawn(overview, name, days) : h('p.lead', null, t('usage.none')));
      if (!overview.total.calls && !name) body.append(h('div.usage-lists', null, attention(overview)));
    } catch (error) {
      if (until.aborted) return;
      show(
        body,
        trouble(error, () => void load()),
      );
    }
  };
  loads.watch(() => void load(), until);

  return h('div.usage', null, [
    name ? h('a.back', { href: linkTo('usage', '', { days: values.days }) }, lineIcon('back'), t('usage.all')) : null,
    h('h1', { tabindex: '-1' }, name ? revealed(t('usage.of', { name })) : t('nav.usage')),
    periods(name, days),
    body,
  ]);
}

/** @param {string} name @param {number} days */
function periods(name, days) {
  const id = freshId('period');
  const choose = (/** @type {Event} */ event) => {
    const { value } = /** @type {HTMLSelectElement} */ (event.target);
    go(linkTo('usage', name, { days: value }));
  };
  const options = PERIODS.map((one) =>
    h('option', { value: String(one), selected: one === days }, t('usage.days', { n: one })),
  );
  return h(
    'div.field.narrow',
    null,
    h('label.label', { for: id }, t('usage.period')),
    h('select', { id, onchange: choose }, options),
  );
}

/** @param {Overview} overview @param {string} name @param {number} period */
function drawn(overview, name, period) {
  const { total, clients, prompts, sources, versions, outcomes } = overview;
  const days = wholeDays(overview.days, overview.since, period);
  const failures = outcomes.filter((one) => one.failed > 0);
  return [
    h('dl.usage-facts', null, [
      fact(t('usage.calls'), number(total.calls)),
      fact(t('usage.failed'), percent(total.failed, total.calls)),
      fact(t('usage.callers'), total.callers === null ? t('usage.few') : number(total.callers)),
      fact(t('usage.latency'), `${millis(total.p50Ms)} / ${millis(total.p95Ms)}`),
    ]),
    h('section', null, [
      h('h2', null, t('usage.trend')),
      callsChart(days),
      legend([
        ['calls', t('usage.calls')],
        ['failed', t('usage.failed')],
      ]),
      h('h2', null, t('usage.latency-trend')),
      latencyChart(days),
      legend([
        ['p50', t('usage.p50')],
        ['p95', t('usage.p95')],
      ]),
      asTable(t('usage.trend'), days),
    ]),
    h('div.usage-lists', null, [
      list(t('usage.by-client'), t('usage.client'), clients),
      name
        ? list(t('usage.by-version'), t('usage.version'), versions)
        : list(t('usage.by-prompt'), t('usage.prompt'), prompts, (one) =>
            h('a', { href: linkTo('usage', one, { days: String(period) }) }, revealed(one)),
          ),
      name ? null : list(t('usage.by-source'), t('usage.source'), sources),
      list(t('usage.errors'), t('usage.outcome'), failures) ??
        section(t('usage.errors'), h('p.hint', null, t('usage.no-errors'))),
      name ? null : attention(overview),
    ]),
  ];
}

/** Prompts that are not used, and deprecated ones that are. @param {Overview} overview */
function attention({ deprecated, unused, unusedTotal }) {
  const prompt = (/** @type {string} */ name) => h('a', { href: promptLink(name) }, revealed(name));
  const old = deprecated.map((one) =>
    h('li', null, [
      prompt(one.name),
      h('span.hint', null, t('usage.deprecated-calls', { n: one.calls, clients: one.clients })),
      one.replacement ? h('span', null, t('prompt.use-instead'), ' ', prompt(one.replacement)) : null,
    ]),
  );
  const left = unusedTotal - unused.length;
  return [
    section(
      t('usage.deprecated'),
      old.length ? h('ul.usage-names', null, old) : h('p.hint', null, t('usage.no-deprecated')),
    ),
    section(t('usage.unused'), [
      unused.length
        ? h(
            'ul.usage-names',
            null,
            unused.map((name) => h('li', null, prompt(name))),
          )
        : h('p.hint', null, t('usage.no-unused')),
      left > 0 ? h('p.hint', null, t('usage.more', { n: left })) : null,
    ]),
  ];
}

/** @param {string} title @param {import('../dom.js').Children} content */
function section(title, content) {
  return h('section', null, h('h2', null, title), content);
}

/** @param {string} label @param {string} value */
function fact(label, value) {
  return h('div', null, h('dt', null, label), h('dd', null, value));
}

/** The meaning of the marks of a chart. @param {string[][]} keys class and name */
function legend(keys) {
  return h(
    'p.legend',
    null,
    keys.map(([kind, name]) => h(`span.key.${kind}`, null, name)),
  );
}

/** The days of a chart as a table. @param {string} title @param {Day[]} days */
function asTable(title, days) {
  const heads = [t('usage.day'), t('usage.calls'), t('usage.failed'), t('usage.p50'), t('usage.p95')];
  const rows = days.map((one) => [
    h('th', { scope: 'row' }, one.day),
    [number(one.calls), number(one.failed), millis(one.p50Ms), millis(one.p95Ms)].map((text) => h('td', null, text)),
  ]);
  return h('details.part', null, h('summary', null, t('usage.as-table')), table(title, heads, rows));
}

/**
 * A table of groups with bars for their shares; nothing without groups.
 *
 * @param {string} title
 * @param {string} head the heading of the names
 * @param {Group[]} groups
 * @param {(name: string) => import('../dom.js').Children} [link]
 */
function list(title, head, groups, link = (name) => revealed(name)) {
  if (!groups.length) return null;
  const heads = [head, t('usage.calls'), t('usage.failed'), t('usage.callers'), t('usage.p95')];
  const most = Math.max(...groups.map((one) => one.calls));
  const rows = groups.map((one) => [
    h('th', { scope: 'row' }, link(one.name)),
    h('td', null, shareBar(one.calls, one.failed, most), h('span', null, number(one.calls))),
    h('td', null, one.failed ? percent(one.failed, one.calls) : '–'),
    h('td', null, one.callers === null ? t('usage.few') : number(one.callers)),
    h('td', null, millis(one.p95Ms)),
  ]);
  return section(title, table(title, heads, rows));
}

/** @param {string} label @param {string[]} heads @param {import('../dom.js').Children[]} rows */
function table(label, heads, rows) {
  return h(
    'div.usage-table',
    { tabindex: '0', role: 'group', 'aria-label': label },
    h('table', null, [
      h('caption.unseen', null, label),
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          heads.map((text) => h('th', { scope: 'col' }, text)),
        ),
      ),
      h(
        'tbody',
        null,
        rows.map((cells) => h('tr', null, cells)),
      ),
    ]),
  );
}

/** @param {unknown} error @param {() => void} again */
function trouble(error, again) {
  const retry = h('button', { type: 'button', onclick: again }, t('connection.again'));
  let text = t('connection.lost');
  if (error instanceof SignInNeeded) {
    const { scopes } = error.challenge;
    text = error.isStepUp && scopes.length ? t('sign-in.step-up', { scopes: scopes.join(' ') }) : t('sign-in.needed');
  } else if (error instanceof ApiProblem) {
    text = error.message;
  } else {
    console.warn(error);
  }
  return h('div', { role: 'alert' }, h('p.problem', null, lineIcon('warn'), h('span', null, revealed(text))), retry);
}
