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
pub(crate) fn special(block: &[u8; BLOCK]) -> u32 {
    let found = block.map(|byte| u8::from(byte < 0x20 || byte == b'"' || byte == b'\\'));
    let (eights, _) = found.as_chunks::<8>();
    // The product has the eight lowest bits of eight bytes side by side in its highest byte.
    let bits = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080).to_le_bytes()[7];
    u32::from_le_bytes([bits(&eights[0]), bits(&eights[1]), bits(&eights[2]), bits(&eights[3])])
}
