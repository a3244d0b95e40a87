//! Cursors of list pages: opaque and versioned, with the meaning "after this name".
//!
//! A cursor contains the name of a page's last item instead of a position, so that a library that changes between two
//! pages neither repeats nor skips unchanged items (protocol requirement F2, trap T29). It grants no access: each
//! page is filtered for its own caller. The checksum detects damage; it does not keep secrets.

use base64::Engine as _;

/// The list that a cursor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    ResourceTemplates,
}

/// A list of items that are not items of a catalog, but are derived from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DerivedList {
    /// `tools/list`, by name.
    Tools,
    /// `skills/list`, by name.
    Skills,
    /// `resources/directory/read`, by URI.
    Directory,
    /// The lists of the HTTP API, by path and key.
    Api,
}

const VERSION: u8 = 1;
const ENGINE: base64::engine::GeneralPurpose = base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The longest cursor that is decoded: that of the longest URI, which has 64 KiB.
const MAX_CURSOR_BYTES: usize = 1 << 17;

/// The kind of a list, which each cursor holds.
pub trait CursorKind: Copy {
    /// Returns a byte that no other kind has.
    fn tag(self) -> u8;
}

impl CursorKind for ListKind {
    fn tag(self) -> u8 {
        match self {
            ListKind::Prompts => b'p',
            ListKind::Resources => b'r',
            ListKind::ResourceTemplates => b't',
        }
    }
}

impl CursorKind for DerivedList {
    fn tag(self) -> u8 {
        match self {
            DerivedList::Tools => b'o',
            DerivedList::Skills => b's',
            DerivedList::Directory => b'd',
            DerivedList::Api => b'a',
        }
    }
}

/// Returns the cursor of the page after the item with this key.
#[must_use]
pub fn encode(list: impl CursorKind, last: &str) -> String {
    let mut bytes = Vec::with_capacity(last.len() + 6);
    bytes.extend([VERSION, list.tag()]);
    bytes.extend(checksum(list, last).to_be_bytes());
    bytes.extend(last.as_bytes());
    ENGINE.encode(bytes)
}

/// Returns the key in a cursor; `None` unless it was created by [`encode`] for this list.
///
/// ```
/// use promptshelf_core::cursor::{ListKind, decode, encode};
///
/// let cursor = encode(ListKind::Prompts, "code_review");
/// assert_eq!(decode(ListKind::Prompts, &cursor).as_deref(), Some("code_review"));
/// assert_eq!(decode(ListKind::Resources, &cursor), None);
/// ```
#[must_use]
pub fn decode(list: impl CursorKind, cursor: &str) -> Option<String> {
    if cursor.len() > MAX_CURSOR_BYTES {
        return None;
    }
    let bytes = ENGINE.decode(cursor).ok()?;
    let [VERSION, tag, a, b, c, d, last @ ..] = bytes.as_slice() else {
        return None;
    };
    let last = std::str::from_utf8(last).ok()?;
    let sound = *tag == list.tag() && u32::from_be_bytes([*a, *b, *c, *d]) == checksum(list, last);
    sound.then(|| last.to_owned())
}

/// FNV-1a in 32 bits: short, and the same on every machine and in every release.
fn checksum(list: impl CursorKind, last: &str) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    [VERSION, list.tag()].iter().chain(last.as_bytes()).fold(0x811c_9dc5, step)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn cursor_round_trips_its_key(key in ".{0,200}") {
            prop_assert_eq!(decode(ListKind::Prompts, &encode(ListKind::Prompts, &key)), Some(key));
        }

        // req: F8
        #[test]
        fn truncated_cursor_is_rejected(key in "[a-z_-]{1,40}", cut in 1_usize..8) {
            let cursor = encode(ListKind::Prompts, &key);
            prop_assert_eq!(decode(ListKind::Prompts, &cursor[..cursor.len().saturating_sub(cut)]), None);
        }

        #[test]
        fn cursor_after_the_longest_uri_is_accepted(bytes in 1_usize..=1 << 16) {
            let uri = format!("library:///{}", "%E4".repeat(bytes / 3));
            prop_assert_eq!(decode(ListKind::Resources, &encode(ListKind::Resources, &uri)), Some(uri));
        }

        #[test]
        fn parser_never_panics(text in ".{0,300}") {
            let _ = decode(ListKind::Prompts, &text);
        }
    }
}
