//! The result of a check.

use crate::{catalog::Catalog, diagnostic::Diagnostic};

/// The most other places that are named with one mistake.
const MOST_RELATED: usize = 5;

/// What checking gives.
#[derive(Debug)]
pub struct Checked {
    /// Everything that can be served.
    pub catalog: Catalog,
    /// Everything that is wrong, by file and place.
    pub diagnostics: Vec<Diagnostic>,
}

/// Puts diagnostics in order, each once.
pub(super) fn arrange(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    // What is wrong with a partial is found once for each prompt that includes it.
    diagnostics.dedup_by(|again, first| {
        let is_same = again.sort_key() == first.sort_key() && again.severity == first.severity;
        if is_same {
            let new = again.related.drain(..).filter(|it| !first.related.contains(it)).collect::<Vec<_>>();
            first.related.extend(new.into_iter().take(MOST_RELATED.saturating_sub(first.related.len())));
        }
        is_same
    });
}
