//! `promptshelf token new`: prints a new token once, and the line to store for it.

use std::{fmt::Write as _, io::Write as _, time::SystemTime};

use promptshelf_core::nearest;
use promptshelf_server::http::auth::{digest_of, random_token};
use promptshelf_wire::Scope;
use serde_json::json;

use crate::{
    args::{TokenArguments, TokenOptions},
    exit::{Exit, Failure},
    output::{Output, note},
    settings::{Day, is_scope},
};

pub(crate) fn new(arguments: &TokenArguments) -> Result<(), Failure> {
    check(arguments)?;
    arguments.options.note_scopes();
    let token = random_token()?;
    let line = line(arguments, &digest_of(&token));
    let mut output = Output::stdout();
    if arguments.options.json {
        writeln!(output.out, "{}", json!({ "token": token, "store": line }))?;
    } else {
        let mut block = String::new();
        // Writing into a string cannot fail.
        let _ = write!(
            block,
            "The token, shown only once:\n  {token}\n\n\
             The line to store, in a file for --tokens or in `tokens` of [auth] in server.toml:\n  {line}\n"
        );
        write!(output.out, "{block}")?;
    }
    output.out.flush()?;
    Ok(())
}

/// Rejects values that would make a token without use, or that no request could match.
fn check(arguments: &TokenArguments) -> Result<(), Failure> {
    let usage = |message: String| Failure::new(Exit::Usage, message);
    if arguments.name.trim().is_empty() {
        return Err(usage("the name is empty: expected the name of the token's owner, such as ada".to_owned()));
    }
    for scope in &arguments.options.scopes {
        if !is_scope(scope) {
            let message =
                format!("--scope: expected one scope such as prompts:write, without spaces, got {}", json!(scope));
            return Err(usage(message).help("repeat --scope for further scopes"));
        }
    }
    if arguments.options.roles.iter().any(|role| role.trim().is_empty()) {
        return Err(usage("--role: the role is empty: expected a name such as editor".to_owned()));
    }
    arguments.options.expiry().map(drop)
}

impl TokenOptions {
    /// Notes scopes that are probably meant as those of the API. Others are for access rules of the operator.
    pub(crate) fn note_scopes(&self) {
        let known = || Scope::ALL.iter().map(|scope| scope.as_str());
        let names = known().collect::<Vec<_>>().join(", ");
        let about = |scope: &String| {
            let of_word = || known().find(|known| known.split_once(':').is_some_and(|(_, word)| word == scope));
            let near = nearest(scope, known()).or_else(of_word);
            let is_own = near.is_none() && scope.contains(':') && !scope.starts_with("library:");
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let text = format!(
                "the scope `{scope}` permits nothing but what rules of the operator say; the API has {names}{near}"
            );
            (!is_own && known().all(|known| known != scope)).then_some(text)
        };
        note(&self.scopes.iter().filter_map(about).collect::<Vec<_>>());
    }

    pub(crate) fn expiry(&self) -> Result<Option<Day>, Failure> {
        let usage = |message: String| Failure::new(Exit::Usage, message);
        let Some(text) = &self.expires else { return Ok(None) };
        let day: Day = text.parse().map_err(|reason| usage(format!("--expires: {reason}")))?;
        if day.0 <= SystemTime::now() {
            return Err(usage(format!("--expires: the day {text} has already begun: expected a later one")));
        }
        Ok(Some(day))
    }
}

/// Formats the stored form of a token, with its hash, as an inline table of TOML.
fn line(arguments: &TokenArguments, digest: &[u8; 32]) -> String {
    // A JSON string is also a valid basic string of TOML.
    let quoted = |text: &String| json!(text).to_string();
    let list = |texts: &[String]| texts.iter().map(quoted).collect::<Vec<_>>().join(", ");
    let mut line = format!("{{ name = {}, sha256 = \"", quoted(&arguments.name));
    for byte in digest {
        // Writing into a string cannot fail.
        let _ = write!(line, "{byte:02x}");
    }
    line.push('"');
    for (key, texts) in [("scopes", &arguments.options.scopes), ("roles", &arguments.options.roles)] {
        if !texts.is_empty() {
            let _ = write!(line, ", {key} = [{}]", list(texts));
        }
    }
    if let Some(day) = &arguments.options.expires {
        let _ = write!(line, ", expires = {}", quoted(day));
    }
    line + " }"
}
