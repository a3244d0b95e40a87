//! The check of trees before a publish.

use std::{path::Path, sync::Arc};

use promptshelf_server::channels::LibraryChecker;
use promptshelf_store::Checker;

use crate::library::granted_roots;

/// Returns the check of trees, with the folders that the operator's settings grant.
pub(super) fn checker() -> Arc<dyn Checker> {
    checker_with(None)
}

/// Returns the check of trees, with the folders that this file of settings grants.
pub(super) fn checker_with(config: Option<&Path>) -> Arc<dyn Checker> {
    Arc::new(LibraryChecker::new().grant_roots(granted_roots(config)))
}
