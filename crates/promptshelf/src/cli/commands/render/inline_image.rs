//! Inline images in terminals: the protocol of kitty, also supported by Ghostty, and the one of iTerm2, also
//! supported by WezTerm. On other terminals only the heading of the block is shown.

use std::env;

use promptshelf_core::Media;

/// The maximum size of an image that is sent to a terminal, in bytes.
const MAX_BYTES: usize = 8 << 20;

/// The number of Base64 characters in a chunk; 4096 is the maximum of kitty's protocol.
const CHUNK_CHARACTERS: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Kitty,
    Iterm,
}

/// Returns the escape sequences that display an image. `None` if the terminal does not support it.
pub(super) fn inline_image(image: &Media) -> Option<String> {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    encode(protocol(variable)?, image)
}

fn protocol(variable: impl Fn(&str) -> Option<String>) -> Option<Protocol> {
    // Multiplexers pass neither protocol through.
    if variable("TMUX").is_some() || variable("STY").is_some() {
        return None;
    }
    let (term, program) = (variable("TERM").unwrap_or_default(), variable("TERM_PROGRAM").unwrap_or_default());
    if variable("KITTY_WINDOW_ID").is_some() || term == "xterm-kitty" || term == "xterm-ghostty" || program == "ghostty"
    {
        return Some(Protocol::Kitty);
    }
    ["iTerm.app", "WezTerm"].contains(&program.as_str()).then_some(Protocol::Iterm)
}

fn encode(protocol: Protocol, image: &Media) -> Option<String> {
    if image.data.len() > MAX_BYTES {
        return None;
    }
    let data = image.data.base64();
    match protocol {
        Protocol::Iterm => {
            let size = image.data.len();
            Some(format!("\u{1b}]1337;File=inline=1;size={size};preserveAspectRatio=1:{data}\u{7}\n"))
        }
        // PNG is the only compressed format of kitty's protocol.
        Protocol::Kitty if image.mime_type.as_str() == "image/png" => {
            let chunks: Vec<&str> =
                data.as_bytes().chunks(CHUNK_CHARACTERS).filter_map(|chunk| std::str::from_utf8(chunk).ok()).collect();
            let mut sequence = String::with_capacity(data.len() + chunks.len() * 16);
            for (index, chunk) in chunks.iter().enumerate() {
                let keys = if index == 0 { "a=T,f=100," } else { "" };
                let more = u8::from(index + 1 < chunks.len());
                sequence.push_str(&format!("\u{1b}_G{keys}m={more};{chunk}\u{1b}\\"));
            }
            sequence.push('\n');
            Some(sequence)
        }
        Protocol::Kitty => None,
    }
}

#[cfg(test)]
mod tests {
    use promptshelf_core::{Annotations, Blob, MimeType};

    use super::*;

    fn image(bytes: usize) -> Media {
        Media {
            data: Blob::new(vec![7; bytes]),
            mime_type: MimeType::parse("image/png").expect("a valid MIME type"),
            annotations: Annotations::default(),
        }
    }

    #[test]
    fn terminal_is_detected_from_environment() {
        let detect = |pairs: &'static [(&str, &str)]| {
            protocol(|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(detect(&[("TERM", "xterm-kitty")]), Some(Protocol::Kitty));
        assert_eq!(detect(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")]), Some(Protocol::Iterm));
        assert_eq!(detect(&[("TERM", "xterm-kitty"), ("TMUX", "1")]), None);
        assert_eq!(detect(&[("TERM", "xterm-256color")]), None);
    }

    #[test]
    fn large_image_is_chunked_and_huge_image_is_omitted() {
        let sequence = encode(Protocol::Kitty, &image(5_000)).expect("a PNG image");
        assert!(sequence.starts_with("\u{1b}_Ga=T,f=100,m=1;") && sequence.contains("\u{1b}_Gm=0;"), "{sequence}");
        assert!(encode(Protocol::Iterm, &image(10)).is_some_and(|sequence| sequence.contains("size=10;")));
        assert_eq!(encode(Protocol::Iterm, &image(MAX_BYTES + 1)), None);
    }
}
