//! Input from a person at the terminal: lines with completion, forms, and the progress of waiting.

mod form;
mod progress;
mod reader;

use std::io::{self, IsTerminal};

pub(crate) use self::{
    form::{TerminalForms, agree, confirm},
    progress::Progress,
    reader::{Assist, Line, LineReader, Suggestion, shell, suggestion},
};

pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}
