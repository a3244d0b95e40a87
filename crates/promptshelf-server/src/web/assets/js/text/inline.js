// Inline Markdown as DOM nodes.

import { h } from '../dom.js';
import { revealed } from './invisible.js';

// Alternatives in order of precedence: code, link, bold, italic, strikethrough, bare URL. Lengths are bounded, so
// that matching stays linear.
const MARKS =
  /(`+)([^`](?:[^\n]{0,2000}?[^`])?)\1(?!`)|(!?)\[([^[\]\n]{0,500})\]\(([^()\s]{1,2000}(?:\([^()\s]{0,200}\))?)(?: "[^"\n]{0,300}")?\)|(\*\*|__)(?=\S)([^\n]{1,1000}?\S|\S)\6|(?<![\w*])([*_])(?=\S)([^\n*_]{1,1000}?)(?<=\S)\8(?!\w)|~~(?=\S)([^\n~]{1,1000}?)~~|(https?:\/\/[^\s<>"'`)\]]{1,1000}[^\s<>"'`)\].,;:!?])/g;
const DEEPEST = 6;

/**
 * @param {string} text
 * @param {number} [depth]
 * @returns {(string | HTMLElement)[]}
 */
export function inline(text, depth = 0) {
  if (depth > DEEPEST) return revealed(text);
  /** @type {(string | HTMLElement)[]} */
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(MARKS)) {
    const [all, fence, code, image, label, target, strong, strongText, em, emText, struck, bare] = match;
    if (text[match.index - 1] === '\\') continue;
    parts.push(...plain(text.slice(from, match.index)));
    from = match.index + all.length;
    if (fence) parts.push(h('code', null, revealed(code.replace(/^ (.*) $/, '$1'))));
    else if (target !== undefined) parts.push(linked(label, target, Boolean(image), depth));
    else if (strong) parts.push(h('strong', null, inline(strongText, depth + 1)));
    else if (em) parts.push(h('em', null, inline(emText, depth + 1)));
    else if (struck) parts.push(h('s', null, inline(struck, depth + 1)));
    else parts.push(anchor(bare, [bare]));
  }
  parts.push(...plain(text.slice(from)));
  return parts;
}

/** @param {string} text */
function plain(text) {
  return revealed(text.replace(/\\([\\`*_{}[\]()#+\-.!~|<>])/g, '$1'));
}

/**
 * @param {string} label
 * @param {string} target
 * @param {boolean} isImage
 * @param {number} depth
 */
function linked(label, target, isImage, depth) {
  // Remote images are not loaded: a request would reveal the reader to another server.
  if (isImage) return h('span.no-image', { title: target }, label || target);
  return anchor(target, label ? inline(label, depth + 1) : [target]);
}

/**
 * A link to an http(s) URL; other targets are displayed and not linked.
 *
 * @param {string} target
 * @param {(string | HTMLElement)[]} content
 */
export function anchor(target, content) {
  const href = webAddress(target);
  if (!href) return h('span.no-link', { title: target }, content);
  return h('a', { href, target: '_blank', rel: 'noopener noreferrer nofollow', title: href }, content);
}

/** @param {string} target */
export function webAddress(target) {
  try {
    const url = new URL(target);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}
