//! Bytes of JSON strings looked at in blocks: what most texts have none of is
//! found without looking at each by itself.
//!
//! Not a library of vector instructions, because what is looked at comes from
//! strangers, and those that there are take `unsafe`.

/// As many bytes as are looked at together.
pub(crate) const BLOCK: usize = 32;

/// One bit for each byte that cannot stand in a JSON string as it is (RFC 8259, 7), the first
/// byte's the lowest. There is no way out of the loop, so that the compiler makes a few vector
/// instructions of it.
#[inline]
pub(crate) fn special(block: &[u8; BLOCK]) -> u32 {
    let found = block.map(|byte| u8::from(byte < 0x20 || byte == b'"' || byte == b'\\'));
    let (eights, _) = found.as_chunks::<8>();
    gathered([0, 1, 2, 3].map(|at| u64::from_le_bytes(eights[at])))
}

/// One bit for each quote, the first byte's the lowest. Eight bytes are one number here, because
/// of a single comparison the compiler makes a choice for each byte.
#[inline]
pub(crate) fn quotes(block: &[u8; BLOCK]) -> u32 {
    const LOW: u64 = u64::from_ne_bytes([0x7f; 8]);
    let (eights, _) = block.as_chunks::<8>();
    gathered([0, 1, 2, 3].map(|at| {
        // Zero where a quote is, and then the highest bit of what is zero: no sum is greater than
        // a byte, so that no byte hears of its neighbour (Warren, Hacker's Delight, 6-1).
        let eight = u64::from_le_bytes(eights[at]) ^ u64::from_ne_bytes([b'"'; 8]);
        !(((eight & LOW) + LOW) | eight | LOW) >> 7
    }))
}

/// The lowest bits of all bytes.
fn gathered(eights: [u64; 4]) -> u32 {
    // The product has the lowest bits of eight bytes side by side in its highest byte.
    u32::from_le_bytes(eights.map(|eight| eight.wrapping_mul(0x0102_0408_1020_4080).to_le_bytes()[7]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_are_those_of_the_bytes(block: [u8; BLOCK], with in prop::collection::vec((0..BLOCK, 0..5_usize), 0..8)) {
            let mut block = block;
            for (at, which) in with {
                block[at] = [b'"', b'\\', 0x1f, 0x20, b'#'][which];
            }
            let expected = |is: fn(u8) -> bool| {
                block.iter().enumerate().fold(0, |bits, (at, byte)| bits | u32::from(is(*byte)) << at)
            };
            prop_assert_eq!(quotes(&block), expected(|byte| byte == b'"'));
            prop_assert_eq!(special(&block), expected(|byte| byte < 0x20 || byte == b'"' || byte == b'\\'));
        }
    }
}
