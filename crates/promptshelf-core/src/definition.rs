//! Definitions: prompts, files and resources as a source provides them, unchecked.
//!
//! [`check`](crate::check) validates definitions and returns a [`Catalog`](crate::Catalog) and diagnostics.

mod argument;
mod library;
mod prompt;

use std::{borrow::Cow, cmp::Ordering, collections::BTreeMap, fmt, ops::Range, sync::Arc};

use serde_json::{Map, Value};

use crate::{
    content::{Annotations, Icon, Message, MimeType, ResourceBody, Role},
    diagnostic::{Location, SourceText},
    render_error::RenderError,
    timestamp::Timestamp,
    value::{Bindings, BoxFuture, Variables},
};

pub use argument::{
    ArgumentDefinition, ArgumentType, Choice, CompletionFunction, CompletionSource, Constraints, RemoteCompletion,
};
pub use library::{About, BrokenFile, Budget, Definitions, LIBRARY_SCHEME, LibraryFile, Links, Policy, Requirements};
pub use prompt::{
    CompletionTest, Decline, Deprecation, LABELS, Label, Labels, MAX_LABEL_CHARS, PromptDefinition, SkillSource,
    StepDefinition, TestDefinition,
};

pub(crate) use library::{encoded_path, library_uri};

// Access rules: the scopes, roles and users that prompts and resources require.
// Callers, and whether a caller satisfies a rule, are deliberately elsewhere.

/// The requirements for a caller, all of which must be met: all of the scopes, and one of the roles or users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// Scopes; a caller's token must have all of them.
    pub scopes: Vec<String>,
    /// Roles; a caller must have one of them, unless it is one of the users.
    pub roles: Vec<String>,
    /// Callers by name; a caller must be one of them, unless it has one of the roles.
    pub users: Vec<String>,
    /// Whether the item is shown to callers who lack only a scope. They receive the missing scope; otherwise the item
    /// does not exist for them.
    pub visible: bool,
}

impl Access {
    /// Creates requirements that no caller meets: no role contains this character.
    pub(crate) fn unsatisfiable() -> Access {
        Access { roles: vec!["\0".to_owned()], ..Access::default() }
    }
}

/// The requirements for everything that matches a pattern. All matching rules apply together, and together with a
/// prompt's own rule.
#[derive(Clone, Debug)]
pub struct AccessRule {
    /// Globs over the names of prompts.
    pub prompts: Vec<String>,
    /// The text before a prompt's own name in the names that `prompts` match; empty for the own name. Rules of an
    /// operator match the names under which a source is served.
    pub prefix: String,
    /// Folders of the library, or names of its roots with a folder inside: prompts and files below them, under all
    /// their names. Globs are possible.
    pub folders: Vec<String>,
    /// Tags of prompts.
    pub tags: Vec<String>,
    /// Globs over URIs of resources; `*` also matches `/`, and letter case does not count. Closing one name of a file
    /// closes all of them.
    pub resources: Vec<String>,
    /// Whether the rule applies to the diagnostics of the library, which quote lines of its files.
    pub diagnostics: bool,
    /// The requirements.
    pub access: Access,
    /// The location of the rule.
    pub origin: Origin,
}

impl AccessRule {
    /// Creates a rule that matches nothing.
    #[must_use]
    pub fn new(access: Access, origin: Origin) -> AccessRule {
        let none = Vec::new;
        AccessRule {
            prompts: none(),
            prefix: String::new(),
            folders: none(),
            tags: none(),
            resources: none(),
            diagnostics: false,
            access,
            origin,
        }
    }
}

/// Requirements that apply together.
pub type AccessSet = Vec<Arc<Access>>;

/// A prompt of another server.
pub trait RemotePrompt: Send + Sync {
    /// Gets the messages, or the input that the other server asks for. An implementation asks only in ways that the
    /// caller has, and bounds and checks everything that the other server sends.
    fn get(&self, arguments: Variables, input: RemoteInput) -> BoxFuture<'_, Result<RemoteAnswer, RenderError>>;
}

impl fmt::Debug for dyn RemotePrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemotePrompt")
    }
}

