// The *Library* view: diagnostics with their source lines, and incompatibilities of known clients.

import { ask, features, health, loads } from '../app.js';
import { h, show } from '../dom.js';
import { t } from '../i18n.js';
import { linkTo } from '../link.js';
import { SignInNeeded } from '../mcp/client.js';
import { inline } from '../text/inline.js';
import { revealed } from '../text/invisible.js';
import { announce } from './announce.js';
import { lineIcon } from './glyphs.js';
import { incompatibilities } from './incompatibilities.js';

/**
 * @typedef {{ number: number, text: string, mark: [number, number] | null }} Line
 * @typedef {{ path: string, line: number, column: number, lines: Line[] }} Spot
 * @typedef {Spot & { code: string, severity: 'error' | 'warning', message: string, help: string | null,
 *   related: (Spot & { label: string })[] }} Diagnostic
 */

/** @param {import('../route.js').Place} _ @param {AbortSignal} until */
export function view(_, until) {
  const summary = h('p.lead');
  const list = h('div.diagnostics');
  const clients = h('div.incompatibilities');
  let announced = '';

  const refresh = async () => {
    let answer;
    try {
      answer = await ask('diagnostics', until);
    } catch (error) {
      if (until.aborted) return;
      if (error instanceof SignInNeeded && error.isStepUp) return stepUp(error);
      // The previous content stays until newer content has arrived.
      if (announced) return;
    }
    if (until.aborted) return;
    if (!answer) return show(summary, t('diagnostics.unknown'));
    if (answer.withheld) return show(summary, t('diagnostics.withheld'));
    /** @type {Diagnostic[]} */
    const diagnostics = answer.diagnostics;
    const errors = diagnostics.filter((one) => one.severity === 'error').length;
    health.set({ errors, warnings: answer.total - errors });
    // Loads that find nothing changed are not counted.
    const loaded = answer.catalogs;
    const text = answer.total === 0 ? t('diagnostics.fine') : t('diagnostics.found', { n: answer.total });
    show(summary, text, ' ', h('span.hint', null, t('diagnostics.loads', { n: loaded })));
    if (announced && announced !== text) announce(text);
    announced = text;
    const left = answer.total - diagnostics.length;
    show(
      list,
      answer.failure ? h('p.problem', null, lineIcon('warn'), revealed(answer.failure)) : null,
      diagnostics.map(card),
      left ? h('p.hint', null, t('diagnostics.more', { n: left })) : null,
    );
  };

  /** @param {SignInNeeded} error */
  const stepUp = async ({ challenge }) => {
    const { toSignIn } = await import('./sign-in.js');
    const more = h('button', { type: 'button', onclick: () => void toSignIn(challenge) }, t('sign-in.ask-more'));
    show(summary, t('diagnostics.withheld'));
    show(
      list,
      h('p.problem', null, lineIcon('warn'), t('sign-in.step-up', { scopes: challenge.scopes.join(' ') })),
      more,
    );
  };

  const compare = async () => {
    const rows = await incompatibilities(until);
    if (until.aborted) return;
    // Keeps opened details open across updates.
    const open = [...clients.querySelectorAll('details[open] > summary')].map((one) => one.textContent);
    show(clients, rows.length ? rows : h('p.hint', null, t('diagnostics.portable')));
    for (const one of clients.querySelectorAll('details')) {
      one.open = open.includes(one.querySelector('summary')?.textContent ?? null);
    }
  };

  loads.watch(() => {
    void refresh();
    void compare();
  }, until);

  return h('div.care', null, [
    h('h1', { tabindex: '-1' }, t('diagnostics.heading')),
    summary,
    list,
    h('h2', null, t('diagnostics.clients')),
    h('p.hint', null, t('diagnostics.clients-about')),
    clients,
  ]);
}

/** @param {Diagnostic} one */
function card(one) {
  const isError = one.severity === 'error';
  return h(`article.diagnostic.${one.severity}`, null, [
    h(
      'h2',
      null,
      h('span.severity', null, isError ? t('diagnostics.error') : t('diagnostics.warning')),
      ' ',
      ...inline(one.message),
    ),
    h(
      'p.where',
      null,
      edited(one.path, h('code', null, `${one.path}:${one.line}:${one.column}`)),
      h('code.code', null, one.code),
    ),
    source(one),
    one.help ? h('p.help', null, h('strong', null, t('diagnostics.help')), ' ', ...inline(one.help)) : null,
    one.related.map((other) =>
      h(
        'div.related',
        null,
        h('p.where', null, h('code', null, `${other.path}:${other.line}`), ' ', revealed(other.label)),
        source(other),
      ),
    ),
  ]);
}

/** @param {Spot} spot */
function source({ path, lines }) {
  if (!lines.length) return null;
  const rows = lines.map(({ number, text, mark }) => {
    const [from, to] = mark ?? [0, 0];
    const marked =
      mark && to > from
        ? [revealed(text.slice(0, from)), h('mark', null, revealed(text.slice(from, to))), revealed(text.slice(to))]
        : revealed(text);
    return h(
      mark ? 'span.line.hit' : 'span.line',
      null,
      h('span.number', { 'aria-hidden': 'true' }, String(number)),
      h('span', null, marked),
      '\n',
    );
  });
  return h('pre.source', { tabindex: '0', role: 'group', 'aria-label': t('diagnostics.source', { path }) }, rows);
}

/** A link to the editor around a place, where files can be edited. @param {string} path @param {HTMLElement} place */
function edited(path, place) {
  // A diagnostic of the whole folder has no file.
  return features.value.edit && path.includes('.md') ? h('a', { href: linkTo('edit', path) }, place) : place;
}
