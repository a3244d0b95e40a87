//! Changes that an editor asks for: fixes of findings, formatting, and new names; and the places of a name.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ops::Range,
};

use gen_lsp_types::{
    CodeAction, CodeActionKind, DocumentChange, Edit, Location, RenameFile, TextDocumentEdit, TextEdit, Uri,
    WorkspaceEdit,
};
use promptshelf_core::{Code, Diagnostic, PromptDefinition, SourceText, TemplateAnalysis, TemplateWords};
use promptshelf_source::{ForeignSyntax, SourceError, syntax::LIBRARY_FILE};
use similar::{DiffOp, DiffTag, TextDiff};

use super::{Cursor, Place, Workspace, cursor_at, front_matter, is_word, names_in_rules, position};
use crate::{
    Change, Fix, fixes,
    fixes::{Texts, Verdict, fix_all, renamed_to},
    format,
};

/// The calls and statements whose text is a path.
const OF_FILES: [&str; 6] = ["include", "import", "from", "extends", "attach", "link"];

/// Returns the fixes of the findings at a range of a file, and the one of the whole file.
pub(super) fn actions(workspace: &mut Workspace, path: &str, text: &str, range: &Range<usize>) -> Vec<CodeAction> {
    let touched = workspace.found.iter().filter(|found| found.location.source.path == path).filter(|found| {
        let span = found.location.span();
        span.start <= range.end && range.start <= span.end
    });
    let mut offered: Vec<(Fix, CodeAction)> = Vec::new();
    for found in touched {
        for fix in fixes(found) {
            // Several findings can have the same answer.
            if let Some((_, same)) = offered.iter_mut().find(|(other, _)| other.change == fix.change) {
                same.diagnostics.get_or_insert_default().push(workspace.to_lsp(found));
                continue;
            }
            let edit = match &fix.change {
                Change::Edits(edits) => {
                    let edits = edits.iter().map(|edit| text_edit(text, &edit.range, edit.text.clone()));
                    edit_of(workspace, path, edits.collect(), None)
                }
                Change::Rename(to) => edit_of(workspace, path, Vec::new(), Some(to)),
                // An editor has the text of a file already.
                Change::Decode => None,
            };
            let action = CodeAction {
                title: fix.title.clone(),
                kind: Some(CodeActionKind::QuickFix),
                diagnostics: Some(vec![workspace.to_lsp(found)]),
                is_preferred: Some(fix.is_only),
                edit,
                ..CodeAction::default()
            };
            offered.push((fix, action));
        }
    }
    let mut actions: Vec<CodeAction> =
        offered.into_iter().map(|(_, action)| action).filter(|action| action.edit.is_some()).collect();
    if let Some(AllFixed { text: corrected, rename, count }) = all_fixed(workspace, path, text)
        && let Some(edit) = edit_of(workspace, path, line_edits(text, &corrected), rename.as_deref())
    {
        actions.push(CodeAction {
            title: format!("Fix everything that has one answer ({count})"),
            kind: Some(CodeActionKind::SourceFixAll),
            edit: Some(edit),
            ..CodeAction::default()
        });
    }
    actions
}

/// A file after all fixes with one answer.
#[derive(Clone)]
pub(super) struct AllFixed {
    text: String,
    rename: Option<String>,
    count: usize,
}

/// Corrects what has one answer in a file, as `check --fix` does. Editors ask at each movement of the cursor, so the result
/// is kept until the next check.
fn all_fixed(workspace: &mut Workspace, path: &str, text: &str) -> Option<AllFixed> {
    if workspace.all_fixed.as_ref().is_none_or(|(of, _)| of != path) {
        workspace.all_fixed = Some((path.to_owned(), find_all_fixed(workspace, path, text)));
    }
    workspace.all_fixed.as_ref().and_then(|(_, fixed)| fixed.clone())
}