/// The ways in which a caller can be asked, and the results of an earlier question.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RemoteInput {
    /// Whether the caller can show forms.
    pub forms: bool,
    /// Whether the caller can open pages.
    pub pages: bool,
    /// The state that came with the question; `None` for a first request. Verified to be unchanged.
    pub state: Option<String>,
    /// The user's results by key, as the objects of the protocol (`ElicitResult`). Their contents are not validated.
    pub responses: Map<String, Value>,
}

impl fmt::Debug for RemoteInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RemoteInput { forms, pages, .. } = self;
        f.debug_struct("RemoteInput").field("forms", forms).field("pages", pages).finish_non_exhaustive()
    }
}

/// The answer of another server.
#[derive(Debug)]
#[non_exhaustive]
pub enum RemoteAnswer {
    /// The messages of the prompt.
    Messages(Vec<Message>),
    /// A question to the user.
    InputRequired(RemoteQuestion),
}

/// A question of another server to the user of the caller.
#[derive(Clone)]
pub struct RemoteQuestion {
    /// The forms and pages, at least one.
    pub forms: Vec<RemoteForm>,
    /// The state that has to come back with the results ([`RemoteInput::state`]).
    pub state: String,
}

impl fmt::Debug for RemoteQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteQuestion").field("forms", &self.forms.len()).finish_non_exhaustive()
    }
}

/// A form or a page of another server.
#[derive(Clone, Debug)]
pub struct RemoteForm {
    /// The key of its result.
    pub key: String,
    /// The text above the form.
    pub message: String,
    /// The page to open; `None` for a form.
    pub url: Option<String>,
    /// The fields of a form.
    pub fields: Vec<ArgumentDefinition>,
}

/// The resources of another server. They are not listed: a caller reads those that prompts link to.
pub trait RemoteResources: fmt::Debug + Send + Sync {
    /// Returns how a URI is known, from memory; `None` for a URI that must not be read.
    fn origin(&self, uri: &str) -> Option<RemoteOrigin>;

    /// Reads the resource of a known URI. An implementation bounds and checks everything that the other server sends.
    fn read(&self, uri: &str) -> BoxFuture<'_, Result<ReadBody, ReadError>>;
}

/// The reason why a URI of another server may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoteOrigin {
    /// Answers of these prompts have linked to it, by their own names.
    Linked(Vec<String>),
    /// The other server lists it.
    Listed,
}

/// A resource as its author declared it.
#[derive(Clone, Debug)]
pub struct ResourceDefinition {
    /// A URI, or a URI template (RFC 6570) with variables.
    pub uri: String,
    /// The programmatic name.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The MIME type, if it is not taken from the file.
    pub mime_type: Option<MimeType>,
    /// The size in bytes, if known.
    pub size: Option<u64>,
    /// The icons.
    pub icons: Vec<Icon>,
    /// Audience and priority (MCP `annotations`).
    pub annotations: Annotations,
    /// The template's variables that have constraints, a default or completion.
    pub variables: Vec<ArgumentDefinition>,
    /// The content.
    pub content: ResourceContent,
    /// The text that the definition was read from.
    pub origin: Origin,
}

impl ResourceDefinition {
    /// Creates a resource from its URI, content and origin. Its name is its URI.
    #[must_use]
    pub fn from_source(uri: impl Into<String>, content: ResourceContent, origin: Origin) -> ResourceDefinition {
        let uri = uri.into();
        ResourceDefinition {
            name: uri.clone(),
            uri,
            title: None,
            description: None,
            mime_type: None,
            size: None,
            icons: Vec::new(),
            annotations: Annotations::default(),
            variables: Vec::new(),
            content,
            origin,
        }
    }
}

/// The content of a resource.
#[derive(Clone, Debug)]
pub enum ResourceContent {
    /// A fixed body.
    Fixed(ResourceBody),
    /// Text in template syntax over the URI's variables.
    Template(String),
    /// A file of the library, by its path.
    LibraryFile(String),
    /// The result of a reader, on each request.
    Reader(Arc<dyn ReadResource>),
}

