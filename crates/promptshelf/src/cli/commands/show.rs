//! How messages look to a person.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use promptshelf_core::{ContentBlock, Message, ResourceBody, Role};

use crate::output::Output;

const ROLE: Style = AnsiColor::Cyan.on_default().bold();

/// Prints messages: a single text as it is, so that it can go on through a
/// pipe; several, or other kinds of content, each under a line that says what it is.
pub(crate) fn messages<W: Write>(paper: &mut Output<W>, messages: &[Message]) -> io::Result<()> {
    if let [Message { role: Role::User, content: ContentBlock::Text(text) }] = messages {
        let text = paper.text(&text.text).into_owned();
        return paragraph(&mut paper.out, &text);
    }
    let mut speaker = None;
    for message in messages {
        if speaker != Some(message.role) {
            if speaker.is_some() {
                writeln!(paper.out)?;
            }
            speaker = Some(message.role);
            let heading = paper.styled(ROLE, &format!("[{}]", message.role.as_str()));
            writeln!(paper.out, "{heading}")?;
        }
        block(paper, &message.content)?;
    }
    Ok(())
}

/// Prints what a resource holds: a single text as it is.
pub(crate) fn contents<W: Write>(paper: &mut Output<W>, messages: &[Message]) -> io::Result<()> {
    if let [Message { content: ContentBlock::Resource(resource), .. }] = messages
        && let ResourceBody::Text(text) = &resource.contents.body
    {
        let text = paper.text(text).into_owned();
        return paragraph(&mut paper.out, &text);
    }
    messages.iter().try_for_each(|message| block(paper, &message.content))
}

/// Prints one block under a line that says what it is.
pub(crate) fn block<W: Write>(paper: &mut Output<W>, content: &ContentBlock) -> io::Result<()> {
    let (label, text) = match content {
        ContentBlock::Text(text) => (None, Some(&*text.text)),
        ContentBlock::Image(media) => {
            (Some(format!("image {}, {} bytes", media.mime_type.as_str(), media.data.len())), None)
        }
        ContentBlock::Audio(media) => {
            (Some(format!("audio {}, {} bytes", media.mime_type.as_str(), media.data.len())), None)
        }
        ContentBlock::Resource(resource) => {
            let contents = &resource.contents;
            let named = format!("resource {} {}", contents.uri, contents.mime_type.as_str());
            match &contents.body {
                ResourceBody::Text(text) => (Some(named), Some(&**text)),
                ResourceBody::Blob(blob) => (Some(format!("{named}, {} bytes", blob.len())), None),
            }
        }
        ContentBlock::Link(link) => (Some(format!("link {} {}", link.uri, link.name)), None),
    };
    if let Some(label) = label {
        let label = paper.quiet(&format!("[{}]", paper.line(&label)));
        writeln!(paper.out, "{label}")?;
    }
    match text {
        Some(text) => {
            let text = paper.text(text).into_owned();
            paragraph(&mut paper.out, &text)
        }
        None => Ok(()),
    }
}

/// A text that ends with a line break, its own or one more.
fn paragraph(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") }
}

#[cfg(test)]
mod tests {
    use promptshelf_core::{Annotations, Blob, EmbeddedResource, Media, MimeType, ResourceContents};

    use super::*;

    fn shown(terminal: bool, given: &[Message]) -> String {
        let mut paper = Output { out: Vec::new(), terminal, colours: false, width: 80 };
        messages(&mut paper, given).expect("memory takes everything");
        String::from_utf8(paper.out).expect("it is text")
    }

    #[test]
    fn a_single_text_goes_through_a_pipe_as_it_is() {
        assert_eq!(shown(false, &[Message::user("a\x1bb\r\n")]), "a\x1bb\r\n");
        assert_eq!(shown(true, &[Message::user("a\x1bb")]), "a\\u{1b}b\n");
    }

    #[test]
    fn a_conversation_says_who_speaks() {
        let given = [Message::user("one"), Message::user("two"), Message::assistant("three")];
        assert_eq!(shown(false, &given), "[user]\none\ntwo\n\n[assistant]\nthree\n");
    }

    #[test]
    fn what_cannot_be_shown_is_named() {
        let image = ContentBlock::Image(Media {
            data: Blob::new(vec![0; 1234]),
            mime_type: MimeType::parse("image/png").expect("it is one"),
            annotations: Annotations::default(),
        });
        let resource = ContentBlock::Resource(EmbeddedResource {
            contents: ResourceContents {
                uri: "docs://style".into(),
                mime_type: MimeType::plain_text(),
                body: ResourceBody::Text("Be brief.".into()),
            },
            annotations: Annotations::default(),
        });
        let given = [image, resource].map(|content| Message { role: Role::User, content });
        let expected = "[user]\n[image image/png, 1234 bytes]\n[resource docs://style text/plain]\nBe brief.\n";
        assert_eq!(shown(true, &given), expected);
    }
}
