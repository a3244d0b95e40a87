//! Where an answer is written: a terminal or a pipe, with or without colours.

use std::{
    borrow::Cow,
    env,
    io::{self, IsTerminal, Write},
};

use anstyle::Style;

use crate::commands::visible::{visible, visible_line};

/// Lines of text that nobody measures are cut for this width.
const USUAL_WIDTH: usize = 100;

/// An open stdout or stderr.
///
/// On a terminal everything that comes from files and callers is made visible;
/// in a pipe it goes through as it is, because a program reads it.
pub(crate) struct Output<W> {
    pub(crate) out: W,
    pub(crate) terminal: bool,
    pub(crate) colours: bool,
    pub(crate) width: usize,
}

impl Output<io::StdoutLock<'static>> {
    pub(crate) fn stdout() -> Self {
        let terminal = io::stdout().is_terminal();
        Output { out: io::stdout().lock(), terminal, colours: terminal && wants_colours(), width: width() }
    }
}

impl Output<io::StderrLock<'static>> {
    pub(crate) fn stderr() -> Self {
        let terminal = io::stderr().is_terminal();
        Output { out: io::stderr().lock(), terminal, colours: terminal && wants_colours(), width: width() }
    }
}

impl<W: Write> Output<W> {
    /// Text of several lines.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.terminal { visible(text) } else { Cow::Borrowed(text) }
    }

    /// Text that must stay on one line, even in a pipe.
    pub(crate) fn line<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.terminal || text.contains(['\n', '\r', '\t']) { visible_line(text) } else { Cow::Borrowed(text) }
    }

    /// What is beside the point.
    pub(crate) fn quiet(&self, text: &str) -> String {
        self.styled(Style::new().dimmed(), text)
    }

    /// Text in a style, where there are colours.
    pub(crate) fn styled(&self, style: Style, text: &str) -> String {
        if self.colours { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// See no-color.org; a terminal called `dumb` has no colours either.
fn wants_colours() -> bool {
    let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    !set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn width() -> usize {
    terminal_size::terminal_size().map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0).max(40))
}
