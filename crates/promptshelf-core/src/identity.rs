//! Names of people and programs, as they are compared.

use unicase::UniCase;
use unicode_normalization::UnicodeNormalization;

use crate::invisible::is_invisible;

/// Returns a name as identities are compared: two names with one result are meant for one person.
///
/// Differences in case, in Unicode's compatible and composed forms and in invisible characters do not count
/// (`toNFKC_Casefold`).
///
/// ```
/// use promptshelf_core::identity;
///
/// assert_eq!(identity("José"), identity("JOSE\u{301}"));
/// assert_eq!(identity("ada"), identity("ａｄａ"));
/// assert_ne!(identity("ada"), identity("аda"), "a Cyrillic letter");
/// ```
#[must_use]
pub fn identity(name: &str) -> String {
    let visible: String = name.chars().filter(|c| !is_invisible(*c)).collect();
    let visible = visible.trim();
    if visible.is_ascii() {
        return visible.to_ascii_lowercase();
    }
    let fold = |text: &str| UniCase::unicode(text).to_folded_case();
    let once: String = fold(&visible.nfd().collect::<String>()).nfkc().collect();
    fold(&once).nfkc().collect()
}
