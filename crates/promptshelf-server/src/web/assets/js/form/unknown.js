// Arguments that a link or a slash command names and the prompt does not have.

import { h } from '../dom.js';
import { t } from '../i18n.js';
import { revealed } from '../text/invisible.js';
import { lineIcon } from '../view/glyphs.js';

/**
 * @param {Record<string, string>} given
 * @param {string[]} names of the prompt's arguments
 * @param {() => void} changed
 * @returns {{ elements: HTMLElement[], values: () => Record<string, string> }}
 */
export function unknownArguments(given, names, changed) {
  const left = new Map(Object.entries(given).filter(([name]) => !names.includes(name)));
  const elements = [...left].map(([name, value]) => {
    const remove = () => {
      left.delete(name);
      element.remove();
      changed();
    };
    const element = h(
      'div.field.wrong.unknown',
      { 'data-argument': name },
      h(
        'div.field-head',
        null,
        h('span.label', null, h('bdi', null, revealed(name))),
        h(
          'button.quiet',
          { type: 'button', onclick: remove },
          t('argument.remove'),
          h('span.unseen', null, ` ${name}`),
        ),
      ),
      h('pre', { tabindex: '0' }, revealed(value)),
      h('p.problem', null, lineIcon('warn'), t('argument.unknown')),
    );
    return element;
  });
  return { elements, values: () => Object.fromEntries(left) };
}
