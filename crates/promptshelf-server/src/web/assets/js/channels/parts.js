// Parts that the views of channels share: problems, times, kept input, buttons with reasons.

import { ApiProblem } from '../api.js';
import { freshId, h, show } from '../dom.js';
import { draft, draftOf } from '../drafts.js';
import { language, t } from '../i18n.js';
import { linkTo } from '../link.js';
import { SignInNeeded } from '../mcp/client.js';
import { problemWords, reasonWords } from '../problem-words.js';
import { revealed } from '../text/invisible.js';
import { lineIcon } from '../view/glyphs.js';

/**
 * @typedef {import('../dom.js').Child} Child
 * @typedef {import('../problem-words.js').Reason} Reason
 * @typedef {{ allowed: boolean, reason: string | null, reasons: Reason[], scopes: string[] }} Permission
 * @typedef {{ caller: string } & Record<'approve' | 'reject' | 'publish' | 'withdraw' | 'emergency', Permission>} ProposalPermissions
 */

/** Describes an error, with a way to go on. @param {unknown} error @param {() => void} [again] */
export function problem(error, again) {
  const retry = again ? h('button', { type: 'button', onclick: again }, t('connection.again')) : null;
  if (error instanceof SignInNeeded) {
    const scopes = error.challenge.scopes;
    const text = error.isStepUp && scopes.length ? t('sign-in.step-up', { scopes: scopes.join(' ') }) : t('ch.sign-in');
    return h('div.trouble', { role: 'alert' }, alarm(text), signInButton(scopes, error.challenge), retry);
  }
  if (error instanceof ApiProblem) {
    const lacks = error.kind === 'policy' ? reasonsOf(error.reasons, error.lacks) : [];
    const details = [...lacks, ...error.paths];
    return h(
      'div.trouble',
      { role: 'alert' },
      alarm(problemWords(error)),
      details.length
        ? h(
            'ul.details',
            null,
            details.map((one) => h('li', null, revealed(one))),
          )
        : null,
      retry,
    );
  }
  console.warn(error);
  return h('div.trouble', { role: 'alert' }, alarm(t('ch.unreachable')), retry);
}

/** Describes a refusal because of changes by others, which `reload` shows. @param {() => void} reload */
export function changedMeanwhile(reload) {
  return h('div.trouble', { role: 'alert' }, [
    alarm(t('ch.changed-meanwhile')),
    h('button', { type: 'button', onclick: reload }, t('ch.show')),
  ]);
}

/**
 * The sentences of reasons in the language of the page. A server of an earlier release sends texts alone.
 *
 * @param {Reason[] | undefined} reasons @param {string[]} texts
 */
export function reasonsOf(reasons, texts) {
  return reasons?.length ? reasons.map(reasonWords) : texts;
}

/** The reason against an operation. @param {Permission} permission */
export function whyNot({ reason, reasons }) {
  return reasonsOf(reasons, reason ? [reason] : []).join(' ');
}

/** @param {string} text */
function alarm(text) {
  return h('p.problem', null, lineIcon('warn'), h('span', null, revealed(text)));
}

/** @param {string[]} scopes @param {import('../auth/challenge.js').Challenge} [challenge] */
function signInButton(scopes, challenge) {
  const wanted = challenge ?? { error: 'insufficient_scope', description: '', scopes, metadata: '' };
  const begin = async () => (await import('../view/sign-in.js')).toSignIn(wanted);
  return h('button', { type: 'button', onclick: () => void begin() }, t('sign-in.ask-more'));
}

/**
 * Fills an element with content that is loaded, or with the problem and a way to try again.
 *
 * @param {Element} box
 * @param {AbortSignal} until
 * @param {() => Promise<import('../dom.js').Children>} load
 */
export async function fill(box, until, load) {
  if (!box.hasChildNodes()) show(box, h('p.waiting', null, t('find.loading')));
  try {
    const content = await load();
    if (!until.aborted) show(box, content);
  } catch (error) {
    if (!until.aborted)
      show(
        box,
        problem(error, () => void fill(box, until, load)),
      );
  }
}

