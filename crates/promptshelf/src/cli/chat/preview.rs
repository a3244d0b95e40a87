//! What came back, as a person looks at it before it goes anywhere.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use promptshelf_core::{ContentBlock, Message, ResourceBody, ResourceContents, Role};

use super::image::Protocol;
use crate::{
    commands::saved::blob_of,
    output::{Output, visible, visible_line},
};

const USER: Style = AnsiColor::Cyan.on_default().bold();
const ASSISTANT: Style = AnsiColor::Magenta.on_default().bold();

/// How many lines of a message are shown at once, and of a resource.
const LINES: usize = 60;
const LINES_OF_RESOURCE: usize = 8;
/// How many messages are shown at once.
const MESSAGES: usize = 100;
/// The longest line that is shown, in characters.
const LONGEST_LINE: usize = 2000;

/// Every message with its number and speaker, shortened.
pub(super) fn all<W: Write>(paper: &mut Output<W>, messages: &[Message]) -> io::Result<()> {
    let images = Protocol::of_terminal().filter(|_| paper.terminal);
    for (place, message) in messages.iter().enumerate().take(MESSAGES) {
        heading(paper, place, message)?;
        block(paper, place, &message.content, images, false)?;
    }
    if messages.len() > MESSAGES {
        writeln!(paper.out, "… and {} more messages", messages.len() - MESSAGES)?;
    }
    if messages.is_empty() {
        writeln!(paper.out, "The prompt has no messages.")?;
    }
    Ok(())
}

/// One message in full.
pub(super) fn whole<W: Write>(paper: &mut Output<W>, place: usize, message: &Message) -> io::Result<()> {
    heading(paper, place, message)?;
    let images = Protocol::of_terminal().filter(|_| paper.terminal);
    block(paper, place, &message.content, images, true)
}

/// What was behind a link.
pub(super) fn contents<W: Write>(paper: &mut Output<W>, contents: &ResourceContents) -> io::Result<()> {
    let named = named("resource", &contents.uri, contents.mime_type.as_str(), contents.body.len());
    quiet(paper, &named)?;
    match &contents.body {
        ResourceBody::Text(text) => lines(paper, text, usize::MAX, ""),
        ResourceBody::Blob(blob) => {
            if let Some(protocol) = Protocol::of_terminal().filter(|_| paper.terminal) {
                protocol.show(&mut paper.out, blob)?;
            }
            Ok(())
        }
    }
}

fn heading<W: Write>(paper: &mut Output<W>, place: usize, message: &Message) -> io::Result<()> {
    let style = if message.role == Role::User { USER } else { ASSISTANT };
    let heading = paper.styled(style, &format!("{} {}", place + 1, message.role.as_str()));
    writeln!(paper.out, "{heading}")
}

fn block<W: Write>(
    paper: &mut Output<W>,
    place: usize,
    content: &ContentBlock,
    images: Option<Protocol>,
    whole: bool,
) -> io::Result<()> {
    let number = place + 1;
    let limit = |usual: usize| if whole { usize::MAX } else { usual };
    match content {
        ContentBlock::Text(text) => lines(paper, &text.text, limit(LINES), &format!("`show {number}` shows all")),
        ContentBlock::Image(_) => {
            let Some((blob, mime_type)) = blob_of(content) else { return Ok(()) };
            let shown = match images {
                Some(protocol) => protocol.show(&mut paper.out, blob)?,
                None => false,
            };
            let more = if shown { "" } else { "; `save FOLDER/` writes it to a file" };
            quiet(paper, &format!("image {}, {} bytes{more}", visible_line(mime_type), blob.len()))
        }
        ContentBlock::Audio(audio) => quiet(
            paper,
            &format!(
                "audio {}, {} bytes; `save FOLDER/` writes it to a file",
                visible_line(audio.mime_type.as_str()),
                audio.data.len()
            ),
        ),
        ContentBlock::Resource(resource) => {
            let contents = &resource.contents;
            quiet(paper, &named("resource", &contents.uri, contents.mime_type.as_str(), contents.body.len()))?;
            match &contents.body {
                ResourceBody::Text(text) => {
                    lines(paper, text, limit(LINES_OF_RESOURCE), &format!("`show {number}` shows all"))
                }
                ResourceBody::Blob(_) => Ok(()),
            }
        }
        ContentBlock::Link(link) => {
            let title = visible_line(link.title.as_deref().unwrap_or(&link.name)).into_owned();
            quiet(paper, &format!("link {title}: {}; `follow {number}` reads it", visible_line(&link.uri)))
        }
    }
}

fn named(what: &str, uri: &str, mime_type: &str, bytes: usize) -> String {
    format!("{what} {} {}, {bytes} bytes", visible_line(uri), visible_line(mime_type))
}

/// A line of ours about a block; everything in it is visible already.
fn quiet<W: Write>(paper: &mut Output<W>, text: &str) -> io::Result<()> {
    let text = paper.quiet(&format!("[{text}]"));
    writeln!(paper.out, "{text}")
}

/// As many lines of a text as are wanted.
fn lines<W: Write>(paper: &mut Output<W>, text: &str, most: usize, more: &str) -> io::Result<()> {
    let shown = visible(text);
    let mut lines = shown.lines();
    for line in lines.by_ref().take(most) {
        if most < usize::MAX && line.len() > LONGEST_LINE {
            let kept = &line[..line.floor_char_boundary(LONGEST_LINE)];
            writeln!(paper.out, "{kept}…")?;
        } else {
            writeln!(paper.out, "{line}")?;
        }
    }
    match lines.count() {
        0 => Ok(()),
        left => quiet(paper, &format!("{left} more lines; {more}")),
    }
}
