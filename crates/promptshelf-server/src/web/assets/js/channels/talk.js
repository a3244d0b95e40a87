// Comments on a proposal: on the whole, on files, and at lines.

import { ApiProblem, all, api } from '../api.js';
import { h, show } from '../dom.js';
import { t } from '../i18n.js';
import { revealed } from '../text/invisible.js';
import { announce } from '../view/announce.js';
import { changedMeanwhile, keptField, pill, problem, when } from './parts.js';

/**
 * @typedef {import('./diff-table.js').Line} Line
 * @typedef {{ id: number, author: string, text: string, digest: string, path: string | null, line: Line | null, at: string }} Comment
 * @typedef {{ id: number, digest: string, state: string }} Proposal
 */

/** The comment that this page has just sent: it gets the focus. */
let fresh = 0;

/**
 * @param {Proposal} proposal
 * @param {Comment[]} comments
 * @param {{ allowed: boolean }} permission
 * @param {() => void} changed called after a new comment, and to show a proposal that others have changed
 */
export function conversation(proposal, comments, permission, changed) {
  /** @param {Comment} comment */
  const isPresent = (comment) => comment.digest === proposal.digest;
  const at = (/** @type {string} */ path, /** @type {Line} */ line) =>
    comments.filter(
      (one) => isPresent(one) && one.path === path && one.line?.side === line.side && one.line.number === line.number,
    );

  /** @param {string} path @returns {import('./diff-table.js').Talk} */
  const ofFile = (path) => ({
    at: (line) => at(path, line).map((one) => card(one, true)),
    begin: permission.allowed
      ? (line, row) => {
          const owner = `comment:${proposal.id}:${path}:${line.side}:${line.number}`;
          const open = row.nextElementSibling;
          if (open?.classList.contains('writing')) return void open.querySelector('textarea')?.focus();
          const close = () => {
            below.remove();
            row.querySelector('button')?.focus();
          };
          const below = h('tr.talk.writing', null, h('td', { colspan: '3' }, form(owner, { path, line }, close)));
          row.after(below);
          below.querySelector('textarea')?.focus();
        }
      : undefined,
  });

  /**
   * @param {string} owner
   * @param {{ path?: string, line?: Line }} place
   * @param {(() => void) | null} cancel
   */
  const form = (owner, place, cancel) => {
    const label = place.line ? t('ch.comment-at', { n: String(place.line.number) }) : t('ch.comment');
    const { field, input, clear } = keptField(owner, 'text', label);
    const outcome = h('div');
    let isSent = false;
    const send = async (/** @type {Event} */ event) => {
      event.preventDefault();
      if (isSent || !input.value.trim()) return;
      isSent = true;
      try {
        const body = { digest: proposal.digest, text: input.value, ...place };
        fresh = (await api(`/proposals/${proposal.id}/comments`, { method: 'POST', body })).value.id;
        clear();
        announce(t('ch.comment-sent'));
        changed();
      } catch (error) {
        // The text stays in its field, and the changes that it is about stay on the screen.
        const isStale = error instanceof ApiProblem && error.status === 409;
        show(outcome, isStale ? changedMeanwhile(changed) : problem(error));
      } finally {
        isSent = false;
      }
    };
    return h('form.comment-form', { onsubmit: send }, [
      field,
      h('div.actions', null, [
        h('button.primary', { type: 'submit' }, t('ch.send-comment')),
        cancel ? h('button', { type: 'button', onclick: cancel }, t('ch.cancel')) : null,
      ]),
      outcome,
    ]);
  };

  /** @param {Comment} one @param {boolean} isAtLine */
  const card = (one, isAtLine) => {
    const element = h('article.comment', { tabindex: '-1' }, [
      h('p.facts', null, [
        h('strong', null, revealed(one.author)),
        when(one.at),
        isAtLine || !one.path ? null : h('code', null, revealed(`${one.path}${one.line ? `:${one.line.number}` : ''}`)),
        isPresent(one) ? null : pill('plain', t('ch.outdated')),
      ]),
      h('p.message', null, revealed(one.text)),
    ]);
    if (one.id === fresh) {
      fresh = 0;
      // Once it is in the document.
      requestAnimationFrame(() => element.focus());
    }
    return element;
  };

  // Comments at lines of the present changes are shown there.
  const general = comments.filter((one) => !(one.line && isPresent(one)));
  const whole = [
    h('h2', null, t('ch.comments', { n: comments.length })),
    general.map((one) => card(one, false)),
    permission.allowed ? form(`comment:${proposal.id}`, {}, null) : null,
  ];
  const count = (/** @type {string} */ path) => {
    const n = comments.filter((one) => one.path === path && isPresent(one)).length;
    return n ? pill('plain', t('ch.comments', { n })) : null;
  };
  return { ofFile, whole, count };
}

/** @param {number} id @param {AbortSignal} until @returns {Promise<Comment[]>} */
export async function commentsOf(id, until) {
  return all(`/proposals/${id}/comments`, until);
}
