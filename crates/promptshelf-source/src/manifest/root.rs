//! Roots: folders outside or inside the library that resources and completion may read.

use std::{ops::Range, path::PathBuf};

#[derive(Clone, Debug)]
pub(crate) struct DeclaredRoot {
    pub(crate) path: PathBuf,
    pub(crate) span: Range<usize>,
}
