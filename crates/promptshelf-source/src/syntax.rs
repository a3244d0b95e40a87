//! Prompt files as located trees, for tools that format, describe, convert or edit them.
//!
//! YAML and TOML become the same [`Node`]s, each with its bytes in the file. [`Notes`] collects the
//! diagnostics of one file. The keys of prompt files are in [`PROMPT_KEYS`]; the reader, completion in editors and the
//! JSON Schema all use this table. `library_schema` (feature `schema`) describes `promptshelf.toml`.
//!
//! Loading a library is not here: see [`Source`](crate::Source).

use std::{ops::Range, sync::Arc};

use promptshelf_core::{Diagnostic, PromptDefinition, SourceText};

pub use crate::format::{
    body_builder::{Pieces, argument_name},
    client_rules::{CLAUDE_CODE, CODEX, CURSOR, CommandRules, OPENCODE, Placeholder, PlaceholderNames},
    keys::{Holds, Key, Keys},
    tree::{Entry, Node, Notes, Scalar, ScalarKind, Value},
};
use crate::{file_role, format};

/// The keys of a prompt file's front matter.
pub static PROMPT_KEYS: Keys = format::PROMPT;

/// Returns the JSON Schema of `promptshelf.toml`, derived from the types that the file is read into.
#[cfg(feature = "schema")]
#[must_use]
pub fn library_schema() -> serde_json::Value {
    crate::settings::schema::<crate::manifest::Sections>(LIBRARY_FILE)
}

/// The file that holds the settings of a library.
pub const LIBRARY_FILE: &str = crate::file_role::MANIFEST;

/// The end of the names of golden files.
pub const GOLDEN_ENDING: &str = format::GOLDEN;

/// A prompt file of any supported format, read by itself. References to other files are not followed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ParsedPrompt {
    /// The prompt; `None` when the diagnostics hold an error.
    pub definition: Option<Arc<PromptDefinition>>,
    /// Everything that is wrong with the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses a prompt file. The path decides the format; `None` if it is not a prompt file's path.
///
/// ```
/// use promptshelf_core::SourceText;
/// use promptshelf_source::syntax::parse_prompt;
///
/// let parsed = parse_prompt(&SourceText::new("hello.md", "Hello, {{ name }}!")).unwrap();
/// assert_eq!(&*parsed.definition.unwrap().name, "hello");
/// assert!(parse_prompt(&SourceText::new("picture.png", "")).is_none());
/// ```
#[must_use]
pub fn parse_prompt(source: &Arc<SourceText>) -> Option<ParsedPrompt> {
    let parsed = format::Format::for_path(&source.path)?.read(source);
    let definition = parsed.draft.map(|draft| draft.definition);
    Some(ParsedPrompt { definition, diagnostics: parsed.diagnostics })
}

/// Returns the name of the prompt that a file defines, even if the file has errors. `None` if it is not a prompt file's
/// path.
///
/// ```
/// use promptshelf_core::SourceText;
/// use promptshelf_source::syntax::prompt_name;
///
/// let broken = SourceText::new("git/review.md", "---\ntitle: [\n---\n{{ unclosed\n");
/// assert_eq!(prompt_name(&broken).as_deref(), Some("git-review"));
/// ```
#[must_use]
pub fn prompt_name(source: &Arc<SourceText>) -> Option<String> {
    if !file_role::is_prompt(&source.path) {
        return None;
    }
    let format = format::Format::for_path(&source.path)?;
    let named = keys_of(source).and_then(|keys| match keys.value {
        Value::Mapping(entries) => entries.into_iter().find(|entry| entry.key == "name"),
        _ => None,
    });
    let named = named.and_then(|entry| entry.node.text().map(str::to_owned));
    Some(named.unwrap_or_else(|| format.name(&source.path)))
}

/// Parses a range of the notes' file as YAML 1.2 without aliases and tags. `None` if the range is
/// empty or cannot be read; the notes then say why.
pub fn parse_yaml(range: Range<usize>, notes: &mut Notes<'_>) -> Option<Node> {
    format::yaml::parse(range, notes)
}

/// Parses the notes' file as TOML. Syntax errors are noted, and the readable rest is returned.
pub fn parse_toml(notes: &mut Notes<'_>) -> Node {
    format::toml::parse(notes)
}

/// Parses the front matter of the notes' file, and returns it with the range of the text below it.
pub fn parse_markdown(notes: &mut Notes<'_>) -> (Option<Node>, Range<usize>) {
    format::parts(notes)
}

/// Returns the keys of a prompt file of any format without checking them; `None` without keys.
#[must_use]
pub fn keys_of(source: &Arc<SourceText>) -> Option<Node> {
    format::keys(source)
}

/// Returns the bytes between the `---` lines of a Markdown file and those below them; `None` without
/// front matter, or if it is not closed.
///
/// ```
/// let text = "---\nname: hello\n---\nHello!\n";
/// let (keys, body) = promptshelf_source::syntax::front_matter(text).unwrap();
/// assert_eq!((&text[keys], &text[body]), ("name: hello\n", "Hello!\n"));
/// ```
#[must_use]
pub fn front_matter(text: &str) -> Option<(Range<usize>, Range<usize>)> {
    format::front_matter_range(text)
}

/// Adds text with placeholders such as `{{name}}` to a body, each of them a required argument. `span`
/// is the position of the text in the notes' file.
pub fn placeholders(text: &str, span: Range<usize>, pieces: &mut Pieces, notes: &mut Notes<'_>) {
    format::placeholders(text, span, pieces, notes);
}
