//! The declaration of an argument: name, type, constraints and completion.

use std::{fmt, sync::Arc};

use crate::{
    invisible::InvisiblePolicy,
    value::{BoxFuture, Variables},
};

/// An argument of a prompt, as its author declared it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArgumentDefinition {
    /// The key; also the template's variable.
    pub name: String,
    /// The display name.
    pub title: Option<String>,
    /// The purpose of the argument.
    pub description: Option<String>,
    /// Whether a call without it is rejected.
    pub required: bool,
    /// The type of its values.
    pub kind: ArgumentType,
    /// The value of a call that leaves it out, as a caller would send it.
    pub default: Option<String>,
    /// Sample values for people, as a caller would send them.
    pub examples: Vec<String>,
    /// The only values allowed; empty allows all.
    pub choices: Vec<Choice>,
    /// The bounds of its values. `None` for most arguments, of which a large library has hundreds of thousands.
    pub constraints: Option<Box<Constraints>>,
    /// The source of suggestions, besides choices and examples.
    pub completion: Option<CompletionSource>,
    /// Whether a form asks for it when a call leaves it out.
    pub ask: bool,
    /// The step of a guided prompt that asks for it; the first one by default.
    pub step: Option<u32>,
    /// A condition on earlier arguments, in template syntax. If it is false, the argument is not requested.
    pub when: Option<String>,
    /// Whether its values are secret: they never appear in records, logs and errors.
    pub sensitive: bool,
    /// Whether its values are part of the audit record. Values of a sensitive
    /// argument never are.
    pub audit: bool,
    /// The treatment of invisible characters in its values; the library's
    /// policy by default.
    pub invisible: Option<InvisiblePolicy>,
}

/// The bounds of an argument's values; `None` leaves a side unbounded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Constraints {
    /// A regular expression that must match somewhere in the value.
    pub pattern: Option<String>,
    /// The smallest number of characters.
    pub min_length: Option<usize>,
    /// The largest number of characters.
    pub max_length: Option<usize>,
    /// The lower bound of numbers, inclusive.
    pub minimum: Option<f64>,
    /// The upper bound of numbers, inclusive.
    pub maximum: Option<f64>,
}

impl ArgumentDefinition {
    /// Creates an optional argument of type string.
    #[must_use]
    pub fn new(name: impl Into<String>) -> ArgumentDefinition {
        ArgumentDefinition { name: name.into(), ..ArgumentDefinition::default() }
    }

    /// Returns the bounds of its values.
    #[must_use]
    pub fn constraints(&self) -> &Constraints {
        static UNBOUNDED: Constraints =
            Constraints { pattern: None, min_length: None, max_length: None, minimum: None, maximum: None };
        self.constraints.as_deref().unwrap_or(&UNBOUNDED)
    }

    /// Bounds its values.
    ///
    /// ```
    /// use promptshelf_core::{ArgumentDefinition, Constraints};
    ///
    /// let topic = ArgumentDefinition::new("topic").constrained(Constraints { max_length: Some(80), ..Constraints::default() });
    /// assert_eq!(topic.constraints().max_length, Some(80));
    /// ```
    #[must_use]
    pub fn constrained(mut self, constraints: Constraints) -> ArgumentDefinition {
        self.constraints = (constraints != Constraints::default()).then(|| Box::new(constraints));
        self
    }

