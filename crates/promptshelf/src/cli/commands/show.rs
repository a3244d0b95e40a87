//! Prints messages and resources as text.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use promptshelf_client::{ContentBlock, Message, ResourceBody, Role};

use crate::output::Output;

const ROLE: Style = AnsiColor::Cyan.on_default().bold();

/// Prints messages: a single text verbatim, for use in a pipe; several messages and other content each under a heading.
pub(crate) fn messages<W: Write>(output: &mut Output<W>, messages: &[Message]) -> io::Result<()> {
    if let [Message { role: Role::User, content: ContentBlock::Text(text) }] = messages {
        let text = output.text(&text.text).into_owned();
        return paragraph(&mut output.out, &text);
    }
    let mut role = None;
    for message in messages {
        if role != Some(message.role) {
            if role.is_some() {
                writeln!(output.out)?;
            }
            role = Some(message.role);
            let heading = output.styled(ROLE, &format!("[{}]", message.role.as_str()));
            writeln!(output.out, "{heading}")?;
        }
        block(output, &message.content)?;
    }
    Ok(())
}

/// Prints the contents of a resource: a single text verbatim.
pub(crate) fn contents<W: Write>(output: &mut Output<W>, messages: &[Message]) -> io::Result<()> {
    if let [Message { content: ContentBlock::Resource(resource), .. }] = messages
        && let ResourceBody::Text(text) = &resource.contents.body
    {
        let text = output.text(text).into_owned();
        return paragraph(&mut output.out, &text);
    }
    messages.iter().try_for_each(|message| block(output, &message.content))
}

fn block<W: Write>(output: &mut Output<W>, content: &ContentBlock) -> io::Result<()> {
    let (label, text) = match content {
        ContentBlock::Text(text) => (None, Some(&*text.text)),
        ContentBlock::Image(media) => (Some(format!("image {}, {} bytes", media.mime_type, media.data.len())), None),
        ContentBlock::Audio(media) => (Some(format!("audio {}, {} bytes", media.mime_type, media.data.len())), None),
        ContentBlock::Resource(resource) => {
            let contents = &resource.contents;
            let named = format!("resource {} {}", contents.uri, contents.mime_type);
            match &contents.body {
                ResourceBody::Text(text) => (Some(named), Some(&**text)),
                ResourceBody::Blob(blob) => (Some(format!("{named}, {} bytes", blob.len())), None),
            }
        }
        ContentBlock::Link(link) => (Some(format!("link {} {}", link.uri, link.name)), None),
        other => (Some(other.kind().to_owned()), None),
    };
    if let Some(label) = label {
        let label = output.dimmed(&format!("[{}]", output.line(&label)));
        writeln!(output.out, "{label}")?;
    }
    match text {
        Some(text) => {
            let text = output.text(text).into_owned();
            paragraph(&mut output.out, &text)
        }
        None => Ok(()),
    }
}

fn paragraph(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") }
}

#[cfg(test)]
mod tests {
    use promptshelf_client::{Annotations, EmbeddedResource, Media, ResourceContents};

    use super::*;

    fn shown(terminal: bool, input: &[Message]) -> String {
        let mut output = Output { out: Vec::new(), terminal, escapes: terminal, colours: false, width: 80 };
        messages(&mut output, input).expect("writing to memory succeeds");
        String::from_utf8(output.out).expect("valid UTF-8")
    }

    #[test]
    fn single_text_is_verbatim_in_a_pipe() {
        assert_eq!(shown(false, &[Message::user("a\x1bb\r\n")]), "a\x1bb\r\n");
        assert_eq!(shown(true, &[Message::user("a\x1bb")]), "a\\u{1b}b\n");
    }

    #[test]
    fn roles_are_printed_once_per_turn() {
        let input = [Message::user("one"), Message::user("two"), Message::assistant("three")];
        assert_eq!(shown(false, &input), "[user]\none\ntwo\n\n[assistant]\nthree\n");
    }

    #[test]
    fn binary_content_is_named() {
        let image = ContentBlock::Image(Media {
            data: vec![0; 1234],
            mime_type: "image/png".to_owned(),
            annotations: Annotations::default(),
        });
        let resource = ContentBlock::Resource(EmbeddedResource {
            contents: ResourceContents {
                uri: "docs://style".to_owned(),
                mime_type: "text/plain".to_owned(),
                body: ResourceBody::Text("Be brief.".to_owned()),
            },
            annotations: Annotations::default(),
        });
        let input = [image, resource].map(|content| Message { role: Role::User, content });
        let expected = "[user]\n[image image/png, 1234 bytes]\n[resource docs://style text/plain]\nBe brief.\n";
        assert_eq!(shown(true, &input), expected);
    }
}
