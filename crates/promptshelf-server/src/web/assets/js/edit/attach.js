// Files that are dropped or chosen: their type and size are checked before anything is kept or sent.

import { h } from '../dom.js';
import { language, t } from '../i18n.js';
import { size } from '../text/measure.js';
import { textOf } from './backend.js';

/** The most bytes: Base64 of them fits into the server's default limit for a body. */
const MOST_BYTES = 3_000_000;

/** Files that have to be text. */
const TEXTS = ['md', 'txt', 'toml', 'yml', 'yaml', 'json', 'csv', 'xml', 'html', 'css', 'svg'];

/** The beginnings of other types, in hexadecimal digits. @type {Record<string, RegExp>} */
const SIGNATURES = {
  png: /^89504e47/,
  jpg: /^ffd8ff/,
  jpeg: /^ffd8ff/,
  gif: /^47494638/,
  webp: /^52494646.{8}57454250/,
  wav: /^52494646.{8}57415645/,
  mp3: /^(494433|ff[ef])/,
  ogg: /^4f676753/,
  flac: /^664c6143/,
  pdf: /^25504446/,
};

export const ACCEPTED = [...TEXTS, ...Object.keys(SIGNATURES)].map((ending) => `.${ending}`).join(',');

/**
 * Returns the bytes of a file, or the reason why it is not accepted.
 *
 * @param {File} file
 * @returns {Promise<Uint8Array | string>}
 */
export async function accepted(file) {
  const { name } = file;
  if (file.size > MOST_BYTES) return t('edit.too-large', { name, most: size(MOST_BYTES, language) });
  const ending = name.slice(name.lastIndexOf('.') + 1).toLowerCase();
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (TEXTS.includes(ending)) return textOf(bytes) === null ? t('edit.not-text', { name }) : bytes;
  const signature = SIGNATURES[ending];
  if (!signature) return t('edit.wrong-type', { name });
  const start = [...bytes.subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return signature.test(start) ? bytes : t('edit.other-type', { name });
}

/** A button that chooses files. @param {(files: FileList | null) => void} chosen */
export function fileButton(chosen) {
  const picker = h('input', { type: 'file', accept: ACCEPTED, hidden: true, tabindex: '-1', 'aria-hidden': 'true' });
  picker.addEventListener('change', () => {
    chosen(picker.files);
    picker.value = '';
  });
  return [h('button', { type: 'button', onclick: () => picker.click() }, t('edit.attach')), picker];
}
