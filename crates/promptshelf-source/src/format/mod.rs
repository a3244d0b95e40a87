//! File formats: the text of one prompt file becomes a definition.
//!
//! Each format has a module. The format is chosen by the file's path, receives the whole text, and returns a draft
//! with diagnostics. Only the native format has a template language; prompts of other formats are text with
//! placeholders for arguments. Reading files and resolving references to other files belong to `directory`.

pub(crate) mod access;
pub(crate) mod arguments;
pub(crate) mod body_builder;
mod claude;
pub(crate) mod client_rules;
mod codex;
pub(crate) mod command;
mod deprecation;
mod draft;
mod file_format;
pub(crate) mod foreign_folders;
mod front_matter;
mod gemini;
mod github;
pub(crate) mod icons;
pub(crate) mod keys;
mod lenient;
mod markdown;
mod opencode;
mod prompt_tests;
mod registry;
mod requirements;
mod skill;
mod steps;
mod table;
pub(crate) mod toml;
pub(crate) mod tree;
mod vscode;
pub(crate) mod yaml;

pub use self::file_format::ForeignSyntax;
pub(crate) use self::{
    arguments::arguments,
    draft::{BrokenDraft, Draft, GlobCompletion},
    file_format::Format,
    front_matter::KEYS as PROMPT,
    github::placeholders,
    icons::icons,
    markdown::{front_matter_range, parts},
    prompt_tests::GOLDEN,
    registry::keys,
    requirements::requirements,
    skill::FILE as SKILL,
    table::{Table, list},
    tree::{Node, Notes, Value},
};
