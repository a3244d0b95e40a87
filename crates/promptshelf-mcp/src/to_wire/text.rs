//! Long texts as JSON strings. Bytes that need no escape are copied in blocks.
//!
//! A second way in addition to serde, which looks at each byte alone: without it a `prompts/get` of one kilobyte takes 21 per
//! cent more instructions, and one of 100 kB twice as many (`cargo xtask guard`). Libraries that do this read beyond
//! the end of the text with `unsafe` vector instructions; the text comes from callers.

/// Number of bytes that are examined together.
const BLOCK: usize = 32;

/// Writes a text as serde does (RFC 8259, 7).
pub(super) fn write(out: &mut Vec<u8>, text: &str) {
    let text = text.as_bytes();
    out.reserve(text.len() + BLOCK);
    out.push(b'"');
    let (mut at, mut copied) = (0, 0);
    while let Some(block) = text[at..].first_chunk::<BLOCK>() {
        let escapes = escapes(block);
        if escapes != 0 {
            out.extend_from_slice(&text[copied..at]);
            write_block(out, text, at, BLOCK, escapes);
            copied = at + BLOCK;
        }
        at += BLOCK;
    }
    out.extend_from_slice(&text[copied..at]);
    let rest = &text[at..];
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    write_block(out, &last, 0, rest.len(), escapes(&last));
    out.push(b'"');
}

/// Writes a text that needs no escape, such as Base64.
pub(super) fn write_plain(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Returns one bit for each byte that a JSON string cannot contain as it is (RFC 8259, 7); the lowest bit is that of
/// the first byte. Without a branch in the loop, the compiler makes vector instructions of it.
#[inline]
fn escapes(block: &[u8; BLOCK]) -> u32 {
    let found = block.map(|byte| u8::from(byte < 0x20 || byte == b'"' || byte == b'\\'));
    let (eights, _) = found.as_chunks::<8>();
    // The product has the lowest bits of eight bytes side by side in its highest byte.
    let gathered = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080).to_le_bytes()[7];
    u32::from_le_bytes([gathered(&eights[0]), gathered(&eights[1]), gathered(&eights[2]), gathered(&eights[3])])
}

/// Writes a block whose bytes at the bits of `escapes` need an escape.
fn write_block(out: &mut Vec<u8>, text: &[u8], begin: usize, length: usize, mut escapes: u32) {
    let mut at = begin;
    while escapes != 0 {
        let next = begin + escapes.trailing_zeros() as usize;
        write_piece(out, text, at, next);
        escape(out, text[next]);
        at = next + 1;
        escapes &= escapes - 1;
    }
    write_piece(out, text, at, begin + length);
}

/// Writes a piece that is no longer than a block. Copying a whole block and cutting it is faster than a
/// call of `memcpy` for a few bytes.
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

fn escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\t' => b't',
        b'\r' => b'r',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            let digit = |half: u8| DIGITS[usize::from(half)];
            return out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 0xf)]);
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
        fn output_matches_serde(text in "[\\x00-\\x7fäß€🦀\u{2028}]{0,200}", plain in "[a-z ]{0,100}") {
            for text in [text.clone(), format!("{plain}{text}"), format!("{text}{plain}"), plain] {
                let mut out = b"before".to_vec();
                write(&mut out, &text);
                prop_assert_eq!(&out[6..], serde_json::to_vec(&text).expect("text can be serialized"));
            }
        }
    }
}
