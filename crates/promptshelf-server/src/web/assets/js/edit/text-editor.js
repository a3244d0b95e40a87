// A text editor: CodeMirror with the engine of the server's language server.
//
// It is in a shadow root, where CodeMirror uses constructable style sheets: the page's policy refuses `style` elements.

import { t } from '../i18n.js';
import { colours, languageOf, look, templates } from './languages.js';

// Not a literal, because the module is not part of the type check.
const BUNDLE = new URL('../../vendor/codemirror.js', import.meta.url).href;

/**
 * @typedef {import('./backend.js').Position} Position
 * @typedef {{ range: { start: Position, end: Position }, severity?: number, message: string, code?: string,
 *   relatedInformation?: { location: { uri: string } }[] }} Found
 * @typedef {object} Options
 * @property {string} path
 * @property {string} text
 * @property {boolean} isReadOnly
 * @property {(text: string) => void} changed
 * @property {(text: string, place: Position) => Promise<any[]>} complete
 * @property {(text: string, place: Position) => Promise<any>} hover
 */

/** Words for the kinds of completions in the Language Server Protocol. @type {Record<number, string>} */
const KINDS = { 3: 'function', 6: 'variable', 9: 'namespace', 10: 'property', 12: 'constant', 14: 'keyword' };
const SEVERITIES = ['error', 'error', 'warning', 'info', 'hint'];

/** The offset at which the body begins, behind the front matter. @param {any} doc */
function bodyStart(doc) {
  if (!/^\uFEFF?---\s*$/.test(doc.line(1).text)) return 0;
  for (let number = 2; number <= doc.lines; number++) {
    const { text, to } = doc.line(number);
    if (/^---\s*$/.test(text)) return to + 1;
  }
  return doc.length + 1;
}

/** @param {HTMLElement} host @param {Options} options @param {AbortSignal} until */
export async function textEditor(host, { path, text, isReadOnly, changed, complete, hover }, until) {
  /** @type {any} */
  const cm = await import(BUNDLE);
  if (until.aborted) return null;
  const { EditorState, EditorView } = cm;
  const root = host.attachShadow({ mode: 'open' });
  const place = document.createElement('div');
  place.className = 'place';
  // The only rule outside of CodeMirror's own: the editor fills its host.
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('.place { height: 100%; }');
  root.adoptedStyleSheets = [sheet];
  root.append(place);
  // Line breaks of Windows are kept if all are; otherwise carriage returns are characters of their lines.
  const breaks = text.includes('\r\n') && !/(^|[^\r])\n|\r(?!\n)/.test(text) ? '\r\n' : '\n';

  /** @param {any} state @param {number} at @returns {Position} */
  const positionOf = (state, at) => {
    const line = state.doc.lineAt(at);
    return { line: line.number - 1, character: at - line.from };
  };
  /** @param {any} doc @param {Position} position */
  const offsetOf = (doc, { line, character }) => {
    const found = doc.line(Math.min(line + 1, doc.lines));
    return found.from + Math.min(character, found.length);
  };
  /** @param {any} context */
  const source = async (context) => {
    if (!context.explicit && !context.matchBefore(/[\w{|"'/(.-]$/)) return null;
    const items = await complete(context.state.sliceDoc(), positionOf(context.state, context.pos)).catch(() => []);
    if (!items.length || context.aborted) return null;
    const start = items[0].textEdit?.range.start;
    return {
      from: start ? offsetOf(context.state.doc, start) : context.pos,
      validFor: /^[\w./-]*$/,
      options: items.map((/** @type {any} */ item) => ({
        label: item.label,
        type: KINDS[item.kind],
        apply: item.textEdit?.newText ?? item.label,
        // Markdown: its example is for editors that lay it out.
        info: item.documentation?.value.split('\n\n```')[0],
      })),
    };
  };
  const explained = cm.hoverTooltip(async (/** @type {any} */ view, /** @type {number} */ at) => {
    const found = await hover(view.state.sliceDoc(), positionOf(view.state, at)).catch(() => null);
    if (!found) return null;
    const create = () => {
      const dom = document.createElement('div');
      dom.textContent = found.contents.value;
      return { dom };
    };
    return { pos: at, create };
  });
  let hasCursor = false;
  const state = EditorState.create({
    doc: text,
    extensions: [
      EditorState.lineSeparator.of(breaks),
      EditorState.readOnly.of(isReadOnly),
      EditorState.phrases.of({ Completions: t('edit.completions'), Diagnostics: t('edit.problems') }),
      EditorView.contentAttributes.of({ 'aria-label': t('edit.text', { path }), tabindex: '0' }),
      EditorView.lineWrapping,
      EditorView.updateListener.of((/** @type {any} */ update) => {
        if (update.docChanged) changed(update.state.sliceDoc());
        hasCursor ||= update.focusChanged;
      }),
      cm.lineNumbers(),
      cm.history(),
      cm.drawSelection(),
      cm.highlightSpecialChars(),
      cm.bracketMatching(),
      cm.indentUnit.of('  '),
      cm.autocompletion({ override: [source] }),
      explained,
      languageOf(cm, path),
      templates(cm),
      colours(cm),
      look(cm),
      // The Tab key stays with the browser: it leaves the editor.
      cm.keymap.of([...cm.lintKeymap, ...cm.historyKeymap, ...cm.defaultKeymap]),
    ],
  });
  const view = new EditorView({ state, parent: place, root });
  until.addEventListener('abort', () => view.destroy());
  return {
    text: () => view.state.sliceDoc(),
    focus: () => view.focus(),
    /** Replaces the text, as one step that can be undone. @param {string} next */
    set(next) {
      const { head } = view.state.selection.main;
      const insert = view.state.toText(next);
      const selection = { anchor: Math.min(head, insert.length) };
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert }, selection });
    },
    /** Inserts at the cursor, or at the end while it is not in the body. @param {string} words */
    insert(words) {
      const { doc, selection } = view.state;
      const isInBody = hasCursor && selection.main.from >= bodyStart(doc);
      if (!isInBody) view.dispatch({ selection: { anchor: doc.length } });
      const isInLine = !isInBody && doc.line(doc.lines).length > 0;
      view.dispatch(view.state.replaceSelection(isInLine ? `\n${words}` : words), { scrollIntoView: true });
      view.focus();
    },
    /** @param {Position} position */
    go(position) {
      view.dispatch({ selection: { anchor: offsetOf(view.state.doc, position) }, scrollIntoView: true });
      view.focus();
    },
    /** @param {Found[]} found */
    mark(found) {
      const list = found.map(({ range, severity = 1, message }) => {
        const from = offsetOf(view.state.doc, range.start);
        const to = Math.max(from, offsetOf(view.state.doc, range.end));
        return { from, to, severity: SEVERITIES[severity], message };
      });
      view.dispatch(cm.setDiagnostics(view.state, list));
    },
  };
}
