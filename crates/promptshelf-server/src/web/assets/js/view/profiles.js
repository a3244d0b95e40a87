// The choice of a delivery profile, for a preview of what clients at its endpoint show.

import { client } from '../app.js';
import { h, show } from '../dom.js';
import { t } from '../i18n.js';
import { profile } from '../preferences.js';
import { revealed } from '../text/invisible.js';

/** @typedef {import('../mcp/types.js').Prompt} Prompt */

/**
 * @param {{ name: string, entry: Prompt }[]} all the entry of the prompt in the list under each profile
 * @param {() => void} changed
 */
export function profiles(all, changed) {
  const listed = h('div.listed', { hidden: true });
  const chosen = () => all.find(({ name }) => name === profile.value);
  const path = (/** @type {string} */ name) => `profiles/${encodeURIComponent(name)}/mcp`;
  const paint = () => {
    const one = chosen();
    listed.hidden = !one;
    show(listed, one ? entry(path(one.name), one.entry) : null);
  };
  /** @type {HTMLSelectElement} */
  const select = h(
    'select',
    {
      onchange: () => {
        profile.keep(select.value);
        paint();
        changed();
      },
    },
    h('option', { value: '' }, t('profile.none')),
    all.map(({ name }) => h('option', { value: name }, name)),
  );
  select.value = chosen()?.name ?? '';
  paint();
  const element = h('label.switch', { hidden: !all.length }, h('span', null, t('profile.label')), select);
  return {
    element,
    listed,
    /** The endpoint with the chosen profile. */
    get url() {
      const one = chosen();
      return one ? new URL(path(one.name), location.origin).href : client.url;
    },
  };
}

/** @param {string} path @param {Prompt} listed */
function entry(path, { name, title, description, arguments: given = [] }) {
  return [
    h('p', null, t('profile.listed', { path: `/${path}` })),
    h('p', null, h('code', null, revealed(name)), title ? [' ', h('bdi', null, revealed(title))] : null),
    description ? h('p.hint', null, h('bdi', null, revealed(description))) : null,
    given.length
      ? h(
          'ul',
          null,
          given.map((one) =>
            h(
              'li',
              null,
              h('code', null, revealed(one.name), one.required ? ' *' : ''),
              one.description ? [' ', h('bdi', null, revealed(one.description))] : null,
            ),
          ),
        )
      : h('p.hint', null, t('profile.no-arguments')),
  ];
}
