//! Writing to stdout and stderr: terminal or pipe, with or without colours, and formats that all commands share.
//!
//! The layouts of prompts, messages and diagnostics are in `commands`.

mod visible;

use std::{
    borrow::Cow,
    env,
    io::{self, IsTerminal, Write},
};

use anstyle::{AnsiColor, Style};
pub(crate) use promptshelf_server::words::{count, count_all, count_findings};
use serde_json::Value;

pub(crate) use self::visible::{visible, visible_at, visible_json, visible_line};
use crate::{environment::without_passwords, exit::Failure};

/// The width of output that is not written to a terminal, in columns.
const DEFAULT_WIDTH: usize = 100;

/// An open stdout or stderr.
///
/// On a terminal and on stderr control characters in text of files, servers and callers are escaped. On stdout in a
/// pipe the text is written unchanged, because a program reads it; errors end up in front of people by way of files.
pub(crate) struct Output<W> {
    pub(crate) out: W,
    pub(crate) terminal: bool,
    pub(crate) escapes: bool,
    pub(crate) colours: bool,
    pub(crate) width: usize,
}

impl Output<io::StdoutLock<'static>> {
    pub(crate) fn stdout() -> Self {
        let terminal = io::stdout().is_terminal();
        let colours = terminal && wants_colours();
        Output { out: io::stdout().lock(), terminal, escapes: terminal, colours, width: width() }
    }
}

impl Output<io::StderrLock<'static>> {
    pub(crate) fn stderr() -> Self {
        let terminal = io::stderr().is_terminal();
        let colours = terminal && wants_colours();
        Output { out: io::stderr().lock(), terminal, escapes: true, colours, width: width() }
    }
}

impl<W: Write> Output<W> {
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.escapes { visible(text) } else { Cow::Borrowed(text) }
    }

    /// Returns text escaped for a single line, even in a pipe.
    pub(crate) fn line<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.escapes || text.contains(['\n', '\r', '\t']) { visible_line(text) } else { Cow::Borrowed(text) }
    }

    pub(crate) fn dimmed(&self, text: &str) -> String {
        self.styled(Style::new().dimmed(), text)
    }

    /// Returns text in a style if colours are enabled.
    pub(crate) fn styled(&self, style: Style, text: &str) -> String {
        if self.colours { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// Whether colours are wanted (see no-color.org). Terminals of the type `dumb` have none.
fn wants_colours() -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn width() -> usize {
    terminal_size::terminal_size().map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0).max(40))
}

/// Formats a number of things: `1 prompt`, `2 prompts`.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let short: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", short.trim_end())
}

pub(crate) fn note(notes: &[String]) {
    const NOTE: Style = AnsiColor::Yellow.on_default().bold();
    let mut stderr = Output::stderr();
    for note in notes {
        let note = without_passwords(note);
        let line = format!("{} {}", stderr.styled(NOTE, "note:"), stderr.line(&note));
        writeln!(stderr.out, "{line}").ok();
    }
}

pub(crate) fn file_json(value: &Value) -> String {
    // Serializing a `Value` cannot fail.
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Formats a value as indented JSON for stdout. On a terminal invisible characters are escaped as JSON can, so that the
/// text still parses to the same value.
pub(crate) fn pretty_json(value: &Value) -> String {
    let json = file_json(value);
    if io::stdout().is_terminal() { visible_json(&json).into_owned() } else { json }
}

/// Prints the reason for a failure, and what to do about it, on stderr. Errors of a closed stderr are ignored.
pub(crate) fn report_failure(failure: &Failure) {
    const ERROR: Style = AnsiColor::Red.on_default().bold();
    const HELP: Style = AnsiColor::Cyan.on_default().bold();
    if failure.message.is_empty() {
        return;
    }
    let mut stderr = Output::stderr();
    let message = without_passwords(&failure.message);
    let error = format!("{} {}", stderr.styled(ERROR, "error:"), stderr.text(&message));
    let help = failure.help.as_deref().map(without_passwords);
    let help = help.map(|help| format!("\n {} {}", stderr.styled(HELP, "help:"), stderr.text(&help)));
    writeln!(stderr.out, "{error}{}", help.unwrap_or_default()).ok();
}
