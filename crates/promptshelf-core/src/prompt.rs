//! Prompts that can be served, and their rendering.

mod assemble;
mod checked;
mod render;

pub use checked::Prompt;
pub(crate) use checked::{CheckedBody, Uses};
pub use render::{ContentName, Part, ReadPermission, RenderContext};
