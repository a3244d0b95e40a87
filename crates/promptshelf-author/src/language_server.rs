//! A language server: diagnostics with fixes, completion, hover, definitions, references, new names, formatting, symbols,
//! folding, coloured templates and defaults in editors (Language Server Protocol 3.17).
//!
//! Open files replace the files on disk, saved or not, and go through the same check as a load. One
//! thread is enough: only what has changed is read, checked, reviewed and sent again.
//!
//! Framing and the protocol's types are the work of `lsp-server` and `gen-lsp-types`, which rust-analyzer
//! uses, too.

mod changes;
mod completion;
mod hover;
mod keys;
mod outline;
mod position;
mod schema_query;
#[cfg(test)]
#[path = "language_server/tests.rs"]
mod session_tests;
mod transport;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use gen_lsp_types::{
    self as lsp, CodeActionKind, CodeActionOptions, CodeActionParams, CodeActionProvider, CodeDescription,
    CompletionOptions, CompletionParams, CompletionResponse, DefinitionParams, DefinitionProvider,
    DidChangeTextDocumentParams, DidChangeWatchedFilesParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    DocumentFormattingParams, DocumentFormattingProvider, DocumentSymbolParams, DocumentSymbolProvider,
    DocumentSymbolResponse, FileChangeType, FileEvent, FoldingRangeParams, FoldingRangeProvider, Full, HoverParams,
    HoverProvider, InitializeParams, InitializeResult, InlayHintParams, InlayHintProvider, Position,
    PrepareRenameParams, PublishDiagnosticsParams, ReferenceParams, ReferencesProvider, RenameOptions, RenameParams,
    RenameProvider, SemanticTokens, SemanticTokensLegend, SemanticTokensOptions, SemanticTokensParams,
    SemanticTokensProvider, ServerCapabilities, ServerInfo, TextDocumentContentChangeEvent as Change, TextDocumentItem,
    TextDocumentPositionParams, TextDocumentSync, TextDocumentSyncKind, Uri, WorkspaceFolders, WorkspaceSymbolParams,
    WorkspaceSymbolProvider,
};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use promptshelf_core::{
    Catalog, Code, Definitions, Diagnostic, Location, Prompt, PromptDefinition, Severity, SourceText, check,
};
use promptshelf_source::{
    Files, Fingerprint, ForeignSyntax, MemoryTree, Source as _, SourceError, syntax::LIBRARY_FILE,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    fixes::{self, Edit, Verdict},
    review::Reviewer,
    schema,
};

/// A language server for one editor.
///
/// ```no_run
/// use promptshelf_author::LanguageServer;
///
/// # fn main() -> Result<(), promptshelf_author::LanguageServerError> {
/// LanguageServer::new().library("prompts").serve_stdio()
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LanguageServer {
    library: Option<PathBuf>,
    schemas: WorkspaceOptions,
}

impl Default for LanguageServer {
    fn default() -> LanguageServer {
        LanguageServer::new()
    }
}

impl LanguageServer {
    /// Creates a server that finds libraries in the editor's folders.
    #[must_use]
    pub fn new() -> LanguageServer {
        LanguageServer {
            library: None,
            schemas: WorkspaceOptions {
                prompt: schema::prompt(),
                library: schema::library(),
                granted_roots: Vec::new(),
                renames_files: false,
            },
        }
    }

    /// Serves this library instead of those in the editor's folders.
    #[must_use]
    pub fn library(mut self, folder: impl Into<PathBuf>) -> LanguageServer {
        self.library = Some(folder.into());
        self
    }

    /// Replaces the JSON Schema by which keys of `promptshelf.toml` are completed.
    #[must_use]
    pub fn library_schema(mut self, schema: Value) -> LanguageServer {
        self.schemas.library = schema;
        self
    }

    /// Grants folders outside of a library, so that its `[roots]` may point to them or below them.
    #[must_use]
    pub fn granted_roots(mut self, folders: impl IntoIterator<Item = PathBuf>) -> LanguageServer {
        self.schemas.granted_roots = folders.into_iter().collect();
        self
    }

    /// Serves an editor on stdin and stdout until it shuts the server down.
    ///
    /// # Errors
    ///
    /// [`LanguageServerError`] if the connection ends early, or the editor violates the protocol.
    pub fn serve_stdio(self) -> Result<(), LanguageServerError> {
        let (connection, threads) = transport::stdio();
        let outcome = self.serve(&connection);
        drop(connection);
        outcome?;
        Ok(threads.join()?)
    }

    fn serve(self, connection: &Connection) -> Result<(), LanguageServerError> {
        let (id, params) = connection.initialize_start().map_err(LanguageServerError::protocol)?;
        let operations = &params["capabilities"]["workspace"]["workspaceEdit"]["resourceOperations"];
        let renames_files = operations.as_array().is_some_and(|all| all.iter().any(|it| it == "rename"));
        let watching = params["capabilities"]["workspace"]["didChangeWatchedFiles"].clone();
        let params: InitializeParams = serde_json::from_value(params).map_err(LanguageServerError::protocol)?;
        let result = InitializeResult {
            capabilities: capabilities(),
            server_info: Some(ServerInfo {
                name: "promptshelf".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
        };
        let result = serde_json::to_value(result).map_err(LanguageServerError::protocol)?;
        connection.initialize_finish(id, result).map_err(LanguageServerError::protocol)?;
        let folders = self.library.map_or_else(|| folders(&params), |library| vec![absolute(library)]);
        let schemas = WorkspaceOptions { renames_files, ..self.schemas };
        let mut session = Session::new(connection, folders, schemas);
        session.start();
        if watching["dynamicRegistration"] == true {
            session.watch(watching["relativePatternSupport"] == true)?;
        }
        session.run()
    }
}

fn capabilities() -> ServerCapabilities {
    let triggers = ["{", "|", "\"", "'", "/", "(", ",", " "];
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSync::Kind(TextDocumentSyncKind::Incremental)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(triggers.map(str::to_owned).to_vec()),
            ..CompletionOptions::default()
        }),
        hover_provider: Some(HoverProvider::Bool(true)),
        definition_provider: Some(DefinitionProvider::Bool(true)),
        references_provider: Some(ReferencesProvider::Bool(true)),
        rename_provider: Some(RenameProvider::RenameOptions(RenameOptions {
            prepare_provider: Some(true),
            ..RenameOptions::default()
        })),
        code_action_provider: Some(CodeActionProvider::CodeActionOptions(CodeActionOptions {
            code_action_kinds: Some(vec![CodeActionKind::QuickFix, CodeActionKind::SourceFixAll]),
            ..CodeActionOptions::default()
        })),
        document_formatting_provider: Some(DocumentFormattingProvider::Bool(true)),
        document_symbol_provider: Some(DocumentSymbolProvider::Bool(true)),
        workspace_symbol_provider: Some(WorkspaceSymbolProvider::Bool(true)),
        folding_range_provider: Some(FoldingRangeProvider::Bool(true)),
        inlay_hint_provider: Some(InlayHintProvider::Bool(true)),
        semantic_tokens_provider: Some(SemanticTokensProvider::SemanticTokensOptions(SemanticTokensOptions {
            legend: SemanticTokensLegend {
                token_types: outline::TOKEN_TYPES.map(str::to_owned).to_vec(),
                token_modifiers: Vec::new(),
            },
            full: Some(Full::Bool(true)),
            ..SemanticTokensOptions::default()
        })),
        ..ServerCapabilities::default()
    }
}

/// The page that explains the codes of findings.
const EXPLAINED: &str = "https://promptshelf.github.io/promptshelf/reference/diagnostics.html";