/// Reads a resource on request.
pub trait ReadResource: fmt::Debug + Send + Sync {
    /// Reads the body of a URI whose template variables have these values.
    ///
    /// The reader validates `variables`: they come from callers and can be any text that the template matches.
    fn read<'a>(&'a self, variables: &'a Variables) -> BoxFuture<'a, Result<ReadBody, ReadError>>;

    /// Returns a number that changes with the body; `None` if nothing exists at the URI. Must be cheaper than
    /// reading: it is called for every subscribed URI after each change.
    fn version<'a>(&'a self, variables: &'a Variables) -> BoxFuture<'a, Option<u64>>;

    /// Returns the place ([`Links`](crate::Links)) of the file that would be read, if it is a file: access rules apply
    /// to it under all its names. Must not read anything, and [`read`](ReadResource::read) must read this file.
    fn place(&self, _variables: &Variables) -> Option<String> {
        None
    }

    /// Returns the values of variables with which the file of this path would be read. A variable that is missing can
    /// have any value.
    fn variables_of(&self, _path: &str) -> Vec<Variables> {
        Vec::new()
    }

    /// Returns the place of the folder that contains all files that can be read; empty for the library itself.
    fn folder(&self) -> Option<String> {
        None
    }
}

/// The result of a reader.
#[derive(Clone, Debug)]
pub struct ReadBody {
    /// Text or bytes.
    pub body: ResourceBody,
    /// The MIME type, if the reader can determine it.
    pub mime_type: Option<MimeType>,
    /// The time of the last change, if known.
    pub modified: Option<Timestamp>,
}

/// The reason why a resource could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Nothing exists at the URI, or nothing that may be read; callers cannot distinguish the two.
    #[error("resource not found")]
    NotFound,
    /// The resource is larger than the library allows.
    #[error("the resource is larger than {limit} bytes")]
    TooLarge {
        /// The largest number of bytes allowed.
        limit: u64,
    },
    /// An internal failure; the text is for the log and not for callers.
    #[error("{0}")]
    Failed(String),
}

/// The source of a definition, down to its parts.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The file.
    pub source: Arc<SourceText>,
    /// The number of the source that the file belongs to.
    pub from: usize,
    /// The precedence among definitions of one name: the smallest number is served. Definitions with the same number
    /// exclude each other.
    pub rank: u8,
    /// The names that links to the file would give its prompt. Access rules for them apply to it.
    pub linked_names: Box<[String]>,
    /// The file's time of last change, if known.
    pub modified: Option<Timestamp>,
    /// Byte ranges for parts of the definition, by a path such as
    /// `arguments.0.default`. A part without an entry has the location of the
    /// nearest enclosing part.
    pub spans: Spans,
}

impl Origin {
    /// Creates an origin without spans.
    #[must_use]
    pub fn new(source: Arc<SourceText>) -> Origin {
        Origin { source, from: 0, rank: 0, linked_names: Box::default(), modified: None, spans: Spans::default() }
    }

    /// Returns the location of a part of the definition.
    ///
    /// ```
    /// use promptshelf_core::{Origin, SourceText};
    ///
    /// let mut origin = Origin::new(SourceText::new("a.md", "---\nname: a\n---\n"));
    /// origin.spans.insert("name", 10..11);
    /// assert_eq!(origin.locate("name").to_string(), "a.md:2:7");
    /// assert_eq!(origin.locate("arguments.0").to_string(), "a.md:1:1");
    /// ```
    #[must_use]
    pub fn locate(&self, part: &str) -> Location {
        let mut part = part;
        loop {
            if let Some(span) = self.spans.get(part) {
                return Location::new(&self.source, span);
            }
            match part.rfind('.') {
                Some(dot) => part = &part[..dot],
                None => return Location::file(&self.source),
            }
        }
    }
}

/// Byte ranges of a file, by the path of a part, such as `arguments.0.default`.
///
/// Every prompt of a library has some, and they are read only to report a
/// mistake: two allocations in all take half the memory of one for each path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// Without separators, in order.
    paths: Box<str>,
    /// For each path its end in `paths`, and its byte range.
    spans: Box<[(u32, Range<u32>)]>,
}