/** @param {string} iso */
export function when(iso) {
  const time = new Date(iso);
  const text = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' }).format(time);
  return h('time', { datetime: iso, title: time.toLocaleString(language) }, text);
}

/** A short label in colour. @param {'good' | 'bad' | 'warn' | 'plain'} kind @param {string} text */
export function pill(kind, text) {
  return h(`span.pill.${kind}`, null, text);
}

const KINDS = {
  publish: 'ch.kind.publish',
  promote: 'ch.kind.promote',
  rollback: 'ch.kind.rollback',
  policy: 'ch.kind.policy',
};

/** @param {keyof typeof KINDS} kind */
export function kindName(kind) {
  return t(/** @type {keyof import('../i18n.js').Words} */ (KINDS[kind] ?? 'ch.kind.publish'));
}

/** The first line of the message, or the kind without one. @param {{ message: string, kind: keyof typeof KINDS }} proposal */
export function titleOf({ message, kind }) {
  return message.split('\n')[0].trim() || kindName(kind);
}

/** @param {'open' | 'published' | 'rejected' | 'withdrawn'} state */
export function statePill(state) {
  const kinds = /** @type {const} */ ({ open: 'warn', published: 'good', rejected: 'bad', withdrawn: 'plain' });
  return pill(kinds[state] ?? 'plain', t(`ch.state.${state}`));
}

/** @param {'added' | 'changed' | 'removed'} change */
export function changePill(change) {
  const kinds = /** @type {const} */ ({ added: 'good', changed: 'warn', removed: 'bad' });
  return pill(kinds[change] ?? 'plain', t(`ch.change.${change}`));
}

/** Links to the other views of a channel. @param {string} channel @param {'history' | 'browse' | ''} current */
export function channelLinks(channel, current) {
  const links = [
    h('a', { href: '#/channels' }, t('nav.channels')),
    h(
      'a',
      { href: linkTo('history', channel), 'aria-current': current === 'history' ? 'page' : null },
      t('ch.history'),
    ),
    h('a', { href: linkTo('browse', channel), 'aria-current': current === 'browse' ? 'page' : null }, t('ch.browse')),
  ];
  return h('nav.trail', { 'aria-label': t('ch.trail') }, links);
}

/**
 * A button that stays visible without permission, with the reason next to it.
 *
 * @param {string} name
 * @param {Permission} permission
 * @param {() => void} onclick
 * @param {string} [style]
 */
export function guarded(name, permission, onclick, style = 'button') {
  const id = freshId('reason');
  const button = h(style, {
    type: 'button',
    'aria-disabled': permission.allowed ? null : 'true',
    'aria-describedby': permission.allowed ? null : id,
    onclick: () => {
      if (permission.allowed) onclick();
    },
  });
  button.append(name);
  if (permission.allowed) return h('div.action', null, button);
  const more = permission.scopes.length ? signInButton(permission.scopes) : null;
  return h('div.action', null, button, h('p.hint', { id }, revealed(whyNot(permission))), more);
}

/**
 * A field whose text survives another view, a reload for sign-in, and an error.
 *
 * @param {string} owner such as `proposal:7`
 * @param {string} key
 * @param {string} label
 * @param {{ hint?: string, required?: boolean }} [options]
 */
export function keptField(owner, key, label, { hint, required } = {}) {
  const id = freshId('field');
  const keep = () => draft(owner, { ...draftOf(owner), [key]: input.value });
  /** @type {HTMLTextAreaElement} */
  const input = h('textarea', { id, rows: '2', maxlength: '4096', oninput: keep, required: required === true });
  input.value = draftOf(owner)?.[key] ?? '';
  const field = h('div.field', null, [
    h('label.label', { for: id }, label),
    hint ? h('p.hint', null, hint) : null,
    input,
  ]);
  const clear = () => {
    input.value = '';
    const { [key]: _, ...rest } = draftOf(owner) ?? {};
    draft(owner, rest);
  };
  return { field, input, clear };
}

/** Whether all channels serve one text of a prompt. Each counts its own versions. @param {{ digest: string }[]} channels */
export const isEverywhere = (channels) => channels.every((one) => one.digest === channels[0]?.digest);
