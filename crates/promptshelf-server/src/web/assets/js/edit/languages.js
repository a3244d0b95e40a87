// Syntax colours: Markdown with YAML in front, TOML, YAML, and the templates in all of them.

/** The regions of a template: `{{ … }}`, `{% … %}` and `{# … #}`. */
const MARKS = /** @type {const} */ ([
  ['{{', '}}', 'cm-template'],
  ['{%', '%}', 'cm-template'],
  ['{#', '#}', 'cm-template-comment'],
]);

/**
 * The template regions of a text, in linear time.
 *
 * @param {string} text
 * @returns {{ from: number, to: number, name: string }[]}
 */
export function templateRegions(text) {
  const regions = [];
  /** Ends that do not follow any more. @type {Set<string>} */
  const missing = new Set();
  for (let at = 0; ; ) {
    at = text.indexOf('{', at);
    if (at < 0) return regions;
    const mark = MARKS.find(([open]) => text.startsWith(open, at));
    const end = mark && !missing.has(mark[1]) ? text.indexOf(mark[1], at + 2) : -1;
    if (!mark) at += 1;
    else if (end < 0) {
      missing.add(mark[1]);
      regions.push({ from: at, to: lineEnd(text, at), name: mark[2] });
      at = lineEnd(text, at);
    } else {
      regions.push({ from: at, to: end + 2, name: mark[2] });
      at = end + 2;
    }
  }
}

/** @param {string} text @param {number} from */
function lineEnd(text, from) {
  const end = text.indexOf('\n', from);
  return end < 0 ? text.length : end;
}

/** @param {any} cm @param {string} path */
export function languageOf(cm, path) {
  const ending = path.slice(path.lastIndexOf('.') + 1).toLowerCase();
  if (ending === 'toml') return cm.StreamLanguage.define(cm.toml);
  if (ending === 'yml' || ending === 'yaml') return new cm.LanguageSupport(cm.yamlLanguage);
  if (ending !== 'md') return [];
  const parser = cm.markdownParser.configure([cm.Table]);
  const markdown = new cm.Language(cm.defineLanguageFacet({}), parser, [], 'markdown');
  return cm.yamlFrontmatter({ content: new cm.LanguageSupport(markdown) });
}

/** Marks the templates in the visible text. @param {any} cm */
export function templates(cm) {
  /** @param {any} view */
  const drawn = (view) => {
    const builder = new cm.RangeSetBuilder();
    for (const { from, to } of view.visibleRanges) {
      for (const region of templateRegions(view.state.sliceDoc(from, to)))
        builder.add(from + region.from, from + region.to, cm.Decoration.mark({ class: region.name }));
    }
    return builder.finish();
  };
  return cm.ViewPlugin.fromClass(
    class {
      /** @param {any} view */
      constructor(view) {
        this.decorations = drawn(view);
      }
      /** @param {any} update */
      update(update) {
        if (update.docChanged || update.viewportChanged) this.decorations = drawn(update.view);
      }
    },
    { decorations: (/** @type {any} */ plugin) => plugin.decorations },
  );
}

/** Colours from the page's variables, which follow its theme. @param {any} cm */
export function colours(cm) {
  const { tags } = cm;
  return cm.syntaxHighlighting(
    cm.HighlightStyle.define([
      { tag: tags.heading, fontWeight: '700' },
      { tag: tags.strong, fontWeight: '700' },
      { tag: tags.emphasis, fontStyle: 'italic' },
      { tag: [tags.link, tags.url], color: 'var(--accent)', textDecoration: 'underline' },
      { tag: [tags.monospace, tags.string, tags.special(tags.string)], color: 'var(--warn)' },
      { tag: [tags.definition(tags.propertyName), tags.propertyName, tags.typeName], color: 'var(--accent)' },
      { tag: [tags.comment, tags.meta, tags.processingInstruction, tags.punctuation], color: 'var(--soft)' },
      { tag: [tags.number, tags.bool, tags.atom, tags.keyword], color: 'var(--error)' },
    ]),
  );
}

/** The look of the editor. @param {any} cm */
export function look(cm) {
  return cm.EditorView.theme({
    '&': { color: 'var(--ink)', backgroundColor: 'var(--card)', fontSize: '0.875rem', height: '100%' },
    '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
    '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.6' },
    '.cm-content': { caretColor: 'var(--ink)', padding: '0.75rem 0' },
    '.cm-gutters': { backgroundColor: 'var(--sunk)', color: 'var(--soft)', borderRight: '1px solid var(--line)' },
    '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
    '.cm-cursor': { borderLeftColor: 'var(--ink)' },
    '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
      backgroundColor: 'var(--new)',
    },
    '.cm-template': { backgroundColor: 'var(--tint)', borderRadius: '3px' },
    '.cm-template, .cm-template *': { color: 'var(--accent)' },
    '.cm-template-comment, .cm-template-comment *': { color: 'var(--soft)', fontStyle: 'italic' },
    '.cm-tooltip': {
      backgroundColor: 'var(--card)',
      color: 'var(--ink)',
      border: '1px solid var(--edge)',
      borderRadius: '6px',
      maxWidth: 'min(32rem, 90vw)',
    },
    '.cm-tooltip-hover': { padding: '0.4rem 0.6rem', whiteSpace: 'pre-wrap' },
    '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': {
      backgroundColor: 'var(--accent)',
      color: 'var(--on-accent)',
    },
    '.cm-completionInfo': { padding: '0.4rem 0.6rem', whiteSpace: 'pre-wrap' },
    '.cm-diagnostic': { borderLeftColor: 'var(--error)', whiteSpace: 'pre-wrap' },
  });
}
