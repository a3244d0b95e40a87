// The parts of CodeMirror that the page's editor uses, as one module. `npm run build` writes it to the page's files.

export {
  acceptCompletion,
  autocompletion,
  closeCompletion,
  completionStatus,
  startCompletion,
} from '@codemirror/autocomplete';
export { defaultKeymap, history, historyKeymap, indentLess, indentMore, redo, undo } from '@codemirror/commands';
export { yamlFrontmatter, yamlLanguage } from '@codemirror/lang-yaml';
export {
  bracketMatching,
  defineLanguageFacet,
  HighlightStyle,
  indentUnit,
  Language,
  LanguageSupport,
  StreamLanguage,
  syntaxHighlighting,
} from '@codemirror/language';
export { toml } from '@codemirror/legacy-modes/mode/toml';
export { forceLinting, linter, lintKeymap, nextDiagnostic, setDiagnostics } from '@codemirror/lint';
export { Compartment, EditorSelection, EditorState, RangeSetBuilder } from '@codemirror/state';
export {
  Decoration,
  drawSelection,
  EditorView,
  highlightSpecialChars,
  hoverTooltip,
  keymap,
  lineNumbers,
  placeholder,
  ViewPlugin,
} from '@codemirror/view';
export { tags } from '@lezer/highlight';
export { parser as markdownParser, Table } from '@lezer/markdown';
