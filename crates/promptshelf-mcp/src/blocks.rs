//! Bytes of JSON strings looked at in blocks: what most texts have none of is
//! found without looking at each by itself.
//!
//! Not a library of vector instructions, because what is looked at comes from
//! strangers, and those that there are take `unsafe`. Eight bytes are one number
//! instead (Warren, *Hacker's Delight*, 6-1).

/// As many bytes as are looked at together.
pub(crate) const BLOCK: usize = 32;

/// One bit for each quote, the first byte's the lowest.
pub(crate) fn quotes(block: &[u8; BLOCK]) -> u32 {
    bits(block, |eight| zeros(eight ^ all(b'"')))
}

/// One bit for each byte that cannot stand in a JSON string as it is (RFC 8259, 7), the first
/// byte's the lowest.
pub(crate) fn special(block: &[u8; BLOCK]) -> u32 {
    // Of a byte below 0x20 the three highest bits are zero.
    bits(block, |eight| zeros(eight ^ all(b'"')) | zeros(eight ^ all(b'\\')) | zeros(eight & all(0xe0)))
}

/// Eight times the same byte.
const fn all(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The highest bit of each byte that is zero.
fn zeros(eight: u64) -> u64 {
    // No sum is greater than a byte, so that no byte hears of its neighbour.
    !(((eight & all(0x7f)) + all(0x7f)) | eight | all(0x7f))
}

/// The bits of a block, where `found` gives the highest bit of each byte that is meant.
#[inline(always)]
fn bits(block: &[u8; BLOCK], found: impl Fn(u64) -> u64) -> u32 {
    let (eights, _) = block.as_chunks::<8>();
    let found = [0, 1, 2, 3].map(|at| found(u64::from_le_bytes(eights[at])));
    if found == [0; 4] {
        return 0;
    }
    // The product has the lowest bits of eight bytes side by side in its highest byte.
    u32::from_le_bytes(found.map(|eight| (eight >> 7).wrapping_mul(0x0102_0408_1020_4080).to_le_bytes()[7]))
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
