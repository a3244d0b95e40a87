//! Sign-in of callers: `[auth]`, its flags and variables, and the file with tokens.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use promptshelf_core::SourceText;
use promptshelf_server::http::auth::{IssuerOptions, KeySet, SignInOptions, StaticToken};
use promptshelf_source::settings::SettingsFile;
use serde::Deserialize;

use super::{
    file::ServerFile,
    overrides::Overrides,
    sections::{Auth, BlockedSubjects, Token},
    source_sections::SecretFile,
    value::HttpsUrl,
};
use crate::{
    args::HttpArguments,
    exit::{Exit, Failure},
};

pub(super) struct ResolvedSignIn {
    pub(super) options: Option<SignInOptions>,
    pub(super) files: Vec<PathBuf>,
    pub(super) has_store_tokens: bool,
}

/// Combines `[auth]` with flags and variables. `has_store` if channels of a store are served.
///
/// # Errors
///
/// An invalid value, or settings that need each other.
pub(super) fn resolve<E: Fn(&str) -> Option<String>>(
    mut written: Auth,
    file: &ServerFile,
    flags: &HttpArguments,
    overrides: &Overrides<'_, E>,
    has_store: bool,
) -> Result<ResolvedSignIn, Failure> {
    let configured = written.tokens_file.take().map(|path| file.resolve(&path));
    let given = overrides.path("tokens", flags.tokens.as_deref());
    let exit = if given.is_some() { Exit::Usage } else { Exit::Settings };
    let tokens_file = given.or(configured);
    let issuer: Option<HttpsUrl> = overrides.value("issuer", flags.issuer.as_deref())?;
    let resource: Option<HttpsUrl> = overrides.value("resource", flags.resource.as_deref())?;
    written.issuer = issuer.or(written.issuer);
    written.resource = resource.or(written.resource);
    let mut tokens: Vec<StaticToken> = std::mem::take(&mut written.tokens).into_iter().map(Token::into).collect();
    let mut files = Vec::new();
    if let Some(path) = tokens_file {
        let read = read_tokens(&path, exit)?;
        // An empty file of tokens must not switch sign-in off.
        if read.is_empty() && tokens.is_empty() && written.issuer.is_none() && written.store_tokens != Some(true) {
            return Err(Failure::new(exit, format!("{} contains no tokens", path.display())));
        }
        tokens.extend(read);
        files.push(path);
    }
    if written.store_tokens == Some(true) && !has_store {
        return Err(Failure::new(
            Exit::Settings,
            "`store-tokens` in [auth] needs a store, and the library is another one",
        ));
    }
    let is_configured = written.issuer.is_some() || !tokens.is_empty();
    let has_store_tokens = has_store && written.store_tokens.unwrap_or(is_configured);
    let blocked = match std::mem::take(&mut written.blocked_subjects) {
        BlockedSubjects::List(subjects) => subjects,
        BlockedSubjects::File(SecretFile { file: path }) => {
            let path = file.resolve(&path);
            let text = read_file(&path, "blocked-subjects")?;
            files.push(path);
            // A name with a remark after it is meant without the remark.
            let remark = |line: &'_ str| line.find(" #").or_else(|| line.find("\t#"));
            let names = lines(&text).flat_map(|(_, line)| [Some(line), remark(line).map(|at| &line[..at])]);
            names.flatten().map(str::to_owned).collect()
        }
    };
    let issuer = issuer_options(&mut written, file, &mut files)?;
    if issuer.is_none() && tokens.is_empty() && !has_store_tokens {
        return Ok(ResolvedSignIn { options: None, files, has_store_tokens });
    }
    let mut options = SignInOptions::default();
    options.resource = written.resource.map(|url| url.0);
    options.tokens = tokens;
    options.issuer = issuer;
    options.blocked_subjects = blocked;
    options.required_scopes = written.required_scopes;
    options.scopes_supported = written.scopes_supported;
    options.implies = written.implies;
    options.page_client_id = written.page_client_id;
    Ok(ResolvedSignIn { options: Some(options), files, has_store_tokens })
}

fn issuer_options(
    auth: &mut Auth,
    file: &ServerFile,
    files: &mut Vec<PathBuf>,
) -> Result<Option<IssuerOptions>, Failure> {
    let Some(HttpsUrl(issuer)) = auth.issuer.take() else { return Ok(None) };
    if auth.resource.is_none() {
        let message = format!("tokens of {issuer} need the URL that they are issued for");
        return Err(Failure::new(Exit::Usage, message)
            .help("set the exact URL that clients use, with --resource https://prompts.example.com/mcp"));
    }
    let mut options = IssuerOptions::new(issuer);
    options.audiences = std::mem::take(&mut auth.audiences);
    options.jwks_uri = auth.jwks_uri.take().map(|url| url.0);
    let invalid = |path: &Path, reason: String| Failure::new(Exit::Settings, format!("{}: {reason}", path.display()));
    if let Some(path) = auth.jwks_file.take().map(|path| file.resolve(&path)) {
        if options.jwks_uri.is_some() {
            let message = "`jwks-file` and `jwks-uri` in [auth] both name the keys of the issuer";
            return Err(Failure::new(Exit::Settings, message).help("keep one of them"));
        }
        let keys = read_file(&path, "jwks-file")?.parse::<KeySet>();
        options.keys = Some(keys.map_err(|reason| invalid(&path, reason))?);
        files.push(path);
    }
    if let Some(path) = auth.ca_file.take().map(|path| file.resolve(&path)) {
        options.trust(read_file(&path, "ca-file")?.into_bytes()).map_err(|reason| invalid(&path, reason))?;
        files.push(path);
    }
    if let Some(algorithms) = auth.algorithms.take() {
        options.algorithms = algorithms.into_iter().map(|algorithm| algorithm.0).collect();
    }
    if let Some(seconds) = auth.leeway {
        options.leeway = Duration::from_secs(seconds.0);
    }
    options.user_claim = auth.user_claim.take().unwrap_or(options.user_claim);
    options.roles_claim = auth.roles_claim.take().unwrap_or(options.roles_claim);
    Ok(Some(options))
}

fn read_file(path: &Path, key: &str) -> Result<String, Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        let message = format!("{}, which `{key}` in [auth] names, cannot be read: {error}", path.display());
        Failure::new(Exit::Settings, message)
    })?;
    // Editors on Windows begin a text with it.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Returns the lines of a file that are neither empty nor comments, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
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
    for (number, line) in lines(&text) {
        let line = line.trim_end_matches(',');
        let mut file = SettingsFile::parse(SourceText::new(shown.to_string(), format!("token = {line}")));
        let read: Line = file.read();
        let invalid = |reason: &str| Failure::new(exit, format!("{shown}:{number}: {reason}"));
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
