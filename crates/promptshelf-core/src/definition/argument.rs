//! What a prompt asks for, as its author wrote it.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use arcstr::Substr;
use smol_str::SmolStr;

use super::{Seldom, Silent};
use crate::{argument::Choice, invisible::InvisiblePolicy, resource::Variables};

/// What a prompt asks for, as its author wrote it. What it says of few
/// arguments is read and written as if it stood here, too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArgumentDefinition {
    /// The key; also the template's variable.
    pub name: SmolStr,
    /// What it is.
    pub description: Option<Substr>,
    /// Whether a call without it is refused.
    pub required: bool,
    /// What kind of value it takes.
    pub kind: ArgumentType,
    /// Everything else.
    pub details: Seldom<ArgumentDetails>,
}

/// What an [`ArgumentDefinition`] says of few arguments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArgumentDetails {
    /// The name for people.
    pub title: Option<Substr>,
    /// The value when none is given, as a caller would send it.
    pub default: Option<String>,
    /// Values to show people, as a caller would send them.
    pub examples: Vec<String>,
    /// The only values allowed; empty allows all.
    pub choices: Vec<Choice>,
    /// A regular expression that has to match somewhere in the value.
    pub pattern: Option<String>,
    /// The fewest characters.
    pub min_length: Option<usize>,
    /// The most characters.
    pub max_length: Option<usize>,
    /// The smallest number.
    pub minimum: Option<f64>,
    /// The largest number.
    pub maximum: Option<f64>,
    /// Where suggestions come from, besides choices and examples.
    pub completion: Option<CompletionSource>,
    /// Whether it is asked for, by a form, when a call leaves it out.
    pub ask: bool,
    /// With which step of a guided prompt it is asked for; without, the first.
    pub step: Option<u32>,
    /// An expression over the arguments before it, in template syntax, that
    /// decides whether it is asked for at all.
    pub when: Option<String>,
    /// Whether its values are secret: they stay out of records, logs and errors.
    pub sensitive: bool,
    /// Whether its values are part of the audit record. Never those of a
    /// sensitive one.
    pub audit: bool,
    /// What becomes of invisible characters in its values; without, what the
    /// library's policy says.
    pub invisible: Option<InvisiblePolicy>,
}

impl Silent for ArgumentDetails {
    fn silent() -> &'static ArgumentDetails {
        // Made by the compiler, because every argument of every call is asked for some of it.
        static SILENT: ArgumentDetails = ArgumentDetails {
            title: None,
            default: None,
            examples: Vec::new(),
            choices: Vec::new(),
            pattern: None,
            min_length: None,
            max_length: None,
            minimum: None,
            maximum: None,
            completion: None,
            ask: false,
            step: None,
            when: None,
            sensitive: false,
            audit: false,
            invisible: None,
        };
        &SILENT
    }

    fn is_silent(&self) -> bool {
        self == ArgumentDetails::silent()
    }
}

impl Deref for ArgumentDefinition {
    type Target = ArgumentDetails;

    fn deref(&self) -> &ArgumentDetails {
        &self.details
    }
}

impl DerefMut for ArgumentDefinition {
    fn deref_mut(&mut self) -> &mut ArgumentDetails {
        &mut self.details
    }
}

impl ArgumentDefinition {
    /// An optional argument of type string.
    #[must_use]
    pub fn new(name: impl Into<SmolStr>) -> ArgumentDefinition {
        ArgumentDefinition { name: name.into(), ..ArgumentDefinition::default() }
    }

    /// Refuses calls without it.
    #[must_use]
    pub fn required(mut self) -> ArgumentDefinition {
        self.required = true;
        self
    }

