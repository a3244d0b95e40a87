//! Opens sign-in pages for the user at the terminal.

use std::{
    env,
    io::{self, IsTerminal, Write},
    pin::Pin,
    sync::Arc,
};

use anstyle::{AnsiColor, Style};
use promptshelf_client::{BrowserOpener, SignIn, SignInPage};

use super::credentials::CredentialFiles;
use crate::{
    output::{Output, visible_line},
    terminal::{self, Progress},
};

const CLIENT_ISSUER: &str = "PROMPTSHELF_CLIENT_ISSUER";

/// Configures sign-in for a command: with stored credentials, and interactively at a terminal after a confirmation.
pub(crate) fn sign_in(progress: &Progress) -> SignIn {
    let sign_in = stored(env::var("PROMPTSHELF_CLIENT_ID").ok());
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        sign_in.browser(Arc::new(PageOpener { progress: progress.clone(), confirms: true }))
    } else {
        sign_in
    }
}

/// Configures sign-in for `promptshelf sign-in`, which the user has confirmed by typing it.
pub(crate) fn explicit_sign_in(client_id: Option<String>, scopes: Vec<String>, progress: &Progress) -> SignIn {
    stored(client_id).scopes(scopes).browser(Arc::new(PageOpener { progress: progress.clone(), confirms: false }))
}

fn stored(client_id: Option<String>) -> SignIn {
    let sign_in = SignIn::new(Arc::new(CredentialFiles));
    let Some(id) = client_id.filter(|id| !id.is_empty()) else { return sign_in };
    let sign_in = sign_in.client(id);
    match variable("PROMPTSHELF_CLIENT_SECRET") {
        Some(secret) => sign_in.client_secret(secret, variable(CLIENT_ISSUER)),
        None => sign_in,
    }
}

/// Returns what to do if a sign-in may have failed because the client secret has no issuer.
pub(super) fn sign_in_help() -> Option<String> {
    let lacks_issuer = variable("PROMPTSHELF_CLIENT_SECRET").is_some() && variable(CLIENT_ISSUER).is_none();
    lacks_issuer
        .then(|| format!("{CLIENT_ISSUER} names the authorization server that receives PROMPTSHELF_CLIENT_SECRET"))
}

fn variable(name: &str) -> Option<String> {
    crate::environment::variable(name)
}

struct PageOpener {
    progress: Progress,
    /// Whether the user has to confirm that the page is opened.
    confirms: bool,
}

impl BrowserOpener for PageOpener {
    fn open(&self, page: SignInPage) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async move {
            let _paused = self.progress.pause();
            let confirms = self.confirms;
            tokio::task::spawn_blocking(move || open(&page, confirms)).await.unwrap_or(false)
        })
    }
}

fn open(page: &SignInPage, confirms: bool) -> bool {
    const TITLE: Style = AnsiColor::Cyan.on_default().bold();
    let mut stderr = Output::stderr();
    let title = format!("{} requires sign-in at {}.", visible_line(&page.server), visible_line(&page.host));
    writeln!(stderr.out, "{}", stderr.styled(TITLE, &title)).ok();
    // Reading a line writes to the terminal as well.
    drop(stderr);
    if confirms && !terminal::confirm("Enter opens the page in your browser, Ctrl-D cancels: ") {
        return false;
    }
    let opened = webbrowser::open(&page.url);
    let mut stderr = Output::stderr();
    let note = match opened {
        Ok(()) => "The page opens in your browser. Otherwise open it yourself:",
        Err(_) => "Cannot start a browser. Open this page:",
    };
    writeln!(stderr.out, "{note}\n\n  {}\n", visible_line(&page.url)).ok();
    true
}
