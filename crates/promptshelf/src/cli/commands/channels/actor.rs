//! The name of the person or program that runs a command.

use std::env;

use promptshelf_store::Actor;

use super::access::Place;
use crate::{
    args::channels::ActorArguments,
    exit::{Exit, Failure},
};

/// Returns the actor of a command: of a store as [`local_actor`]. A server knows the caller, and no name is sent to it.
pub(super) fn actor(arguments: &ActorArguments, place: &Place) -> Result<Actor, Failure> {
    match (place.is_server(), &arguments.name) {
        (false, _) => local_actor(arguments),
        (true, None) => Ok(Actor { name: String::new(), may_publish: false, may_administer: false }),
        (true, Some(_)) => {
            Err(Failure::new(Exit::Usage, "`--as` and `--url` exclude each other: a server knows the caller")
                .help("leave out `--as`; the author is the name of the token or of the sign-in"))
        }
    }
}

pub(super) fn local_actor(arguments: &ActorArguments) -> Result<Actor, Failure> {
    let name = match &arguments.name {
        Some(name) => Some(name.clone()),
        None => user(),
    };
    let is_valid = |name: &String| !name.trim().is_empty() && !name.contains(char::is_control);
    match name.filter(is_valid) {
        Some(name) => Ok(Actor { name, may_publish: true, may_administer: true }),
        None if arguments.name.is_some() => {
            Err(Failure::new(Exit::Usage, "`--as` expects a name, without control characters"))
        }
        None => Err(Failure::new(Exit::Usage, "the name of the user is unknown").help("set it: `--as NAME`")),
    }
}

fn user() -> Option<String> {
    let is_set = |name: &String| !name.is_empty();
    let variable = |name| env::var(name).ok().filter(is_set);
    variable("USER").or_else(|| variable("LOGNAME")).or_else(|| variable("USERNAME")).or_else(account)
}

/// Returns the name of the account, in environments without these variables, such as containers.
#[cfg(unix)]
fn account() -> Option<String> {
    let id = rustix::process::getuid().as_raw();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _password) = (fields.next()?, fields.next()?);
        (fields.next()?.parse() == Ok(id)).then(|| name.to_owned())
    });
    Some(name.unwrap_or_else(|| format!("uid {id}")))
}

#[cfg(not(unix))]
fn account() -> Option<String> {
    None
}
