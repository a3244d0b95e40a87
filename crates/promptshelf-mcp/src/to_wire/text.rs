//! Long texts as JSON strings: what needs no escape is copied in blocks.
//!
//! serde looks at every byte by itself, and a prompt is mostly text.

use crate::blocks::{BLOCK, special};

/// Writes a text as serde does (RFC 8259, 7).
pub(super) fn write(out: &mut Vec<u8>, text: &str) {
    let text = text.as_bytes();
    out.reserve(text.len() + BLOCK);
    out.push(b'"');
    let (mut at, mut plain) = (0, 0);
    while let Some(block) = text[at..].first_chunk::<BLOCK>() {
        let special = special(block);
        if special != 0 {
            if plain < at {
                out.extend_from_slice(&text[plain..at]);
            }
            write_block(out, text, at, BLOCK, special);
            plain = at + BLOCK;
        }
        at += BLOCK;
    }
    out.extend_from_slice(&text[plain..at]);
    let rest = &text[at..];
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    write_block(out, &last, 0, rest.len(), special(&last));
    out.push(b'"');
}

/// Writes the bytes of a block, of which those of these bits need an escape.
fn write_block(out: &mut Vec<u8>, text: &[u8], begin: usize, length: usize, mut special: u32) {
    let mut at = begin;
    while special != 0 {
        let next = begin + special.trailing_zeros() as usize;
        write_piece(out, text, at, next);
        escape(out, text[next]);
        at = next + 1;
        special &= special - 1;
    }
    write_piece(out, text, at, begin + length);
}

/// Writes a piece that is no longer than a block, as a whole block of which the rest is dropped:
/// so many bytes are copied without a call.
fn write_piece(out: &mut Vec<u8>, text: &[u8], begin: usize, end: usize) {
    match text[begin..].first_chunk::<BLOCK>() {
        Some(block) => {
            let length = out.len() + (end - begin);
            out.extend_from_slice(block);
            out.truncate(length);
        }
        None => out.extend_from_slice(&text[begin..end]),
    }
}

/// Writes what needs no escape: Base64 and our own words.
pub(super) fn write_plain(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    /// What is written behind the backslash of bytes that have a short escape.
    const SHORT: [u8; 256] = {
        let mut short = [0; 256];
        let pairs = [(b'\n', b'n'), (b'"', b'"'), (b'\\', b'\\'), (b'\t', b't'), (b'\r', b'r'), (8, b'b'), (12, b'f')];
        let mut at = 0;
        while at < pairs.len() {
            short[pairs[at].0 as usize] = pairs[at].1;
            at += 1;
        }
        short
    };
    match SHORT[usize::from(byte)] {
        0 => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            let digit = |half: u8| DIGITS[usize::from(half)];
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 0xf)]);
        }
        short => out.extend_from_slice(&[b'\\', short]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_is_written_as_serde_writes_it(text in "[\\x00-\\x7fäß€🦀\u{2028}]{0,200}", plain in "[a-z ]{0,100}") {
            for text in [text.clone(), format!("{plain}{text}"), format!("{text}{plain}"), plain] {
                let mut out = b"before".to_vec();
                write(&mut out, &text);
                prop_assert_eq!(&out[6..], serde_json::to_vec(&text).expect("it is text"));
            }
        }
    }
}
