//! Diagnostics: mistakes in a library, with location and suggested correction.
//!
//! A diagnostic is meant for the author: a value that is collected, never thrown. It carries the text that it points
//! into, so that a renderer can show the line. Rendering is deliberately elsewhere.

use std::{fmt, ops::Range, sync::Arc};

/// A text that diagnostics point into: a file of the library.
#[derive(PartialEq, Eq)]
pub struct SourceText {
    /// The file's path inside the library, with `/` between its parts.
    pub path: String,
    /// The content of the file; empty if it is not text.
    pub text: Arc<str>,
}

impl SourceText {
    /// A text under its path.
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

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The text.
    pub source: Arc<SourceText>,
    /// Bytes of the text; always inside it and on character boundaries.
    span: Range<usize>,
}

impl Location {
    /// A place in a text. A span that leaves the text or cuts a character is
    /// moved to the nearest one that does not.
    #[must_use]
    pub fn new(source: &Arc<SourceText>, span: Range<usize>) -> Location {
        let start = source.text.floor_char_boundary(span.start);
        let end = source.text.ceil_char_boundary(span.end.max(start));
        Location { source: Arc::clone(source), span: start..end }
    }

    /// A whole file, as where no better place is known.
    #[must_use]
    pub fn file(source: &Arc<SourceText>) -> Location {
        Location::new(source, 0..0)
    }

    /// Bytes of the text.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Line and column of the first character, both counted from one, the
    /// column in characters.
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

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Good as it is, and perhaps better otherwise.
    Hint,
    /// Works, but some client or reader will stumble.
    Warning,
    /// Cannot be served as it stands.
    Error,
}

impl Severity {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Hint => "hint",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What kind of thing; stable across releases.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// The mistake, as one sentence without a full stop.
    pub message: String,
    /// Where.
    pub location: Location,
    /// Other places that belong to it, each with a word about it.
    pub related: Vec<(Location, String)>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Something that cannot be served as it stands.
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

    /// Something that works but is probably not meant.
    #[must_use]
    pub fn warning(code: Code, location: Location, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, location, message) }
    }

    /// Something that may be meant just so.
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

    /// Names another place that belongs to it.
    #[must_use]
    pub fn also(mut self, location: Location, label: impl Into<String>) -> Diagnostic {
        self.related.push((location, label.into()));
        self
    }

    /// Returns the key by which diagnostics are sorted: file, offset, code, message and help.
    #[must_use]
    pub fn sort_key(&self) -> (&str, usize, Code, &str, Option<&str>) {
        (&self.location.source.path, self.location.span().start, self.code, &self.message, self.help.as_deref())
    }

    /// Whether it keeps the thing from being served.
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

/// Words longer than this are not compared: it would take long, and people do
/// not mistype a whole paragraph.
const MAX_COMPARED_BYTES: usize = 256;

/// "Did you mean …" for a word that is not one of the known ones.
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
        .filter(|candidate| candidate.len() <= MAX_COMPARED_BYTES)
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        // Something of the word has to be there: `x` is not nearly `y`.
        .filter(|(distance, candidate)| {
            let length = candidate.chars().count();
            *distance <= 1 + length / 4 && *distance < length.min(word.chars().count())
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// The kinds of things that can be wrong. The names are stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code { $($(#[doc = $doc])+ $variant,)+ }

        impl Code {
            /// Every code there is.
            pub const ALL: &'static [Code] = &[$(Code::$variant),+];

            /// The stable name, such as `unknown-key`.
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
    /// A key that means nothing here.
    UnknownKey = "unknown-key",
    /// A setting of the operator in the settings of a library.
    OperatorSetting = "operator-setting",
    /// A root outside of the library that the operator has not granted.
    UngrantedRoot = "ungranted-root",
    /// A value of another kind than is asked for here.
    WrongType = "wrong-type",
    /// Something that has to be there is not.
    MissingKey = "missing-key",
    /// A value that is of the right kind but cannot be.
    InvalidValue = "invalid-value",
    /// A name that no prompt can have.
    InvalidName = "invalid-name",
    /// A name that some client will change.
    UnportableName = "unportable-name",
    /// A name that two prompts or resources have.
    DuplicateName = "duplicate-name",
    /// A prompt or an argument without a description.
    MissingDescription = "missing-description",
    /// A template that does not compile.
    TemplateSyntax = "template-syntax",
    /// A template uses a name that is not declared.
    UndeclaredArgument = "undeclared-argument",
    /// An argument that no template uses.
    UnusedArgument = "unused-argument",
    /// A filter, test or function that does not exist.
    UnknownFunction = "unknown-function",
    /// A call with arguments that cannot be.
    InvalidCall = "invalid-call",
    /// A partial that is not there.
    MissingPartial = "missing-partial",
    /// A prompt to bring in that is not there, or cannot be served.
    MissingPrompt = "missing-prompt",
    /// Partials or prompts that include each other in a circle.
    CircularInclude = "circular-include",
    /// A file to attach, link or complete from that is not there.
    MissingFile = "missing-file",
    /// A resource that this server does not serve.
    UnknownResource = "unknown-resource",
    /// A file whose bytes contradict its type.
    ContentMismatch = "content-mismatch",
    /// An invalid regular expression.
    InvalidPattern = "invalid-pattern",
    /// A default or example that its own argument would not take.
    InvalidDefault = "invalid-default",
    /// A condition or a step that cannot work.
    InvalidCondition = "invalid-condition",
    /// A form that asks for a secret.
    AsksForSecret = "asks-for-secret",
    /// A completion source that cannot work.
    InvalidCompletion = "invalid-completion",
    /// Something that another program does with its own files, and that is not done here.
    NotSupported = "not-supported",
    /// Arguments whose completions wait for each other.
    CircularCompletion = "circular-completion",
    /// Something that is allowed but has no effect.
    NoEffect = "no-effect",
    /// A prompt that always comes out empty.
    EmptyPrompt = "empty-prompt",
    /// A library without any prompt.
    EmptyLibrary = "empty-library",
    /// An invisible character, or one that reorders the visible text.
    InvisibleCharacter = "invisible-character",
    /// Something that looks like a key, a token or a password.
    LikelySecret = "likely-secret",
    /// Names that clients make one of.
    CollidingName = "colliding-name",
    /// Names that look alike.
    ConfusableName = "confusable-name",
    /// An attachment of unknown type.
    UnknownType = "unknown-type",
    /// A partial that no prompt includes.
    UnusedPartial = "unused-partial",
    /// A value of many lines without a boundary to the text around it.
    BareText = "bare-text",
    /// A client will not offer the prompt.
    ClientHides = "client-hides",
    /// A client will show another name or text than the author wrote.
    ClientMangles = "client-mangles",
    /// A client will lose who says what.
    ClientFlattens = "client-flattens",
    /// A client will leave a part of the prompt out.
    ClientDrops = "client-drops",
    /// The prompt cannot be used in a client as it is meant.
    ClientBreaks = "client-breaks",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
