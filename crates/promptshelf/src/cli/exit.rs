//! How the program ends: a sentence on stderr and a documented number.

use std::{fmt, io, process::ExitCode};

use promptshelf_client::ClientError;
use promptshelf_server::OpenError;
use promptshelf_service::Rejection;

/// Why the program ends. The numbers are documented and never change their
/// meaning; scripts rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked for has been done.
    Done = 0,
    /// `check` or `test` found something, or something failed that has no number of its own.
    Failed = 1,
    /// The command line cannot be understood.
    Usage = 2,
    /// The library is not there or cannot be read.
    Library = 3,
    /// `promptshelf.toml` or `server.toml` is invalid.
    Settings = 4,
    /// The address cannot be listened on.
    Address = 5,
    /// `serve --strict`, and the library has errors.
    Strict = 6,
    /// There is no such prompt, argument or resource.
    NotFound = 7,
    /// The prompt cannot be used with these arguments.
    Arguments = 8,
    /// There is no server at the other end, or it has gone.
    Down = 9,
    /// The server has not answered in time.
    TimedOut = 10,
    /// Somebody declined what the server asked in between.
    Declined = 11,
    /// The server wants to know who asks, or does not let them.
    SignIn = 12,
}

impl Exit {
    const ALL: [(Exit, &'static str); 13] = [
        (Exit::Done, "done"),
        (Exit::Failed, "`check` or `test` found something, or something else failed"),
        (Exit::Usage, "the command line cannot be understood"),
        (Exit::Library, "the library is not there or cannot be read"),
        (Exit::Settings, "promptshelf.toml or server.toml is invalid"),
        (Exit::Address, "the address cannot be listened on, or must not be"),
        (Exit::Strict, "`serve --strict`, and the library has errors"),
        (Exit::NotFound, "there is no such prompt, argument or resource"),
        (Exit::Arguments, "the prompt cannot be used with these arguments"),
        (Exit::Down, "the server cannot be reached, or has gone"),
        (Exit::TimedOut, "the server has not answered in time"),
        (Exit::Declined, "what the server asked in between was declined"),
        (Exit::SignIn, "the server wants to know who asks, or does not let them"),
    ];

    /// The table of all numbers, for the help text.
    pub(crate) fn table() -> String {
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

/// What a verb ends with when it could not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The number to end with.
    pub(crate) exit: Exit,
    /// What is wrong, as one sentence; further lines belong to it. Empty when
    /// everything has been said already.
    pub(crate) sentence: String,
    /// What to do about it.
    pub(crate) help: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, sentence: impl Into<String>) -> Failure {
        Failure { exit, sentence: sentence.into(), help: None }
    }

    /// Ends with a number only, because what is wrong has been shown already.
    pub(crate) fn said(exit: Exit) -> Failure {
        Failure::new(exit, "")
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

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
        if let Rejection::InvalidArguments { prompt, problems } = &rejection {
            let lines = problems.iter().map(|problem| format!("\n  {problem}")).collect::<String>();
            return Failure::new(exit, format!("the prompt {prompt} cannot be used with these arguments:{lines}"));
        }
        Failure::new(exit, rejection.to_string())
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let exit = match error {
            ClientError::InvalidEndpoint(_) => Exit::Usage,
            ClientError::Unreachable { .. } => Exit::Down,
            ClientError::TimedOut { .. } => Exit::TimedOut,
            ClientError::AuthenticationRequired | ClientError::Forbidden { .. } | ClientError::SignInFailed { .. } => {
                Exit::SignIn
            }
            ClientError::Cancelled => Exit::Declined,
            _ => Exit::Failed,
        };
        let failure = Failure::new(exit, error.to_string());
        match exit {
            Exit::TimedOut => failure.help("`--timeout SECONDS` sets another time limit"),
            _ => failure,
        }
    }
}

/// Writing what was asked for has failed. A reader who has seen enough, as
/// `head` has, is no failure.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::said(Exit::Done),
            _ => Failure::new(Exit::Failed, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_every_number_once_and_in_order() {
        let numbers: Vec<u8> = Exit::ALL.iter().map(|(exit, _)| *exit as u8).collect();
        assert_eq!(numbers, (0..=12).collect::<Vec<u8>>());
        assert!(Exit::table().contains("\n  5  the address"));
    }

    #[test]
    fn a_reader_who_has_seen_enough_is_no_failure() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((failure.exit, failure.sentence.as_str()), (Exit::Done, ""));
    }
}
