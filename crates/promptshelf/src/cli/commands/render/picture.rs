//! Pictures in terminals that can show them: kitty's protocol, which Ghostty
//! speaks too, and iTerm2's, which WezTerm speaks too. Others get a line.

use std::env;

use promptshelf_core::Media;

/// The most bytes of a picture that is sent to a terminal.
const MOST_BYTES: usize = 8 << 20;

/// The most Base64 characters that kitty takes at a time.
const CHUNK: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Kitty,
    Iterm,
}

/// What draws a picture on this terminal, if anything does.
pub(super) fn drawn(picture: &Media) -> Option<String> {
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    drawn_by(protocol(set)?, picture)
}

fn protocol(set: impl Fn(&str) -> Option<String>) -> Option<Protocol> {
    // A multiplexer passes neither protocol on.
    if set("TMUX").is_some() || set("STY").is_some() {
        return None;
    }
    let (term, program) = (set("TERM").unwrap_or_default(), set("TERM_PROGRAM").unwrap_or_default());
    if set("KITTY_WINDOW_ID").is_some() || term == "xterm-kitty" || term == "xterm-ghostty" || program == "ghostty" {
        return Some(Protocol::Kitty);
    }
    ["iTerm.app", "WezTerm"].contains(&program.as_str()).then_some(Protocol::Iterm)
}

fn drawn_by(protocol: Protocol, picture: &Media) -> Option<String> {
    if picture.data.len() > MOST_BYTES {
        return None;
    }
    let data = picture.data.base64();
    match protocol {
        Protocol::Iterm => {
            let size = picture.data.len();
            Some(format!("\u{1b}]1337;File=inline=1;size={size};preserveAspectRatio=1:{data}\u{7}\n"))
        }
        // Of packed formats, kitty unpacks PNG only.
        Protocol::Kitty if picture.mime_type.as_str() == "image/png" => {
            let chunks: Vec<&str> =
                data.as_bytes().chunks(CHUNK).filter_map(|chunk| std::str::from_utf8(chunk).ok()).collect();
            let mut drawn = String::with_capacity(data.len() + chunks.len() * 16);
            for (index, chunk) in chunks.iter().enumerate() {
                let keys = if index == 0 { "a=T,f=100," } else { "" };
                let more = u8::from(index + 1 < chunks.len());
                drawn.push_str(&format!("\u{1b}_G{keys}m={more};{chunk}\u{1b}\\"));
            }
            drawn.push('\n');
            Some(drawn)
        }
        Protocol::Kitty => None,
    }
}

#[cfg(test)]
mod tests {
    use promptshelf_core::{Annotations, Blob, MimeType};

    use super::*;

    fn picture(bytes: usize) -> Media {
        Media {
            data: Blob::new(vec![7; bytes]),
            mime_type: MimeType::parse("image/png").expect("it is one"),
            annotations: Annotations::default(),
        }
    }

    #[test]
    fn a_terminal_is_known_by_what_it_sets() {
        let of = |pairs: &'static [(&str, &str)]| {
            protocol(|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(of(&[("TERM", "xterm-kitty")]), Some(Protocol::Kitty));
        assert_eq!(of(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")]), Some(Protocol::Iterm));
        assert_eq!(of(&[("TERM", "xterm-kitty"), ("TMUX", "1")]), None);
        assert_eq!(of(&[("TERM", "xterm-256color")]), None);
    }

    #[test]
    fn a_large_picture_goes_in_pieces_and_a_huge_one_not_at_all() {
        let drawn = drawn_by(Protocol::Kitty, &picture(5_000)).expect("it can be drawn");
        assert!(drawn.starts_with("\u{1b}_Ga=T,f=100,m=1;") && drawn.contains("\u{1b}_Gm=0;"), "{drawn}");
        assert!(drawn_by(Protocol::Iterm, &picture(10)).is_some_and(|drawn| drawn.contains("size=10;")));
        assert_eq!(drawn_by(Protocol::Iterm, &picture(MOST_BYTES + 1)), None);
    }
}
