//! Consent to text that another program would run, read or obey.
//!
//! Text of a server, a store or a repository is written only after the user has agreed to it, once for each content. Text
//! of the user's own folder is written with a warning.

use std::{collections::HashMap, io::Write, path::Path};

use parking_lot::Mutex;
use promptshelf_author::ActivePart;
use promptshelf_git::GitAddress;

use crate::{
    output::{Output, visible_line},
    source::Source,
    state::{self, digest},
    terminal, working_copy,
};

const MAX_SHOWN: usize = 5;

pub(crate) struct Consent<'a> {
    origin: String,
    is_own: bool,
    /// Names of prompts and skills that may have any such content now; a later change of it is asked about again.
    allowed: &'a [String],
    asks: bool,
    /// The content to which `allowed` was applied, by name.
    applied: Mutex<HashMap<String, String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Write,
    WriteWithWarning,
    Refuse,
}

impl<'a> Consent<'a> {
    pub(crate) fn new(source: &Source, origin: &str, allowed: &'a [String], may_ask: bool) -> Consent<'a> {
        Consent {
            origin: origin.to_owned(),
            is_own: matches!(source, Source::Folder(folder) if is_own(folder)),
            allowed,
            asks: may_ask && terminal::is_interactive(),
            applied: Mutex::default(),
        }
    }

    /// Decides on a file with these parts. `content` is the text that the user agrees to.
    pub(crate) fn decide(&self, name: &str, parts: &[ActivePart], content: &str) -> Decision {
        if parts.is_empty() {
            return Decision::Write;
        }
        if self.is_own {
            return Decision::WriteWithWarning;
        }
        let key = digest(&format!("{}\0{name}\0{content}", self.origin));
        if self.allowed.iter().any(|allowed| allowed == name) {
            let mut applied = self.applied.lock();
            if applied.entry(name.to_owned()).or_insert_with(|| key.clone()) == &key {
                return Decision::Write;
            }
        }
        let record = state::folder().map(|folder| folder.join("allowed-commands").join(&key));
        if record.as_ref().is_some_and(|record| record.exists()) {
            return Decision::Write;
        }
        if !self.asks || !ask(name, &self.origin, parts) {
            return Decision::Refuse;
        }
        // Without a state folder the question comes back.
        if let Some(record) = record {
            state::write_new(&record).ok();
        }
        Decision::Write
    }
}

/// Whether the files of a folder are the user's own: not those of a repository's address, nor of a channel.
fn is_own(folder: &Path) -> bool {
    let is_address = folder.to_str().is_some_and(GitAddress::is_meant);
    // Also for a folder inside of one that was pulled.
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    !is_address && !folder.ancestors().any(|folder| folder.join(working_copy::MARKER).exists())
}

fn ask(name: &str, origin: &str, parts: &[ActivePart]) -> bool {
    let mut stderr = Output::stderr();
    let mut lines = vec![format!("`{name}` of {origin} is more than text to the client:")];
    lines.extend(parts.iter().take(MAX_SHOWN).map(|part| format!("  {part}")));
    if parts.len() > MAX_SHOWN {
        lines.push(format!("  and {} more", parts.len() - MAX_SHOWN));
    }
    for line in lines {
        writeln!(stderr.out, "{}", visible_line(&line)).ok();
    }
    drop(stderr);
    terminal::agree("Write it until its text changes? [y/N] ")
}

pub(crate) fn shown(parts: &[ActivePart]) -> String {
    let shown: Vec<String> = parts.iter().take(MAX_SHOWN).map(ToString::to_string).collect();
    match parts.len().saturating_sub(MAX_SHOWN) {
        0 => shown.join("; "),
        more => format!("{}; and {more} more", shown.join("; ")),
    }
}