impl Spans {
    /// Returns the byte range of a part.
    #[must_use]
    pub fn get(&self, part: &str) -> Option<Range<usize>> {
        let (mut first, mut end) = (0, self.spans.len());
        while first < end {
            let middle = first.midpoint(end);
            match self.path(middle).cmp(part) {
                Ordering::Less => first = middle + 1,
                Ordering::Greater => end = middle,
                Ordering::Equal => return Some(self.range(middle)),
            }
        }
        None
    }

    /// Sets the byte range of a part.
    pub fn insert(&mut self, part: impl Into<String>, span: Range<usize>) {
        let known = (0..self.spans.len()).map(|at| (self.path(at).to_owned(), self.range(at)));
        let mut spans: BTreeMap<String, Range<usize>> = known.collect();
        spans.insert(part.into(), span);
        *self = spans.into();
    }

    fn path(&self, at: usize) -> &str {
        let end = |at: usize| self.spans.get(at).map_or(0, |(end, _)| *end as usize);
        let start = at.checked_sub(1).map_or(0, end);
        self.paths.get(start..end(at)).unwrap_or_default()
    }

    fn range(&self, at: usize) -> Range<usize> {
        self.spans.get(at).map_or(0..0, |(_, range)| range.start as usize..range.end as usize)
    }
}

impl From<BTreeMap<String, Range<usize>>> for Spans {
    fn from(spans: BTreeMap<String, Range<usize>>) -> Spans {
        let mut paths = String::new();
        // Offsets past 4 GiB are clamped: `Location::new` moves them into the text.
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let spans = spans.into_iter().map(|(path, span)| {
            paths.push_str(&path);
            (offset(paths.len()), offset(span.start)..offset(span.end))
        });
        let spans = spans.collect();
        Spans { paths: paths.into(), spans }
    }
}

/// The body of a prompt.
#[derive(Clone, Debug)]
pub enum Body {
    /// A template: a range of the origin's text.
    Template {
        /// Bytes of the origin's text.
        range: Range<usize>,
    },
    /// Texts and placeholders for arguments, from formats without a template language. The texts are never
    /// interpreted.
    Pieces(Vec<BodyPiece>),
    /// Code.
    Function(PromptFunction),
}

/// A part of a body without a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyPiece {
    /// Text that is printed unchanged.
    Text(String),
    /// The value of an argument; empty if it has none.
    Argument(String),
    /// Words of the value of an argument, or another text without them.
    Words(Words),
    /// The role of the following parts.
    Role(Role),
    /// A file of the library.
    Attach {
        /// Its path inside the library.
        path: String,
        /// The text used if the library has no such file.
        otherwise: String,
        /// Bytes of the origin's text.
        span: Range<usize>,
    },
}

/// Words of an argument that holds the text after a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// The argument.
    pub argument: String,
    /// The words to print.
    pub select: Select,
    /// The text before the words, printed only with them.
    pub before: String,
    /// The text in place of words that are missing.
    pub otherwise: String,
}

/// A selection of words, counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// The whole text, as it was written.
    All,
    /// One word.
    Word(usize),
    /// A word and those after it, joined by spaces.
    From(usize),
}

impl BodyPiece {
    /// Returns the argument whose value this piece prints.
    #[must_use]
    pub fn argument(&self) -> Option<&str> {
        match self {
            BodyPiece::Argument(name) => Some(name),
            BodyPiece::Words(words) => Some(&words.argument),
            BodyPiece::Text(_) | BodyPiece::Role(_) | BodyPiece::Attach { .. } => None,
        }
    }
}

impl Words {
    pub(crate) fn of<'v>(&'v self, value: Cow<'v, str>) -> Cow<'v, str> {
        if value.trim().is_empty() {
            return Cow::Borrowed(&self.otherwise);
        }
        let words = match self.select {
            Select::All => Some(value),
            Select::Word(index) => split(&value).into_iter().nth(index).map(Cow::Owned),
            Select::From(index) => {
                let words = split(&value);
                words.get(index..).filter(|words| !words.is_empty()).map(|words| Cow::Owned(words.join(" ")))
            }
        };
        match words {
            Some(words) if self.before.is_empty() => words,
            Some(words) => Cow::Owned([&self.before, &*words].concat()),
            None => Cow::Borrowed(&self.otherwise),
        }
    }
}

