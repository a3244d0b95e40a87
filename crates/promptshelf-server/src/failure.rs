//! Failures of the program, with their exit codes.

use std::{fmt, io, process::ExitCode};

use promptshelf_client::ClientError;
use promptshelf_git::GitError;
use promptshelf_service::Rejection;
use promptshelf_store::{ChannelAddress, ChannelName, StoreError, StoreUrl};

use crate::library::OpenError;

/// An exit code. The numbers are documented and never change their meaning, because scripts rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Nothing failed.
    Success = 0,
    /// `check` has findings, a test or an evaluation fails, or another error without a code of its own occurred.
    Failed = 1,
    /// The command line is invalid.
    Usage = 2,
    /// The library does not exist or is unreadable.
    Library = 3,
    /// `promptshelf.toml` or `server.toml` is invalid.
    Settings = 4,
    /// The server cannot listen on the address, or sign-in is missing.
    Address = 5,
    /// The library has errors, with `serve --strict`.
    Strict = 6,
    /// A prompt, argument, resource, test, channel, revision or proposal does not exist.
    NotFound = 7,
    /// The arguments of the prompt are invalid.
    Arguments = 8,
    /// The server cannot be reached or does not answer, or the connection was lost.
    Unreachable = 9,
    /// The server did not answer in time.
    TimedOut = 10,
    /// The user declined a request of the server for input.
    Declined = 11,
    /// The server requires sign-in, or denies access.
    SignIn = 12,
    /// The policy of the channel refuses it.
    Policy = 13,
    /// The same files or the proposal were changed meanwhile.
    Conflict = 14,
    /// The store does not exist or cannot be reached.
    Store = 15,
}

impl Exit {
    const ALL: [(Exit, &'static str); 16] = [
        (Exit::Success, "success"),
        (Exit::Failed, "`check`, a test or an evaluation failed, or another error occurred"),
        (Exit::Usage, "the command line is invalid"),
        (Exit::Library, "the library does not exist or is unreadable"),
        (Exit::Settings, "promptshelf.toml or server.toml is invalid"),
        (Exit::Address, "the server cannot listen on the address, or sign-in is missing"),
        (Exit::Strict, "the library has errors, with `serve --strict`"),
        (Exit::NotFound, "no such prompt, argument, resource, test, channel, revision or proposal"),
        (Exit::Arguments, "the arguments of the prompt are invalid"),
        (Exit::Unreachable, "the server cannot be reached or does not answer, or the connection was lost"),
        (Exit::TimedOut, "the server did not answer in time"),
        (Exit::Declined, "the user declined a request of the server for input"),
        (Exit::SignIn, "the server requires sign-in, or denies access"),
        (Exit::Policy, "the policy of the channel refuses it"),
        (Exit::Conflict, "the same files or the proposal were changed meanwhile"),
        (Exit::Store, "the store does not exist or cannot be reached"),
    ];

    /// Returns all codes with their meanings, for help texts.
    #[must_use]
    pub fn table() -> String {
        Exit::ALL
            .iter()
            .fold("Exit codes:".to_owned(), |table, (exit, meaning)| format!("{table}\n  {}  {meaning}", *exit as u8))
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// A failure that ends the program, or keeps a server from starting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// The message, possibly of several lines. Empty if the command has printed everything.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Failure {
    /// Creates a failure without help.
    pub fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure { exit, message: message.into(), help: None }
    }

    /// Creates a failure without a message, because the command has printed everything.
    #[must_use]
    pub fn reported(exit: Exit) -> Failure {
        Failure::new(exit, "")
    }

    /// Converts an error of opening a store. Whatever it is, the store cannot be reached.
    #[must_use]
    pub fn unopened(error: StoreError, address: &ChannelAddress) -> Failure {
        match &error {
            StoreError::NotFound { what } if what.starts_with("the database") => {
                Failure::new(Exit::Store, error.to_string()).help(
                    "create the database first, with `createdb NAME`; `promptshelf init` then makes a store in it",
                )
            }
            StoreError::NotFound { .. } => Failure::new(Exit::Store, error.to_string())
                .help(format!("`promptshelf init {}` creates a store", store_word(&address.store, &address.channel))),
            StoreError::InvalidUrl { .. } => error.into(),
            StoreError::Unreachable { reason, .. } => {
                let store = &address.store;
                Failure::new(Exit::Store, format!("the store {store} cannot be reached: {reason}"))
            }
            StoreError::Database { reason, .. } => {
                Failure::new(Exit::Store, format!("the store {} cannot be opened: {reason}", address.store))
            }
            _ => Failure::new(Exit::Store, error.to_string()),
        }
    }

    /// Sets what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }
}

/// Returns a word that names a channel on a command line. A password is not repeated: the variable has it.
#[must_use]
pub fn store_word(store: &StoreUrl, channel: &ChannelName) -> String {
    let channel = if *channel == ChannelName::production() { String::new() } else { format!("#{channel}") };
    if store.has_password() {
        return format!("\"$PROMPTSHELF_STORE{channel}\"");
    }
    let word = format!("{store}{channel}");
    shlex::try_quote(&word).map_or_else(|_| word.clone(), std::borrow::Cow::into_owned)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        let exit = match &error {
            OpenError::Source(error) if error.is_invalid_manifest() => Exit::Settings,
            OpenError::Source(_) => Exit::Library,
            _ => Exit::Failed,
        };
        Failure::new(exit, error.to_string())
    }
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Failure {
        let exit = match &rejection {
            Rejection::UnknownPrompt { .. } | Rejection::UnknownResource { .. } | Rejection::UnknownArgument { .. } => {
                Exit::NotFound
            }
            Rejection::InvalidArguments { .. } | Rejection::UnusableArguments { .. } => Exit::Arguments,
            _ => Exit::Failed,
        };
        Failure::new(exit, rejection.lines())
    }
}

