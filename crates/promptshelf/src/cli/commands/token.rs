//! `promptshelf token new`: prints a new token once, and the line to store for it.

use std::{fmt::Write as _, io::Write as _, time::SystemTime};

use clap::{Args, Subcommand};
use promptshelf_core::nearest;
use promptshelf_server::http::auth::{digest_of, random_token};
use promptshelf_wire::Scope;
use serde_json::json;

use super::channels::tokens;
use crate::{
    exit::{Exit, Failure},
    output::{Output, note},
    settings::{Day, is_scope},
};

const TOKEN_NEW_EXAMPLES: &str = "\
Examples:
  promptshelf token new ada --role editor --expires 2027-01-31
  promptshelf token new ci --json | tee ci.json | jq -r .store \\
    >> /etc/promptshelf/tokens
  promptshelf serve prompts --http 0.0.0.0:80 \\
    --tokens /etc/promptshelf/tokens --allow-host prompts.example.com

The tokens file must not be inside the library.";

const TOKEN_EXAMPLES: &str = "\
Through a server the commands need the scope library:admin.

Examples:
  promptshelf token create sqlite:team.db ci --scope prompts:read
  promptshelf token list sqlite:team.db
  promptshelf token revoke sqlite:team.db ci
  promptshelf token list https://prompts.example.com";

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Print a new token, once, and the line to store for it in a file of the server
    #[command(after_help = TOKEN_NEW_EXAMPLES)]
    New(TokenArguments),
    /// Create a token in a store, which every server of the store accepts within a second
    #[command(after_help = TOKEN_EXAMPLES)]
    Create(tokens::TokenCreateArguments),
    /// List the tokens of a store, with their last use
    #[command(after_help = TOKEN_EXAMPLES)]
    List(tokens::TokenListArguments),
    /// Revoke a token of a store: every server refuses it within a second, and ends its streams
    #[command(after_help = TOKEN_EXAMPLES)]
    Revoke(tokens::TokenRevokeArguments),
}

#[derive(Debug, Args)]
pub(crate) struct TokenArguments {
    /// Name of the token's owner in access rules and records
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) options: TokenOptions,
}

#[derive(Debug, Args)]
pub(crate) struct TokenOptions {
    /// A scope of the token: library:read, library:propose, library:review, library:publish, library:evaluate and
    /// library:admin permit operations of the API, others what rules of the operator say; can be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,

    /// A role of the owner; can be repeated
    #[arg(long = "role", value_name = "ROLE")]
    pub(crate) roles: Vec<String>,

    /// The day at whose beginning (UTC) the token expires, such as 2027-01-31 [default: never]
    #[arg(long, value_name = "DAY")]
    pub(crate) expires: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(command: &TokenCommand) -> Result<(), Failure> {
    match command {
        TokenCommand::New(arguments) => new(arguments),
        TokenCommand::Create(arguments) => tokens::create(arguments).await,
        TokenCommand::List(arguments) => tokens::list(arguments).await,
        TokenCommand::Revoke(arguments) => tokens::revoke(arguments).await,
    }
}

fn new(arguments: &TokenArguments) -> Result<(), Failure> {
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
