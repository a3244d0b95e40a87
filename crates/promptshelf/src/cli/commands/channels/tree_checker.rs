//! The check of trees before a publish.

use std::{path::Path, sync::Arc};

use promptshelf_server::channels::LibraryChecker;
use promptshelf_store::Checker;

use crate::library::granted_roots;

pub(super) fn checker() -> Arc<dyn Checker> {
    checker_with(None)
}

pub(super) fn checker_with(config: Option<&Path>) -> Arc<dyn Checker> {
    Arc::new(LibraryChecker::new().grant_roots(granted_roots(config)))
}
