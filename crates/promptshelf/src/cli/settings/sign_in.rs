//! The `[auth]` section of `promptshelf.toml`, its flags and its variables.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use promptshelf_core::Diagnostic;
use promptshelf_server::http::auth::{Algorithm, IssuerOptions, SignInOptions, StaticToken};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    given::Given,
    manifest::{Manifest, Others},
};
use crate::{
    args::HttpArguments,
    exit::{Exit, Failure},
};

const SETTINGS: &[&str] = &[
    "tokens",
    "tokens-file",
    "issuer",
    "resource",
    "audiences",
    "jwks-uri",
    "algorithms",
    "leeway",
    "user-claim",
    "roles-claim",
    "required-scopes",
    "scopes-supported",
    "implies",
    "page-client-id",
];

/// What is written about signing in.
#[derive(Debug, Default)]
pub(super) struct Written {
    tokens: Vec<StaticToken>,
    tokens_file: Option<PathBuf>,
    issuer: Option<String>,
    resource: Option<String>,
    audiences: Vec<String>,
    jwks_uri: Option<String>,
    algorithms: Option<Vec<Algorithm>>,
    leeway: Option<Duration>,
    user_claim: Option<String>,
    roles_claim: Option<String>,
    required_scopes: Vec<String>,
    scopes_supported: Vec<String>,
    implies: BTreeMap<String, Vec<String>>,
    page_client_id: Option<String>,
}

/// How callers sign in, if they do, and the file that tokens were read from.
///
/// # Errors
///
/// What cannot be, and where it stands.
pub(super) fn read(
    manifest: &Manifest<'_>,
    arguments: &HttpArguments,
    environment: &impl Fn(&str) -> Option<String>,
) -> Result<(Option<SignInOptions>, Option<PathBuf>), Failure> {
    let mut written = check_manifest(manifest).map_err(|found| manifest.failure(&found))?;
    // A path in the manifest begins at the manifest.
    written.tokens_file = written.tokens_file.map(|file| manifest.folder().join(file));
    let set = |name: &str| environment(name).filter(|text| !text.is_empty());
    let tokens = arguments.tokens.clone().or_else(|| set("PROMPTSHELF_TOKENS").map(PathBuf::from));
    written.tokens_file = tokens.or(written.tokens_file);
    written.issuer = arguments.issuer.clone().or_else(|| set("PROMPTSHELF_ISSUER")).or(written.issuer);
    written.resource = arguments.resource.clone().or_else(|| set("PROMPTSHELF_RESOURCE")).or(written.resource);
    let tokens_file = written.tokens_file.clone();
    Ok((written.into_options()?, tokens_file))
}

/// Reads the section by itself.
pub(super) fn check_manifest(manifest: &Manifest<'_>) -> Result<Written, Box<Diagnostic>> {
    let mut written = Written::default();
    manifest.section("auth", SETTINGS, Others::Refused, |name, value| written.set(name, value))?;
    Ok(written)
}

impl Written {
    fn set(&mut self, name: &str, value: &Spanned<DeValue<'_>>) -> Result<(), String> {
        let given = Given::Toml(value);
        match name {
            "tokens" => {
                let DeValue::Array(items) = value.get_ref() else { return Err("this has to be a list".to_owned()) };
                self.tokens = items.iter().map(|item| token(item.get_ref())).collect::<Result<_, _>>()?;
            }
            "tokens-file" => self.tokens_file = Some(given.text()?.into()),
            "issuer" => self.issuer = Some(given.text()?),
            "resource" => self.resource = Some(given.text()?),
            "audiences" => self.audiences = given.texts()?,
            "jwks-uri" => self.jwks_uri = Some(given.text()?),
            "algorithms" => {
                let algorithms = given.texts()?;
                self.algorithms = Some(algorithms.iter().map(|name| algorithm(name)).collect::<Result<_, _>>()?);
            }
            "leeway" => self.leeway = Some(Duration::from_secs(given.number(600)?)),
            "user-claim" => self.user_claim = Some(given.text()?),
            "roles-claim" => self.roles_claim = Some(given.text()?),
            "required-scopes" => self.required_scopes = given.texts()?,
            "scopes-supported" => self.scopes_supported = given.texts()?,
            "page-client-id" => self.page_client_id = Some(given.text()?),
            _ => {
                let DeValue::Table(entries) = value.get_ref() else {
                    return Err("this has to be a section: write it as [auth.implies]".to_owned());
                };
                for (scope, narrower) in entries {
                    self.implies.insert(scope.get_ref().to_string(), Given::Toml(narrower).texts()?);
                }
            }
        }
        Ok(())
    }

