//! Limits and list options of a library.

use std::time::Duration;

use crate::invisible::InvisiblePolicy;

/// Limits and list options of a library.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Prompts or resources per page. Common clients read one page only, so the default of 1,000 is large enough for
    /// the whole list of most libraries.
    pub page_size: usize,
    /// The time for which clients may reuse a list (`ttlMs` of revision 2026-07-28).
    pub ttl: Duration,
    /// The largest number of bytes of one argument value.
    pub value_bytes: usize,
    /// The treatment of invisible characters in values of arguments without a policy of their own.
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
    /// Steps of the template engine. Each step allows operations to walk or create 64 bytes of intermediate values,
    /// summed over the whole rendering; the first 16 MiB are always allowed.
    pub fuel: u64,
    /// Bytes of rendered text.
    pub output_bytes: usize,
    /// Bytes of rendered attachments, before encoding.
    pub attachment_bytes: usize,
    /// Rendered messages.
    pub messages: usize,
    /// The maximum depth of partials that include each other; at most 40.
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