/// Splits a text into words at white space, outside of quotation marks, as command lines do.
fn split(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut is_open, mut quote) = (false, None);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match quote {
            Some(mark) if c == mark => {
                quote = None;
                continue;
            }
            None if c.is_whitespace() => {
                is_open = false;
                continue;
            }
            _ => {}
        }
        if !is_open {
            words.push(String::new());
            is_open = true;
        }
        let Some(word) = words.last_mut() else { continue };
        match (quote, c) {
            // An apostrophe inside of a word, or a mark without a second one, is no quotation mark.
            (None, '"' | '\'') if word.is_empty() && rest.clone().any(|other| other == c) => quote = Some(c),
            (None | Some('"'), '\\') => word.extend(rest.next()),
            _ => word.push(c),
        }
    }
    words
}

/// A prompt's body in code.
#[derive(Clone)]
#[non_exhaustive]
pub enum PromptFunction {
    /// A function that returns at once.
    Sync(Arc<SyncPromptFunction>),
    /// A function that returns a future.
    Async(Arc<AsyncPromptFunction>),
    /// A prompt of another server.
    Remote(Arc<dyn RemotePrompt>),
}

/// The type of a function in [`PromptFunction::Sync`].
pub type SyncPromptFunction = dyn Fn(&Bindings) -> Result<Vec<Message>, RenderError> + Send + Sync;

/// The type of a function in [`PromptFunction::Async`].
pub type AsyncPromptFunction = dyn Fn(Bindings) -> BoxFuture<'static, Result<Vec<Message>, RenderError>> + Send + Sync;

impl PromptFunction {
    fn is_same(&self, other: &PromptFunction) -> bool {
        match (self, other) {
            (PromptFunction::Sync(a), PromptFunction::Sync(b)) => Arc::ptr_eq(a, b),
            (PromptFunction::Async(a), PromptFunction::Async(b)) => Arc::ptr_eq(a, b),
            (PromptFunction::Remote(a), PromptFunction::Remote(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl fmt::Debug for PromptFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PromptFunction")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_found_in_short_and_long_files() {
        let mut spans = Spans::default();
        assert_eq!(spans.get("name"), None);
        spans.insert("name", 7..0xffff);
        assert_eq!(spans.get("name"), Some(7..0xffff));
        spans.insert("body", 0x1_0000..0x12_3456);
        assert_eq!((spans.get("name"), spans.get("body")), (Some(7..0xffff), Some(0x1_0000..0x12_3456)));
        spans.insert("body", 1..2);
        assert_eq!((spans.get("name"), spans.get("body")), (Some(7..0xffff), Some(1..2)));
        assert_eq!(spans.get("title"), None);
        assert_eq!((spans.get(""), spans.get("namebody"), spans.get("nam")), (None, None, None));
    }
}

#[cfg(test)]
mod body_tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_command_line() {
        for (text, expected) in [
            ("a  b\nc", &["a", "b", "c"][..]),
            ("'a b' \"c \\\" d\" e\\ f", &["a b", "c \" d", "e f"]),
            ("don't do 'it", &["don't", "do", "'it"]),
            ("\"\" x", &["", "x"]),
            ("  ", &[]),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
    }

    #[test]
    fn missing_words_leave_the_other_text() {
        let words =
            |select| Words { argument: "a".to_owned(), select, before: "+".to_owned(), otherwise: "$1".to_owned() };
        for (select, expected) in [
            (Select::All, "+x 'y z' w"),
            (Select::Word(1), "+y z"),
            (Select::From(1), "+y z w"),
            (Select::Word(3), "$1"),
            (Select::From(3), "$1"),
        ] {
            assert_eq!(words(select).of("x 'y z' w".into()), expected);
            assert_eq!(words(select).of("".into()), "$1");
        }
    }
}
