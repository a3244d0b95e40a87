//! Diagnostics: mistakes in a library, with location and suggested correction.
//!
//! A diagnostic is meant for the author: a value that is collected, never thrown. It carries the text that it points
//! into, so that a renderer can show the line. Rendering is deliberately elsewhere.

use std::{fmt, ops::Range, sync::Arc};

use crate::interrupt::spend_comparison;

/// A text that diagnostics point into: a file of the library.
#[derive(PartialEq, Eq)]
pub struct SourceText {
    /// The file's path inside the library, with `/` between its parts.
    pub path: String,
    /// The content of the file; empty if it is not text.
    pub text: Arc<str>,
}

impl SourceText {
    /// Creates a text with its path.
    #[must_use]
    pub fn new(path: impl Into<String>, text: impl Into<Arc<str>>) -> Arc<SourceText> {
        Arc::new(SourceText { path: path.into(), text: text.into() })
    }
}

impl fmt::Debug for SourceText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceText({:?}, {} bytes)", self.path, self.text.len())
    }
}

/// A location in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The text.
    pub source: Arc<SourceText>,
    /// Bytes of the text; always inside it and on character boundaries.
    span: Range<usize>,
}

impl Location {
    /// Creates a location. A span outside of the text, or inside a character, is moved to the nearest valid one.
    #[must_use]
    pub fn new(source: &Arc<SourceText>, span: Range<usize>) -> Location {
        let start = source.text.floor_char_boundary(span.start);
        let end = source.text.ceil_char_boundary(span.end.max(start));
        Location { source: Arc::clone(source), span: start..end }
    }

    /// Creates the location of a whole file, for lack of a narrower one.
    #[must_use]
    pub fn file(source: &Arc<SourceText>) -> Location {
        Location::new(source, 0..0)
    }

    /// Returns the span in bytes of the text.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Returns line and column of the first character, both counted from one, the column in characters.
    #[must_use]
    pub fn line_column(&self) -> (usize, usize) {
        let before = &self.source.text[..self.span.start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.bytes().filter(|byte| *byte == b'\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.line_column();
        write!(f, "{}:{line}:{column}", self.source.path)
    }
}

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Correct, but could be improved.
    Hint,
    /// Works, but causes problems for some client or reader.
    Warning,
    /// Cannot be served.
    Error,
}

impl Severity {
    /// Returns the name of the severity.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Hint => "hint",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One mistake in a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The kind of mistake; stable across releases.
    pub code: Code,
    /// The severity.
    pub severity: Severity,
    /// The mistake, as one sentence without a full stop.
    pub message: String,
    /// The location of the mistake.
    pub location: Location,
    /// Related locations, each with a label.
    pub related: Vec<(Location, String)>,
    /// The suggested correction.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Creates an error: the prompt or resource cannot be served.
    #[must_use]
    pub fn error(code: Code, location: Location, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            location,
            related: Vec::new(),
            help: None,
        }
    }

    /// Creates a warning: it works, but is probably a mistake.
    #[must_use]
    pub fn warning(code: Code, location: Location, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, location, message) }
    }

    /// Creates a hint: it may be intended.
    #[must_use]
    pub fn hint(code: Code, location: Location, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Hint, ..Diagnostic::error(code, location, message) }
    }

    /// Sets the suggested correction.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Adds a related location, unless it has 20 of them.
    #[must_use]
    pub fn also(mut self, location: Location, label: impl Into<String>) -> Diagnostic {
        if self.related.len() < MOST_RELATED {
            self.related.push((location, label.into()));
        }
        self
    }

    /// Returns the key by which diagnostics are sorted: file, offset, code, message and help.
    #[must_use]
    pub fn sort_key(&self) -> (&str, usize, Code, &str, Option<&str>) {
        (&self.location.source.path, self.location.span().start, self.code, &self.message, self.help.as_deref())
    }

    /// Returns whether it prevents the prompt or resource from being served.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = self.severity.as_str();
        write!(f, "{}: {severity}[{}]: {}", self.location, self.code, self.message)?;
        if let Some(help) = &self.help {
            write!(f, " ({help})")?;
        }
        Ok(())
    }
}

/// Longer words are not compared: it would take long, and a mistyped word is short.
/// The most related locations: of many equal names each would list all others.
pub(crate) const MOST_RELATED: usize = 20;

const MAX_COMPARED_BYTES: usize = 64;

const MAX_CANDIDATES: usize = 1_000;

/// Returns the most similar known word, for "did you mean …". The first 1,000 known words are compared, and one check
/// makes 20,000 comparisons at most: somebody who has that many mistakes is not helped by suggestions.
///
/// ```
/// use promptshelf_core::nearest;
///
/// assert_eq!(nearest("desciption", ["title", "description"]), Some("description"));
/// assert_eq!(nearest("TITLE", ["title", "description"]), Some("title"));
/// assert_eq!(nearest("zzz", ["title", "description"]), None);
/// ```
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > MAX_COMPARED_BYTES {
        return None;
    }
    let lower = word.to_lowercase();
    known
        .into_iter()
        .take(MAX_CANDIDATES)
        .take_while(|_| spend_comparison())
        .filter(|candidate| candidate.len() <= MAX_COMPARED_BYTES)
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        // A part of the word must remain: `x` is not similar to `y`.
        .filter(|(distance, candidate)| {
            let length = candidate.chars().count();
            *distance <= 1 + length / 4 && *distance < length.min(word.chars().count())
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns whether a word is another one with one slip: a letter that is missing, too much, or another one, or two that are
/// exchanged.
#[must_use]
pub fn is_slip(word: &str, meant: &str) -> bool {
    word.len() <= MAX_COMPARED_BYTES && strsim::damerau_levenshtein(&word.to_lowercase(), &meant.to_lowercase()) <= 1
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// The kinds of mistakes. The names are stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code { $($(#[doc = $doc])+ $variant,)+ }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Code] = &[$(Code::$variant),+];

            /// Returns the stable name, such as `unknown-key`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $name,)+ }
            }

            /// Returns the code of a stable name.
            ///
            /// ```
            /// use promptshelf_core::Code;
            ///
            /// assert_eq!(Code::find("unknown-key"), Some(Code::UnknownKey));
            /// assert_eq!(Code::find("no-such-code"), None);
            /// ```
            #[must_use]
            pub fn find(name: &str) -> Option<Code> {
                Code::ALL.iter().copied().find(|code| code.as_str() == name)
            }
        }
    };
}

