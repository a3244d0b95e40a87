//! Images in terminals that support them.
//!
//! The output is an escape sequence around base64 that is encoded here, so that an image cannot contain control
//! characters.

use std::{env, io, io::Write};

use base64::{Engine, engine::general_purpose::STANDARD};

/// The largest image that is shown, in bytes.
const MAX_BYTES: usize = 4 << 20;
/// The longest chunk of kitty's protocol, in bytes.
const CHUNK_BYTES: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// kitty and Ghostty: PNG only.
    Kitty,
    /// iTerm2 and WezTerm.
    Iterm,
}

impl Protocol {
    /// Detects the protocol of this terminal. None inside of a multiplexer, which would forward only a part.
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

    /// Prints an image if the protocol supports its format; returns whether it did.
    pub(super) fn show(self, out: &mut impl Write, bytes: &[u8]) -> io::Result<bool> {
        let png = bytes.starts_with(b"\x89PNG\r\n\x1a\n");
        let known = png || bytes.starts_with(b"\xff\xd8\xff") || bytes.starts_with(b"GIF8");
        if bytes.len() > MAX_BYTES || !known || (self == Protocol::Kitty && !png) {
            return Ok(false);
        }
        let base64 = STANDARD.encode(bytes);
        match self {
            Protocol::Iterm => {
                write!(out, "\x1b]1337;File=inline=1;size={};preserveAspectRatio=1:{base64}\x07", bytes.len())?;
            }
            Protocol::Kitty => {
                let mut chunks = base64.as_bytes().chunks(CHUNK_BYTES).peekable();
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
    fn only_images_are_shown_as_base64() {
        let shown = |protocol: Protocol, bytes: &[u8]| {
            let mut out = Vec::new();
            let is_shown = protocol.show(&mut out, bytes).expect("writing to memory succeeds");
            (is_shown, out)
        };
        assert_eq!(shown(Protocol::Iterm, b"\x1b]0;evil\x07"), (false, Vec::new()));
        assert_eq!(shown(Protocol::Kitty, b"GIF89a"), (false, Vec::new()));
        let (is_shown, out) = shown(Protocol::Kitty, &[b"\x89PNG\r\n\x1a\n".as_slice(), &[0x1b; 5000]].concat());
        assert!(is_shown && out.iter().filter(|byte| **byte == 0x1b).count() == 4, "two chunks, begun and ended");
    }
}
