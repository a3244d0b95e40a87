//! `promptshelf sign-in` and `promptshelf sign-out`, and how other verbs bring
//! somebody to the page of a server that wants to know who asks.

use std::{
    env,
    io::{self, IsTerminal, Write},
    pin::Pin,
    sync::Arc,
};

use anstyle::{AnsiColor, Style};
use promptshelf_client::{BrowserOpener, CredentialStore, SignIn, SignInPage, Target};

use super::{ConnectOptions, Eras, Waiting, connect, failure, keyring::Keyring};
use crate::{
    args::client::{SignInArguments, SignOutArguments},
    chat,
    exit::{Exit, Failure},
    output::{Output, visible_line},
};

/// With what earlier runs have kept; at a terminal somebody can sign in.
pub(crate) fn usual(waiting: &Waiting) -> SignIn {
    let sign_in = of_environment(env::var("PROMPTSHELF_CLIENT_ID").ok());
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        sign_in.visitor(Arc::new(PageOpener { waiting: waiting.clone(), asks: true }))
    } else {
        sign_in
    }
}

fn of_environment(client_id: Option<String>) -> SignIn {
    let sign_in = SignIn::new(Arc::new(Keyring::of_environment()));
    match client_id.filter(|id| !id.is_empty()) {
        Some(id) => sign_in.client(id, env::var("PROMPTSHELF_CLIENT_SECRET").ok().filter(|secret| !secret.is_empty())),
        None => sign_in,
    }
}

pub(crate) async fn sign_in(arguments: &SignInArguments) -> Result<(), Failure> {
    let (target, _) = target(&arguments.target)?;
    let waiting = Waiting::new(visible_line(&target.to_string()).into_owned());
    let sign_in = of_environment(arguments.client_id.clone())
        .scopes(arguments.scopes.clone())
        .visitor(Arc::new(PageOpener { waiting: waiting.clone(), asks: false }));
    let manners = ConnectOptions { answerer: None, sign_in: Some(sign_in), eras: Eras::open() };
    let client = connect(&target, arguments.timeout(), manners, &waiting).await?;
    // Some servers want to know it only now.
    waiting.during(client.all_prompts()).await.map_err(|error| failure(error, &target))?;
    let kept = client.has_kept_sign_in().await;
    if kept && !arguments.scopes.is_empty() {
        let asked = waiting.during(client.ask_for_scopes(&arguments.scopes)).await;
        asked.map_err(|error| failure(error, &target))?;
    }
    let said = match (client.has_signed_in(), kept) {
        (true, _) => "signed in to",
        (false, true) => "you are signed in already to",
        (false, false) => "nobody has to sign in to",
    };
    let mut paper = Output::stdout();
    let target = paper.line(&target.to_string()).into_owned();
    writeln!(paper.out, "{said} {target}")?;
    Ok(paper.out.flush()?)
}

pub(crate) fn sign_out(arguments: &SignOutArguments) -> Result<(), Failure> {
    let (target, address) = target(&arguments.target)?;
    let forgotten = Keyring::of_environment().clear(&address).map_err(|error| Failure::new(Exit::Failed, error))?;
    let mut paper = Output::stdout();
    let target = paper.line(&target.to_string()).into_owned();
    if forgotten {
        writeln!(paper.out, "signed out of {target}")?;
    } else {
        writeln!(paper.out, "you were not signed in to {target}")?;
    }
    Ok(paper.out.flush()?)
}

/// A target that somebody can sign in to, and its address.
fn target(word: &str) -> Result<(Target, String), Failure> {
    let target = Target::parse(word)?;
    match target.sign_in_address().map(str::to_owned) {
        Some(address) => Ok((target, address)),
        None => {
            let why = match &target {
                Target::Url { .. } => "brings a token of its own already, or is not https",
                _ => "is no server at an address",
            };
            Err(Failure::new(Exit::Usage, format!("{word} {why}: nobody can sign in to it")))
        }
    }
}

/// Brings somebody at a terminal to a page.
struct PageOpener {
    waiting: Waiting,
    /// Whether nobody has said yet that they want to sign in.
    asks: bool,
}

impl BrowserOpener for PageOpener {
    fn visit(&self, page: SignInPage) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async move {
            self.waiting.hush(true);
            let asks = self.asks;
            let visited = tokio::task::spawn_blocking(move || visit(&page, asks)).await;
            self.waiting.hush(false);
            visited.unwrap_or(false)
        })
    }
}

fn visit(page: &SignInPage, asks: bool) -> bool {
    const TITLE: Style = AnsiColor::Cyan.on_default().bold();
    let mut paper = Output::stderr();
    let wants = format!("{} wants you to sign in at {}.", visible_line(&page.server), visible_line(&page.host));
    writeln!(paper.out, "{}", paper.styled(TITLE, &wants)).ok();
    drop(paper);
    if asks && !chat::agrees("Enter opens the page in your browser, Ctrl-D does not: ") {
        return false;
    }
    let opened = webbrowser::open(&page.url);
    let mut paper = Output::stderr();
    let said = match opened {
        Ok(()) => "The page opens in your browser. If it does not, it is here:",
        Err(_) => "There is no browser here that can be started. The page is here:",
    };
    writeln!(paper.out, "{said}\n\n  {}\n", visible_line(&page.url)).ok();
    true
}