    /// Rejects calls without it.
    #[must_use]
    pub fn required(mut self) -> ArgumentDefinition {
        self.required = true;
        self
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> ArgumentDefinition {
        self.title = Some(title.into());
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> ArgumentDefinition {
        self.description = Some(description.into());
        self
    }

    /// Sets the type of its values.
    #[must_use]
    pub fn kind(mut self, kind: ArgumentType) -> ArgumentDefinition {
        self.kind = kind;
        self
    }

    /// Sets the value of calls that leave it out.
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

    /// Requests it with a form when a call leaves it out and the client can show one.
    #[must_use]
    pub fn ask(mut self) -> ArgumentDefinition {
        self.ask = true;
        self
    }

    /// Requests it in a later step.
    #[must_use]
    pub fn step(mut self, step: u32) -> ArgumentDefinition {
        self.step = Some(step);
        self
    }

    /// Requests it only if an expression over earlier arguments is true, such as `language == "python"`.
    #[must_use]
    pub fn when(mut self, condition: impl Into<String>) -> ArgumentDefinition {
        self.when = Some(condition.into());
        self
    }

    /// Sets the policy for invisible characters in its values.
    #[must_use]
    pub fn invisible(mut self, policy: InvisiblePolicy) -> ArgumentDefinition {
        self.invisible = Some(policy);
        self
    }

    /// Sets the source of suggestions.
    #[must_use]
    pub fn complete(mut self, completion: CompletionSource) -> ArgumentDefinition {
        self.completion = Some(completion);
        self
    }
}

/// One value that an argument allows, with its display name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The value, as a caller sends it.
    pub value: String,
    /// The display name.
    pub title: Option<String>,
}

/// The type of an argument's values. On the wire every value is a string.
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
    /// True or false.
    Boolean,
    /// A day, as `2026-07-28` (RFC 3339, `full-date`).
    Date,
    /// Several strings: a JSON array, or separated by line breaks or commas.
    List,
    /// Any JSON value.
    Json,
}

impl ArgumentType {
    /// All types.
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

    /// Returns the type as prompt files spell it.
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

/// The source of an argument's suggestions.
#[derive(Clone)]
pub enum CompletionSource {
    /// Fixed values.
    Values(Vec<String>),
    /// The lines of a file of the library, by its path.
    File(String),
    /// Paths that a source found for a glob in the library.
    Paths(Arc<[String]>),
    /// Paths that a source found for a glob below a declared root.
    RootPaths {
        /// The place of the root; see [`Links`](crate::Links).
        root: String,
        /// Paths below the root.
        paths: Arc<[String]>,
    },
    /// Values that depend on another argument.
    By {
        /// The other argument.
        argument: String,
        /// The values of the other argument, with the suggestions for each.
        cases: Vec<(String, Vec<String>)>,
    },
    /// URIs of this server's resources that match a glob such as `logs://*`.
    Resources(String),
    /// A function of the typed text and the arguments filled in so far. Its suggestions are ranked like those of any
    /// other source.
    Function(CompletionFunction),
    /// A function that asks another server. Its suggestions are used as they are.
    Remote(RemoteCompletion),
}

/// A completion source in code. It may block: a service calls it in a thread of its own, once for each request, and answers
/// without suggestions if it has not returned after 50 seconds.
pub type CompletionFunction = Arc<dyn Fn(&str, &Variables) -> Vec<String> + Send + Sync>;

/// A completion source that waits for another server, with the typed text and the arguments filled in so far. Returns
/// the best values, and the number of all.
pub type RemoteCompletion = Arc<dyn Fn(String, Variables) -> BoxFuture<'static, (Vec<String>, usize)> + Send + Sync>;

/// Two completion functions are equal if they are the same object.
impl PartialEq for CompletionSource {
    fn eq(&self, other: &CompletionSource) -> bool {
        use CompletionSource::{By, File, Function, Paths, Remote, Resources, RootPaths, Values};
        match (self, other) {
            (Values(a), Values(b)) => a == b,
            (File(a), File(b)) | (Resources(a), Resources(b)) => a == b,
            (Paths(a), Paths(b)) => a == b,
            (RootPaths { root: a, paths: of_a }, RootPaths { root: b, paths: of_b }) => a == b && of_a == of_b,
            (By { argument: a, cases: of_a }, By { argument: b, cases: of_b }) => a == b && of_a == of_b,
            (Function(a), Function(b)) => Arc::ptr_eq(a, b),
            (Remote(a), Remote(b)) => Arc::ptr_eq(a, b),
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
            CompletionSource::RootPaths { root, paths } => write!(f, "RootPaths({root}, {})", paths.len()),
            CompletionSource::By { argument, cases } => {
                f.debug_struct("By").field("argument", argument).field("cases", cases).finish()
            }
            CompletionSource::Resources(glob) => f.debug_tuple("Resources").field(glob).finish(),
            CompletionSource::Function(_) => f.write_str("Function"),
            CompletionSource::Remote(_) => f.write_str("Remote"),
        }
    }
}
