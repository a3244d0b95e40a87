//! The parts of a rendering: text, and directives between texts.

use crate::{
    content::{Annotations, Role},
    definition::Budget,
    value::Variables,
};

/// What one rendering may still use: all prompts that it brings in share it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remaining {
    pub(crate) fuel: u64,
    pub(crate) output_bytes: usize,
}

impl Remaining {
    /// Everything, before anything is rendered.
    pub(crate) fn of(budget: &Budget) -> Remaining {
        Remaining { fuel: budget.fuel, output_bytes: budget.output_bytes }
    }
}

/// What a rendering is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Directive(Directive),
}

/// What a template's functions put between texts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Directive {
    Role { role: Role, annotations: Annotations },
    Attach(Attach),
    Link(Link),
    Prompt(Call),
}

/// A block to put in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attach {
    /// A library file's path, or a URI.
    pub(crate) target: String,
    pub(crate) uri: Option<String>,
    pub(crate) mime: Option<String>,
    pub(crate) annotations: Annotations,
}

/// Another prompt to bring in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// As a caller would send them.
    pub(crate) arguments: Variables,
}

/// A link to put in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    /// A library file's path, or a URI.
    pub(crate) target: String,
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) mime: Option<String>,
    pub(crate) annotations: Annotations,
}
