// The *Resources* view: resources, and resource templates with completed variables.

import { client, discovery, loads } from '../app.js';
import { h, show } from '../dom.js';
import { completed } from '../form/complete.js';
import { field } from '../form/field.js';
import { language, t } from '../i18n.js';
import { Refusal, SignInNeeded } from '../mcp/client.js';
import { wholeList } from '../mcp/lists.js';
import { asMarkdown } from '../preferences.js';
import { revealed } from '../text/invisible.js';
import { size } from '../text/measure.js';
import { expand, variables } from '../text/uri-template.js';
import { contents } from './block.js';
import { lineIcon } from './glyphs.js';
import { toSignIn } from './sign-in.js';

/**
 * @typedef {{ uri?: string, uriTemplate?: string, name: string, title?: string, description?: string,
 *   mimeType?: string, size?: number }} Resource
 */

/** @param {import('../route.js').Place} _ @param {AbortSignal} until */
export function view(_, until) {
  const body = h('div.resources', null, h('p.waiting', null, t('find.loading')));
  let shown = '';
  const refresh = async () => {
    /** @type {Resource[][]} */
    let lists;
    try {
      const [plain, families] = await Promise.all([
        wholeList(client, 'resources/list', 'resources'),
        wholeList(client, 'resources/templates/list', 'resourceTemplates'),
      ]);
      lists = [/** @type {Resource[]} */ (families.items), /** @type {Resource[]} */ (plain.items)];
    } catch (error) {
      // Keeps existing content; an error is shown only on an empty view.
      if (!until.aborted && !shown) show(body, h('p.problem', null, lineIcon('warn'), revealed(why(error))));
      return;
    }
    const key = JSON.stringify(lists);
    // Keeps partly filled forms as long as the list has not changed.
    if (until.aborted || key === shown) return;
    shown = key;
    const all = lists.flat();
    show(body, all.length ? all.map((one) => card(one, until)) : h('p.lead', null, t('resources.none')));
  };
  discovery.watch((value) => {
    if (!value) return;
    if (value.capabilities.resources) void refresh();
    else show(body, h('p.lead', null, t('resources.none')));
  }, until);
  let first = true;
  loads.watch(() => {
    if (!first && discovery.value?.capabilities.resources) void refresh();
    first = false;
  }, until);
  return h('div.care', null, [
    h('h1', { tabindex: '-1' }, t('resources.heading')),
    h('p.hint', null, t('resources.about')),
    body,
  ]);
}

/** @param {unknown} error */
function why(error) {
  if (error instanceof Refusal) return error.message;
  if (error instanceof SignInNeeded)
    return error.isStepUp ? t('sign-in.step-up', { scopes: error.challenge.scopes.join(' ') }) : t('sign-in.needed');
  return t('connection.lost');
}

/** @param {Resource} one @param {AbortSignal} until */
function card(one, until) {
  const template = one.uriTemplate;
  const into = h('div.followed', { 'aria-live': 'polite' });
  const address = h('code', null, revealed(one.uri ?? template ?? ''));
  /** @type {import('../form/field.js').Field[]} */
  const fields = [];
  const values = () => Object.fromEntries(fields.map((made) => [made.kind.name, made.read()]));

  /** @param {string} family @param {string} name */
  function variable(family, name) {
    const changed = () => show(address, revealed(expand(family, values())));
    const made = field({ name, title: name, required: false, type: 'string' }, changed);
    completed(made, { type: 'ref/resource', uri: family }, values, changed);
    return made;
  }

  if (template !== undefined) fields.push(...variables(template).map((name) => variable(template, name)));

  const read = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const uri = template === undefined ? (one.uri ?? '') : expand(template, values());
    show(into, h('p.hint', null, t('block.reading')));
    try {
      const result = await client.request('resources/read', { uri }, until);
      show(
        into,
        result.contents.map((/** @type {import('../mcp/types.js').Contents} */ part) =>
          contents(part, asMarkdown.value, false),
        ),
      );
    } catch (error) {
      if (until.aborted) return;
      const more =
        error instanceof SignInNeeded
          ? h('button', { type: 'button', onclick: () => void toSignIn(error.challenge) }, t('sign-in.ask-more'))
          : null;
      show(into, h('p.problem', null, lineIcon('warn'), revealed(why(error))), more);
    }
  };
  const facts = [one.mimeType, one.size === undefined ? null : size(one.size, language)].filter(Boolean).join(' · ');
  const title = one.title ?? one.name;
  return h('form.resource.link', { onsubmit: read, novalidate: true, 'aria-label': title }, [
    h(
      'h2.resource-head',
      null,
      lineIcon('link'),
      h('strong', null, h('bdi', null, revealed(title))),
      facts ? h('small', null, facts) : null,
    ),
    one.description ? h('p.about', null, revealed(one.description)) : null,
    fields.length
      ? h(
          'div.variables',
          null,
          fields.map((made) => made.element),
        )
      : null,
    h(
      'p.link-foot',
      null,
      address,
      h('button', null, lineIcon('open'), t('block.read'), h('span.unseen', null, ` ${title}`)),
    ),
    into,
  ]);
}
