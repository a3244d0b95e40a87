//! Roots: folders outside or inside the library that resources and completion may read.

use std::{ops::Range, path::PathBuf};

/// A folder under `[roots]`.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredRoot {
    /// Relative to the library, or absolute.
    pub(crate) path: PathBuf,
    pub(crate) span: Range<usize>,
}
