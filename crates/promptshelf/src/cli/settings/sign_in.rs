//! Sign-in of callers: `[auth]`, its flags and variables, and the file with tokens.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use promptshelf_core::SourceText;
use promptshelf_server::http::auth::{IssuerOptions, SignInOptions, StaticToken};
use promptshelf_source::settings::SettingsFile;
use serde::Deserialize;

use super::{
    file::ServerFile,
    overrides::Overrides,
    sections::{Auth, Token},
    value::HttpsUrl,
};
use crate::{
    args::HttpArguments,
    exit::{Exit, Failure},
};

/// Combines `[auth]` with flags and variables. Also returns the file that tokens were read from.
///
/// # Errors
///
/// An invalid value, or settings that need each other.
pub(super) fn resolve<E: Fn(&str) -> Option<String>>(
    mut written: Auth,
    file: &ServerFile,
    flags: &HttpArguments,
    overrides: &Overrides<'_, E>,
) -> Result<(Option<SignInOptions>, Option<PathBuf>), Failure> {
    let configured = written.tokens_file.take().map(|path| file.resolve(&path));
    let given = overrides.path("tokens", flags.tokens.as_deref());
    let exit = if given.is_some() { Exit::Usage } else { Exit::Settings };
    let tokens_file = given.or(configured);
    let issuer: Option<HttpsUrl> = overrides.value("issuer", flags.issuer.as_deref())?;
    let resource: Option<HttpsUrl> = overrides.value("resource", flags.resource.as_deref())?;
    written.issuer = issuer.or(written.issuer);
    written.resource = resource.or(written.resource);
    let mut tokens: Vec<StaticToken> = std::mem::take(&mut written.tokens).into_iter().map(Token::into).collect();
    if let Some(path) = &tokens_file {
        let read = read_tokens(path, exit)?;
        // An empty file of tokens must not switch sign-in off.
        if read.is_empty() && tokens.is_empty() && written.issuer.is_none() {
            return Err(Failure::new(exit, format!("{} contains no tokens", path.display())));
        }
        tokens.extend(read);
    }
    Ok((options(written, tokens)?, tokens_file))
}

fn options(auth: Auth, tokens: Vec<StaticToken>) -> Result<Option<SignInOptions>, Failure> {
    let resource = auth.resource.map(|url| url.0);
    let issuer = match (auth.issuer, &resource) {
        (None, _) => None,
        (Some(HttpsUrl(issuer)), None) => {
            let message = format!("tokens of {issuer} need the URL that they are issued for");
            return Err(Failure::new(Exit::Usage, message)
                .help("set the exact URL that clients use, with --resource https://prompts.example.com/mcp"));
        }
        (Some(HttpsUrl(issuer)), Some(_)) => {
            let mut options = IssuerOptions::new(issuer);
            options.audiences = auth.audiences;
            options.jwks_uri = auth.jwks_uri.map(|url| url.0);
            if let Some(algorithms) = auth.algorithms {
                options.algorithms = algorithms.into_iter().map(|algorithm| algorithm.0).collect();
            }
            if let Some(seconds) = auth.leeway {
                options.leeway = Duration::from_secs(seconds.0);
            }
            options.user_claim = auth.user_claim.unwrap_or(options.user_claim);
            options.roles_claim = auth.roles_claim.unwrap_or(options.roles_claim);
            Some(options)
        }
    };
    if issuer.is_none() && tokens.is_empty() {
        return Ok(None);
    }
    let mut options = SignInOptions::default();
    options.resource = resource;
    options.tokens = tokens;
    options.issuer = issuer;
    options.required_scopes = auth.required_scopes;
    options.scopes_supported = auth.scopes_supported;
    options.implies = auth.implies;
    options.page_client_id = auth.page_client_id;
    Ok(Some(options))
}

/// Reads a file with one token a line, each an inline table; lines that begin with `#` are comments. An invalid line ends
/// the program with the code `exit`.
fn read_tokens(path: &Path, exit: Exit) -> Result<Vec<StaticToken>, Failure> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Line {
        token: Option<Token>,
    }

    let shown = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::new(Exit::Failed, format!("the tokens file {shown} cannot be read: {error}")))?;
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim().trim_end_matches(',');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut file = SettingsFile::parse(SourceText::new(shown.to_string(), format!("token = {line}")));
        let read: Line = file.read();
        let invalid = |reason: &str| Failure::new(exit, format!("{shown}:{}: {reason}", index + 1));
        match (read.token, file.diagnostics().first()) {
            (Some(token), None) if token.name.is_empty() => return Err(invalid("a token has an empty name")),
            (Some(token), None) => tokens.push(token.into()),
            (_, Some(found)) => return Err(invalid(&found.message)),
            (None, None) => return Err(invalid("expected a line of `promptshelf token new`")),
        }
    }
    Ok(tokens)
}

impl From<Token> for StaticToken {
    fn from(token: Token) -> StaticToken {
        StaticToken {
            name: token.name,
            sha256: token.sha256.0,
            scopes: token.scopes,
            roles: token.roles,
            expires: token.expires.map(|day| day.0),
        }
    }
}
