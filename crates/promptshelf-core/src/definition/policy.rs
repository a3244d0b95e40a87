//! Limits and list options of a library.

use std::time::Duration;

use crate::invisible::InvisiblePolicy;

/// Bounds and quirks of a library.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Prompts or resources a page. Common clients read one page only, so the
    /// default of 1,000 is meant to hold the whole list.
    pub page_size: usize,
    /// For how long clients may reuse a list (`ttlMs` of revision 2026-07-28).
    pub ttl: Duration,
    /// The most bytes that one argument value can have.
    pub value_bytes: usize,
    /// What becomes of invisible characters in values, where an argument does
    /// not say so itself.
    pub invisible: InvisiblePolicy,
    /// The limits of one rendering.
    pub budget: Budget,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            page_size: 1_000,
            ttl: Duration::from_secs(60),
            value_bytes: 1 << 20,
            invisible: InvisiblePolicy::default(),
            budget: Budget::default(),
        }
    }
}

/// The limits of one rendering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Steps of the template engine. Each may make 64 bytes of text on the way,
    /// taken over the whole rendering; 16 MiB in all are always free.
    pub fuel: u64,
    /// Bytes of text that come out.
    pub output_bytes: usize,
    /// Bytes of attachments that come out, before encoding.
    pub attachment_bytes: usize,
    /// Messages that come out.
    pub messages: usize,
    /// How deep partials may include each other; never more than 40.
    pub include_depth: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            fuel: 1_000_000,
            output_bytes: 8 << 20,
            attachment_bytes: 32 << 20,
            messages: 1_000,
            include_depth: 16,
        }
    }
}