/// Returns the folders that the editor has open; the current folder if it names none.
fn folders(params: &InitializeParams) -> Vec<PathBuf> {
    let open = match &params.workspace_folders_initialize_params.workspace_folders {
        Some(WorkspaceFolders::WorkspaceFolderList(folders)) => {
            folders.iter().filter_map(|folder| position::path_of(folder.uri.as_ref())).collect()
        }
        _ => Vec::new(),
    };
    if !open.is_empty() {
        return open;
    }
    #[expect(deprecated, reason = "older editors send `rootUri` only")]
    let root = params.root_uri.as_ref().and_then(|uri| position::path_of(uri.as_ref()));
    vec![root.unwrap_or_else(|| absolute(PathBuf::from(".")))]
}

fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// The connection with the editor failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LanguageServerError {
    /// The editor closed the connection early, or sent a malformed message.
    #[error("the connection with the editor failed: {0}")]
    Protocol(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Reading or writing failed.
    #[error("cannot exchange messages with the editor: {0}")]
    Io(#[from] std::io::Error),
}

impl LanguageServerError {
    fn protocol(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> LanguageServerError {
        LanguageServerError::Protocol(error.into())
    }
}

// A position in a file that is being edited, with the syntax around it.
// Positions are found by [`locate`](super::locate) and [`keys`](super::keys).

#[derive(Debug, PartialEq)]
struct Cursor<'t> {
    place: Place<'t>,
    /// Bytes of the word around the position, or of the inside of the string.
    span: Range<usize>,
    word: &'t str,
    /// The position itself, in bytes.
    offset: usize,
}

/// The kind of a position: it decides about completions and explanations.
#[derive(Debug, PartialEq)]
enum Place<'t> {
    /// A key; `parents` are the keys above it.
    Key {
        parents: Vec<&'t str>,
    },
    /// The value of the last key of `path`.
    Value {
        path: Vec<&'t str>,
    },
    /// A string that is passed to a function, or to a statement such as `include`.
    String {
        callee: &'t str,
    },
    /// A string that is compared with an argument, or is the value of one in a call of `prompt("name", …)`.
    Choice {
        prompt: Option<&'t str>,
        argument: &'t str,
    },
    /// A filter: after `|`.
    Filter,
    /// A test: after `is`.
    Test,
    /// The name of an argument in a call of `prompt("name", …)`.
    CallArgument {
        prompt: &'t str,
    },
    Statement,
    Expression,
    Text,
}

impl Cursor<'_> {
    fn is_in_brackets(&self, text: &str) -> bool {
        text[..self.span.start].ends_with('[')
    }

    /// Returns the bytes of the word before the cursor.
    fn typed(&self) -> Range<usize> {
        self.span.start..self.offset.max(self.span.start)
    }
}

/// Returns the text of the file at `path` with every reference to the file `from` replaced by `to`: in `include`,
/// `import`, `extends`, `attach`, `link` and in keys such as `icons`. `None` if the text has no such reference.
///
/// ```
/// use promptshelf_author::rename_file_references;
///
/// let text = "{% include \"_a.md\" %} _a.md {{ attach('_a.md') }}";
/// let renamed = rename_file_references("hello.md", text, "_a.md", "_shared/b.md").unwrap();
/// assert_eq!(renamed, "{% include \"_shared/b.md\" %} _a.md {{ attach('_shared/b.md') }}");
/// ```
#[must_use]
pub fn rename_file_references(path: &str, text: &str, from: &str, to: &str) -> Option<String> {
    replaced(path, text, from, to, |place| match place {
        Place::String { callee } => ["include", "import", "from", "extends", "attach", "link"].contains(callee),
        Place::Value { path } => path.last().is_some_and(|key| ["file", "icons", "src"].contains(key)),
        _ => false,
    })
}

/// Returns the text of the file at `path` with the prompt `from` replaced by `to`: in every call of `prompt`, as the
/// `replacement` of another prompt, and in the access rules of `promptshelf.toml`. `None` if the text does not name it.
///
/// ```
/// use promptshelf_author::rename_prompt_references;
///
/// let text = "greet {{ prompt('greet') }}";
/// assert_eq!(rename_prompt_references("a.md", text, "greet", "hello").unwrap(), "greet {{ prompt('hello') }}");
/// ```
#[must_use]
pub fn rename_prompt_references(path: &str, text: &str, from: &str, to: &str) -> Option<String> {
    if path == LIBRARY_FILE {
        let names = names_in_rules(text, from);
        return (!names.is_empty()).then(|| with_replaced(text, names, to));
    }
    replaced(path, text, from, to, |place| match place {
        Place::String { callee } => *callee == "prompt",
        Place::Value { path } => path.last() == Some(&"replacement"),
        _ => false,
    })
}

/// Returns where access rules name a prompt. Patterns that fit it are not names.
fn names_in_rules(text: &str, name: &str) -> Vec<Range<usize>> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Library {
        access: Vec<Rule>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Rule {
        prompts: Vec<toml::Spanned<String>>,
    }
    let library: Library = toml::from_str(text).unwrap_or_default();
    let named = library.access.iter().flat_map(|rule| &rule.prompts).filter(|prompt| prompt.get_ref() == name);
    // Without the quotes; a name that is written with escapes is none that a person would write.
    let spans = named.map(|prompt| prompt.span().start + 1..prompt.span().end - 1);
    spans.filter(|span| text.get(span.clone()) == Some(name)).collect()
}

fn with_replaced(text: &str, places: Vec<Range<usize>>, to: &str) -> String {
    let edit = |range| Edit { range, text: to.to_owned() };
    fixes::edited(text, &places.into_iter().map(edit).collect::<Vec<_>>())
}

fn replaced(path: &str, text: &str, from: &str, to: &str, is_reference: impl Fn(&Place<'_>) -> bool) -> Option<String> {
    if from.is_empty() {
        return None;
    }
    let is_named = |start: usize| {
        let Cursor { place, word, .. } = cursor_at(path, text, start);
        word == from && is_reference(&place)
    };
    let starts = text.match_indices(from).map(|(start, _)| start).filter(|start| is_named(*start));
    let places: Vec<_> = starts.map(|start| start..start + from.len()).collect();
    (!places.is_empty()).then(|| with_replaced(text, places, to))
}

// Finds the syntax around a position in a prompt file.
// Works on the text alone: while a file is being edited it can rarely be parsed.

fn cursor_at<'t>(path: &str, text: &'t str, offset: usize) -> Cursor<'t> {
    let offset = text.floor_char_boundary(offset.min(text.len()));
    if path == LIBRARY_FILE || path.ends_with(".toml") {
        return keys::in_toml(text, offset);
    }
    if path.ends_with(".yml") || path.ends_with(".yaml") {
        return keys::in_yaml(text, 0, offset);
    }
    match front_matter(text) {
        Some(keys) if offset < keys.start => Cursor { place: Place::Text, span: 0..0, word: "", offset },
        Some(keys) if keys.contains(&offset) || offset == keys.end => keys::in_yaml(text, keys.start, offset),
        // Formats of other programs have no template language.
        _ if ForeignSyntax::for_path(path).is_some() => {
            let word = word_around(text, offset, is_word);
            Cursor { place: Place::Text, word: &text[word.clone()], span: word, offset }
        }
        keys => in_body(text, keys.map_or(0, |keys| keys.end), offset),
    }
}

