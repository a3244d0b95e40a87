//! Long texts as JSON strings: what needs no escape is copied in blocks.
//!
//! serde looks at every byte by itself, and a prompt is mostly text. Not a
//! library of vector instructions, because what is written here comes from
//! strangers, and those that there are take `unsafe`.

/// As many bytes as are looked at together.
const BLOCK: usize = 32;

/// Writes a text as serde does (RFC 8259, 7).
pub(super) fn write(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let (blocks, rest) = text.as_bytes().as_chunks::<BLOCK>();
    for block in blocks {
        match escapes(block) {
            0 => out.extend_from_slice(block),
            escapes => write_block(out, block, escapes),
        }
    }
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    write_block(out, rest, escapes(&last));
    out.push(b'"');
}

/// Writes what needs no escape: Base64 and our own words.
pub(super) fn write_plain(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// One bit for each byte that needs an escape. There is no way out of the loop,
/// so that the compiler makes a few vector instructions of it.
fn escapes(block: &[u8; BLOCK]) -> u32 {
    let found = block.map(|byte| u8::from(byte < 0x20 || byte == b'"' || byte == b'\\'));
    let (eights, _) = found.as_chunks::<8>();
    // The product has the eight lowest bits of eight bytes side by side in its highest byte.
    let bits = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080).to_le_bytes()[7];
    u32::from_le_bytes([bits(&eights[0]), bits(&eights[1]), bits(&eights[2]), bits(&eights[3])])
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
