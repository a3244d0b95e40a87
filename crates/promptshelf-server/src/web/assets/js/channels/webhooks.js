// The *Webhooks* view: the receivers of events, and the events that were given up.

import { all, api } from '../api.js';
import { h, show } from '../dom.js';
import { t } from '../i18n.js';
import { revealed } from '../text/invisible.js';
import { announce } from '../view/announce.js';
import { fill, pill, problem, when } from './parts.js';

/**
 * @typedef {{ id: string, label: string, events: string[], pending: number, dead: number }} Webhook
 * @typedef {{ id: number, label: string, channel: string, event: string, attempts: number, problem: string, at: string }} Letter
 */

/** @param {import('../route.js').Place} _ @param {AbortSignal} until */
export function view(_, until) {
  const receivers = h('div');
  const letters = h('div');
  const load = () =>
    fill(receivers, until, async () => {
      const [webhooks, deadLetters] = await Promise.all([
        all('/webhooks', until),
        all('/webhooks/dead-letters', until),
      ]);
      if (!until.aborted)
        show(
          letters,
          letterList(deadLetters, () => void load()),
        );
      return webhooks.length ? h('ul.proposals', { role: 'list' }, webhooks.map(receiver)) : note('ch.webhooks-none');
    });
  void load();
  return h('div.channels', null, [h('h1', { tabindex: '-1' }, t('ch.webhooks')), receivers, letters]);
}

/** @param {'ch.webhooks-none' | 'ch.dead-none'} key */
function note(key) {
  return h('p.hint', null, t(key));
}

/** @param {Webhook} webhook */
function receiver({ label, events, pending, dead }) {
  return h('li.proposal', null, [
    h('h2', null, revealed(label)),
    h('p.facts', null, [
      events.map((event) => pill('plain', event)),
      h('span', null, t('ch.webhook-pending', { n: pending })),
      dead ? pill('bad', t('ch.webhook-dead', { n: dead })) : null,
    ]),
  ]);
}

/** @param {Letter[]} letters @param {() => void} changed */
function letterList(letters, changed) {
  const heading = h('h2', null, t('ch.dead'));
  if (!letters.length) return [heading, note('ch.dead-none')];
  return [
    heading,
    h(
      'ol.proposals',
      { role: 'list' },
      letters.map((letter) => entry(letter, changed)),
    ),
  ];
}

/** @param {Letter} letter @param {() => void} changed */
function entry({ id, label, channel, event, attempts, problem: reason, at }, changed) {
  const trouble = h('div');
  const name = t('ch.send-again');
  const again = async () => {
    try {
      await api(`/webhooks/dead-letters/${id}/redelivery`, { method: 'POST' });
      announce(t('ch.queued-again'));
      changed();
    } catch (error) {
      show(trouble, problem(error));
    }
  };
  return h('li.proposal', null, [
    h('h3', null, h('span.hint', null, `#${id}`), ' ', event, ' → ', revealed(label)),
    h('p.facts', null, [
      h('span', null, revealed(channel)),
      when(at),
      h('span', null, t('ch.attempts', { n: attempts })),
    ]),
    h('p.hint', null, revealed(reason)),
    h(
      'div.action',
      null,
      h('button', { type: 'button', onclick: () => void again() }, name, h('span.unseen', null, ` #${id}`)),
    ),
    trouble,
  ]);
}
