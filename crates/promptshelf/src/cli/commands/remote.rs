//! The verbs that ask a server which is none of our libraries: they connect,
//! ask, print and end.

pub(crate) mod complete;
mod eras;
pub(crate) mod get;
mod keyring;
pub(crate) mod list;
pub(crate) mod resources;
pub(crate) mod sign_in;
pub(crate) mod waiting;

use std::{io::Write, sync::Arc, time::Duration};

use promptshelf_client::{Client, ClientError, ElicitationHandler, SignIn, Target};

pub(crate) use self::eras::Eras;
use self::waiting::Waiting;
use crate::{
    exit::Failure,
    output::{Output, visible_line},
};

/// What of earlier runs a connection may rest on, and whom it may trouble.
pub(crate) struct ConnectOptions {
    pub(crate) answerer: Option<Arc<dyn ElicitationHandler>>,
    pub(crate) sign_in: Option<SignIn>,
    pub(crate) eras: Eras,
}

impl ConnectOptions {
    /// Nobody answers questions; at a terminal somebody can sign in.
    pub(crate) fn usual(waiting: &Waiting) -> ConnectOptions {
        ConnectOptions { answerer: None, sign_in: Some(sign_in::usual(waiting)), eras: Eras::open() }
    }
}

/// Connects, and says on a terminal what is being waited for.
pub(crate) async fn connect(
    target: &Target,
    timeout: Duration,
    manners: ConnectOptions,
    waiting: &Waiting,
) -> Result<Client, Failure> {
    let ConnectOptions { answerer, sign_in, eras } = manners;
    if let Target::Command { .. } = target {
        let mut paper = Output::stderr();
        if paper.terminal {
            // Whoever named the server should see what is started for it.
            writeln!(paper.out, "starting {}", visible_line(&target.to_string())).ok();
        }
    }
    let mut connector = Client::to(target).timeout(timeout).known_older(eras.is_older(target));
    if let Some(answerer) = answerer {
        connector = connector.answerer(answerer);
    }
    if let Some(sign_in) = sign_in {
        connector = connector.sign_in(sign_in);
    }
    let client = waiting.during(connector.connect()).await.map_err(|error| failure(error, target))?;
    eras.note(target, client.is_older());
    Ok(client)
}

/// Why a server does not answer, with what to do about it.
pub(crate) fn failure(error: ClientError, target: &Target) -> Failure {
    let help = match (&error, target.sign_in_address()) {
        (ClientError::SignIn, Some(address)) => {
            Some(format!("`promptshelf sign-in {address}`, or a token in PROMPTSHELF_TOKEN"))
        }
        // A server that has more in mind with its scopes gets no line that somebody may paste into a shell.
        (ClientError::Forbidden { scope: Some(scopes) }, Some(address)) if scopes.chars().all(is_harmless) => {
            let flags: String = scopes.split_whitespace().map(|scope| format!(" --scope {scope}")).collect();
            Some(format!("promptshelf sign-in {address}{flags}"))
        }
        _ => None,
    };
    let failure = Failure::from(error);
    match help {
        Some(help) => failure.help(help),
        None => failure,
    }
}

fn is_harmless(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ' ' | ':' | '.' | '_' | '/' | '-')
}
