//! The parts of a rendering: text, and directives between texts.

use super::meter::work_bytes;
use crate::{
    content::{Annotations, Role},
    definition::Budget,
    interrupt::Interrupt,
    value::Variables,
};

#[derive(Clone, Debug)]
pub(crate) struct Remaining {
    pub(crate) fuel: u64,
    pub(crate) output_bytes: usize,
    /// Bytes that operations may walk and create.
    pub(crate) work_bytes: u64,
    pub(crate) interrupt: Option<Interrupt>,
}

impl Remaining {
    pub(crate) fn of(budget: &Budget) -> Remaining {
        Remaining {
            fuel: budget.fuel,
            output_bytes: budget.output_bytes,
            work_bytes: work_bytes(budget.fuel),
            interrupt: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Directive(Directive),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Directive {
    Role { role: Role, annotations: Annotations },
    Attach(Attach),
    Link(Link),
    Prompt(Call),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attach {
    pub(crate) target: String,
    pub(crate) uri: Option<String>,
    pub(crate) mime: Option<String>,
    pub(crate) annotations: Annotations,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// The arguments as a caller would send them.
    pub(crate) arguments: Variables,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) target: String,
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) mime: Option<String>,
    pub(crate) annotations: Annotations,
}