codes! {
    /// A file could not be read.
    Unreadable = "unreadable",
    /// A file is larger than the library allows.
    TooLarge = "too-large",
    /// A file that should hold text is not UTF-8.
    NotUtf8 = "not-utf-8",
    /// A path that leads out of the folder, or is not a regular file.
    Outside = "outside-library",
    /// There are more files than the library allows.
    TooMany = "too-many",
    /// The front matter or the library file is not well-formed.
    Syntax = "syntax",
    /// A key that is not defined here.
    UnknownKey = "unknown-key",
    /// A placeholder for a word after a command that is probably not meant as written.
    WordPosition = "word-position",
    /// Files that are not read as prompts.
    LeftOut = "left-out",
    /// An operator's setting in the settings of a library.
    OperatorSetting = "operator-setting",
    /// A part of an access rule that matches nothing.
    UnmatchedRule = "unmatched-rule",
    /// An access rule that names a file by some of its URIs only.
    PartlyNamedFile = "partly-named-file",
    /// A prompt that contains the text of another file with a stricter access rule.
    RestrictedContent = "restricted-content",
    /// A root outside of the library that the operator has not granted.
    UngrantedRoot = "ungranted-root",
    /// A value of the wrong type.
    WrongType = "wrong-type",
    /// A required key is missing.
    MissingKey = "missing-key",
    /// A value of the right type that is not allowed.
    InvalidValue = "invalid-value",
    /// An invalid name of a prompt.
    InvalidName = "invalid-name",
    /// A name that some clients change.
    UnportableName = "unportable-name",
    /// A name shared by two prompts or resources.
    DuplicateName = "duplicate-name",
    /// A prompt or an argument without a description.
    MissingDescription = "missing-description",
    /// A template that does not compile.
    TemplateSyntax = "template-syntax",
    /// A template uses a name that is not declared.
    UndeclaredArgument = "undeclared-argument",
    /// An argument that no template uses.
    UnusedArgument = "unused-argument",
    /// An unknown filter, test or function.
    UnknownFunction = "unknown-function",
    /// A call with invalid arguments.
    InvalidCall = "invalid-call",
    /// An included partial that does not exist.
    MissingPartial = "missing-partial",
    /// A called prompt that does not exist, or cannot be served.
    MissingPrompt = "missing-prompt",
    /// Partials or prompts that include each other in a cycle.
    CircularInclude = "circular-include",
    /// A file to attach, link or complete from that does not exist.
    MissingFile = "missing-file",
    /// A resource that this server does not serve.
    UnknownResource = "unknown-resource",
    /// A file whose bytes contradict its type.
    ContentMismatch = "content-mismatch",
    /// A file that is named as an image or a sound, and is neither.
    InvalidMedia = "invalid-media",
    /// An invalid regular expression.
    InvalidPattern = "invalid-pattern",
    /// A default or example that violates the argument's own constraints.
    InvalidDefault = "invalid-default",
    /// A condition or a step that can never work.
    InvalidCondition = "invalid-condition",
    /// A form that asks for a secret.
    AsksForSecret = "asks-for-secret",
    /// A completion source that can never work.
    InvalidCompletion = "invalid-completion",
    /// A feature of another program's files that is not supported here.
    NotSupported = "not-supported",
    /// Arguments whose completions depend on each other.
    CircularCompletion = "circular-completion",
    /// Something that is allowed but has no effect.
    NoEffect = "no-effect",
    /// A prompt that is always empty.
    EmptyPrompt = "empty-prompt",
    /// A folder or prompt that cannot be served as a skill.
    InvalidSkill = "invalid-skill",
    /// A library without any prompt.
    EmptyLibrary = "empty-library",
    /// An invisible character, or one that reorders the visible text.
    InvisibleCharacter = "invisible-character",
    /// Something that looks like a key, a token or a password.
    LikelySecret = "likely-secret",
    /// Names that clients cannot distinguish.
    CollidingName = "colliding-name",
    /// Names that look alike.
    ConfusableName = "confusable-name",
    /// An attachment of unknown type.
    UnknownType = "unknown-type",
    /// A partial that no prompt includes.
    UnusedPartial = "unused-partial",
    /// A prompt that calls a deprecated one.
    DeprecatedPrompt = "deprecated-prompt",
    /// The replacement of a deprecated prompt does not exist, or is deprecated too.
    InvalidReplacement = "invalid-replacement",
    /// A value of many lines without a boundary to the text around it.
    BareText = "bare-text",
    /// A client does not offer the prompt.
    ClientHides = "client-hides",
    /// A client changes the name or the text.
    ClientMangles = "client-mangles",
    /// A client loses the roles of messages.
    ClientFlattens = "client-flattens",
    /// A client omits a part of the prompt.
    ClientDrops = "client-drops",
    /// The prompt does not work in a client as intended.
    ClientBreaks = "client-breaks",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
