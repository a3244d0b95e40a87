//! Actions on the messages of a prompt: copying, saving, and piping into a command.
//!
//! A command runs only because the user typed it after a `|`. It receives the messages on its stdin, never on its command
//! line.

use std::{
    io::{self, Write},
    path::Path,
    process::Stdio,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use promptshelf_client::{Message, PromptResult};

use crate::{
    commands::{markdown, saved::Saved, show},
    output::Output,
    terminal::shell,
    whole_file,
};

pub(super) const WORDS: &[(&str, &str)] = &[
    ("prompts", "lists the prompts; `prompts TEXT` those that contain the text"),
    ("show ", "`show 2`: the second message in full"),
    ("follow ", "`follow 2`: reads the resource that the second message links to"),
    ("copy", "copies the messages; `copy 2` only the second"),
    ("save ", "`save FILE` as Markdown, `save FILE.json` as JSON, `save FOLDER/` images and other files"),
    ("|", "`| COMMAND`: runs it with the messages on its stdin"),
    ("resources", "lists the resources"),
    ("read ", "`read URI`: reads a resource"),
    ("servers", "lists the servers"),
    ("help", "shows this help"),
    ("quit", "ends"),
];

/// The most base64 that is copied, in bytes. Terminals silently drop longer sequences.
const MAX_COPIED_BYTES: usize = 74_000;

/// Formats messages as `promptshelf get` prints them into a pipe.
pub(super) fn text(messages: &[Message]) -> String {
    let mut output = Output { out: Vec::new(), terminal: false, escapes: false, colours: false, width: 100 };
    // Writing to memory succeeds.
    show::messages(&mut output, messages).ok();
    String::from_utf8_lossy(&output.out).into_owned()
}

/// Copies a text with the terminal's escape sequence (OSC 52), which also works over SSH.
pub(super) fn copy(text: &str) -> Result<String, String> {
    let base64 = STANDARD.encode(text);
    if base64.len() > MAX_COPIED_BYTES {
        return Err(format!("{} bytes are too many for terminals to copy; `save` writes them to a file", text.len()));
    }
    let mut out = io::stdout().lock();
    write!(out, "\x1b]52;c;{base64}\x07").and_then(|()| out.flush()).map_err(|error| error.to_string())?;
    Ok(format!("copied {} bytes, if this terminal allows it", text.len()))
}

/// Writes messages to a file or folder. Nothing is overwritten.
pub(super) fn save(result: &PromptResult, target: &str) -> Result<String, String> {
    let path = Path::new(target);
    if target.ends_with('/') || path.is_dir() {
        let saved = Saved::write_all(Some(path), &result.messages).map_err(|failure| failure.to_string())?;
        let notes = saved.notes();
        return if notes.is_empty() {
            Err("the messages are only text: expected the name of a file".to_owned())
        } else {
            Ok(notes.join("\n"))
        };
    }
    let text = if path.extension().is_some_and(|extension| extension == "json") {
        format!("{:#}\n", result.raw)
    } else {
        markdown::document(&result.messages, &Saved::default())
    };
    match whole_file::create(path, text.as_bytes()) {
        Ok(()) => Ok(format!("written to {target}")),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(format!("{target} exists already and was not overwritten"))
        }
        Err(error) => Err(format!("{target} cannot be written: {error}")),
    }
}

/// Runs a command line of the user in a shell, with a text on its stdin.
pub(super) fn pipe(text: &str, line: &str) -> Result<String, String> {
    let mut child =
        shell(line).stdin(Stdio::piped()).spawn().map_err(|error| format!("cannot start a shell: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command may end without reading all of it.
        stdin.write_all(text.as_bytes()).ok();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(String::new()) } else { Err(format!("the command ended with {status}")) }
}
