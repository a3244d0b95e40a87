//! Prompts that can be served, and their rendering.

mod assemble;
mod checked;
mod context;
mod part;
mod render;

pub use checked::Prompt;
pub(crate) use checked::{CheckedBody, Uses};
pub use context::{ContentName, ReadPermission, RenderContext};
pub use part::Part;