    /// Sets the name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<Substr>) -> ArgumentDefinition {
        self.title = Some(title.into());
        self
    }

    /// Says what it is.
    #[must_use]
    pub fn description(mut self, description: impl Into<Substr>) -> ArgumentDefinition {
        self.description = Some(description.into());
        self
    }

    /// Sets what kind of value it takes.
    #[must_use]
    pub fn kind(mut self, kind: ArgumentType) -> ArgumentDefinition {
        self.kind = kind;
        self
    }

    /// Sets the value when none is given.
    #[must_use]
    pub fn default_value(mut self, default: impl Into<String>) -> ArgumentDefinition {
        self.default = Some(default.into());
        self
    }

    /// Allows only these values.
    #[must_use]
    pub fn choices<T: Into<String>>(mut self, values: impl IntoIterator<Item = T>) -> ArgumentDefinition {
        self.choices = values.into_iter().map(|value| Choice { value: value.into(), title: None }).collect();
        self
    }

    /// Asks for it when a call leaves it out and the client can show a form.
    #[must_use]
    pub fn ask(mut self) -> ArgumentDefinition {
        self.ask = true;
        self
    }

    /// Asks for it with a later step.
    #[must_use]
    pub fn step(mut self, step: u32) -> ArgumentDefinition {
        self.step = Some(step);
        self
    }

    /// Asks for it only when an expression over the arguments before it holds,
    /// such as `language == "python"`.
    #[must_use]
    pub fn when(mut self, condition: impl Into<String>) -> ArgumentDefinition {
        self.when = Some(condition.into());
        self
    }

    /// Says what becomes of invisible characters in its values.
    #[must_use]
    pub fn invisible(mut self, policy: InvisiblePolicy) -> ArgumentDefinition {
        self.invisible = Some(policy);
        self
    }

    /// Says where suggestions come from.
    #[must_use]
    pub fn complete(mut self, completion: CompletionSource) -> ArgumentDefinition {
        self.completion = Some(completion);
        self
    }
}

/// What kind of value an argument takes. On the wire every value is a string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ArgumentType {
    /// One line of text.
    #[default]
    String,
    /// Several lines of text.
    Text,
    /// A whole number of 64 bits.
    Integer,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
    /// A day, as `2026-07-28` (RFC 3339, `full-date`).
    Date,
    /// Several strings: a JSON array, or separated by line breaks or commas.
    List,
    /// Any JSON value.
    Json,
}

impl ArgumentType {
    /// Every type there is.
    pub const ALL: &'static [ArgumentType] = &[
        ArgumentType::String,
        ArgumentType::Text,
        ArgumentType::Integer,
        ArgumentType::Number,
        ArgumentType::Boolean,
        ArgumentType::Date,
        ArgumentType::List,
        ArgumentType::Json,
    ];

    /// The type as prompt files spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ArgumentType::String => "string",
            ArgumentType::Text => "text",
            ArgumentType::Integer => "integer",
            ArgumentType::Number => "number",
            ArgumentType::Boolean => "boolean",
            ArgumentType::Date => "date",
            ArgumentType::List => "list",
            ArgumentType::Json => "json",
        }
    }
}

/// Where an argument's suggestions come from.
#[derive(Clone)]
pub enum CompletionSource {
    /// These values.
    Values(Vec<String>),
    /// The lines of a file of the library, by its path.
    File(String),
    /// Paths that a source has found for a glob below a declared root.
    Paths(Arc<[String]>),
    /// What another argument holds decides.
    By {
        /// The other argument.
        argument: String,
        /// Its values, and what to suggest for each.
        cases: Vec<(String, Vec<String>)>,
    },
    /// URIs of this server's resources that match a glob such as `logs://*`.
    Resources(String),
    /// Code: gets what has been typed and the arguments filled in so far. What
    /// it returns is ranked like any other source's.
    Function(CompletionFunction),
}

/// A completion source in code.
pub type CompletionFunction = Arc<dyn Fn(&str, &Variables) -> Vec<String> + Send + Sync>;

/// Two completion sources in code are equal when they are the same one.
impl PartialEq for CompletionSource {
    fn eq(&self, other: &CompletionSource) -> bool {
        use CompletionSource::{By, File, Function, Paths, Resources, Values};
        match (self, other) {
            (Values(a), Values(b)) => a == b,
            (File(a), File(b)) | (Resources(a), Resources(b)) => a == b,
            (Paths(a), Paths(b)) => a == b,
            (By { argument: a, cases: of_a }, By { argument: b, cases: of_b }) => a == b && of_a == of_b,
            (Function(a), Function(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl fmt::Debug for CompletionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompletionSource::Values(values) => f.debug_tuple("Values").field(values).finish(),
            CompletionSource::File(path) => f.debug_tuple("File").field(path).finish(),
            CompletionSource::Paths(paths) => write!(f, "Paths({})", paths.len()),
            CompletionSource::By { argument, cases } => {
                f.debug_struct("By").field("argument", argument).field("cases", cases).finish()
            }
            CompletionSource::Resources(glob) => f.debug_tuple("Resources").field(glob).finish(),
            CompletionSource::Function(_) => f.write_str("Function"),
        }
    }
}
