// Known incompatibilities between this library's prompts and MCP clients, from the server's table.

import { pageApi } from '../app.js';
import { h } from '../dom.js';
import { t } from '../i18n.js';
import { promptLink } from '../route.js';
import { inline } from '../text/inline.js';
import { revealed } from '../text/invisible.js';

/**
 * @typedef {{ client: string, quirk: string, most: number | null, source: string, read: string, total: number,
 *   prompts: string[] }} Incompatibility
 */

/** One row for each incompatibility; empty if the server does not report any. @param {AbortSignal} until */
export async function incompatibilities(until) {
  const answer = await pageApi('clients', until);
  /** @type {Map<string, Incompatibility[]>} */
  const alike = new Map();
  for (const one of /** @type {Incompatibility[]} */ (answer?.incompatibilities ?? [])) {
    const key = JSON.stringify([one.quirk, one.most, one.total, one.prompts]);
    alike.set(key, [...(alike.get(key) ?? []), one]);
  }
  return [...alike.values()].map(row);
}

/** What clients do, after their names. @param {string} quirk @param {number} clients @param {number | null} [most] */
export function quirkWords(quirk, clients, most) {
  const values = { n: clients, arguments: t('incompatibility.arguments', { n: most ?? 0 }) };
  return t(/** @type {keyof import('../i18n.js').Words} */ (`quirk.${quirk}`), values);
}

/** @param {Incompatibility[]} all of the same kind, over the same prompts */
function row(all) {
  const [{ quirk, most, total, prompts }] = all;
  const does = quirkWords(quirk, all.length, most);
  const names = all.map(({ client }) => client).join(', ');
  const left = total - prompts.length;
  return h('details', null, [
    h('summary', null, [
      h('strong', null, names),
      ' ',
      ...inline(does),
      total ? h('span.hint', null, ` · ${t('incompatibility.prompts', { n: total })}`) : null,
    ]),
    prompts.length
      ? h(
          'ul',
          null,
          prompts.map((name) => h('li', null, h('a', { href: promptLink(name) }, revealed(name)))),
          left ? h('li', null, t('incompatibility.more', { n: left })) : null,
        )
      : null,
    all.map(({ client, source, read }) =>
      h('p.hint', null, `${all.length > 1 ? `${client}. ` : ''}${t('incompatibility.source', { source, read })}`),
    ),
  ]);
}
