//! `promptshelf token create`, `list` and `revoke`: the tokens of a store.

use std::{
    io::{self, Write},
    time::SystemTime,
};

use clap::Args;
use jiff::Timestamp;
use promptshelf_store::{NewToken, TokenInfo};
use promptshelf_wire::{CreatedToken, op};
use serde_json::json;

use super::{access::Place, connection::Connection, report};
use crate::{
    args::{
        Words,
        place::{ActorArguments, PlaceArguments},
        words::{Nothing, Owner, Token},
    },
    commands::token::TokenOptions,
    exit::{Exit, Failure},
    output::{Output, list_json, pretty_json},
    settings::Day,
};

#[derive(Debug, Args)]
pub(crate) struct TokenCreateArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, Owner>,

    #[command(flatten)]
    pub(crate) token: TokenOptions,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,
}

#[derive(Debug, Args)]
pub(crate) struct TokenListArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, Nothing>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenRevokeArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, Token>,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn create(arguments: &TokenCreateArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, None)?.acting(&arguments.actor)?;
    let expires = arguments.token.expiry()?.map(|Day(day)| Timestamp::try_from(day));
    let expires = expires.transpose().map_err(|error| Failure::new(Exit::Usage, format!("--expires: {error}")))?;
    let new = NewToken {
        name: arguments.words.name().to_owned(),
        scopes: arguments.token.scopes.clone(),
        roles: arguments.token.roles.clone(),
        expires,
    };
    arguments.token.note_scopes();
    let create = async |store: &Connection| {
        let created: CreatedToken = place.waiting(store.send(&op::CreateToken {}, &new)).await?;
        let Err(error) = print_token(&created, &place, arguments.token.json) else { return Ok(()) };
        // Nobody has its text, and the store does not.
        let id = created.info.id;
        let end = match place.waiting(store.delete(&op::RevokeToken { id }, None)).await {
            Ok(_) => format!("token {id} is revoked"),
            Err(_) => format!("end token {id}: {}", place.command(&format!("token revoke {id}"))),
        };
        Err(Failure::new(Exit::Failed, format!("the text of the token could not be written: {error}; {end}")))
    };
    place.changing(create).await
}

fn print_token(CreatedToken { token, info }: &CreatedToken, place: &Place, is_json: bool) -> io::Result<()> {
    let mut output = Output::stdout();
    if is_json {
        writeln!(output.out, "{}", pretty_json(&json!({ "token": token, "info": info })))?;
        return output.out.flush();
    }
    writeln!(output.out, "The token, shown only once:\n  {token}\n")?;
    let name = output.line(&info.name).into_owned();
    writeln!(
        output.out,
        "token {} signs in as token/{name} on every server of the store that requires sign-in",
        info.id
    )?;
    if info.scopes.is_empty() {
        writeln!(output.out, "it has no scopes, and may use what needs none")?;
    }
    writeln!(output.out, "next: {} ends it", place.command(&format!("token revoke {}", info.id)))?;
    output.out.flush()
}

pub(crate) async fn list(arguments: &TokenListArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, None)?;
    let tokens = place.using(async |store: &Connection| place.waiting(tokens(store)).await).await?;
    if arguments.json {
        return report::print_json(&list_json(tokens.iter().map(|token| json!(token))));
    }
    if tokens.is_empty() {
        return report::print_line(&format!(
            "the store has no tokens; {} creates one",
            place.command("token create NAME")
        ));
    }
    let mut output = Output::stdout();
    let header = ["ID", "NAME", "STATE", "SCOPES", "ROLES", "CREATED", "LAST USED"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(tokens.iter().map(|token| row(token, &output)));
    report::print_table(&mut output, "", &rows)?;
    Ok(output.out.flush()?)
}

pub(crate) async fn revoke(arguments: &TokenRevokeArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, None)?.acting(&arguments.actor)?;
    let revoke = async |store: &Connection| {
        let id = place.waiting(find(store, arguments.words.name())).await?;
        Ok(place.waiting(store.delete(&op::RevokeToken { id }, None)).await?)
    };
    let info: TokenInfo = place.changing(revoke).await?;
    if arguments.json {
        return report::print_json(&json!(info));
    }
    report::print_line(&format!(
        "token {} ({}) is revoked: every server refuses it within a second",
        info.id, info.name
    ))
}

async fn tokens(store: &Connection) -> Result<Vec<TokenInfo>, Failure> {
    Ok(store.all(&op::ListTokens {}).await?)
}

async fn find(store: &Connection, word: &str) -> Result<u64, Failure> {
    let tokens = tokens(store).await?;
    let number = word.parse().ok().filter(|number| tokens.iter().any(|token| token.id == *number));
    let named = tokens.iter().filter(|token| token.name == word && state(token) == "valid");
    let named: Vec<u64> = named.map(|token| token.id).collect();
    match (number, named.as_slice()) {
        (Some(number), _) => Ok(number),
        (None, [id]) => Ok(*id),
        (None, []) => Err(Failure::new(Exit::NotFound, format!("no valid token has the number or name `{word}`"))
            .help("`promptshelf token list` shows all")),
        (None, ids) => {
            let ids = ids.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            Err(Failure::new(Exit::Usage, format!("several valid tokens have the name `{word}`: {ids}"))
                .help("name one of the numbers"))
        }
    }
}

fn state(token: &TokenInfo) -> &'static str {
    let is_over = |end: Timestamp| end <= Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::MAX);
    match (token.revoked, token.expires) {
        (Some(_), _) => "revoked",
        (None, Some(end)) if is_over(end) => "expired",
        _ => "valid",
    }
}

fn row<W: Write>(token: &TokenInfo, output: &Output<W>) -> Vec<String> {
    let line = |text: &str| output.line(text).into_owned();
    let list = |names: &[String]| if names.is_empty() { "-".to_owned() } else { line(&names.join(",")) };
    let state = match (state(token), token.expires, token.revoked) {
        ("valid", Some(end), _) => format!("valid until {end:.0}"),
        (state, _, Some(at)) => format!("{state} {at:.0}"),
        (state, ..) => state.to_owned(),
    };
    vec![
        token.id.to_string(),
        line(&token.name),
        state,
        list(&token.scopes),
        list(&token.roles),
        line(&format!("{} by {}", report::time(token.created), token.creator)),
        token.used.map_or_else(|| "never".to_owned(), report::time),
    ]
}
