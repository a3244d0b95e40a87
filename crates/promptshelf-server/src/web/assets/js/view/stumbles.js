// What clients in the field do that prompts of this library stumble over, as
// the server knows it.

import { beside } from '../app.js';
import { h } from '../dom.js';
import { t } from '../i18n.js';
import { promptLink } from '../route.js';
import { inline } from '../text/inline.js';
import { revealed } from '../text/invisible.js';

/**
 * @typedef {{ client: string, quirk: string, most: number | null, source: string, read: string, total: number,
 *   prompts: string[] }} Stumble
 */

/** A row for each thing that clients do; nothing where the server does not tell. @param {AbortSignal} until */
export async function stumbles(until) {
  const answer = await beside('clients', until);
  /** @type {Map<string, Stumble[]>} */
  const alike = new Map();
  for (const one of /** @type {Stumble[]} */ (answer?.stumbles ?? [])) {
    const key = JSON.stringify([one.quirk, one.most, one.total, one.prompts]);
    alike.set(key, [...(alike.get(key) ?? []), one]);
  }
  return [...alike.values()].map(row);
}

/** @param {Stumble[]} all of the same kind, over the same prompts */
function row(all) {
  const [{ quirk, most, total, prompts }] = all;
  const does = t(/** @type {keyof import('../i18n.js').Words} */ (`quirk.${quirk}`), { n: most ?? 0 });
  const names = all.map(({ client }) => client).join(', ');
  const left = total - prompts.length;
  return h('details', null, [
    h('summary', null, [
      h('strong', null, names),
      ' ',
      ...inline(does),
      total ? h('span.hint', null, ` · ${t('stumble.prompts', { n: total })}`) : null,
    ]),
    prompts.length
      ? h(
          'ul',
          null,
          prompts.map((name) => h('li', null, h('a', { href: promptLink(name) }, revealed(name)))),
          left ? h('li', null, t('stumble.more', { n: left })) : null,
        )
      : null,
    all.map(({ client, source, read }) =>
      h('p.hint', null, `${all.length > 1 ? `${client}. ` : ''}${t('stumble.source', { source, read })}`),
    ),
  ]);
}
