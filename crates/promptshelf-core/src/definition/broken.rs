//! Files that should define a prompt and cannot be understood.

use std::sync::Arc;

use super::{access::Access, prompt::PromptDefinition};

/// A file that should define a prompt and cannot be understood. What was last
/// served from it goes on being served, unless that could leave open what the
/// file closes by now.
#[derive(Clone, Debug)]
pub struct BrokenFile {
    /// Its path inside the library.
    pub path: String,
    /// What it asks of callers.
    pub demands: Requirements,
    /// Which of several sources it is from; see [`Definitions::of_source`](crate::Definitions::of_source).
    pub from: usize,
    /// What could be understood of it. It is looked at for more mistakes, and never served.
    pub draft: Option<Arc<PromptDefinition>>,
    /// Whether the draft has every argument that its author declared.
    pub has_all_arguments: bool,
}

/// What a file asks of callers, as far as that can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirements {
    /// This, or nothing.
    Known(Option<Access>),
    /// Something that nobody can know.
    Unknown,
}

impl BrokenFile {
    /// A file of the only source.
    pub fn new(path: impl Into<String>, demands: Requirements) -> BrokenFile {
        BrokenFile { path: path.into(), demands, from: 0, draft: None, has_all_arguments: false }
    }
}

impl Requirements {
    /// Whether what was served under `before` may go on being served. An edit
    /// that takes a rule away may: nothing is opened by that.
    pub(crate) fn leave(&self, before: Option<&Access>) -> bool {
        match self {
            Requirements::Known(None) => true,
            Requirements::Known(demanded) => demanded.as_ref() == before,
            Requirements::Unknown => false,
        }
    }
}