/// Returns the bytes between the `---` lines; up to the end while the second one is missing.
fn front_matter(text: &str) -> Option<Range<usize>> {
    let first = text.split_inclusive('\n').next().filter(|line| line.trim_end() == "---")?;
    let mut at = first.len();
    for line in text[at..].split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some(first.len()..at);
        }
        at += line.len();
    }
    Some(first.len()..text.len())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word_around(text: &str, offset: usize, is_part: impl Fn(char) -> bool) -> Range<usize> {
    let before = text[..offset].trim_end_matches(&is_part).len();
    let after = text[offset..].len() - text[offset..].trim_start_matches(&is_part).len();
    before..offset + after
}

fn in_body<'t>(text: &'t str, body: usize, offset: usize) -> Cursor<'t> {
    let word = word_around(text, offset, is_word);
    let found = |place, span: Range<usize>| Cursor { place, word: &text[span.clone()], span, offset };
    let before = &text[body..offset];
    if is_raw(before) {
        return found(Place::Text, word);
    }
    let open = before.rfind("{{").max(before.rfind("{%"));
    let Some(open) = open.filter(|open| !before[open + 2..].contains("}}") && !before[open + 2..].contains("%}"))
    else {
        return found(Place::Text, word);
    };
    let is_statement = before[open..].starts_with("{%");
    let inside = &before[open + 2..];
    let base = body + open + 2;
    if let Some((quote, start)) = unclosed(inside) {
        let end = text[offset..].find([quote, '\n']).map_or(text.len(), |length| offset + length);
        let span = base + start..end;
        let code = inside[..start - 1].trim_end();
        if let Some((prompt, argument)) = passed(code) {
            return found(Place::Choice { prompt: Some(prompt), argument }, span);
        }
        if let Some(argument) = compared(code, text[end..].strip_prefix(quote).unwrap_or_default()) {
            return found(Place::Choice { prompt: None, argument }, span);
        }
        return found(Place::String { callee: last_word(code.trim_end_matches(['(', '[']).trim_end()) }, span);
    }
    let code = inside[..word.start.saturating_sub(base).min(inside.len())].trim_start_matches('-').trim_end();
    let last = last_word(code);
    let place = if code.ends_with('|') {
        Place::Filter
    } else if last == "is" || code.ends_with("is not") {
        Place::Test
    } else if let Some(prompt) = call_of_prompt(code) {
        Place::CallArgument { prompt }
    } else if is_statement && code.is_empty() {
        Place::Statement
    } else {
        Place::Expression
    };
    found(place, word)
}

/// Whether a text ends inside of `{% raw %}`.
fn is_raw(before: &str) -> bool {
    before.match_indices("{%").fold(false, |is_raw, (at, _)| {
        let word = before[at + 2..].trim_start_matches(['-', '+']).trim_start();
        if is_raw { !word.starts_with("endraw") } else { word.starts_with("raw") }
    })
}

/// Returns the word at the end; empty without one.
fn last_word(code: &str) -> &str {
    code.rsplit(|c: char| !is_word(c)).next().unwrap_or_default()
}

/// Returns the prompt and the argument whose value begins after the code: `prompt("greet", tone=`.
fn passed(code: &str) -> Option<(&str, &str)> {
    let name = code.strip_suffix('=')?.trim_end();
    let argument = last_word(name);
    let before = name[..name.len() - argument.len()].trim_end();
    (!argument.is_empty()).then_some((call_of_prompt(before)?, argument))
}

/// Returns the variable that is compared with a string between two parts of an expression: `tone == `, `tone not in ["a", `
/// and `tone is eq(`, or, after the string, ` == tone` and ` in tones`.
fn compared<'t>(before: &'t str, after: &'t str) -> Option<&'t str> {
    let variable = |code: &'t str| {
        let mut code = code.trim_end();
        // `tone | lower`
        while let Some(value) = code.strip_suffix(last_word(code)).and_then(|rest| rest.trim_end().strip_suffix('|')) {
            code = value.trim_end();
        }
        Some(last_word(code)).filter(|word| !word.is_empty())
    };
    if let Some(code) = before.strip_suffix("==").or(before.strip_suffix("!=")) {
        return variable(code);
    }
    let mut code = before;
    while let Some(items) = code.strip_suffix(',').map(str::trim_end)
        && let Some(quote) = items.chars().next_back().filter(|quote| matches!(quote, '"' | '\''))
    {
        code = items[..items.len() - 1].rsplit_once(quote)?.0.trim_end();
    }
    if let Some(list) = code.strip_suffix(['[', '(']).map(str::trim_end) {
        let operator = last_word(list);
        let value = list[..list.len() - operator.len()].trim_end();
        let value = match operator {
            // `is in([`
            "in" | "eq" | "equalto" | "ne" | "sameas" => Some(value),
            "" => list.strip_suffix('(').and_then(|list| list.trim_end().strip_suffix(" in")),
            _ => None,
        };
        if let Some(value) = value {
            let value = value.strip_suffix(" not").unwrap_or(value).trim_end();
            return variable(value.strip_suffix(" is").unwrap_or(value));
        }
    }
    let after = after.trim_start();
    let operators = ["==", "!=", "in ", "not in "];
    let value = operators.iter().find_map(|operator| after.strip_prefix(operator))?.trim_start();
    value.split(|c: char| !is_word(c)).next().filter(|word| !word.is_empty())
}

fn unclosed(inside: &str) -> Option<(char, usize)> {
    let mut open = None;
    for (at, c) in inside.char_indices() {
        match open {
            Some((quote, _)) if quote == c => open = None,
            None if c == '"' || c == '\'' => open = Some((c, at + 1)),
            _ => {}
        }
    }
    open
}

/// Returns the prompt of an unclosed call, at a position where an argument's name is allowed.
fn call_of_prompt(code: &str) -> Option<&str> {
    let start = code.rfind("prompt(")?;
    let inside = &code[start + "prompt(".len()..];
    if inside.contains(')') || !inside.trim_end().ends_with(',') {
        return None;
    }
    inside.split(['"', '\'']).nth(1)
}

/// Analyses a library with the unsaved texts of an editor: diagnostics, completion and hover, as values of the Language
/// Server Protocol 3.17. URIs are `file:///` with the path in the library.
///
/// Each analysis begins with the saved library: nothing of the texts of an earlier one remains.
///
/// ```
/// use promptshelf_author::Analyzer;
/// use promptshelf_source::MemoryTree;
///
/// let tree: MemoryTree = [("hello.md", "Say {{ greting }}.\n")].into_iter().collect();
/// let mut analyzer = Analyzer::of_tree(tree);
/// let text = "---\ndescription: Greets\narguments:\n  - name: greeting\n---\nSay {{ gr }}.\n".to_owned();
/// let analysis = analyzer.analyze(&[("hello.md".to_owned(), text.clone())].into()).unwrap();
/// let found = &analysis.diagnostics()["hello.md"];
/// assert!(found.as_array().unwrap().iter().any(|found| found["code"] == "undeclared-argument"));
/// assert_eq!(analysis.completions("hello.md", &text, 5, 9)[0]["label"], "greeting");
/// ```
pub struct Analyzer {
    workspace: Workspace,
    /// The catalog of the saved files, and their fingerprint.
    saved: (Catalog, Option<Fingerprint>),
}

impl std::fmt::Debug for Analyzer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Analyzer")
    }
}

impl Analyzer {
    /// Creates an analyzer of the library in a folder, which is read again at each analysis. Files that have not changed
    /// are not parsed again. `granted_roots` are the folders outside of the library that its `[roots]` may point to.
    pub fn of_folder(folder: impl Into<PathBuf>, granted_roots: impl IntoIterator<Item = PathBuf>) -> Analyzer {
        let analyzer = Analyzer::with(Files::folder(folder));
        analyzer.grant_roots(granted_roots);
        analyzer
    }

