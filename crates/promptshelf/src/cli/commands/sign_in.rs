//! `promptshelf sign-in` and `promptshelf sign-out`.

use std::{ffi::OsStr, io::Write};

use promptshelf_client::{CredentialStore, Endpoint};

use crate::{
    args::client::{SignInArguments, SignOutArguments},
    connect::{CredentialFiles, Options, connect, explicit_sign_in, usual_url},
    exit::{Exit, Failure},
    output::{Output, visible_line},
    source::Source,
    terminal::Progress,
};

pub(crate) async fn sign_in(arguments: &SignInArguments) -> Result<(), Failure> {
    let (source, _) = endpoint(&arguments.target)?;
    let progress = Progress::new(visible_line(&source.to_string()).into_owned());
    let sign_in = explicit_sign_in(arguments.client_id.clone(), arguments.scopes.clone(), &progress);
    let options = Options { sign_in: Some(sign_in), ..Options::new(arguments.timeout(), &progress) };
    let connection = connect(&source, options, &progress).await?;
    let client = &connection.client;
    // Some servers require authentication only for requests after the first one.
    progress.during(client.all_prompts()).await.map_err(|error| connection.failure(error))?;
    let is_stored = client.has_stored_credentials().await;
    if is_stored && !arguments.scopes.is_empty() {
        let requested = progress.during(client.request_scopes(&arguments.scopes)).await;
        requested.map_err(|error| connection.failure(error))?;
    }
    let result = match (client.has_signed_in(), is_stored) {
        (true, _) => "signed in to",
        (false, true) => "already signed in to",
        (false, false) => "no sign-in is required for",
    };
    let mut stdout = Output::stdout();
    let endpoint = stdout.line(&connection.source.to_string()).into_owned();
    writeln!(stdout.out, "{result} {endpoint}")?;
    Ok(stdout.out.flush()?)
}

pub(crate) fn sign_out(arguments: &SignOutArguments) -> Result<(), Failure> {
    let (source, url) = endpoint(&arguments.target)?;
    let mut removed = false;
    // Signing in to a URL without a path signs in to its MCP endpoint.
    for url in [Some(url.clone()), usual_url(&url)].into_iter().flatten() {
        removed |= CredentialFiles.clear(&url).map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    }
    let mut stdout = Output::stdout();
    let endpoint = stdout.line(&source.to_string()).into_owned();
    writeln!(stdout.out, "{} {endpoint}", if removed { "signed out of" } else { "not signed in to" })?;
    Ok(stdout.out.flush()?)
}

fn endpoint(word: &str) -> Result<(Source, String), Failure> {
    let source = Source::parse(OsStr::new(word))?;
    let reason = match source.endpoint() {
        Some(endpoint) => match endpoint.sign_in_url().map(str::to_owned) {
            Some(url) => return Ok((source, url)),
            None if matches!(endpoint, Endpoint::Url { .. }) => "it has a configured token, or is not https",
            None => "it is started by a command",
        },
        None => "it is a folder",
    };
    Err(Failure::new(Exit::Usage, format!("cannot sign in to {word}: {reason}")).help("expected the URL of a server"))
}
