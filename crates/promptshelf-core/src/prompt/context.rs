//! The surroundings of a rendering.

use crate::{
    definition::Policy, interrupt::Interrupt, library_files::LibraryFiles, resource::Resources, template::Remaining,
};

/// The limits, files and resources of the catalog that a prompt is rendered with; see
/// [`Catalog::render_context`](crate::Catalog::render_context).
#[derive(Clone, Copy, Debug)]
pub struct RenderContext<'c> {
    pub(crate) policy: &'c Policy,
    pub(crate) files: &'c LibraryFiles,
    pub(crate) resources: &'c Resources,
    pub(crate) interrupt: Option<&'c Interrupt>,
    pub(crate) is_brief: bool,
}

impl<'c> RenderContext<'c> {
    /// Lets `interrupt` stop the rendering, with [`RenderError::Interrupted`](crate::RenderError::Interrupted).
    #[must_use]
    pub fn interruptible(self, interrupt: &'c Interrupt) -> RenderContext<'c> {
        RenderContext { interrupt: Some(interrupt), ..self }
    }

    /// Limits the processor time of a template to a few milliseconds, far below the library's budget. Most renderings
    /// take much less; the others fail with [`RenderError::OverBudget`](crate::RenderError::OverBudget).
    #[must_use]
    pub fn brief(self) -> RenderContext<'c> {
        RenderContext { is_brief: true, ..self }
    }

    pub(crate) fn remaining(&self) -> Remaining {
        let left = Remaining { interrupt: self.interrupt.cloned(), ..Remaining::of(&self.policy.budget) };
        if self.is_brief { left.brief() } else { left }
    }
}
