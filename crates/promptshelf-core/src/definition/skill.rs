//! The sources of skills: folders with a `SKILL.md`, and prompts.

use std::sync::Arc;

use crate::content::Meta;

/// The source of a skill (Agent Skills specification, agentskills.io).
#[derive(Clone, Debug, PartialEq)]
pub enum SkillSource {
    /// The folder of the prompt's file, which is its `SKILL.md`. Holds the front matter as JSON, with all keys; empty if
    /// the file has none.
    Folder(Arc<Meta>),
    /// The text of the prompt, with its arguments described in words.
    Prompt,
}
