//! The result of a check.

use crate::{
    catalog::Catalog,
    diagnostic::{Diagnostic, MOST_RELATED},
};

/// The result of a check.
#[derive(Debug)]
pub struct Checked {
    /// The prompts and resources that can be served.
    pub catalog: Catalog,
    /// All diagnostics, by file and position.
    pub diagnostics: Vec<Diagnostic>,
}

pub(super) fn arrange(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    // A mistake in a partial is found once for each prompt that includes it.
    diagnostics.dedup_by(|again, first| {
        let is_same = again.sort_key() == first.sort_key() && again.severity == first.severity;
        if is_same {
            let new = again.related.drain(..).filter(|it| !first.related.contains(it)).collect::<Vec<_>>();
            first.related.extend(new.into_iter().take(MOST_RELATED.saturating_sub(first.related.len())));
        }
        is_same
    });
}