    /// Creates an analyzer of files in memory.
    #[must_use]
    pub fn of_tree(tree: MemoryTree) -> Analyzer {
        Analyzer::with(Files::tree(tree))
    }

    fn with(files: Files) -> Analyzer {
        let (prompt, manifest) = (schema::prompt(), schema::library());
        let options = WorkspaceOptions { prompt, library: manifest, granted_roots: Vec::new(), renames_files: false };
        // The server's folder is in no URI.
        let workspace = Workspace::with(PathBuf::from("/"), files.lenient(), options);
        Analyzer { workspace, saved: (Catalog::default(), None) }
    }

    /// Grants folders outside of the library, instead of those granted before: its `[roots]` may point to them or below
    /// them.
    pub fn grant_roots(&self, folders: impl IntoIterator<Item = PathBuf>) {
        self.workspace.files().grant_roots(folders);
    }

    /// Reads and checks the library with unsaved texts in place of its files, by path. Blocks while files are read.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if the library cannot be read at all.
    pub fn analyze(&mut self, texts: &BTreeMap<String, String>) -> Result<Analysis<'_>, SourceError> {
        self.read_saved()?;
        self.workspace.set_catalog(self.saved.0.clone());
        let files = self.workspace.files().clone();
        texts.iter().for_each(|(path, text)| files.set_unsaved(path, Some(text)));
        let found = self.workspace.diagnose();
        texts.keys().for_each(|path| files.set_unsaved(path, None));
        // The next analysis begins with the files as they are then.
        files.note_changes(None);
        Ok(Analysis { found: found?, workspace: &self.workspace })
    }

    /// Replaces the saved files of a library in memory. Those that are the same as before are not parsed again.
    pub fn replace_tree(&mut self, tree: MemoryTree) {
        self.workspace.files().replace(tree);
        self.saved.1 = None;
    }

    /// Checks the saved files if they have changed: in a folder, their valid versions replace broken unsaved ones.
    fn read_saved(&mut self) -> Result<(), SourceError> {
        let files = self.workspace.files();
        if self.saved.1.is_some() && files.in_memory().is_some() {
            return Ok(());
        }
        let snapshot = files.read()?;
        let fingerprint = Some(snapshot.fingerprint());
        if self.saved.1 != fingerprint {
            self.saved = (check(snapshot.into_definitions(), Some(&self.saved.0)).catalog, fingerprint);
        }
        Ok(())
    }
}

/// The result of an analysis.
pub struct Analysis<'a> {
    workspace: &'a Workspace,
    found: Vec<Diagnostic>,
}

impl std::fmt::Debug for Analysis<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Analysis({} diagnostics)", self.found.len())
    }
}

impl Analysis<'_> {
    /// Returns the diagnostics (`Diagnostic[]`) of each file that has some, by path.
    #[must_use]
    pub fn diagnostics(&self) -> BTreeMap<String, Value> {
        self.diagnostics_around("", usize::MAX, usize::MAX)
    }

    /// Returns the diagnostics like [`diagnostics`](Analysis::diagnostics): of the file at `path` and of the first `files`
    /// files, at most `of_each` of each.
    #[must_use]
    pub fn diagnostics_around(&self, path: &str, files: usize, of_each: usize) -> BTreeMap<String, Value> {
        let found = self.workspace.by_path(&self.found, path, (files, of_each));
        found.into_iter().map(|(path, found)| (path, json!(found))).collect()
    }

    /// Returns the completions (`CompletionItem[]`) at a position of a text: its line, and UTF-16 units in the line.
    #[must_use]
    pub fn completions(&self, path: &str, text: &str, line: u32, character: u32) -> Value {
        let cursor = cursor_at(path, text, position::offset(text, Position { line, character }));
        json!(completion::items(self.workspace, path, text, &cursor))
    }

    /// Returns the explanation (`Hover`) of the word at a position of a text, `null` without one.
    #[must_use]
    pub fn hover(&self, path: &str, text: &str, line: u32, character: u32) -> Value {
        let cursor = cursor_at(path, text, position::offset(text, Position { line, character }));
        json!(hover::hover(self.workspace, path, text, &cursor))
    }

    /// Returns the prompt of a file; `None` if the file has errors, or none.
    #[must_use]
    pub fn prompt(&self, path: &str) -> Option<&Prompt> {
        let is_of = |location: &Location| location.source.path == path;
        // An error of a partial names the prompts that it breaks.
        let is_broken = self.found.iter().any(|found| {
            found.is_error() && (is_of(&found.location) || found.related.iter().any(|(location, _)| is_of(location)))
        });
        let prompts = self.catalog().prompts();
        prompts.iter().find(|prompt| !is_broken && prompt.source().path == path).map(|prompt| &**prompt)
    }

    /// Returns the valid prompts of the library.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        self.workspace.catalog()
    }
}

#[cfg(test)]
mod analyzer_tests {
    use super::*;

    #[test]
    fn error_of_a_partial_stands_in_the_prompts_that_it_breaks() {
        let names: Vec<String> = (1..=8).map(|number| format!("p{number}.md")).collect();
        let mut files: Vec<(&str, &str)> = names
            .iter()
            .map(|name| (name.as_str(), "---\ndescription: x\n---\nHi.\n{% include \"_tone.md\" %}\n"))
            .collect();
        files.extend([("_tone.md", "Write kindly.\n"), ("other.md", "---\ndescription: y\n---\nAlone.\n")]);
        let mut analyzer = Analyzer::of_tree(files.into_iter().collect());
        for broken in ["Write about {{ topic }}.\n", "Write {% if %}.\n", "{{ attach(\"none.png\") }}\n"] {
            let analysis = analyzer.analyze(&[("_tone.md".to_owned(), broken.to_owned())].into()).expect("it is read");
            let diagnostics = analysis.diagnostics();
            for name in &names {
                let own = &diagnostics[name][0];
                assert!(own["message"].as_str().is_some_and(|it| it.starts_with("in _tone.md, line 1: ")), "{own}");
                assert_eq!((&own["severity"], &own["range"]["start"]["line"]), (&json!(1), &json!(4)), "{own}");
                assert_eq!(own["relatedInformation"][0]["location"]["uri"], "file:///_tone.md");
                assert!(analysis.prompt(name).is_none(), "{name} is broken by {broken}");
            }
            assert!(!diagnostics.contains_key("other.md") && analysis.prompt("other.md").is_some());
        }
        assert!(analyzer.analyze(&BTreeMap::new()).expect("it is read").prompt("p8.md").is_some());
    }
}

/// The id of the request to report changes of files.
const WATCH: &str = "watch";

/// The text of an open file, and its version in the editor.
struct OpenText {
    text: String,
    version: i32,
}

struct Session<'c> {
    connection: &'c Connection,
    folders: Vec<PathBuf>,
    workspaces: Vec<Workspace>,
    open: BTreeMap<String, OpenText>,
    /// Whether the editor reports changes of files. Otherwise all files are looked at after each edit.
    is_watched: bool,
    /// The URIs with diagnostics of libraries that are no longer open.
    retired: BTreeSet<String>,
    /// Whether something has changed since the last check.
    is_stale: bool,
    schemas: WorkspaceOptions,
}