fn find_all_fixed(workspace: &mut Workspace, path: &str, original: &str) -> Option<AllFixed> {
    let mut of_file = workspace.found.iter().filter(|found| found.location.source.path == path);
    of_file.clone().next()?;
    let rename = of_file.find_map(renamed_to);
    let rename = rename.filter(|_| workspace.editor_renames_files());
    let (files, mut first) = (workspace.files().clone(), true);
    let check = |texts: &Texts| -> Result<Verdict, SourceError> {
        if std::mem::take(&mut first) {
            return Ok(Verdict::new(workspace.found.clone(), workspace.catalog()));
        }
        for (path, text) in texts {
            files.set_unsaved(path, Some(text.as_deref().unwrap_or(original)));
        }
        workspace.verdict()
    };
    let is_wanted = |found: &Diagnostic| found.location.source.path == path && found.code != Code::NotUtf8;
    let corrections = fix_all(check, |_| Some(original.to_owned()), is_wanted);
    files.set_unsaved(path, Some(original));
    let corrections = corrections.inspect_err(|error| tracing::warn!("{error}")).ok()?;
    let corrected = corrections.files.into_values().next();
    let count = corrected.as_ref().map_or(0, |file| file.count) + usize::from(rename.is_some());
    let text = corrected.map_or_else(|| original.to_owned(), |file| file.text);
    (count > 0).then_some(AllFixed { text, rename, count })
}

fn text_edit(text: &str, range: &Range<usize>, new_text: String) -> TextEdit {
    TextEdit { range: position::range(text, range), new_text }
}

/// Returns the edits of the lines in which two texts differ.
fn line_edits(old: &str, new: &str) -> Vec<TextEdit> {
    let diff = TextDiff::from_lines(old, new);
    let length = |lines: &[&str]| lines.iter().map(|line| line.len()).sum::<usize>();
    let changed = diff.ops().iter().filter(|op| op.tag() != DiffTag::Equal);
    let edit = |op: &DiffOp| {
        let start = length(&diff.old_slices()[..op.old_range().start]);
        let end = start + length(&diff.old_slices()[op.old_range()]);
        text_edit(old, &(start..end), diff.new_slices()[op.new_range()].concat())
    };
    changed.map(edit).collect()
}

/// Returns the change of a file and of its path; `None` if there is none, or if the editor cannot rename files.
fn edit_of(workspace: &Workspace, path: &str, edits: Vec<TextEdit>, rename: Option<&str>) -> Option<WorkspaceEdit> {
    match rename {
        None if edits.is_empty() => None,
        None => {
            let changes = [(workspace.uri(path).into(), edits)].into();
            Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() })
        }
        Some(to) if workspace.editor_renames_files() => {
            let rename = DocumentChange::RenameFile(rename_of(workspace, path, to));
            let edits = (!edits.is_empty()).then(|| document_edit(workspace, path, edits));
            let changes = edits.into_iter().chain([rename]).collect();
            Some(WorkspaceEdit { document_changes: Some(changes), ..WorkspaceEdit::default() })
        }
        Some(_) => None,
    }
}

fn document_edit(workspace: &Workspace, path: &str, edits: Vec<TextEdit>) -> DocumentChange {
    DocumentChange::TextDocumentEdit(TextDocumentEdit {
        text_document: gen_lsp_types::OptionalVersionedTextDocumentIdentifier {
            version: None,
            text_document_identifier: gen_lsp_types::TextDocumentIdentifier { uri: workspace.uri(path).into() },
        },
        edits: edits.into_iter().map(Edit::TextEdit).collect(),
    })
}

fn rename_of(workspace: &Workspace, from: &str, to: &str) -> RenameFile {
    RenameFile {
        old_uri: workspace.uri(from).into(),
        new_uri: workspace.uri(to).into(),
        options: None,
        annotation_id: None,
    }
}

/// Returns the edit that lays the front matter out; none if it is laid out, or cannot be read.
pub(super) fn formatted(path: &str, text: &str) -> Vec<TextEdit> {
    if ForeignSyntax::for_path(path).is_some() || path.ends_with(".toml") {
        return Vec::new();
    }
    let Ok(laid_out) = format(&SourceText::new(path, text)) else { return Vec::new() };
    if laid_out == text {
        return Vec::new();
    }
    vec![text_edit(text, &(0..text.len()), laid_out)]
}

/// Something with a name that stands in several places.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    /// An argument of the prompts in these files.
    Argument {
        name: String,
        files: BTreeSet<String>,
    },
    Prompt(String),
    /// A partial, or another file of the library, by its path.
    File(String),
}

