//! The surroundings of a rendering.

use std::fmt;

use crate::{
    definition::Policy,
    interrupt::Interrupt,
    library_files::{LibraryFiles, References},
    resource::Resources,
    template::Remaining,
};

/// The limits, files and resources of the catalog that a prompt is rendered with; see
/// [`Catalog::render_context`](crate::Catalog::render_context).
#[derive(Clone, Copy, Debug)]
pub struct RenderContext<'c> {
    pub(crate) policy: &'c Policy,
    pub(crate) files: &'c LibraryFiles,
    pub(crate) references: &'c References,
    pub(crate) resources: &'c Resources,
    pub(crate) interrupt: Option<&'c Interrupt>,
    pub(crate) permission: Option<&'c dyn ReadPermission>,
}

/// Decides which contents a rendering may use. A content that may not be read is treated as one that does not exist.
pub trait ReadPermission: fmt::Debug + Sync {
    /// Returns whether the content may be read.
    fn may_read(&self, name: ContentName<'_>) -> bool;
}

/// The name of a content that a template uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentName<'a> {
    /// A path inside the library.
    Path(&'a str),
    /// A URI.
    Uri(&'a str),
}

impl<'c> RenderContext<'c> {
    /// Restricts the rendering to contents that may be read. Without a permission everything can be used.
    #[must_use]
    pub fn with_permission(self, permission: &'c dyn ReadPermission) -> RenderContext<'c> {
        RenderContext { permission: Some(permission), ..self }
    }

    pub(crate) fn may_read(&self, name: ContentName<'_>) -> bool {
        self.permission.is_none_or(|permission| permission.may_read(name))
    }

    /// Lets `interrupt` stop the rendering, with [`RenderError::Interrupted`](crate::RenderError::Interrupted).
    #[must_use]
    pub fn interruptible(self, interrupt: &'c Interrupt) -> RenderContext<'c> {
        RenderContext { interrupt: Some(interrupt), ..self }
    }

    pub(crate) fn remaining(&self) -> Remaining {
        Remaining { interrupt: self.interrupt.cloned(), ..Remaining::of(&self.policy.budget) }
    }
}
