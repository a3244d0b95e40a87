// Creates DOM elements. Text is always inserted as text nodes: no module of the page creates markup from a string.

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Child | Children[]} Children lists in lists are as good as one list
 * @typedef {Record<string, any>} Attributes
 */

/**
 * Creates an element: `h('button.primary', { onclick }, 'Go')`.
 *
 * @param {string} tag with classes after dots
 * @param {Attributes | null} [attributes]
 * @param {...Children} children
 * @returns {any} the element; its type follows from the tag, which a string cannot say
 */
export function h(tag, attributes, ...children) {
  const [name, ...classes] = tag.split('.');
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(' ');
  return fill(element, attributes, children);
}

const SVG = 'http://www.w3.org/2000/svg';

/**
 * A 20 by 20 line icon from path data.
 *
 * @param {string} path
 */
export function glyph(path) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 20 20');
  svg.setAttribute('class', 'glyph');
  svg.setAttribute('aria-hidden', 'true');
  const line = document.createElementNS(SVG, 'path');
  line.setAttribute('d', path);
  svg.append(line);
  return svg;
}

/**
 * @param {HTMLElement} element
 * @param {Attributes | null | undefined} attributes
 * @param {Children[]} children
 */
function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'value' || key === 'checked' || key === 'selected') /** @type {any} */ (element)[key] = value;
    else element.setAttribute(key, value === true ? '' : String(value));
  }
  put(element, ...children);
  return element;
}

/**
 * Appends children; `null` and `undefined` are skipped.
 *
 * @param {Element | DocumentFragment} parent
 * @param {...Children} children
 */
export function put(parent, ...children) {
  for (const child of /** @type {any[]} */ (children).flat(Number.POSITIVE_INFINITY)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
}

/**
 * Replaces all children.
 *
 * @param {Element} parent
 * @param {...Children} children
 */
export function show(parent, ...children) {
  parent.replaceChildren();
  put(parent, ...children);
}

let ids = 0;

/** An id that is unique on the page. @param {string} prefix */
export function freshId(prefix) {
  return `${prefix}-${++ids}`;
}

/**
 * Debounces a function: calls it after a quiet period.
 *
 * @template {any[]} A
 * @param {number} quiet
 * @param {(...given: A) => void} call
 */
export function debounced(quiet, call) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @param {A} given */
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), quiet);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}