impl<'c> Session<'c> {
    fn new(connection: &'c Connection, folders: Vec<PathBuf>, schemas: WorkspaceOptions) -> Session<'c> {
        let (workspaces, open, retired) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        Session { connection, folders, workspaces, open, is_watched: false, retired, is_stale: false, schemas }
    }

    fn start(&mut self) {
        for folder in self.folders.clone() {
            // In other folders, a library is opened together with the first of its files.
            if folder.join(LIBRARY_FILE).is_file() || self.folders.len() == 1 {
                self.workspaces.push(Workspace::open(folder, self.schemas.clone()));
            }
        }
        self.is_stale = true;
    }

    /// Asks the editor to report changes of the files in its folders. A library has files of any name, and a removed
    /// folder is reported by its own name only.
    fn watch(&self, knows_folders: bool) -> Result<(), LanguageServerError> {
        let of_folder = |folder: &PathBuf| json!({ "baseUri": position::uri_of(folder), "pattern": "**/*" });
        let patterns = if knows_folders { self.folders.iter().map(of_folder).collect() } else { vec![json!("**/*")] };
        let watchers: Vec<Value> = patterns.into_iter().map(|pattern| json!({ "globPattern": pattern })).collect();
        let registration = json!({
            "id": WATCH,
            "method": "workspace/didChangeWatchedFiles",
            "registerOptions": { "watchers": watchers },
        });
        self.send(Message::Request(Request {
            id: WATCH.to_owned().into(),
            method: "client/registerCapability".to_owned(),
            params: json!({ "registrations": [registration] }),
        }))
    }

    /// Serves the connection until the editor shuts down.
    fn run(&mut self) -> Result<(), LanguageServerError> {
        loop {
            // All pending messages are applied before anything is checked.
            let message = match self.connection.receiver.try_recv() {
                Ok(message) => message,
                Err(_) => {
                    self.refresh()?;
                    match self.connection.receiver.recv() {
                        Ok(message) => message,
                        Err(_) => return Ok(()),
                    }
                }
            };
            match message {
                Message::Request(request) => {
                    if self.connection.handle_shutdown(&request).map_err(LanguageServerError::protocol)? {
                        return Ok(());
                    }
                    self.refresh()?;
                    let response = self.answer(request);
                    self.send(Message::Response(response))?;
                }
                Message::Notification(notification) => self.note(notification),
                Message::Response(response) => self.take_response(&response),
            }
        }
    }

    fn send(&self, message: Message) -> Result<(), LanguageServerError> {
        self.connection.sender.send(message).map_err(LanguageServerError::protocol)
    }

    fn refresh(&mut self) -> Result<(), LanguageServerError> {
        if !std::mem::take(&mut self.is_stale) {
            return Ok(());
        }
        let mut found = BTreeMap::new();
        let folders: Vec<PathBuf> = self.workspaces.iter().map(|workspace| workspace.folder.clone()).collect();
        for workspace in &mut self.workspaces {
            if !self.is_watched {
                workspace.files().note_changes(None);
            }
            let inner =
                folders.iter().filter(|other| **other != workspace.folder && other.starts_with(&workspace.folder));
            let inner: Vec<String> = inner.map(|folder| format!("{}/", position::uri_of(folder))).collect();
            // The files of a library inside of another one have its diagnostics.
            let is_own = |uri: &String| !inner.iter().any(|folder| uri.starts_with(folder));
            found.extend(workspace.check().into_iter().filter(|(uri, _)| is_own(uri)));
        }
        for uri in std::mem::take(&mut self.retired) {
            found.entry(uri).or_default();
        }
        for (uri, diagnostics) in found {
            let version = self.open.get(&uri).map(|open| open.version);
            let params = PublishDiagnosticsParams { uri: Uri::from(uri), version, diagnostics };
            let method = "textDocument/publishDiagnostics".to_owned();
            self.send(Message::Notification(Notification::new(method, params)))?;
        }
        Ok(())
    }

    fn take_response(&mut self, response: &Response) {
        if response.id != WATCH.to_owned().into() {
            return;
        }
        match &response.response_result {
            Ok(_) => self.is_watched = true,
            Err(error) => tracing::warn!("the editor does not report changes of files: {}", error.message),
        }
        // Files may have changed before.
        self.look_at_all();
    }

    fn look_at_all(&mut self) {
        self.workspaces.iter().for_each(|workspace| workspace.files().note_changes(None));
        self.is_stale = true;
    }

    fn note(&mut self, notification: Notification) {
        match notification.method.as_str() {
            "textDocument/didOpen" => {
                if let Some(params) = parsed::<DidOpenTextDocumentParams>(notification.params) {
                    let TextDocumentItem { uri, text, version, .. } = params.text_document;
                    self.changed(uri.as_ref(), Some(OpenText { text, version }));
                }
            }
            "textDocument/didChange" => {
                if let Some(params) = parsed::<DidChangeTextDocumentParams>(notification.params) {
                    let uri = params.text_document.text_document_identifier.uri;
                    let text = self.open.remove(uri.as_ref()).map(|open| open.text).unwrap_or_default();
                    let text = params.content_changes.into_iter().fold(text, edited);
                    self.changed(uri.as_ref(), Some(OpenText { text, version: params.text_document.version }));
                }
            }
            "textDocument/didClose" => {
                if let Some(params) = parsed::<DidCloseTextDocumentParams>(notification.params) {
                    self.changed(params.text_document.uri.as_ref(), None);
                }
            }
            // Some editors report only the files that they have written themselves.
            "textDocument/didSave" => self.look_at_all(),
            "workspace/didChangeWatchedFiles" => {
                if let Some(params) = parsed::<DidChangeWatchedFilesParams>(notification.params) {
                    self.changed_outside(&params.changes);
                }
            }
            _ => {}
        }
    }

    fn changed(&mut self, uri: &str, open: Option<OpenText>) {
        if let Some((index, path)) = self.workspace_of(uri) {
            self.workspaces[index].set_text(&path, open.as_ref().map(|open| &*open.text));
            self.is_stale = true;
        }
        match open {
            Some(open) => self.open.insert(uri.to_owned(), open),
            None => self.open.remove(uri),
        };
    }

    /// Takes note of files that other programs have changed.
    fn changed_outside(&mut self, changes: &[FileEvent]) {
        let is_manifest = |uri: &str| uri.rsplit('/').next() == Some(LIBRARY_FILE);
        if changes.iter().any(|change| change.kind != FileChangeType::Changed && is_manifest(change.uri.as_ref())) {
            return self.reopen();
        }
        // Each command of git changes many files of its own.
        let is_of_git = |uri: &str| uri.contains("/.git/");
        for change in changes.iter().filter(|change| !is_of_git(change.uri.as_ref())) {
            let Some((index, path)) = self.workspace_of(change.uri.as_ref()) else { continue };
            self.workspaces[index].files().note_changes(Some([path].into()));
            self.is_stale = true;
        }
    }

    /// Opens the libraries again, since others may be there now.
    fn reopen(&mut self) {
        self.retired.extend(self.workspaces.drain(..).flat_map(|workspace| workspace.uris_with_findings()));
        self.start();
        for (uri, open) in std::mem::take(&mut self.open) {
            self.changed(&uri, Some(open));
        }
    }

    /// Returns the index of the library that contains a file, and the file's path in it. Opens the library if
    /// necessary.
    fn workspace_of(&mut self, uri: &str) -> Option<(usize, String)> {
        let file = position::path_of(uri)?;
        let around = file.ancestors().skip(1);
        let root = around
            .take_while(|folder| self.folders.iter().any(|open| folder.starts_with(open)))
            .find(|folder| folder.join(LIBRARY_FILE).is_file())
            .map(std::path::Path::to_owned)
            .or_else(|| self.folders.iter().find(|folder| file.starts_with(folder)).cloned())?;
        let index = match self.workspaces.iter().position(|workspace| workspace.folder() == root) {
            Some(index) => index,
            None => {
                let inside = format!("{}/", position::uri_of(&root));
                let shown = self.workspaces.iter().flat_map(Workspace::uris_with_findings);
                self.retired.extend(shown.filter(|uri| uri.starts_with(&inside)));
                self.workspaces.push(Workspace::open(root.clone(), self.schemas.clone()));
                self.workspaces.len() - 1
            }
        };
        Some((index, position::inside(&root, &file)?))
    }

    fn answer(&mut self, request: Request) -> Response {
        let Request { id, method, params } = request;
        match self.answered(&method, params) {
            Ok(answer) => Response::new_ok(id, answer),
            Err(Refusal(code, message)) => Response::new_err(id, code, message),
        }
    }

    fn answered(&mut self, method: &str, params: Value) -> Result<Value, Refusal> {
        match method {
            "textDocument/completion" => {
                let params: CompletionParams = required(params)?;
                self.at(params.text_document_position_params, |it| {
                    CompletionResponse::CompletionItemList(completion::items(
                        it.workspace,
                        it.path,
                        it.text,
                        &it.cursor(),
                    ))
                })
            }
            "textDocument/hover" => {
                let params: HoverParams = required(params)?;
                let hover = |it: &Open<'_>| hover::hover(it.workspace, it.path, it.text, &it.cursor());
                self.at(params.text_document_position_params, hover)
            }
            "textDocument/definition" => {
                let params: DefinitionParams = required(params)?;
                let definition = |it: &Open<'_>| hover::definition(it.workspace, it.path, &it.cursor());
                self.at(params.text_document_position_params, definition)
            }
            "textDocument/references" => {
                let params: ReferenceParams = required(params)?;
                self.at(params.text_document_position_params, |it| {
                    let symbol = changes::symbol(it.workspace, it.path, &it.cursor())?;
                    Some(changes::locations(it.workspace, changes::uses(it.workspace, &symbol)))
                })
            }
            "textDocument/prepareRename" => {
                let params: PrepareRenameParams = required(params)?;
                self.at(params.text_document_position_params, |it| {
                    let span = changes::renamable(it.workspace, it.path, &it.cursor())?;
                    Some(position::range(it.text, &span))
                })
            }
            "textDocument/rename" => {
                let RenameParams { new_name, text_document_position_params: at, .. } = required(params)?;
                let edit = self.open_at(at, |it| {
                    let symbol = changes::symbol(it.workspace, it.path, &it.cursor());
                    let symbol = symbol.ok_or("there is nothing here that can be given another name")?;
                    changes::renamed(it.workspace, &symbol, &new_name)
                });
                json_of(edit.transpose().map_err(|reason| Refusal(ErrorCode::RequestFailed as i32, reason))?)
            }
            "textDocument/codeAction" => {
                let params: CodeActionParams = required(params)?;
                let Some((index, path)) = self.workspace_of(params.text_document.uri.as_ref()) else {
                    return Ok(Value::Null);
                };
                let Some(open) = self.open.get(params.text_document.uri.as_ref()) else { return Ok(Value::Null) };
                let range = position::span(&open.text, params.range);
                let mut actions = changes::actions(&mut self.workspaces[index], &path, &open.text, &range);
                if let Some(only) = params.context.only {
                    actions.retain(|action| action.kind.as_ref().is_some_and(|kind| is_one_of(kind, &only)));
                }
                json_of(actions)
            }
            "textDocument/formatting" => {
                let params: DocumentFormattingParams = required(params)?;
                self.of(params.text_document.uri, |it| changes::formatted(it.path, it.text))
            }
            "textDocument/documentSymbol" => {
                let params: DocumentSymbolParams = required(params)?;
                self.of(params.text_document.uri, |it| {
                    DocumentSymbolResponse::DocumentSymbolList(outline::symbols(it.workspace, it.path, it.text))
                })
            }
            // Of our own: the messages of the file's prompt with sample values.
            "promptshelf/preview" => {
                let params: PreviewParams = required(params)?;
                self.of(params.text_document.uri, |it| hover::preview(it.workspace, it.path))
            }
            "workspace/symbol" => {
                let params: WorkspaceSymbolParams = required(params)?;
                let found = self.workspaces.iter().flat_map(|it| outline::of_workspace(it, &params.query));
                json_of(found.collect::<Vec<_>>())
            }
            "textDocument/foldingRange" => {
                let params: FoldingRangeParams = required(params)?;
                self.of(params.text_document.uri, |it| outline::folds(it.path, it.text))
            }
            "textDocument/semanticTokens/full" => {
                let params: SemanticTokensParams = required(params)?;
                let tokens =
                    |it: &Open<'_>| SemanticTokens { result_id: None, data: outline::tokens(it.path, it.text) };
                self.of(params.text_document.uri, tokens)
            }
            "textDocument/inlayHint" => {
                let params: InlayHintParams = required(params)?;
                self.of(params.text_document.uri, |it| {
                    outline::hints(it.workspace, it.path, it.text, &position::span(it.text, params.range))
                })
            }
            _ => Err(Refusal(ErrorCode::MethodNotFound as i32, format!("unknown method {method}"))),
        }
    }

    /// Answers about an open file; with `null` about another one.
    fn of<T: Serialize>(&mut self, uri: Uri, answer: impl FnOnce(&Open<'_>) -> T) -> Result<Value, Refusal> {
        json_of(self.open(uri.as_ref(), Position::default(), answer))
    }

    /// Answers about a position in an open file.
    fn at<T: Serialize>(
        &mut self,
        at: TextDocumentPositionParams,
        answer: impl FnOnce(&Open<'_>) -> T,
    ) -> Result<Value, Refusal> {
        json_of(self.open_at(at, answer))
    }

    fn open_at<T>(&mut self, at: TextDocumentPositionParams, answer: impl FnOnce(&Open<'_>) -> T) -> Option<T> {
        self.open(at.text_document.uri.as_ref(), at.position, answer)
    }

    fn open<T>(&mut self, uri: &str, at: Position, answer: impl FnOnce(&Open<'_>) -> T) -> Option<T> {
        let (index, path) = self.workspace_of(uri)?;
        let text = &self.open.get(uri)?.text;
        Some(answer(&Open { workspace: &self.workspaces[index], path: &path, text, at }))
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct PreviewParams {
    text_document: lsp::TextDocumentIdentifier,
}

/// A position in a file that the editor has open.
struct Open<'s> {
    workspace: &'s Workspace,
    path: &'s str,
    text: &'s str,
    at: Position,
}

impl<'s> Open<'s> {
    fn cursor(&self) -> Cursor<'s> {
        cursor_at(self.path, self.text, position::offset(self.text, self.at))
    }
}

/// The code and the message of an error.
struct Refusal(i32, String);

fn required<T: DeserializeOwned>(params: Value) -> Result<T, Refusal> {
    parsed(params).ok_or_else(|| Refusal(ErrorCode::InvalidParams as i32, "invalid parameters".to_owned()))
}

fn json_of(answer: impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(answer).map_err(|error| Refusal(ErrorCode::InternalError as i32, error.to_string()))
}

/// Whether an editor that asks for some kinds of actions asks for this one: kinds have sub-kinds, separated by dots.
fn is_one_of(kind: &CodeActionKind, only: &[CodeActionKind]) -> bool {
    let (kind, only) = (json!(kind), json!(only));
    let kind = kind.as_str().unwrap_or_default();
    only.as_array().into_iter().flatten().filter_map(Value::as_str).any(|wanted| {
        kind.strip_prefix(wanted).is_some_and(|rest| wanted.is_empty() || rest.is_empty() || rest.starts_with('.'))
    })
}

fn edited(mut text: String, change: Change) -> String {
    match change {
        Change::TextDocumentContentChangeWholeDocument(whole) => whole.text,
        Change::TextDocumentContentChangePartial(part) => {
            let start = position::offset(&text, part.range.start);
            let end = position::offset(&text, part.range.end).max(start);
            text.replace_range(start..end, &part.text);
            text
        }
    }
}

fn parsed<T: DeserializeOwned>(params: serde_json::Value) -> Option<T> {
    serde_json::from_value(params)
        .inspect_err(|error| tracing::warn!("invalid parameters from the editor: {error}"))
        .ok()
}

/// Settings of every workspace, among them the JSON WorkspaceOptions by which keys and values are completed.
#[derive(Clone, Debug)]
struct WorkspaceOptions {
    prompt: serde_json::Value,
    library: serde_json::Value,
    granted_roots: Vec<PathBuf>,
    /// Whether the editor can rename files for a change.
    renames_files: bool,
}

struct Workspace {
    folder: PathBuf,
    files: Files,
    prompts: Vec<Arc<PromptDefinition>>,
    partials: BTreeMap<String, Arc<SourceText>>,
    catalog: Catalog,
    /// What the last check found.
    found: Vec<Diagnostic>,
    /// The open files that were edited since: an editor moves the diagnostics of an older text.
    edited: BTreeSet<String>,
    /// The edits that correct everything with one answer in a file, since the last check.
    all_fixed: Option<(String, Option<changes::AllFixed>)>,
    /// The schemas of prompt files and of `promptshelf.toml`.
    schemas: WorkspaceOptions,
    reviewer: Reviewer,
}

impl Workspace {
    fn open(folder: PathBuf, schemas: WorkspaceOptions) -> Workspace {
        let files = Files::folder(&folder).lenient();
        files.grant_roots(schemas.granted_roots.iter().cloned());
        Workspace::with(folder, files, schemas)
    }

    /// Creates a workspace of a lenient source. `folder` is that of its URIs.
    fn with(folder: PathBuf, files: Files, schemas: WorkspaceOptions) -> Workspace {
        Workspace {
            folder,
            files,
            prompts: Vec::new(),
            partials: BTreeMap::new(),
            catalog: Catalog::default(),
            found: Vec::new(),
            edited: BTreeSet::new(),
            all_fixed: None,
            schemas,
            reviewer: Reviewer::default(),
        }
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn files(&self) -> &Files {
        &self.files
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn uri(&self, path: &str) -> String {
        position::uri_of(&self.folder.join(path))
    }

    fn partials(&self) -> impl Iterator<Item = &Arc<SourceText>> {
        self.partials.values()
    }

    fn is_partial(&self, path: &str) -> bool {
        self.partials.contains_key(path)
    }

    fn is_file(&self, path: &str) -> bool {
        self.is_partial(path) || self.catalog.file(path).is_some()
    }

    /// Returns the texts of the prompts and partials, as they are in the editor.
    fn texts(&self) -> impl Iterator<Item = &Arc<SourceText>> {
        self.prompts.iter().map(|prompt| &prompt.origin.source).chain(self.partials())
    }

    fn texts_by_path(&self) -> HashMap<&str, &Arc<SourceText>> {
        self.texts().map(|source| (&*source.path, source)).collect()
    }

    fn editor_renames_files(&self) -> bool {
        self.schemas.renames_files
    }

    /// Returns the prompt of a file; its last valid version while the file has errors.
    fn definition(&self, path: &str) -> Option<&PromptDefinition> {
        let now = self.prompts.iter().find(|prompt| prompt.origin.source.path == path).map(|prompt| &**prompt);
        now.or_else(|| self.catalog.prompts().iter().find(|it| it.source().path == path).map(|it| it.definition()))
    }

    /// Returns the prompt with a name; its last valid version while its file has errors that hide the name.
    fn named(&self, name: &str) -> Option<&PromptDefinition> {
        let now = self.prompts.iter().find(|prompt| &*prompt.name == name).map(|prompt| &**prompt);
        now.or_else(|| self.catalog.find(name).map(|prompt| prompt.definition()))
    }

    /// Returns the prompts whose templates contain a file's text: its own, or those that include it.
    fn users(&self, path: &str) -> Vec<&PromptDefinition> {
        match self.definition(path) {
            Some(own) => vec![own],
            None => {
                let including = self.including(path);
                let prompts = self.prompts.iter().map(|prompt| &**prompt);
                prompts.filter(|prompt| including.contains(&*prompt.origin.source.path)).collect()
            }
        }
    }

    /// Returns the paths of the files that include a file, also by way of others. Their texts decide, not the catalog: one
    /// with a mistake includes it, too.
    fn including(&self, path: &str) -> HashSet<&str> {
        let (mut found, mut open) = (HashSet::new(), vec![path.to_owned()]);
        while let Some(included) = open.pop() {
            for source in self.texts() {
                if !found.contains(&*source.path) && changes::includes(source, &included) {
                    found.insert(&*source.path);
                    // Nothing includes a prompt.
                    open.extend(self.is_partial(&source.path).then(|| source.path.clone()));
                }
            }
        }
        found
    }

    fn keys(&self, path: &str, within: &[&str]) -> Vec<(String, String)> {
        let owned = |(key, about): (&str, &str)| (key.to_owned(), about.to_owned());
        match ForeignSyntax::for_path(path) {
            Some(words) if within.is_empty() => words.keys.iter().map(|key| owned((*key, ""))).collect(),
            Some(_) => Vec::new(),
            None => schema_query::keys(self.schema(path), within).into_iter().map(owned).collect(),
        }
    }

    fn values(&self, path: &str, key: &[&str]) -> Vec<String> {
        match ForeignSyntax::for_path(path) {
            Some(_) => Vec::new(),
            None => schema_query::values(self.schema(path), key).into_iter().map(str::to_owned).collect(),
        }
    }

    fn schema(&self, path: &str) -> &serde_json::Value {
        if path == LIBRARY_FILE { &self.schemas.library } else { &self.schemas.prompt }
    }

    /// Replaces the text of a file with one that is not saved, or restores its own with `None`.
    fn set_text(&mut self, path: &str, text: Option<&str>) {
        self.files.set_unsaved(path, text);
        self.edited.insert(path.to_owned());
    }

    fn uris_with_findings(&self) -> BTreeSet<String> {
        self.found.iter().map(|found| self.uri(shown(&found.location.source.path))).collect()
    }

    /// Reads and checks the library. Returns the diagnostics of each file that has others than before.
    fn check(&mut self) -> BTreeMap<String, Vec<lsp::Diagnostic>> {
        let now = self.diagnose().unwrap_or_else(|error| {
            tracing::warn!("{error}");
            error.diagnostics().to_vec()
        });
        let before = std::mem::replace(&mut self.found, now);
        self.all_fixed = None;
        let edited = std::mem::take(&mut self.edited);
        let (before, now) = (by_path(&before), by_path(&self.found));
        let paths: BTreeSet<&str> = before.keys().chain(now.keys()).copied().collect();
        let is_new = |path: &&str| before.get(path) != now.get(path) || edited.contains(*path);
        let of_file = |path: &str| {
            let found = now.get(path).into_iter().flatten();
            (self.uri(path), found.map(|found| self.to_lsp(found)).collect())
        };
        paths.into_iter().filter(is_new).map(of_file).collect()
    }

    fn diagnose(&mut self) -> Result<Vec<Diagnostic>, SourceError> {
        let definitions = self.files.read()?.into_definitions();
        Ok(self.take(definitions))
    }

    /// Checks the present texts, and leaves everything else as it is.
    fn verdict(&mut self) -> Result<Verdict, SourceError> {
        let checked = check(self.files.read()?.into_definitions(), Some(&self.catalog));
        let findings = self.reviewer.findings(&checked.catalog, &checked.diagnostics);
        Ok(Verdict::new(findings, &checked.catalog))
    }

    /// Returns the diagnostics of one file and of `files` others, by path, at most `of_each` of each.
    fn by_path(
        &self,
        diagnostics: &[Diagnostic],
        path: &str,
        (files, of_each): (usize, usize),
    ) -> BTreeMap<String, Vec<lsp::Diagnostic>> {
        let mut by_path: BTreeMap<&str, Vec<Cow<'_, Diagnostic>>> = BTreeMap::new();
        for found in diagnostics {
            by_path.entry(shown(&found.location.source.path)).or_default().push(Cow::Borrowed(found));
            if found.is_error() && self.partials.contains_key(&found.location.source.path) {
                // The prompts that it breaks show it as well, at their include.
                for (include, _) in &found.related {
                    by_path.entry(shown(&include.source.path)).or_default().push(Cow::Owned(seen_from(found, include)));
                }
            }
        }
        let chosen = by_path.into_iter().enumerate().filter(|(number, (file, _))| *number < files || *file == path);
        let converted = |(_, (file, found)): (usize, (&str, Vec<Cow<'_, Diagnostic>>))| {
            (file.to_owned(), found.into_iter().take(of_each).map(|found| self.to_lsp(&found)).collect())
        };
        chosen.map(converted).collect()
    }

    fn set_catalog(&mut self, catalog: Catalog) {
        self.catalog = catalog;
    }

    fn take(&mut self, definitions: Definitions) -> Vec<Diagnostic> {
        let drafts = definitions.broken.iter().filter_map(|broken| broken.draft.as_ref());
        self.prompts = definitions.prompts.iter().chain(drafts).cloned().collect();
        self.partials.clone_from(&definitions.partials);
        let checked = check(definitions, Some(&self.catalog));
        self.catalog = checked.catalog;
        self.reviewer.findings(&self.catalog, &checked.diagnostics)
    }

    fn to_lsp(&self, found: &Diagnostic) -> lsp::Diagnostic {
        let message = match &found.help {
            Some(help) => format!("{}\n{help}", found.message),
            None => found.message.clone(),
        };
        let related = found.related.iter().map(|(location, label)| lsp::DiagnosticRelatedInformation {
            location: lsp::Location {
                uri: self.uri(shown(&location.source.path)).into(),
                range: position::range(&location.source.text, &location.span()),
            },
            message: label.clone(),
        });
        lsp::Diagnostic {
            range: position::range(&found.location.source.text, &found.location.span()),
            severity: Some(match found.severity {
                Severity::Error => lsp::DiagnosticSeverity::Error,
                Severity::Warning => lsp::DiagnosticSeverity::Warning,
                Severity::Hint => lsp::DiagnosticSeverity::Hint,
            }),
            code: Some(lsp::Code::String(found.code.as_str().to_owned())),
            code_description: Some(CodeDescription { href: format!("{EXPLAINED}#{}", found.code.as_str()).into() }),
            source: Some("promptshelf".to_owned()),
            message: message.into(),
            tags: (found.code == Code::DeprecatedPrompt).then(|| vec![lsp::DiagnosticTag::Deprecated]),
            related_information: (!found.related.is_empty()).then(|| related.collect()),
            ..lsp::Diagnostic::default()
        }
    }
}

fn seen_from(found: &Diagnostic, include: &Location) -> Diagnostic {
    let (path, (line, _)) = (&found.location.source.path, found.location.line_column());
    let message = format!("in {path}, line {line}: {}", found.message);
    let related = vec![(found.location.clone(), "the error".to_owned())];
    Diagnostic { message, location: include.clone(), related, ..found.clone() }
}

fn by_path(found: &[Diagnostic]) -> BTreeMap<&str, Vec<&Diagnostic>> {
    let mut by_path: BTreeMap<&str, Vec<&Diagnostic>> = BTreeMap::new();
    for found in found {
        by_path.entry(shown(&found.location.source.path)).or_default().push(found);
    }
    by_path
}

/// Diagnostics of the whole folder are published at `promptshelf.toml`.
fn shown(path: &str) -> &str {
    if path == "." { LIBRARY_FILE } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &'static str) -> (String, String) {
        let offset = text.find('^').expect("a cursor");
        let whole: &'static str = Box::leak(text.replacen('^', "", 1).into_boxed_str());
        let cursor = cursor_at("a.md", whole, offset);
        (format!("{:?}", cursor.place), cursor.word.to_owned())
    }

    #[test]
    fn front_matter_has_keys_and_values() {
        let is = |text, expected: &str, word: &str| assert_eq!(place(text), (expected.to_owned(), word.to_owned()));
        is("---\nde^\n---\n", "Key { parents: [] }", "de");
        is("---\narguments:\n  - name: a\n    type: in^\n---\n", "Value { path: [\"arguments\", \"type\"] }", "in");
    }

    #[test]
    fn body_has_words_and_strings() {
        let is = |text, expected: &str, word: &str| assert_eq!(place(text), (expected.to_owned(), word.to_owned()));
        is("x^y", "Text", "xy");
        is("^---\n---\n", "Text", "");
        is("---\n-^--\n", "Text", "");
        is("{{ na^me }}", "Expression", "name");
        is("{{ a }} b^", "Text", "b");
        is("---\n---\n{{ name | up^", "Filter", "up");
        is("{% if x is not de^f %}", "Test", "def");
        is("{% inc^", "Statement", "inc");
        is("{%- if x^", "Expression", "x");
        is("{% include \"_a/b^.md\" %}", "String { callee: \"include\" }", "_a/b.md");
        is("{{ attach('x^", "String { callee: \"attach\" }", "x");
        is("{{ prompt(\"gr^eet\") }}", "String { callee: \"prompt\" }", "greet");
        is("{{ prompt(\"greet\", wh^", "CallArgument { prompt: \"greet\" }", "wh");
        is("{{ prompt(\"greet\", who=na^", "Expression", "na");
        is("{{ prompt(\"greet\", who=\"y^", "Choice { prompt: Some(\"greet\"), argument: \"who\" }", "y");
        is("{{ prompt(\"greet^\", who=\"y\")", "String { callee: \"prompt\" }", "greet");
    }

    #[test]
    fn string_is_compared_with_a_variable() {
        for code in [
            "{% if tone == \"k^\" %}",
            "{% if tone != 'k^",
            "{% if a and tone | lower | trim == \"k^\" %}",
            "{% elif tone in [\"k^\"",
            "{% elif tone not in ('a', \"b, c\", 'k^') %}",
            "{% if tone is eq(\"k^\") %}",
            "{% if tone is not in([\"a\", \"k^\"]) %}",
            "{{ 1 if tone == \"k^\" else 2 }}",
            "{% if \"k^\" == tone %}",
            "{% if \"k^\" not in tone %}",
            "{% if a and (\"k^\" == tone) %}",
        ] {
            assert_eq!(
                place(code),
                ("Choice { prompt: None, argument: \"tone\" }".to_owned(), "k".to_owned()),
                "{code}"
            );
        }
        for code in [
            "{{ \"k^\" }}",
            "{{ tone | default(\"k^\") }}",
            "{% set tone = \"k^\" %}",
            "{{ [\"k^\"] }}",
            "{{ == \"k^\"",
        ] {
            assert!(!place(code).0.starts_with("Choice"), "{code}: {}", place(code).0);
        }
    }
}