/// The longest text of another program in an error, in characters.
const MAX_QUOTED: usize = 4000;

/// Returns a text of another program so that no line of it looks like one of ours.
fn quoted(text: &str) -> String {
    let end = text.char_indices().nth(MAX_QUOTED).map_or(text.len(), |(end, _)| end);
    let cut = if end < text.len() { "…" } else { "" };
    format!("{}{cut}", text[..end].trim_end().replace('\n', "\n    "))
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let exit = match error {
            ClientError::InvalidEndpoint(_) => Exit::Usage,
            ClientError::Unreachable { .. } | ClientError::Unavailable { .. } | ClientError::NotAnEndpoint { .. } => {
                Exit::Unreachable
            }
            ClientError::TimedOut { .. } => Exit::TimedOut,
            ClientError::AuthenticationRequired | ClientError::Forbidden { .. } | ClientError::SignInFailed { .. } => {
                Exit::SignIn
            }
            ClientError::Cancelled => Exit::Declined,
            _ => Exit::Failed,
        };
        let failure = Failure::new(exit, quoted(&error.to_string()));
        match exit {
            Exit::TimedOut => failure.help("`--timeout SECONDS` sets another time limit"),
            _ => failure,
        }
    }
}

impl From<GitError> for Failure {
    fn from(error: GitError) -> Failure {
        let exit = match &error {
            GitError::InvalidAddress { .. } => Exit::Usage,
            GitError::InvalidOptions { .. } => Exit::Settings,
            GitError::NotFound { .. } => Exit::NotFound,
            GitError::Remote { .. } => Exit::Unreachable,
            GitError::TimedOut { .. } => Exit::TimedOut,
            GitError::Load { source, .. } if source.is_invalid_manifest() => Exit::Settings,
            GitError::Load { .. } | GitError::Refused { .. } | GitError::TooLarge { .. } => Exit::Library,
            _ => Exit::Failed,
        };
        Failure::new(exit, error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        let exit = match &error {
            StoreError::InvalidUrl { .. } | StoreError::InvalidChannel { .. } | StoreError::InvalidRevision { .. } => {
                Exit::Usage
            }
            StoreError::NotFound { .. } => Exit::NotFound,
            StoreError::Conflict { .. }
            | StoreError::State { .. }
            | StoreError::Unchanged { .. }
            | StoreError::Changed { .. } => Exit::Conflict,
            StoreError::Policy { .. } => Exit::Policy,
            StoreError::Unreachable { .. } => Exit::Store,
            _ => Exit::Failed,
        };
        Failure::new(exit, error.to_string())
    }
}

/// Converts an error of writing output. A closed pipe is a success: the reader, such as `head`, has enough.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::reported(Exit::Success),
            _ => Failure::new(Exit::Failed, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_complete_and_sorted() {
        let codes: Vec<u8> = Exit::ALL.iter().map(|(exit, _)| *exit as u8).collect();
        assert_eq!(codes, (0..=15).collect::<Vec<u8>>());
        assert!(Exit::table().contains("\n  5  the server cannot listen"));
    }

    #[test]
    fn no_line_of_a_server_looks_like_one_of_ours() {
        let error = |message: &str| {
            let message = message.to_owned();
            Failure::from(ClientError::ErrorResponse { code: -32603, message, data: None }).message
        };
        assert_eq!(error("no\n help: run x\n"), "the server returned an error: no\n     help: run x");
        assert!(error(&"é".repeat(1 << 20)).chars().count() == MAX_QUOTED + 1);
    }

    #[test]
    fn closed_pipe_is_success() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((failure.exit, failure.message.as_str()), (Exit::Success, ""));
    }
}
