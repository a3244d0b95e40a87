//! The contents that a caller may read while a prompt is rendered for it.

use std::sync::Arc;

use parking_lot::Mutex;
use promptshelf_core::{Catalog, ContentName, ReadPermission, RenderContext};

use crate::{caller::Caller, rejection::Rejection, view::View};

#[derive(Debug)]
pub(crate) struct CallerPermission {
    view: View,
    /// The rejection of a file that the caller may see but lacks a scope for: it ends the rendering.
    lacking: Mutex<Option<Rejection>>,
}

impl CallerPermission {
    pub(crate) fn new(view: &View) -> Arc<CallerPermission> {
        Arc::new(CallerPermission { view: view.clone(), lacking: Mutex::new(None) })
    }

    pub(crate) fn caller(&self) -> Caller {
        self.view.caller().clone()
    }

    pub(crate) fn context(&self) -> RenderContext<'_> {
        let catalog: &Catalog = self.view.catalog();
        let context = catalog.render_context();
        if self.view.hides_contents() { context.with_permission(self) } else { context }
    }

    /// Returns the rejection that ended a failed rendering, if a scope was missing.
    pub(crate) fn lacking(&self) -> Option<Rejection> {
        self.lacking.lock().take()
    }
}

impl ReadPermission for CallerPermission {
    fn may_read(&self, name: ContentName<'_>) -> bool {
        match (self.view.permit_content(name), name) {
            (Ok(()), _) => true,
            (Err(lacking @ Rejection::InsufficientScope { .. }), ContentName::Path(_)) => {
                *self.lacking.lock() = Some(lacking);
                false
            }
            (Err(_), _) => false,
        }
    }
}
