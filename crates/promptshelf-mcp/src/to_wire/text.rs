//! Long texts as JSON strings: what needs no escape is copied in blocks.
//!
//! serde looks at every byte by itself, and a prompt is mostly text.

use crate::blocks::{BLOCK, special};

/// Writes a text as serde does (RFC 8259, 7).
pub(super) fn write(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let (blocks, rest) = text.as_bytes().as_chunks::<BLOCK>();
    for block in blocks {
        match special(block) {
            0 => out.extend_from_slice(block),
            escapes => write_block(out, block, escapes),
        }
    }
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    write_block(out, rest, special(&last));
    out.push(b'"');
}

/// Writes what needs no escape: Base64 and our own words.
pub(super) fn write_plain(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Writes a block in which the bytes of these bits need an escape.
fn write_block(out: &mut Vec<u8>, block: &[u8], mut escapes: u32) {
    let mut from = 0;
    while escapes != 0 {
        let at = escapes.trailing_zeros() as usize;
        out.extend_from_slice(&block[from..at]);
        escape(out, block[at]);
        from = at + 1;
        escapes &= escapes - 1;
    }
    out.extend_from_slice(&block[from..]);
}

fn escape(out: &mut Vec<u8>, byte: u8) {
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
            return out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(control >> 4), digit(control & 0xf)]);
        }
    };
    out.extend_from_slice(&[b'\\', short]);
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
