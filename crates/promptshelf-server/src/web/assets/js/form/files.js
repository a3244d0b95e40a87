// Inserts the text of dropped or chosen files into a field. Only that text is ever sent.

import { h } from '../dom.js';
import { language, t } from '../i18n.js';
import { size } from '../text/measure.js';
import { note } from '../view/announce.js';
import { lineIcon } from '../view/glyphs.js';

// The server's default limit for one value is 1 MiB.
const MOST_BYTES = 1 << 20;

/**
 * Makes a text area accept files, and returns the button that chooses one.
 *
 * @param {HTMLTextAreaElement} area
 * @param {() => void} changed
 */
export function takesFiles(area, changed) {
  const read = async (/** @type {FileList | null | undefined} */ files) => {
    const texts = [];
    for (const file of files ?? []) {
      const text = await textOf(file);
      if (text !== null) texts.push(text);
    }
    if (!texts.length) return;
    const before = area.value && !area.value.endsWith('\n') ? `${area.value}\n` : area.value;
    area.value = before + texts.join('\n');
    changed();
    note(t('file.read', { n: texts.length }));
  };
  area.addEventListener('dragover', (event) => {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    area.classList.add('dropping');
  });
  area.addEventListener('dragleave', () => area.classList.remove('dropping'));
  area.addEventListener('drop', (event) => {
    area.classList.remove('dropping');
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    void read(event.dataTransfer.files);
  });
  const picker = h('input', { type: 'file', multiple: true, hidden: true, tabindex: '-1', 'aria-hidden': 'true' });
  picker.addEventListener('change', () => void read(picker.files));
  return h(
    'span.pick',
    null,
    h('button.quiet', { type: 'button', onclick: () => picker.click() }, lineIcon('file'), t('file.choose')),
    picker,
  );
}

/** @param {File} file */
async function textOf(file) {
  if (file.size > MOST_BYTES) {
    note(t('file.large', { name: file.name, most: size(MOST_BYTES, language) }));
    return null;
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
    if (!text.includes('\0')) return text;
  } catch {
    // Not UTF-8, so not a text that can be sent.
  }
  note(t('file.binary', { name: file.name }));
  return null;
}