/// Returns the symbol at a cursor.
pub(super) fn symbol(workspace: &Workspace, path: &str, cursor: &Cursor<'_>) -> Option<Symbol> {
    let word = cursor.word.to_owned();
    if word.is_empty() {
        return None;
    }
    let argument = |users: Vec<&PromptDefinition>| {
        let files = users.into_iter().filter(|user| user.arguments.iter().any(|argument| argument.name == word));
        let files: BTreeSet<String> = files.map(|user| user.origin.source.path.clone()).collect();
        (!files.is_empty()).then(|| Symbol::Argument { name: word.clone(), files })
    };
    match &cursor.place {
        Place::Expression | Place::Statement => argument(workspace.users(path)),
        Place::CallArgument { prompt } => argument(vec![workspace.named(prompt)?]),
        Place::Key { parents } if is_values_of_test(parents) => argument(workspace.users(path)),
        Place::Value { path: keys } if keys.as_slice() == ["arguments", "name"] || is_about_argument(keys) => {
            argument(workspace.users(path))
        }
        Place::String { callee: "prompt" } => workspace.named(&word).map(|_| Symbol::Prompt(word)),
        Place::Value { path: keys } if keys.last() == Some(&"replacement") || keys.as_slice() == ["name"] => {
            workspace.named(&word).map(|_| Symbol::Prompt(word))
        }
        Place::String { callee } if OF_FILES.contains(callee) => workspace.is_file(&word).then_some(Symbol::File(word)),
        Place::Value { path: keys } if is_path(keys) => workspace.is_file(&word).then_some(Symbol::File(word)),
        _ => None,
    }
}

fn is_values_of_test(parents: &[&str]) -> bool {
    parents == ["tests", "arguments"]
}

fn is_about_argument(keys: &[&str]) -> bool {
    matches!(keys, [.., "when"]) || is_argument(keys)
}

/// Whether the value of a key is the name of an argument.
fn is_argument(keys: &[&str]) -> bool {
    matches!(keys, [.., "by"] | [.., "complete", "argument"])
}

/// Whether a text includes a file itself.
pub(super) fn includes(source: &SourceText, path: &str) -> bool {
    let mut uses = Vec::new();
    if source.text.contains(path) {
        named(source, path, &mut uses, |place| match place {
            Place::String { callee } => ["include", "import", "from", "extends"].contains(callee),
            _ => false,
        });
    }
    !uses.is_empty()
}

/// Returns the paths of the partials that files include, also by way of others.
fn included(workspace: &Workspace, files: &BTreeSet<String>) -> HashSet<String> {
    let (mut found, mut open) = (HashSet::new(), Vec::from_iter(files.iter().cloned()));
    let texts = workspace.texts_by_path();
    while let Some(source) = open.pop().map(|path| texts.get(&*path)) {
        let Some(source) = source else { continue };
        for partial in workspace.partials() {
            if !found.contains(&*partial.path) && includes(source, &partial.path) {
                found.insert(partial.path.to_string());
                open.push(partial.path.to_string());
            }
        }
    }
    found
}

fn is_path(keys: &[&str]) -> bool {
    matches!(keys, [.., "file" | "icons" | "src"])
}

/// A place of a name: the path of the file, and the bytes of the name in its text.
type Use = (String, Range<usize>);

/// Returns all places of a symbol, by file and position.
pub(super) fn uses(workspace: &Workspace, symbol: &Symbol) -> Vec<Use> {
    let mut uses = Vec::new();
    let partials = match symbol {
        Symbol::Argument { files, .. } => included(workspace, files),
        _ => HashSet::new(),
    };
    for source in workspace.texts() {
        match symbol {
            Symbol::Argument { name, files } => {
                uses_of_argument(workspace, source, name, (files, &partials), &mut uses);
            }
            Symbol::Prompt(name) if source.path == LIBRARY_FILE => {
                uses.extend(names_in_rules(&source.text, name).into_iter().map(|span| (source.path.clone(), span)));
            }
            Symbol::Prompt(name) => named(source, name, &mut uses, |place| match place {
                Place::String { callee } => *callee == "prompt",
                Place::Value { path } => path.last() == Some(&"replacement") || path.as_slice() == ["name"],
                _ => false,
            }),
            Symbol::File(name) => named(source, name, &mut uses, |place| match place {
                Place::String { callee } => OF_FILES.contains(callee),
                Place::Value { path } => is_path(path),
                _ => false,
            }),
        }
    }
    uses.sort_by(|a, b| (&a.0, a.1.start).cmp(&(&b.0, b.1.start)));
    uses.dedup();
    uses
}

