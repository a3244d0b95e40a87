//! `promptshelf sign-in` and `sign-out`.

use std::{ffi::OsStr, io::Write as _};

use clap::Args;
use promptshelf_client::{CredentialStore as _, Endpoint};

use crate::{
    args::client::Timeout,
    connect::{CredentialFiles, Options, connect, explicit_sign_in, usual_url},
    exit::{Exit, Failure},
    output::{Output, visible_line},
    source::Source,
    terminal::Progress,
};

const SIGN_IN_EXAMPLES: &str = "\
The sign-in page opens in the browser ($BROWSER, or the default of the system).
The credentials are stored in $XDG_STATE_HOME/promptshelf/sign-in, readable only
by the user. PROMPTSHELF_CLIENT_SECRET is the secret of --client-id; it is sent
only to the authorization server whose issuer identifier is in
PROMPTSHELF_CLIENT_ISSUER. A token in PROMPTSHELF_TOKEN replaces sign-in.

Examples:
  promptshelf sign-in https://example.com/mcp
  promptshelf list https://example.com/mcp
  promptshelf sign-out https://example.com/mcp";

#[derive(Debug, Args)]
#[command(after_help = SIGN_IN_EXAMPLES)]
pub(crate) struct SignInArguments {
    /// A URL, or the name of a server in the configuration of Claude Code (.mcp.json) or VS Code
    #[arg(value_name = "LIBRARY")]
    pub(crate) target: String,

    /// The OAuth client ID, or the https URL of a client ID metadata document
    #[arg(long, value_name = "ID", env = "PROMPTSHELF_CLIENT_ID", hide_env_values = true)]
    pub(crate) client_id: Option<String>,

    /// A scope to request, in place of those that the server names; can be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,

    #[command(flatten)]
    pub(crate) timeout: Timeout,
}

#[derive(Debug, Args)]
pub(crate) struct SignOutArguments {
    /// A URL, or the name of a server in the configuration of Claude Code (.mcp.json) or VS Code
    #[arg(value_name = "LIBRARY")]
    pub(crate) target: String,
}

pub(crate) async fn sign_in(arguments: &SignInArguments) -> Result<(), Failure> {
    let (source, _) = endpoint(&arguments.target)?;
    let progress = Progress::new(visible_line(&source.to_string()).into_owned());
    let sign_in = explicit_sign_in(arguments.client_id.clone(), arguments.scopes.clone(), &progress);
    let options = Options { sign_in: Some(sign_in), ..Options::new(arguments.timeout.get(), &progress) };
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
