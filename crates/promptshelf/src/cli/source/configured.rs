//! Servers in the configuration of other MCP clients, and the user's consent to those of a project.
//!
//! A project's file can start any command, so the user agrees to each entry once. The consent is bound to the content
//! of the entry, its name and its file.

use std::{env, io::Write};

use promptshelf_client::{ConfigScope, ConfiguredServer, Endpoint};

use crate::{
    exit::{Exit, Failure},
    output::{Output, note, visible_line},
    state::{self, digest},
    terminal,
};

/// A variable with the digests of allowed entries, separated by commas, for programs without a terminal.
const ALLOWED: &str = "PROMPTSHELF_ALLOW_SERVER";

/// Looks up a server by its name. Asks for consent to an entry of a project, and shows the file of the name.
pub(crate) fn configured(name: &str) -> Result<Endpoint, Failure> {
    let server = ConfiguredServer::find(name)?;
    if server.scope == ConfigScope::User {
        note_others(&server);
    }
    if server.requires_consent() {
        consent(&server)?;
    }
    let endpoint = server.endpoint()?;
    let mut stderr = Output::stderr();
    if stderr.terminal {
        let origin = format!("{} is configured in {}", server.name, server.file.display());
        writeln!(stderr.out, "{}", visible_line(&origin)).ok();
    }
    Ok(endpoint)
}

/// Notes that a project configures another server with the name of a server of the user.
fn note_others(server: &ConfiguredServer) {
    let all = ConfiguredServer::all();
    let same_name = all.iter().filter(|other| other.name == server.name && other.scope == ConfigScope::Project);
    let notes: Vec<String> = same_name
        .filter(|other| other.content() != server.content())
        .map(|other| {
            let (name, used, other) = (&server.name, server.file.display(), other.file.display());
            format!("{name} is the server in {used}; the one in {other} has the same name and is not used")
        })
        .collect();
    note(&notes);
}

/// Returns once the user has agreed to the entry, now or earlier.
fn consent(server: &ConfiguredServer) -> Result<(), Failure> {
    let (file, content) = (server.file.display().to_string(), server.content());
    let key = digest(&format!("{file}\0{}\0{content}", server.name));
    let allowed = env::var(ALLOWED).unwrap_or_default();
    let record = state::folder().map(|folder| folder.join("allowed-servers").join(&key));
    if allowed.split(',').any(|allowed| allowed.trim() == key) || record.as_ref().is_some_and(|record| record.exists())
    {
        return Ok(());
    }
    if !terminal::is_interactive() {
        let reason = format!(
            "the server {} in {file} is configured by a project, and you have not allowed it: {content}",
            server.name
        );
        let help = format!("run this once at a terminal to be asked, or set {ALLOWED}={key}");
        return Err(Failure::new(Exit::Usage, reason).help(help));
    }
    let mut stderr = Output::stderr();
    let lines = [
        format!("The server {} is configured by a project, in {file}:", server.name),
        format!("  {content}"),
        "It can start a command, or send values of your environment.".to_owned(),
    ];
    for line in lines {
        writeln!(stderr.out, "{}", visible_line(&line)).ok();
    }
    drop(stderr);
    if !terminal::agree("Allow it until this entry changes? [y/N] ") {
        return Err(Failure::new(Exit::Declined, format!("the server {} was not allowed", server.name)));
    }
    // Without a state folder the question comes back.
    if let Some(record) = record {
        state::write_new(&record).ok();
    }
    Ok(())
}
