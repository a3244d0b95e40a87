//! The commands of prompt authors: `check`, `explain`, `test`, `render`, `new`, `fmt`, `schema`.

mod attachments;
mod broken;
mod clients;
mod pages;
mod tests;
mod writing;

/// The example library.
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/library");
