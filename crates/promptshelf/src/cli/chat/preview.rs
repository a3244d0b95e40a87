//! Previews of messages and resources, shortened and escaped.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use promptshelf_client::{ContentBlock, Message, ResourceBody, ResourceContents, Role};

use super::Protocol;
use crate::{
    commands::saved::binary,
    output::{Output, visible, visible_line},
};

const USER: Style = AnsiColor::Cyan.on_default().bold();
const ASSISTANT: Style = AnsiColor::Magenta.on_default().bold();

const MAX_LINES: usize = 60;
const MAX_RESOURCE_LINES: usize = 8;
const MAX_MESSAGES: usize = 100;
/// The longest line, in bytes.
const MAX_LINE_BYTES: usize = 2000;

pub(super) fn all<W: Write>(output: &mut Output<W>, messages: &[Message]) -> io::Result<()> {
    let images = Protocol::of_terminal().filter(|_| output.terminal);
    for (index, message) in messages.iter().enumerate().take(MAX_MESSAGES) {
        heading(output, index, message)?;
        block(output, index, &message.content, images, false)?;
    }
    if messages.len() > MAX_MESSAGES {
        writeln!(output.out, "… and {} more messages", messages.len() - MAX_MESSAGES)?;
    }
    if messages.is_empty() {
        writeln!(output.out, "The prompt has no messages.")?;
    }
    Ok(())
}

pub(super) fn whole<W: Write>(output: &mut Output<W>, index: usize, message: &Message) -> io::Result<()> {
    heading(output, index, message)?;
    let images = Protocol::of_terminal().filter(|_| output.terminal);
    block(output, index, &message.content, images, true)
}

pub(super) fn contents<W: Write>(output: &mut Output<W>, contents: &ResourceContents) -> io::Result<()> {
    let named = named("resource", &contents.uri, &contents.mime_type, contents.body.len());
    dimmed_note(output, &named)?;
    match &contents.body {
        ResourceBody::Text(text) => lines(output, text, usize::MAX, ""),
        ResourceBody::Blob(bytes) => {
            if let Some(protocol) = Protocol::of_terminal().filter(|_| output.terminal) {
                protocol.show(&mut output.out, bytes)?;
            }
            Ok(())
        }
    }
}

fn heading<W: Write>(output: &mut Output<W>, index: usize, message: &Message) -> io::Result<()> {
    let style = if message.role == Role::User { USER } else { ASSISTANT };
    let heading = output.styled(style, &format!("{} {}", index + 1, message.role.as_str()));
    writeln!(output.out, "{heading}")
}

fn block<W: Write>(
    output: &mut Output<W>,
    index: usize,
    content: &ContentBlock,
    images: Option<Protocol>,
    whole: bool,
) -> io::Result<()> {
    let number = index + 1;
    let limit = |lines: usize| if whole { usize::MAX } else { lines };
    match content {
        ContentBlock::Text(text) => lines(output, &text.text, limit(MAX_LINES), &format!("`show {number}` shows all")),
        ContentBlock::Image(_) => {
            let Some((bytes, mime_type)) = binary(content) else { return Ok(()) };
            let shown = match images {
                Some(protocol) => protocol.show(&mut output.out, bytes)?,
                None => false,
            };
            let more = if shown { "" } else { "; `save FOLDER/` writes it to a file" };
            dimmed_note(output, &format!("image {}, {} bytes{more}", visible_line(mime_type), bytes.len()))
        }
        ContentBlock::Audio(audio) => dimmed_note(
            output,
            &format!(
                "audio {}, {} bytes; `save FOLDER/` writes it to a file",
                visible_line(&audio.mime_type),
                audio.data.len()
            ),
        ),
        ContentBlock::Resource(resource) => {
            let contents = &resource.contents;
            dimmed_note(output, &named("resource", &contents.uri, &contents.mime_type, contents.body.len()))?;
            match &contents.body {
                ResourceBody::Text(text) => {
                    lines(output, text, limit(MAX_RESOURCE_LINES), &format!("`show {number}` shows all"))
                }
                ResourceBody::Blob(_) => Ok(()),
            }
        }
        ContentBlock::Link(link) => {
            let title = visible_line(link.title.as_deref().unwrap_or(&link.name)).into_owned();
            dimmed_note(output, &format!("link {title}: {}; `follow {number}` reads it", visible_line(&link.uri)))
        }
        other => dimmed_note(output, other.kind()),
    }
}

fn named(what: &str, uri: &str, mime_type: &str, bytes: usize) -> String {
    format!("{what} {} {}, {bytes} bytes", visible_line(uri), visible_line(mime_type))
}

/// Prints a description of a block; its text must be escaped already.
fn dimmed_note<W: Write>(output: &mut Output<W>, text: &str) -> io::Result<()> {
    let text = output.dimmed(&format!("[{text}]"));
    writeln!(output.out, "{text}")
}

/// Prints at most `limit` lines of a text.
fn lines<W: Write>(output: &mut Output<W>, text: &str, limit: usize, more: &str) -> io::Result<()> {
    let shown = visible(text);
    let mut lines = shown.lines();
    for line in lines.by_ref().take(limit) {
        if limit < usize::MAX && line.len() > MAX_LINE_BYTES {
            let short = &line[..line.floor_char_boundary(MAX_LINE_BYTES)];
            writeln!(output.out, "{short}…")?;
        } else {
            writeln!(output.out, "{line}")?;
        }
    }
    match lines.count() {
        0 => Ok(()),
        left => dimmed_note(output, &format!("{left} more lines; {more}")),
    }
}
