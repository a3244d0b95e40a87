// Preview of a prompt's messages as a conversation.

import { h, show } from '../dom.js';
import { t } from '../i18n.js';
import { asMarkdown } from '../preferences.js';
import { countHidden, revealed } from '../text/invisible.js';
import { tokens } from '../text/measure.js';
import { words } from '../use/formats.js';
import { drawBlock } from './block.js';
import { lineIcon } from './glyphs.js';

/** @typedef {import('../mcp/types.js').Message} Message */

/** @param {AbortSignal} until @param {HTMLElement | null} [aside] a further control of the heading */
export function preview(until, aside = null) {
  const facts = h('p.facts');
  const body = h('div.messages');
  /** @type {Message[]} */
  let messages = [];
  /** @type {Message[] | null} */
  let before = null;
  /** @type {HTMLInputElement} */
  const raw = h('input', { type: 'checkbox', onchange: () => asMarkdown.keep(!raw.checked) });
  const choice = h('label.switch', null, raw, h('span', null, t('preview.raw')));
  const heading = h('h2', null, t('preview.label'));
  const head = h('div.preview-head', null, heading, facts, aside, choice);
  const old = h('p.problem', { hidden: true, role: 'status' });
  const element = h('section.preview', { 'aria-label': t('preview.label'), 'aria-busy': 'false' }, head, old, body);

  const draw = () => {
    /** @type {HTMLElement[]} */
    const turns = [];
    let speaker = '';
    messages.forEach((message, index) => {
      const old = before?.[index];
      const isChanged = before !== null && JSON.stringify(old) !== JSON.stringify(message);
      const made = drawBlock(message.content, asMarkdown.value, isChanged && old ? old.content : null);
      if (isChanged) {
        made.classList.add('touched');
        made.prepend(h('span.badge', null, old ? t('preview.changed') : t('preview.new')));
      }
      if (message.role !== speaker) {
        speaker = message.role;
        const name = speaker === 'user' ? t('role.user') : speaker === 'assistant' ? t('role.assistant') : speaker;
        turns.push(
          h(
            'article.turn',
            { class: `turn ${speaker === 'assistant' ? 'assistant' : 'user'}` },
            h('h3.speaker', null, name),
          ),
        );
      }
      turns[turns.length - 1].append(made);
    });
    show(body, turns);
  };

  /** @param {boolean} isQuestion */
  const headed = (isQuestion) => {
    show(heading, isQuestion ? t('guide.heading') : t('preview.label'));
    choice.hidden = isQuestion;
  };

  const measure = () => {
    const whole = messages.map((message) => words(message.content)).join('\n');
    const hidden = countHidden(JSON.stringify(messages).includes('\\u') || /[^\x20-\x7e\n]/.test(whole) ? whole : '');
    show(
      facts,
      h('span', null, t('preview.messages', { n: messages.length })),
      h('span', { title: t('preview.tokens-about') }, t('block.tokens', { n: tokens(whole) })),
      hidden ? h('span.warned', null, lineIcon('warn'), t('preview.hidden', { n: hidden })) : null,
    );
  };

  asMarkdown.watch((value) => {
    raw.checked = !value;
    if (messages.length) draw();
  }, until);

  return {
    element,
    /** @param {boolean} isBusy */
    busy(isBusy) {
      element.setAttribute('aria-busy', String(isBusy));
    },
    /** Marks the messages as those of an earlier text. @param {string} why empty if they are current */
    outdated(why) {
      old.hidden = !why;
      show(old, why ? [lineIcon('warn'), why] : null);
      body.classList.toggle('outdated', Boolean(why));
    },
    /**
     * @param {Message[]} next
     * @param {boolean} isReload whether the library changed, as opposed to the form
     */
    set(next, isReload) {
      const isSame = JSON.stringify(next) === JSON.stringify(messages);
      // Drawn already, without marks.
      if (isSame && next.length && !isReload && before === null) return;
      before = isReload && !isSame ? messages : isReload ? before : null;
      messages = next;
      headed(false);
      measure();
      draw();
    },
    /**
     * Shows a text instead of messages.
     *
     * @param {string} text
     * @param {'hint' | 'problem'} kind
     * @param {HTMLElement} [way] what to do about it
     */
    tell(text, kind, way) {
      messages = [];
      before = null;
      headed(false);
      show(facts);
      show(
        body,
        h(
          `p.${kind === 'hint' ? 'waiting' : 'problem'}`,
          null,
          kind === 'problem' ? lineIcon('warn') : null,
          revealed(text),
        ),
        way,
      );
    },
    /** Shows an element instead of messages. @param {HTMLElement} other */
    instead(other) {
      messages = [];
      before = null;
      headed(true);
      show(facts);
      show(body, other);
    },
  };
}