/// Adds the places at which a whole word of the text is the name.
fn named(source: &SourceText, name: &str, uses: &mut Vec<Use>, is_use: impl Fn(&Place<'_>) -> bool) {
    for (start, _) in source.text.match_indices(name) {
        let Cursor { place, word, span, .. } = cursor_at(&source.path, &source.text, start);
        if word == name && span.start == start && is_use(&place) {
            uses.push((source.path.clone(), span));
        }
    }
}

fn uses_of_argument(
    workspace: &Workspace,
    source: &SourceText,
    name: &str,
    (files, partials): (&BTreeSet<String>, &HashSet<String>),
    uses: &mut Vec<Use>,
) {
    let is_own = files.contains(&source.path);
    if is_own {
        named(source, name, uses, |place| match place {
            Place::Key { parents } => is_values_of_test(parents),
            Place::Value { path } => path.as_slice() == ["arguments", "name"] || is_argument(path),
            _ => false,
        });
        conditions(source, name, uses);
    }
    if is_own || partials.contains(&*source.path) {
        let body = front_matter(&source.text).map_or(0, |keys| after_keys(&source.text, keys.end));
        for used in TemplateAnalysis::of(&source.text[body..]).variables.iter().filter(|used| used.name == name) {
            uses.push((source.path.clone(), body + used.span.start..body + used.span.end));
        }
    }
    let is_of = |called: &str| workspace.named(called).is_some_and(|it| files.contains(&it.origin.source.path));
    // Most texts call no prompt.
    if source.text.contains("prompt(") {
        named(source, name, uses, |place| matches!(place, Place::CallArgument { prompt } if is_of(prompt)));
    }
}

/// Adds the places in the values of `when:`, which are expressions.
fn conditions(source: &SourceText, name: &str, uses: &mut Vec<Use>) {
    let text = &source.text;
    let Some(keys) = front_matter(text) else { return };
    let mut at = keys.start;
    for line in text[keys].split_inclusive('\n') {
        if let Some(condition) = line.trim_start().trim_start_matches("- ").strip_prefix("when:") {
            let start = at + line.len() - condition.len();
            for (found, _) in condition.match_indices(name) {
                let (before, after) = (&condition[..found], &condition[found + name.len()..]);
                let quotes = before.matches('"').count() + before.matches('\'').count();
                let is_whole = !before.ends_with(|c| is_word(c) || c == '.') && !after.starts_with(is_word);
                // In a quoted condition, the outer quotation mark opens no text.
                let outer = usize::from(condition.trim_start().starts_with(['"', '\'']));
                if is_whole && (quotes - outer.min(quotes)) % 2 == 0 {
                    uses.push((source.path.clone(), start + found..start + found + name.len()));
                }
            }
        }
        at += line.len();
    }
}

/// Returns the offset after the closing line of front matter.
fn after_keys(text: &str, keys_end: usize) -> usize {
    text[keys_end..].find('\n').map_or(text.len(), |newline| keys_end + newline + 1)
}

pub(super) fn locations(workspace: &Workspace, uses: Vec<Use>) -> Vec<Location> {
    let texts = workspace.texts_by_path();
    let location = |(path, span): Use| {
        let source = texts.get(&*path)?;
        Some(Location { uri: workspace.uri(&path).into(), range: position::range(&source.text, &span) })
    };
    uses.into_iter().filter_map(location).collect()
}

/// Returns the edit that gives a symbol another name.
///
/// # Errors
///
/// The reason why it cannot have the name.
pub(super) fn renamed(workspace: &Workspace, symbol: &Symbol, new: &str) -> Result<WorkspaceEdit, String> {
    let uses = uses(workspace, symbol);
    let file = match symbol {
        Symbol::Argument { name, files } => {
            check_argument(workspace, name, files, new, &uses)?;
            None
        }
        Symbol::Prompt(name) => moved(workspace, name, new)?,
        Symbol::File(path) => {
            if new.is_empty() || new.starts_with('/') || new.split('/').any(|part| matches!(part, "" | "." | "..")) {
                return Err(format!("`{new}` is not a path inside of the library, such as `_shared/tone.md`"));
            }
            if workspace.is_file(new) || workspace.texts().any(|source| *source.path == *new) {
                return Err(format!("the file `{new}` exists"));
            }
            Some((path.clone(), new.to_owned()))
        }
    };
    if file.is_some() && !workspace.editor_renames_files() {
        return Err("this editor cannot rename files: rename the file, and its references are reported".to_owned());
    }
    let mut changes: HashMap<String, Vec<TextEdit>> = HashMap::new();
    let texts = workspace.texts_by_path();
    for (path, span) in uses {
        let Some(source) = texts.get(&*path) else { continue };
        changes.entry(path).or_default().push(text_edit(&source.text, &span, new.to_owned()));
    }
    let Some((from, to)) = file else {
        let changes = changes.into_iter().map(|(path, edits)| (Uri::from(workspace.uri(&path)), edits)).collect();
        return Ok(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() });
    };
    let mut all: Vec<DocumentChange> =
        changes.into_iter().map(|(path, edits)| document_edit(workspace, &path, edits)).collect();
    all.push(DocumentChange::RenameFile(rename_of(workspace, &from, &to)));
    Ok(WorkspaceEdit { document_changes: Some(all), ..WorkspaceEdit::default() })
}

