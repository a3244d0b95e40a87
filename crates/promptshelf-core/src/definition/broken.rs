//! Prompt files that cannot be read completely.

use std::sync::Arc;

use super::{access::Access, prompt::PromptDefinition};

/// A prompt file that cannot be read completely. Its last valid version stays in service, unless the file may require
/// more of callers by now.
#[derive(Clone, Debug)]
pub struct BrokenFile {
    /// Its path inside the library.
    pub path: String,
    /// The name of the prompt, as far as it is known; empty otherwise.
    pub name: String,
    /// The precedence among definitions of this name; see [`Origin::rank`](crate::Origin::rank).
    pub rank: u8,
    /// The access requirements of the file.
    pub requirements: Requirements,
    /// The source of the file, if there are several; see [`Definitions::of_source`](crate::Definitions::of_source).
    pub from: usize,
    /// The readable part of the file. It is checked for more mistakes, and never served.
    pub draft: Option<Arc<PromptDefinition>>,
    /// Whether the draft has every argument that its author declared.
    pub has_all_arguments: bool,
}

/// The access requirements of a file, as far as they can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirements {
    /// The access rule of the file, if it has one.
    Known(Option<Access>),
    /// The requirements cannot be determined.
    Unknown,
}

impl BrokenFile {
    /// Creates a broken file of the only source.
    pub fn new(path: impl Into<String>, requirements: Requirements) -> BrokenFile {
        BrokenFile {
            path: path.into(),
            name: String::new(),
            rank: 0,
            requirements,
            from: 0,
            draft: None,
            has_all_arguments: false,
        }
    }
}

impl Requirements {
    /// Returns whether a prompt served under `before` may stay in service. If the file removes its rule, the prompt
    /// stays in service under the old one, so no access is opened.
    pub(crate) fn leave(&self, before: Option<&Access>) -> bool {
        match self {
            Requirements::Known(None) => true,
            Requirements::Known(demanded) => demanded.as_ref() == before,
            Requirements::Unknown => false,
        }
    }
}
