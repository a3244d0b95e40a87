// The *Prompts* view: search field, quick actions and the list.

import { features, library } from '../app.js';
import { debounced, freshId, h, show } from '../dom.js';
import { moreWords, t } from '../i18n.js';
import { pinned, recent } from '../preferences.js';
import { go, promptLink } from '../route.js';
import { find } from '../text/fuzzy.js';
import { revealed } from '../text/invisible.js';
import { announce } from './announce.js';
import { marked, picture, pinButton } from './card.js';
import { lineIcon } from './glyphs.js';
import { virtualList } from './virtual.js';

/**
 * @typedef {import('../mcp/types.js').Prompt} Prompt
 * @typedef {{ folder: string, n: number } | { prompt: Prompt, position: number, of: number }} Row
 */

const ROW = 76;
const FOLDER = 52;
const MOST_TAGS = 14;
const MOST_QUICK = 8;

// Survives visits to a prompt and back.
let query = '';
let tag = '';

/** @param {import('../route.js').Place} _ @param {AbortSignal} until */
export function view(_, until) {
  const id = freshId('find');
  const field = h('input', {
    id,
    type: 'text',
    value: query,
    placeholder: t('find.placeholder'),
    autocapitalize: 'off',
    spellcheck: 'false',
    role: 'combobox',
    'aria-autocomplete': 'list',
    'aria-expanded': 'false',
    'aria-describedby': `${id}-hint`,
  });
  const finder = h('div.finder', null, lineIcon('search'), h('label.unseen', { for: id }, t('find.label')), field);
  // Command completion is loaded on the first slash.
  const commands = () => Promise.all([import('./slash.js'), moreWords()]).then(([module]) => module);
  const complete = async () => {
    const { slash } = await commands();
    const completing = slash(field);
    finder.append(completing.popup);
    if (field.value.startsWith('/')) completing.refresh();
  };
  field.addEventListener('focus', () => void complete(), { once: true });
  const tags = h('div.tags', { role: 'group', 'aria-label': t('find.tags') });
  const quick = h('section.quick', { 'aria-label': t('quick.label') });
  const summary = h('p.summary', { 'aria-live': 'off' });
  const nothing = h('div.nothing');
  const rows = virtualList({
    height,
    draw: (row, index, end) => drawRow(row, index, end),
    label: t('find.list'),
    until,
  });

  /** @param {Row} row */
  function height(row) {
    return 'folder' in row ? FOLDER : ROW;
  }

  /** @type {Row[]} */
  let current = [];

  /** @param {Row} row @param {number} index @param {AbortSignal} end */
  function drawRow(row, index, end) {
    if ('folder' in row) {
      return h('li.folder', null, h('h2', null, row.folder || t('find.root')), h('span', null, String(row.n)));
    }
    const { prompt } = row;
    const details = library.value.details.get(prompt.name);
    const words = isCommand() ? '' : query;
    const required = (prompt.arguments ?? []).length;
    return h(
      'li.row',
      { 'aria-setsize': row.of, 'aria-posinset': row.position },
      h(
        'a.row-link',
        { href: promptLink(prompt.name), 'data-index': index, onkeydown: moveRow },
        picture(prompt),
        h(
          'span.row-text',
          null,
          h(
            'span.row-title',
            null,
            h('bdi', null, marked(prompt.title ?? prompt.name, words)),
            ' ',
            h('code', null, marked(prompt.name, words)),
          ),
          h('span.row-about', null, h('bdi', null, revealed(prompt.description ?? t('find.no-description')))),
        ),
        h('span.row-more', null, [
          ...(details?.tags ?? []).slice(0, 3).map((one) => h('span.tag', { title: one }, one)),
          required ? h('span.asks', { title: t('find.asks', { n: required }) }, t('find.asks', { n: required })) : null,
        ]),
      ),
      pinButton(prompt, end),
    );
  }

  /** @param {KeyboardEvent} event */
  function moveRow(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const from = Number(/** @type {HTMLElement} */ (event.currentTarget).dataset.index);
    if (event.key === 'Home' || event.key === 'End') {
      event.preventDefault();
      focusRow(event.key === 'Home' ? 0 : current.length - 1, event.key === 'Home' ? 1 : -1);
    } else if (step) {
      event.preventDefault();
      focusRow(from + step, step);
    } else if (event.key.length === 1 && event.key !== ' ' && !event.ctrlKey && !event.metaKey && !event.altKey) {
      field.focus();
    }
  }

  /** @param {number} index @param {number} step */
  function focusRow(index, step) {
    let at = index;
    while (current[at] && 'folder' in current[at]) at += step;
    if (!current[at]) return step < 0 ? field.focus() : undefined;
    /** @type {HTMLElement | null | undefined} */ (rows.reveal(at)?.querySelector('a'))?.focus({ preventScroll: true });
  }

  const isCommand = () => query.startsWith('/');
  const tell = debounced(600, (/** @type {number} */ n) => announce(t('find.found', { n })));

  function search() {
    const { prompts, entries, details, whole } = library.value;
    const words = isCommand() ? '' : query.trim();
    const hits = find(entries, words).filter((index) => !tag || details.get(prompts[index].name)?.tags.includes(tag));
    current = words ? ranked(hits) : grouped(hits);
    rows.set(current);
    show(summary, words || tag ? t('find.found', { n: hits.length }) : t('find.all', { n: hits.length }));
    if (!whole) summary.append(' ', t('find.loading'));
    if (words) tell(hits.length);
    const isEmpty = hits.length === 0 && whole;
    nothing.hidden = !isEmpty;
    if (isEmpty) {
      show(
        nothing,
        prompts.length
          ? [h('p', null, t('find.nothing', { query: words || tag })), clearButton()]
          : h('p', null, t('find.empty'), ' ', features.value.edit ? h('a', { href: '#/edit' }, t('nav.edit')) : null),
      );
    }
  }

  function clearButton() {
    const clear = () => {
      [query, tag, field.value] = ['', '', ''];
      drawTags();
      search();
      field.focus();
    };
    return h('button', { type: 'button', onclick: clear }, t('find.clear'));
  }

  /** @param {number[]} hits @returns {Row[]} */
  function ranked(hits) {
    return hits.map((index, at) => ({ prompt: library.value.prompts[index], position: at + 1, of: hits.length }));
  }

  /** @param {number[]} hits @returns {Row[]} */
  function grouped(hits) {
    /** @type {Map<string, Prompt[]>} */
    const folders = new Map();
    for (const index of hits) {
      const prompt = library.value.prompts[index];
      const path = library.value.details.get(prompt.name)?.path ?? '';
      const folder = path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '';
      const inside = folders.get(folder);
      if (inside) inside.push(prompt);
      else folders.set(folder, [prompt]);
    }
    let position = 0;
    const names = [...folders.keys()].sort((a, b) => a.localeCompare(b));
    return names.flatMap((folder) => {
      const inside = folders.get(folder) ?? [];
      const heading = names.length > 1 ? [{ folder, n: inside.length }] : [];
      return [...heading, ...inside.map((prompt) => ({ prompt, position: ++position, of: hits.length }))];
    });
  }

  function drawTags() {
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const { tags: some } of library.value.details.values()) {
      for (const one of some) counts.set(one, (counts.get(one) ?? 0) + 1);
    }
    const most = [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).slice(0, MOST_TAGS);
    tags.hidden = most.length === 0;
    show(
      tags,
      most.map(([name, n]) => {
        const toggle = () => {
          tag = tag === name ? '' : name;
          drawTags();
          search();
        };
        return h(
          'button.tag',
          { type: 'button', 'aria-pressed': String(tag === name), onclick: toggle },
          name,
          h('small', null, ` ${n}`),
        );
      }),
    );
  }

  function drawQuick() {
    const { byName } = library.value;
    const chosen = [...new Set([...pinned.value, ...recent.value])]
      .filter((name) => byName.has(name))
      .slice(0, MOST_QUICK);
    quick.hidden = chosen.length === 0;
    show(
      quick,
      h('h2', null, t('quick.label')),
      h(
        'ul',
        null,
        chosen.map((name) => {
          const prompt = /** @type {Prompt} */ (byName.get(name));
          const isPinned = pinned.value.includes(name);
          return h(
            'li',
            null,
            h(
              'a.chip',
              { href: promptLink(name) },
              picture(prompt),
              h('bdi', null, revealed(prompt.title ?? name)),
              isPinned ? lineIcon('pin') : null,
            ),
          );
        }),
      ),
    );
  }

  field.addEventListener('input', () => {
    query = field.value;
    search();
  });
  // Listens on the parent element, so that the suggestion list can intercept keys first.
  finder.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.isComposing) return;
    if (event.key === 'Enter' && isCommand()) void commands().then(({ runCommand }) => runCommand(query));
    else if (event.key === 'Enter') {
      const first = current.find((row) => 'prompt' in row);
      if (first && 'prompt' in first && query.trim()) go(promptLink(first.prompt.name));
    } else if (event.key === 'ArrowDown' && !isCommand()) {
      event.preventDefault();
      focusRow(0, 1);
    } else if (event.key === 'Escape' && query) {
      [query, field.value] = ['', ''];
      search();
    }
  });

  library.watch(() => {
    drawTags();
    search();
  }, until);
  pinned.watch(drawQuick, until);
  recent.watch(drawQuick, until);
  library.watch(drawQuick, until);
  queueMicrotask(() => rows.set(current));

  return h(
    'div.find',
    null,
    h('h1', { tabindex: '-1' }, t('find.heading')),
    finder,
    h('p.hint', { id: `${id}-hint` }, t('find.hint')),
    quick,
    tags,
    summary,
    nothing,
    rows.list,
  );
}
