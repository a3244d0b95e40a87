//! Why a caller gets no answer: the only errors that callers ever see.
//!
//! Each variant's text is a sentence that a person can act on and that gives
//! nothing away: no path, no internal text, and no hint whether something that
//! may not be seen exists.

use std::{fmt, time::Duration};

use promptshelf_core::{Problem, invisible::named};

/// How many bytes of a caller's own words a rejection repeats.
const ECHO_BYTES: usize = 128;

/// Why a caller gets no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// No such prompt, or none that this caller may see: the two are the same.
    UnknownPrompt {
        /// The name that was asked for, shortened.
        name: String,
    },
    /// The arguments cannot be used; every problem is named.
    InvalidArguments {
        /// The prompt.
        prompt: String,
        /// Every problem.
        problems: Vec<Problem>,
    },
    /// The arguments are right one by one, but the prompt cannot be made with them.
    UnusableArguments {
        /// The prompt.
        prompt: String,
        /// A sentence about why.
        reason: String,
    },
    /// No such resource, or none that this caller may see: the two are the same.
    UnknownResource {
        /// The URI that was asked for, shortened.
        uri: String,
    },
    /// The resource is larger than the server sends.
    ResourceTooLarge {
        /// The URI.
        uri: String,
        /// The most bytes.
        limit: u64,
    },
    /// The caller may know of it, but has to have these scopes, all of them.
    InsufficientScope {
        /// The scopes, in order.
        scopes: Vec<String>,
    },
    /// The caller has asked too much of late.
    TooManyRequests {
        /// When to ask again.
        retry_after: Duration,
    },
    /// The caller has too much open at the same time.
    TooManyAtOnce {
        /// Of what, as a word.
        what: &'static str,
    },
    /// A cursor that this server did not give for this list.
    InvalidCursor,
    /// Completion was asked for something that the prompt or resource does not ask for.
    UnknownArgument {
        /// The name that was asked for, shortened.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// Something failed that is no caller's business. The log says what.
    Internal,
}

impl Rejection {
    /// A word for it that never changes, for records.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Rejection::UnknownPrompt { .. } => "unknown-prompt",
            Rejection::InvalidArguments { .. } => "invalid-arguments",
            Rejection::UnusableArguments { .. } => "unusable-arguments",
            Rejection::UnknownResource { .. } => "unknown-resource",
            Rejection::ResourceTooLarge { .. } => "resource-too-large",
            Rejection::InsufficientScope { .. } => "insufficient-scope",
            Rejection::TooManyRequests { .. } => "too-many-requests",
            Rejection::TooManyAtOnce { .. } => "too-many-at-once",
            Rejection::InvalidCursor => "invalid-cursor",
            Rejection::UnknownArgument { .. } => "unknown-argument",
            Rejection::Internal => "internal",
        }
    }
}

/// A caller's own words, short enough to repeat, and with invisible characters
/// named by their code points.
pub(crate) fn echo(text: &str) -> String {
    let shown = &text[..text.floor_char_boundary(ECHO_BYTES)];
    format!("{}{}", named(shown), if shown.len() < text.len() { "…" } else { "" })
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::UnknownPrompt { name } => write!(f, "Unknown prompt: {name}"),
            Rejection::InvalidArguments { prompt, problems } => {
                write!(f, "The prompt {prompt} cannot be used with these arguments: ")?;
                for (index, problem) in problems.iter().enumerate() {
                    write!(f, "{}{problem}", if index > 0 { "; " } else { "" })?;
                }
                Ok(())
            }
            Rejection::UnusableArguments { prompt, reason } => {
                write!(f, "The prompt {prompt} cannot be used with these arguments: {reason}")
            }
            Rejection::UnknownResource { uri } => write!(f, "Resource not found: {uri}"),
            Rejection::ResourceTooLarge { uri, limit } => {
                write!(f, "The resource {uri} is larger than the {limit} bytes that this server sends")
            }
            Rejection::InsufficientScope { scopes } => {
                let plural = if scopes.len() == 1 { "" } else { "s" };
                write!(f, "This needs a token with the scope{plural} {}", scopes.join(", "))
            }
            Rejection::TooManyRequests { retry_after } => {
                write!(f, "Too many requests; try again in {:.1} seconds", retry_after.as_secs_f64().max(0.1))
            }
            Rejection::TooManyAtOnce { what } => write!(f, "Too many {what} at the same time; try again later"),
            Rejection::InvalidCursor => {
                f.write_str("This cursor is not one that this list gave out; begin again without a cursor")
            }
            Rejection::UnknownArgument { name, known } if known.is_empty() => {
                write!(f, "There is no argument {name}; nothing is asked for here")
            }
            Rejection::UnknownArgument { name, known } => {
                write!(f, "There is no argument {name}; there is {}", known.join(", "))
            }
            Rejection::Internal => f.write_str("Something went wrong in the server; its log says more"),
        }
    }
}

impl std::error::Error for Rejection {}
