//! What becomes of the messages: copied, saved, or piped into a command.
//!
//! A command runs because a person has typed it after a `|`, and for no other
//! reason; it gets the messages on its stdin and never on its command line.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::Path,
    process::Stdio,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use promptshelf_client::PromptResult;
use promptshelf_core::Message;

use super::reader::shell;
use crate::{
    commands::{markdown, saved::Saved, show},
    output::Output,
};

/// The words of a chat, with what they do.
pub(super) const WORDS: &[(&str, &str)] = &[
    ("prompts", "what there is; `prompts TEXT` only what fits"),
    ("show ", "`show 2`: the second message in full"),
    ("follow ", "`follow 2`: reads what the second message links to"),
    ("copy", "copies the messages; `copy 2` only the second"),
    ("save ", "`save FILE` as Markdown, `save FILE.json` as the server sent it, `save FOLDER/` images and other files"),
    ("|", "`| COMMAND`: runs it with the messages on its stdin"),
    ("resources", "what can be read"),
    ("read ", "`read URI`: reads a resource"),
    ("servers", "who is connected"),
    ("help", "this"),
    ("quit", "ends"),
];

/// The most that is copied, in bytes. Terminals silently drop more than about this.
const MOST_COPIED: usize = 74_000;

/// Messages as plain text, as `promptshelf get` prints them into a pipe.
pub(super) fn text(messages: &[Message]) -> String {
    let mut paper = Output { out: Vec::new(), terminal: false, colours: false, width: 100 };
    // Memory takes everything.
    show::messages(&mut paper, messages).ok();
    String::from_utf8_lossy(&paper.out).into_owned()
}

/// Asks the terminal to copy a text (OSC 52), which also works over SSH.
pub(super) fn copy(text: &str) -> Result<String, String> {
    let base64 = STANDARD.encode(text);
    if base64.len() > MOST_COPIED {
        return Err(format!("{} bytes are more than terminals copy; `save` writes them to a file", text.len()));
    }
    let mut out = io::stdout().lock();
    write!(out, "\x1b]52;c;{base64}\x07").and_then(|()| out.flush()).map_err(|error| error.to_string())?;
    Ok(format!("copied {} bytes, if this terminal lets programs copy", text.len()))
}

/// Writes messages to where somebody says. Nothing is overwritten.
pub(super) fn save(got: &PromptResult, place: &str) -> Result<String, String> {
    let path = Path::new(place);
    if place.ends_with('/') || path.is_dir() {
        let saved = Saved::to(Some(path), &got.messages).map_err(|failure| failure.to_string())?;
        let notes = saved.notes();
        return if notes.is_empty() {
            Err("there is nothing but text; name a file".to_owned())
        } else {
            Ok(notes.join("\n"))
        };
    }
    let text = if path.extension().is_some_and(|ending| ending == "json") {
        format!("{:#}\n", got.raw)
    } else {
        markdown::document(&got.messages, &Saved::default())
    };
    let written =
        OpenOptions::new().write(true).create_new(true).open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Ok(()) => Ok(format!("written to {place}")),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(format!("{place} exists already and was not touched"))
        }
        Err(error) => Err(format!("{place} cannot be written: {error}")),
    }
}

/// Runs a command line that a person has typed.
pub(super) fn pipe(text: &str, line: &str) -> Result<String, String> {
    let mut child =
        shell(line).stdin(Stdio::piped()).spawn().map_err(|error| format!("no shell can be started: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // Whoever does not read to the end has seen enough.
        stdin.write_all(text.as_bytes()).ok();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(String::new()) } else { Err(format!("the command ended with {status}")) }
}
