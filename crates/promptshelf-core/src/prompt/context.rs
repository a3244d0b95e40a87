//! The surroundings of a rendering.

use crate::{definition::Policy, library_files::LibraryFiles, resource::Resources};

/// The limits, files and resources of the catalog that a prompt is rendered with; see
/// [`Catalog::render_context`](crate::Catalog::render_context).
#[derive(Clone, Copy, Debug)]
pub struct RenderContext<'c> {
    pub(crate) policy: &'c Policy,
    pub(crate) files: &'c LibraryFiles,
    pub(crate) resources: &'c Resources,
}