fn check_argument(
    workspace: &Workspace,
    name: &str,
    files: &BTreeSet<String>,
    new: &str,
    uses: &[Use],
) -> Result<(), String> {
    let is_name = new.starts_with(|c: char| c.is_alphabetic() || c == '_') && new.chars().all(is_word);
    if !is_name {
        return Err(format!("`{new}` is not a name of an argument: use letters, digits and `_`, such as `user_name`"));
    }
    if TemplateWords::find(TemplateWords::ALL.functions, new).is_some() && new != "prompt" {
        return Err(format!("`{new}` is a function of templates: choose another name"));
    }
    let definitions = || files.iter().filter_map(|file| workspace.definition(file));
    if let Some(taken) = definitions().find(|it| it.arguments.iter().any(|argument| argument.name == new)) {
        return Err(format!("`{}` has an argument `{new}`: choose another name", taken.origin.source.path));
    }
    // A partial takes its values from every prompt that includes it.
    for (path, _) in uses.iter().filter(|(path, _)| !files.contains(path) && workspace.is_partial(path)) {
        let others = workspace.users(path);
        let other = others.iter().find(|user| {
            !files.contains(&user.origin.source.path) && user.arguments.iter().any(|argument| argument.name == name)
        });
        if let Some(other) = other {
            let other = &other.origin.source.path;
            return Err(format!(
                "`{path}` uses `{name}` for `{other}`, too: rename the argument from within `{path}`, for all of them"
            ));
        }
    }
    Ok(())
}

/// Returns the new path of a prompt without a `name:`, whose name is that of its file.
fn moved(workspace: &Workspace, name: &str, new: &str) -> Result<Option<(String, String)>, String> {
    if workspace.named(new).is_some() {
        return Err(format!("there is a prompt `{new}`: choose another name"));
    }
    promptshelf_core::PromptName::new(new).map_err(|error| error.to_string())?;
    let Some(prompt) = workspace.named(name) else { return Ok(None) };
    let path = &prompt.origin.source.path;
    if prompt.origin.spans.get("name").is_some() {
        return Ok(None);
    }
    let file = path.rfind('/').map_or(0, |slash| slash + 1);
    // The name of the file, up to the ending that its format has: the longest part with which the name ends.
    let ends = path[file..].match_indices('.').map(|(dot, _)| file + dot);
    let end = ends.filter(|end| *end > file && name.ends_with(&path[file..*end])).max();
    let end = end.ok_or_else(|| format!("the name of `{name}` comes from its folder: rename the folder"))?;
    let folder = &name[..name.len() - (end - file)];
    let stem = new.strip_prefix(folder).filter(|stem| !stem.is_empty());
    let stem = stem.ok_or_else(|| {
        format!("the name of `{name}` begins with its folder: choose one that begins with `{folder}`, or move the file")
    })?;
    Ok(Some((path.clone(), format!("{}{stem}{}", &path[..file], &path[end..]))))
}

/// Returns the bytes of the name at a position that can be given another one.
pub(super) fn renamable(workspace: &Workspace, path: &str, cursor: &Cursor<'_>) -> Option<Range<usize>> {
    symbol(workspace, path, cursor).map(|_| cursor.span.clone())
}
