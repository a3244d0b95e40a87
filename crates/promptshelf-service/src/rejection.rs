//! The errors that callers see.
//!
//! Each message is a sentence that a person can act on. It reveals no path and no internal text, and it does not show
//! whether a hidden item exists.

use std::{fmt, time::Duration};

use promptshelf_core::{Problem, invisible::named};

/// Maximum length of a caller's text in a rejection, in bytes.
const ECHO_BYTES: usize = 128;

/// The reason why a request was refused or failed.
///
/// ```
/// use promptshelf_service::Rejection;
///
/// let rejection = Rejection::UnknownPrompt { name: "greet".to_owned() };
/// assert_eq!(rejection.code(), "unknown-prompt");
/// assert_eq!(rejection.to_string(), "Unknown prompt: greet");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// The prompt does not exist or is hidden from this caller; the two cases are indistinguishable.
    UnknownPrompt {
        /// The requested name, shortened.
        name: String,
    },
    /// The arguments are invalid.
    InvalidArguments {
        /// The prompt.
        prompt: String,
        /// All problems.
        problems: Vec<Problem>,
    },
    /// Each argument is valid, but the prompt cannot be rendered with them.
    UnusableArguments {
        /// The prompt.
        prompt: String,
        /// The reason, as a sentence.
        reason: String,
    },
    /// Another server has the prompt, and it cannot answer now.
    Unavailable {
        /// The prompt.
        prompt: String,
        /// The reason, as a sentence.
        reason: String,
    },
    /// The resource does not exist or is hidden from this caller; the two cases are indistinguishable.
    UnknownResource {
        /// The requested URI, shortened.
        uri: String,
    },
    /// The resource is larger than the maximum that the server sends.
    ResourceTooLarge {
        /// The URI.
        uri: String,
        /// The maximum size, in bytes.
        limit: u64,
    },
    /// The item is visible to the caller, who lacks a scope to use it.
    InsufficientScope {
        /// All required scopes, sorted.
        scopes: Vec<String>,
    },
    /// The caller has sent too many requests.
    TooManyRequests {
        /// The time until the next request is admitted.
        retry_after: Duration,
    },
    /// The caller has too many requests or subscriptions open.
    TooManyAtOnce {
        /// The kind of item: `requests` or `subscriptions`.
        what: &'static str,
    },
    /// The cursor was not issued for this list.
    InvalidCursor,
    /// Completion was requested for an argument that the prompt or resource template does not have.
    UnknownArgument {
        /// The requested name, shortened.
        name: String,
        /// The names of all arguments.
        known: Vec<String>,
    },
    /// The request cannot be recorded in the audit, which the operator requires.
    NotRecorded,
    /// An internal error; the server's log has the details.
    Internal,
}

impl Rejection {
    /// Returns a stable code, used in audit records and metrics.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Rejection::UnknownPrompt { .. } => "unknown-prompt",
            Rejection::InvalidArguments { .. } => "invalid-arguments",
            Rejection::UnusableArguments { .. } => "unusable-arguments",
            Rejection::Unavailable { .. } => "unavailable",
            Rejection::UnknownResource { .. } => "unknown-resource",
            Rejection::ResourceTooLarge { .. } => "resource-too-large",
            Rejection::InsufficientScope { .. } => "insufficient-scope",
            Rejection::TooManyRequests { .. } => "too-many-requests",
            Rejection::TooManyAtOnce { .. } => "too-many-at-once",
            Rejection::InvalidCursor => "invalid-cursor",
            Rejection::UnknownArgument { .. } => "unknown-argument",
            Rejection::NotRecorded => "not-recorded",
            Rejection::Internal => "internal",
        }
    }

    /// Returns the message for a terminal: each problem of the arguments has a line of its own.
    #[must_use]
    pub fn lines(&self) -> String {
        match self {
            Rejection::InvalidArguments { prompt, problems } => {
                let lines = problems.iter().map(|problem| format!("\n  {problem}")).collect::<String>();
                format!("the prompt {prompt} cannot be used with these arguments:{lines}")
            }
            other => other.to_string(),
        }
    }
}

/// Returns a time to wait in whole seconds, rounded up: at least 1, the unit of the header `Retry-After`.
#[must_use]
pub fn whole_seconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX).max(1)
}

/// Formats a number of seconds for people.
#[must_use]
pub fn format_seconds(number: u64) -> String {
    format!("{number} second{}", if number == 1 { "" } else { "s" })
}

/// Shortens a caller's text for a message, and replaces invisible characters by their code points.
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
            Rejection::Unavailable { prompt, reason } => {
                write!(f, "The prompt {prompt} cannot be rendered at present: {reason}")
            }
            Rejection::UnknownResource { uri } => write!(f, "Resource not found: {uri}"),
            Rejection::ResourceTooLarge { uri, limit } => {
                write!(f, "Resource {uri} is larger than the limit of {limit} bytes")
            }
            Rejection::InsufficientScope { scopes } => {
                let plural = if scopes.len() == 1 { "" } else { "s" };
                write!(f, "Insufficient scope: a token with the scope{plural} {} is required", scopes.join(", "))
            }
            Rejection::TooManyRequests { retry_after } => {
                write!(f, "Too many requests; try again in {}", format_seconds(whole_seconds(*retry_after)))
            }
            Rejection::TooManyAtOnce { what } => write!(f, "Too many open {what}; try again later"),
            Rejection::InvalidCursor => {
                f.write_str("Invalid cursor: it was not issued for this list; start again without a cursor")
            }
            Rejection::UnknownArgument { name, known } if known.is_empty() => {
                write!(f, "Unknown argument: {name}; expected no arguments")
            }
            Rejection::UnknownArgument { name, known } => {
                write!(f, "Unknown argument: {name}; expected one of {}", known.join(", "))
            }
            Rejection::NotRecorded => {
                f.write_str("Requests cannot be recorded, and are refused until they can be; try again later")
            }
            Rejection::Internal => f.write_str("Internal error; see the server's log"),
        }
    }
}

impl std::error::Error for Rejection {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_wait_are_whole_seconds() {
        let message = |retry_after| Rejection::TooManyRequests { retry_after }.to_string();
        let from_millis = Duration::from_millis;
        assert_eq!(message(from_millis(1)), "Too many requests; try again in 1 second");
        assert_eq!(message(from_millis(1_000)), "Too many requests; try again in 1 second");
        assert_eq!(message(from_millis(1_001)), "Too many requests; try again in 2 seconds");
        assert_eq!(message(from_millis(59_999)), "Too many requests; try again in 60 seconds");
    }
}
