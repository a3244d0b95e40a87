//! Images in terminals that show them.
//!
//! What is written is an escape sequence of ours around base64 that we have
//! encoded ourselves, so that no image can hold anything else.

use std::{env, io, io::Write};

use promptshelf_core::Blob;

/// The largest image that is shown by itself, in bytes.
const LARGEST: usize = 4 << 20;
/// How much of an image kitty's protocol takes at once.
const CHUNK: usize = 4096;

/// How a terminal wants its images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// kitty and Ghostty: PNG only.
    Kitty,
    /// iTerm2 and WezTerm.
    Iterm,
}

impl Protocol {
    /// What this terminal says of itself. Inside of a multiplexer nothing is
    /// shown: it would pass a part of it on, or none.
    pub(super) fn of_terminal() -> Option<Protocol> {
        let is = |name: &str, value: &str| env::var(name).is_ok_and(|set| set == value);
        let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        if set("TMUX") || set("STY") {
            return None;
        }
        if is("TERM", "xterm-kitty") || is("TERM", "xterm-ghostty") || is("TERM_PROGRAM", "ghostty") {
            return Some(Protocol::Kitty);
        }
        (is("TERM_PROGRAM", "iTerm.app") || is("TERM_PROGRAM", "WezTerm")).then_some(Protocol::Iterm)
    }

    /// Shows an image, if it is one that can be shown; says whether it was.
    pub(super) fn show(self, out: &mut impl Write, image: &Blob) -> io::Result<bool> {
        let bytes = image.bytes();
        let png = bytes.starts_with(b"\x89PNG\r\n\x1a\n");
        let known = png || bytes.starts_with(b"\xff\xd8\xff") || bytes.starts_with(b"GIF8");
        if bytes.len() > LARGEST || !known || (self == Protocol::Kitty && !png) {
            return Ok(false);
        }
        let base64 = image.base64();
        match self {
            Protocol::Iterm => {
                write!(out, "\x1b]1337;File=inline=1;size={};preserveAspectRatio=1:{base64}\x07", bytes.len())?;
            }
            Protocol::Kitty => {
                let mut chunks = base64.as_bytes().chunks(CHUNK).peekable();
                let mut first = "a=T,f=100,q=2,";
                while let Some(chunk) = chunks.next() {
                    write!(out, "\x1b_G{first}m={};", u8::from(chunks.peek().is_some()))?;
                    out.write_all(chunk)?;
                    out.write_all(b"\x1b\\")?;
                    first = "";
                }
            }
        }
        out.write_all(b"\n")?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_images_are_shown_and_only_as_base64() {
        let shown = |protocol: Protocol, bytes: &[u8]| {
            let mut out = Vec::new();
            let whether = protocol.show(&mut out, &Blob::new(bytes.to_vec())).expect("memory takes everything");
            (whether, out)
        };
        assert_eq!(shown(Protocol::Iterm, b"\x1b]0;evil\x07"), (false, Vec::new()));
        assert_eq!(shown(Protocol::Kitty, b"GIF89a"), (false, Vec::new()));
        let (whether, out) = shown(Protocol::Kitty, &[b"\x89PNG\r\n\x1a\n".as_slice(), &[0x1b; 5000]].concat());
        assert!(whether && out.iter().filter(|byte| **byte == 0x1b).count() == 4, "two chunks, begun and ended");
    }
}
