// Renders content blocks of the five kinds.

import { client } from '../app.js';
import { h, show } from '../dom.js';
import { language, t } from '../i18n.js';
import { anchor, webAddress } from '../text/inline.js';
import { revealed } from '../text/invisible.js';
import { changedLines } from '../text/line-diff.js';
import { codeBlock, markdown } from '../text/markdown.js';
import { bytes, decodedBytes, size, tokens } from '../text/measure.js';
import { lineIcon } from './glyphs.js';

/**
 * @typedef {import('../mcp/types.js').Block} Block
 * @typedef {import('../mcp/types.js').Contents} Contents
 */

// Longer texts are displayed without Markdown rendering, to keep the page responsive.
const MOST_MARKDOWN = 100_000;

/**
 * @param {Block} block
 * @param {boolean} asMarkdown
 * @param {Block | null} before the block at this position before the last change
 * @returns {HTMLElement}
 */
export function drawBlock(block, asMarkdown, before) {
  const notes = annotations(block.annotations);
  switch (block.type) {
    case 'text':
      return h(
        'div.block.text',
        null,
        text(block.text ?? '', asMarkdown, before?.type === 'text' ? (before.text ?? '') : null),
        notes,
      );
    case 'image':
      return h('div.block', null, image(block.mimeType ?? '', block.data ?? ''), notes);
    case 'audio':
      return h('div.block', null, audio(block.mimeType ?? '', block.data ?? ''), notes);
    case 'resource':
      return h('div.block', null, block.resource ? contents(block.resource, asMarkdown, true) : null, notes);
    case 'resource_link':
      return h('div.block', null, link(block, asMarkdown), notes);
    default:
      return h('div.block', null, h('p.hint', null, t('block.unknown', { type: block.type })));
  }
}

/**
 * @param {string} whole
 * @param {boolean} asMarkdown
 * @param {string | null} before
 */
function text(whole, asMarkdown, before) {
  const changed = before === null || before === whole ? new Set() : changedLines(before, whole);
  if (asMarkdown && whole.length <= MOST_MARKDOWN) return h('div.prose', { dir: 'auto' }, markdown(whole, changed));
  if (!changed.size) return h('pre.raw', { dir: 'auto', tabindex: '0' }, revealed(whole));
  const lines = whole
    .split('\n')
    .map((line, index) => h(changed.has(index) ? 'span.changed' : 'span', null, revealed(line), '\n'));
  return h('pre.raw', { dir: 'auto', tabindex: '0' }, lines);
}

/** @param {string} mimeType @param {string} base64 */
function image(mimeType, base64) {
  // Inside an `img` element even an SVG can neither run scripts nor fetch anything.
  const picture = h('img', {
    src: `data:${safeType(mimeType, 'image/')};base64,${base64}`,
    alt: t('block.image', { type: mimeType }),
  });
  return h('figure', null, picture, caption('image', mimeType, base64));
}

/** @param {string} mimeType @param {string} base64 */
function audio(mimeType, base64) {
  const player = h('audio', {
    controls: true,
    preload: 'metadata',
    src: `data:${safeType(mimeType, 'audio/')};base64,${base64}`,
    'aria-label': t('block.audio', { type: mimeType }),
  });
  return h('figure', null, player, caption('sound', mimeType, base64));
}

/** @param {'image' | 'sound'} icon @param {string} mimeType @param {string} base64 */
function caption(icon, mimeType, base64) {
  return h('figcaption', null, lineIcon(icon), mimeType, ' · ', size(decodedBytes(base64), language));
}

/** @param {string} mimeType @param {string} start */
function safeType(mimeType, start) {
  return mimeType.startsWith(start) && /^[\w.+/-]+$/.test(mimeType) ? mimeType : `${start}*`;
}

/**
 * @param {Contents} resource
 * @param {boolean} asMarkdown
 * @param {boolean} folded
 * @returns {HTMLElement}
 */
export function contents({ uri, mimeType, text: whole, blob }, asMarkdown, folded) {
  const type = mimeType ?? (whole === undefined ? '' : 'text/plain');
  const length = whole === undefined ? decodedBytes(blob ?? '') : bytes(whole);
  const facts = [type, size(length, language), whole === undefined ? null : t('block.tokens', { n: tokens(whole) })];
  const head = [lineIcon('file'), h('bdi', null, revealed(uri)), h('small', null, facts.filter(Boolean).join(' · '))];
  const body = h('div.resource-body');
  const fill = () => {
    if (body.firstChild) return;
    if (whole !== undefined)
      show(body, type.startsWith('text/markdown') ? text(whole, asMarkdown, null) : codeBlock(whole));
    else if (type.startsWith('image/')) show(body, image(type, blob ?? ''));
    else if (type.startsWith('audio/')) show(body, audio(type, blob ?? ''));
    else show(body, h('p.hint', null, t('block.binary')));
  };
  if (!folded) {
    fill();
    return h('div.resource', null, h('p.resource-head', null, head), body);
  }
  return h('details.resource', { ontoggle: fill }, h('summary.resource-head', null, head), body);
}

/** @param {Block} block @param {boolean} asMarkdown */
function link(block, asMarkdown) {
  const uri = block.uri ?? '';
  const into = h('div.followed');
  const follow = async () => {
    show(into, h('p.hint', null, t('block.reading')));
    try {
      const result = await client.request('resources/read', { uri });
      show(
        into,
        result.contents.map((/** @type {Contents} */ one) => contents(one, asMarkdown, false)),
      );
    } catch (error) {
      show(
        into,
        h('p.problem', null, lineIcon('warn'), revealed(error instanceof Error ? error.message : String(error))),
      );
    }
  };
  const facts = [block.mimeType, block.size === undefined ? null : size(block.size, language)]
    .filter(Boolean)
    .join(' · ');
  const title = block.title ?? block.name ?? uri;
  return h('div.resource.link', null, [
    h(
      'p.resource-head',
      null,
      lineIcon('link'),
      h('strong', null, h('bdi', null, revealed(title))),
      facts ? h('small', null, facts) : null,
    ),
    block.description ? h('p.about', null, revealed(block.description)) : null,
    h(
      'p.link-foot',
      null,
      h('code', null, webAddress(uri) ? anchor(uri, revealed(uri)) : revealed(uri)),
      h(
        'button',
        { type: 'button', onclick: follow },
        lineIcon('open'),
        t('block.read'),
        h('span.unseen', null, ` ${title}`),
      ),
    ),
    into,
  ]);
}

/** @param {Block['annotations']} given */
function annotations(given) {
  if (!given) return null;
  const notes = [
    given.audience?.length ? t('block.audience', { audience: given.audience.join(', ') }) : null,
    given.priority === undefined ? null : t('block.priority', { priority: String(given.priority) }),
    given.lastModified ? t('block.modified', { time: localTime(given.lastModified) }) : null,
  ].filter((one) => one !== null);
  return notes.length
    ? h(
        'p.annotations',
        null,
        notes.map((one) => h('span', null, one)),
      )
    : null;
}

/** @param {string} iso */
function localTime(iso) {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return iso;
  return new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' }).format(time);
}