    fn into_options(mut self) -> Result<Option<SignInOptions>, Failure> {
        let usage = |sentence: String| Failure::new(Exit::Usage, sentence);
        if let Some(file) = &self.tokens_file {
            let shown = file.display();
            let text = fs::read_to_string(file).map_err(|error| {
                Failure::new(Exit::Failed, format!("the tokens of {shown} cannot be read: {error}"))
            })?;
            self.tokens.extend(tokens(&text).map_err(|(line, reason)| usage(format!("{shown}:{line}: {reason}")))?);
        }
        let mut names: Vec<&str> = self.tokens.iter().map(|token| token.name.as_str()).collect();
        names.sort_unstable();
        if names.iter().any(|name| name.is_empty()) {
            return Err(usage("a token has no name".to_owned()));
        }
        for url in self.issuer.iter().chain(&self.resource).chain(&self.jwks_uri) {
            check_url(url).map_err(|reason| usage(format!("`{url}`: {reason}")))?;
        }
        let issuer = match (self.issuer, &self.resource) {
            (None, _) => None,
            (Some(issuer), None) => {
                return Err(usage(format!(
                    "the tokens of {issuer} have to be for this server, and it is not said which that is"
                ))
                .help("give the exact URL that clients use, with --resource https://prompts.example.com/mcp"));
            }
            (Some(issuer), Some(_)) => {
                let usual = IssuerOptions::new(issuer);
                Some(IssuerOptions {
                    audiences: self.audiences,
                    jwks_uri: self.jwks_uri,
                    algorithms: self.algorithms.unwrap_or(usual.algorithms),
                    leeway: self.leeway.unwrap_or(usual.leeway),
                    user_claim: self.user_claim.unwrap_or(usual.user_claim),
                    roles_claim: self.roles_claim.unwrap_or(usual.roles_claim),
                    issuer: usual.issuer,
                })
            }
        };
        if issuer.is_none() && self.page_client_id.is_some() {
            return Err(usage("`page-client-id` is of no use without an `issuer` that knows it".to_owned()));
        }
        if issuer.is_none() && self.tokens.is_empty() {
            // A file without a token is a door without a key, and no open door.
            return match self.tokens_file {
                Some(file) => Err(usage(format!("{} holds no token", file.display()))),
                None => Ok(None),
            };
        }
        Ok(Some(SignInOptions {
            resource: self.resource,
            tokens: self.tokens,
            issuer,
            required_scopes: self.required_scopes,
            scopes_supported: self.scopes_supported,
            implies: self.implies,
            page_client_id: self.page_client_id,
        }))
    }
}

/// Whether a URL is one that tokens may be for or from.
fn check_url(url: &str) -> Result<(), &'static str> {
    let is_plain = !url.contains(['#', '?', '@', ' ', '"', '\\', '*', '{', '}']);
    match url.split_once("://") {
        Some(("https", rest)) if is_plain && !rest.is_empty() => Ok(()),
        Some(("http", _)) if is_plain && matches!(host(url).as_deref(), Some("localhost" | "127.0.0.1" | "[::1]")) => {
            Ok(())
        }
        _ => Err("this has to be an https URL without a query, or http on this machine"),
    }
}

/// The host that a URL names.
pub(super) fn host(url: &str) -> Option<String> {
    let authority = url.split_once("://")?.1.split('/').next()?;
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    Some(host.to_owned())
}

/// The tokens of a file: an inline table a line; lines with `#` are for people.
fn tokens(text: &str) -> Result<Vec<StaticToken>, (usize, String)> {
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim().trim_end_matches(',');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrapped = format!("token = {line}");
        let wrong = |reason: String| (index + 1, reason);
        let table = DeTable::parse(&wrapped).map_err(|error| wrong(error.message().to_owned()))?;
        let written = table.get_ref().get("token").ok_or_else(|| wrong("this is no token".to_owned()))?;
        tokens.push(token(written.get_ref()).map_err(wrong)?);
    }
    Ok(tokens)
}

fn token(value: &DeValue<'_>) -> Result<StaticToken, String> {
    let DeValue::Table(entries) = value else {
        return Err("a token is a line of `promptshelf token new`".to_owned());
    };
    let (mut name, mut sha256) = (None, None);
    let (mut scopes, mut roles, mut expires) = (Vec::new(), Vec::new(), None);
    for (key, value) in entries {
        let given = Given::Toml(value);
        match &**key.get_ref() {
            "name" => name = Some(given.text()?),
            "sha256" => sha256 = Some(digest(&given.text()?).ok_or("`sha256` has to be 64 hexadecimal digits")?),
            "scopes" => scopes = given.texts()?,
            "roles" => roles = given.texts()?,
            "expires" => expires = Some(parse_day(&given.text()?)?),
            other => return Err(format!("`{other}` means nothing in a token")),
        }
    }
    match (name, sha256) {
        (Some(name), Some(sha256)) => Ok(StaticToken { name, sha256, scopes, roles, expires }),
        _ => Err("a token needs `name` and `sha256`".to_owned()),
    }
}

fn digest(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (index, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(digest)
}

/// The beginning of a day, in UTC.
pub(crate) fn parse_day(text: &str) -> Result<SystemTime, String> {
    let day: jiff::civil::Date = text.parse().map_err(|_| format!("`{text}` is no day, such as 2027-01-31"))?;
    let begins = day.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| format!("`{text}` is no day"))?;
    Ok(begins.timestamp().into())
}

fn algorithm(name: &str) -> Result<Algorithm, String> {
    let known: Algorithm = name.parse().map_err(|_| format!("there is no algorithm `{name}`"))?;
    match known {
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => {
            Err(format!("`{name}` needs a secret that both sides know, and is not taken"))
        }
        other => Ok(other),
    }
}

#[cfg(test)]
mod tests;
