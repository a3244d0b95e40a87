// Proposes the drafts of a channel.

import { ApiProblem } from '../api.js';
import { h, show } from '../dom.js';
import { t } from '../i18n.js';
import { linkTo } from '../link.js';
import { revealed } from '../text/invisible.js';
import { note } from '../view/announce.js';
import { lineIcon } from '../view/glyphs.js';
import { dropDraft } from './drafts.js';
import { reason } from './reason.js';

/**
 * @param {ReturnType<typeof import('./backend.js').channel>} backend
 * @param {import('./drafts.js').Draft[]} drafts
 * @param {() => void} proposed called when the drafts are gone
 * @param {AbortSignal} until
 */
export function proposalForm(backend, drafts, proposed, until) {
  const problem = h('p.problem', { hidden: true, role: 'alert' });
  const message = h('input', {
    id: 'edit-message',
    type: 'text',
    maxlength: '4096',
    required: true,
    autocomplete: 'off',
  });
  const element = h(
    'form.edit-propose',
    { novalidate: true, 'aria-label': t('edit.propose') },
    h('h2', null, t('edit.drafts', { n: drafts.length })),
    h(
      'ul',
      null,
      drafts.map(({ path, bytes }) => h('li', null, link(path), bytes ? null : ` ${t('edit.deleted')}`)),
    ),
    h('div.field', null, h('label.label', { for: 'edit-message' }, t('edit.message')), message),
    problem,
    h('button.primary', { type: 'submit' }, t('edit.propose')),
  );
  element.addEventListener('submit', async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!message.value.trim()) return message.focus();
    problem.hidden = true;
    try {
      const { proposal } = await backend.propose(message.value.trim(), drafts);
      await Promise.all(drafts.map(({ library, path }) => dropDraft(library, path)));
      const made = t('edit.proposed', { n: String(proposal.id) });
      note(made);
      const there = h('a', { href: `#/proposal/${proposal.id}` }, made);
      if (until.aborted) return;
      show(element, h('p', { role: 'status' }, lineIcon('check'), there));
      there.focus();
      proposed();
    } catch (error) {
      if (until.aborted) return;
      problem.hidden = false;
      const paths = error instanceof ApiProblem ? error.paths : [];
      show(
        problem,
        lineIcon('warn'),
        revealed(paths.length ? t('edit.conflicts') : reason(error)),
        ' ',
        paths.map((path) => [link(path), ' ']),
      );
    }
  });
  return element;

  /** @param {string} path */
  function link(path) {
    return h('a', { href: linkTo('edit', path, { channel: backend.channel }) }, h('bdi', null, revealed(path)));
  }
}
