//! Long texts as JSON strings: what needs no escape is copied in blocks.
//!
//! serde looks at every byte by itself, and a prompt is mostly text.

use crate::blocks::{BLOCK, which};

/// As long as a byte becomes at most: `\u001f`.
const LONGEST: usize = 6;

/// Writes a text as serde does (RFC 8259, 7).
pub(super) fn write(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let (blocks, rest) = text.as_bytes().as_chunks::<BLOCK>();
    for block in blocks {
        match escapes(block) {
            0 => out.extend_from_slice(block),
            escapes => write_block(out, block, BLOCK, escapes),
        }
    }
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    write_block(out, &last, rest.len(), escapes(&last));
    out.push(b'"');
}

/// Writes what needs no escape: Base64 and our own words.
pub(super) fn write_plain(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// One bit for each byte that needs an escape.
fn escapes(block: &[u8; BLOCK]) -> u32 {
    which(block, |byte| byte < 0x20 || byte == b'"' || byte == b'\\')
}

/// Writes a block's first bytes, of which these need an escape.
fn write_block(out: &mut Vec<u8>, block: &[u8; BLOCK], length: usize, mut escapes: u32) {
    let mut from = [0; 2 * BLOCK];
    from[..BLOCK].copy_from_slice(block);
    let mut made = [0; LONGEST * BLOCK + BLOCK];
    let (mut read, mut written) = (0, 0);
    loop {
        let next = length.min(escapes.trailing_zeros() as usize);
        // A whole block each time, because as many bytes as there happen to be would be a call.
        made[written..written + BLOCK].copy_from_slice(&from[read..read + BLOCK]);
        written += next - read;
        if next == length {
            return out.extend_from_slice(&made[..written]);
        }
        let (escape, bytes) = escape(block[next]);
        made[written..written + LONGEST].copy_from_slice(&escape);
        written += bytes;
        read = next + 1;
        escapes &= escapes - 1;
    }
}

/// How a byte is written, and in how many bytes.
fn escape(byte: u8) -> ([u8; LONGEST], usize) {
    let short = match byte {
        b'\n' => b'n',
        b'"' => b'"',
        b'\\' => b'\\',
        b'\t' => b't',
        b'\r' => b'r',
        0x08 => b'b',
        0x0c => b'f',
        control => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            let digit = |half: u8| DIGITS[usize::from(half)];
            return ([b'\\', b'u', b'0', b'0', digit(control >> 4), digit(control & 0xf)], LONGEST);
        }
    };
    ([b'\\', short, 0, 0, 0, 0], 2)
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
