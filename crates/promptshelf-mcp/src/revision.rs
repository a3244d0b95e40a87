//! The five protocol revisions and their differences.
//!
//! Every difference that concerns prompts is a method here, so that no other file compares revisions.

use std::fmt;

/// A protocol revision, oldest first.
///
/// ```
/// use promptshelf_mcp::{Era, Revision};
///
/// let revision = Revision::parse("2025-06-18").expect("a known revision");
/// assert_eq!(revision.era(), Era::Legacy);
/// assert_eq!(revision.as_str(), "2025-06-18");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05
    V2024_11_05,
    /// 2025-03-26
    V2025_03_26,
    /// 2025-06-18
    V2025_06_18,
    /// 2025-11-25
    V2025_11_25,
    /// 2026-07-28
    V2026_07_28,
}

/// The start of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// With an `initialize` handshake.
    Legacy,
    /// Without a handshake: each request carries its protocol version and capabilities.
    Modern,
}

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Revision; 5] = [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ];

    /// The newest revision with a handshake.
    pub const NEWEST_LEGACY: Revision = Revision::V2025_11_25;

    /// The revision of an HTTP request that names none (2025-06-18 and later, *Transports / Protocol Version
    /// Header*).
    pub const UNNAMED: Revision = Revision::V2025_03_26;

    /// Returns the revision in the protocol's spelling.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
            Revision::V2026_07_28 => "2026-07-28",
        }
    }

    /// Parses the protocol's spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Revision> {
        Revision::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// Returns the era of the revision.
    #[must_use]
    pub fn era(self) -> Era {
        if self < Revision::V2026_07_28 { Era::Legacy } else { Era::Modern }
    }

    /// Returns whether the revision has no handshake.
    #[must_use]
    pub fn is_modern(self) -> bool {
        self.era() == Era::Modern
    }

    /// `title`, `_meta` on prompts and blocks, and `lastModified`.
    pub(crate) fn has_titles(self) -> bool {
        self >= Revision::V2025_06_18
    }

    /// `icons`, and the server's description and website.
    pub(crate) fn has_icons(self) -> bool {
        self >= Revision::V2025_11_25
    }

    pub(crate) fn has_audio(self) -> bool {
        self >= Revision::V2025_03_26
    }

    pub(crate) fn has_tool_annotations(self) -> bool {
        self >= Revision::V2025_03_26
    }

    pub(crate) fn has_structured_results(self) -> bool {
        self >= Revision::V2025_06_18
    }

    pub(crate) fn has_links(self) -> bool {
        self >= Revision::V2025_06_18
    }

    pub(crate) fn has_completion_context(self) -> bool {
        self >= Revision::V2025_06_18
    }

    pub(crate) fn has_elicitation_requests(self) -> bool {
        (Revision::V2025_06_18..Revision::V2026_07_28).contains(&self)
    }

    pub(crate) fn has_elicitation_modes(self) -> bool {
        self >= Revision::V2025_11_25
    }

    /// JSON-RPC batches; only 2025-03-26 requires receivers to accept them.
    pub(crate) fn has_batches(self) -> bool {
        self == Revision::V2025_03_26
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
