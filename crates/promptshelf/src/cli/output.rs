//! Writing to stdout and stderr: terminal or pipe, with or without colours, and formats that all commands share.
//!
//! The layouts of prompts, messages and diagnostics are in `commands`.

use std::{
    borrow::Cow,
    env,
    ffi::OsString,
    io::{self, IsTerminal, Write},
    sync::OnceLock,
};

use anstyle::{AnsiColor, Style};
use clap::ValueEnum as _;
use promptshelf_core::invisible::{is_invisible, joins};
use serde_json::{Value, json};
use textwrap::{Options, WordSeparator, WordSplitter};

use crate::{
    args::{Colours, CommonArguments},
    environment::without_passwords,
    exit::Failure,
};

pub(crate) use promptshelf_server::words::{count, count_all, count_findings};

/// The width of output that is not written to a terminal, in columns.
const DEFAULT_WIDTH: usize = 100;

/// An open stdout or stderr.
///
/// On a terminal and on stderr control characters in text of files, servers and callers are escaped. On stdout in a
/// pipe a text is written unchanged, because a program reads it; errors end up in front of people by way of files. Columns
/// and other text of one line are made for people, and escaped there too.
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
        let colours = common().colours.are_wanted(terminal);
        Output { out: io::stdout().lock(), terminal, escapes: terminal, colours, width: width() }
    }
}

impl Output<io::StderrLock<'static>> {
    pub(crate) fn stderr() -> Self {
        let terminal = io::stderr().is_terminal();
        let colours = common().colours.are_wanted(terminal);
        Output { out: io::stderr().lock(), terminal, escapes: true, colours, width: width() }
    }
}

impl<W: Write> Output<W> {
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.escapes { visible(text) } else { Cow::Borrowed(text) }
    }

    /// Returns text escaped for a single line, even in a pipe.
    pub(crate) fn line<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.escapes || text.contains(char::is_control) { visible_line(text) } else { Cow::Borrowed(text) }
    }

    /// Returns a text between indents of its first and its other lines. Only on a terminal, it is broken at the width.
    pub(crate) fn filled(&self, first: &str, others: &str, text: &str) -> String {
        if self.terminal { broken(text, self.width, first, others) } else { format!("{first}{text}") }
    }

    pub(crate) fn dimmed(&self, text: &str) -> String {
        self.styled(Style::new().dimmed(), text)
    }

    /// Returns text in a style if colours are enabled.
    pub(crate) fn styled(&self, style: Style, text: &str) -> String {
        if self.colours { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// Breaks a text between words into lines of a width. A word that is longer stays whole, to be copied.
pub(crate) fn broken(text: &str, width: usize, first: &str, others: &str) -> String {
    let options = Options::new(width).initial_indent(first).subsequent_indent(others).break_words(false);
    let options = options.word_splitter(WordSplitter::NoHyphenation).word_separator(WordSeparator::AsciiSpace);
    textwrap::fill(text, options)
}

/// The common options of the command line; set once.
static COMMON: OnceLock<Common> = OnceLock::new();

#[derive(Clone, Copy, Default)]
struct Common {
    colours: Colours,
    is_quiet: bool,
    agrees: bool,
}

pub(crate) fn configure(arguments: &CommonArguments) {
    let common = Common { colours: arguments.color, is_quiet: arguments.quiet, agrees: arguments.yes };
    // The first call counts.
    let _ = COMMON.set(common);
}

fn common() -> Common {
    COMMON.get().copied().unwrap_or_default()
}

/// Returns whether notes and progress are left out.
pub(crate) fn is_quiet() -> bool {
    common().is_quiet
}

/// Returns whether questions are answered with yes.
pub(crate) fn agrees() -> bool {
    common().agrees
}

/// Returns the colours that the words of a command line ask for, before they are parsed.
pub(crate) fn colours_of(words: impl Iterator<Item = OsString>) -> Colours {
    let words: Vec<OsString> = words.collect();
    let joined = words.iter().filter_map(|word| word.to_str()?.strip_prefix("--color="));
    let next = words.windows(2).filter(|pair| pair[0] == "--color").filter_map(|pair| pair[1].to_str());
    joined.chain(next).last().and_then(|word| Colours::from_str(word, true).ok()).unwrap_or_default()
}

impl Colours {
    pub(crate) fn choice(self) -> clap::ColorChoice {
        match self {
            Colours::Auto => clap::ColorChoice::Auto,
            Colours::Always => clap::ColorChoice::Always,
            Colours::Never => clap::ColorChoice::Never,
        }
    }

    fn are_wanted(self, terminal: bool) -> bool {
        match self {
            Colours::Auto => terminal && wants_colours(),
            Colours::Always => true,
            Colours::Never => false,
        }
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
    if is_quiet() {
        return;
    }
    let mut stderr = Output::stderr();
    for note in notes {
        let note = without_passwords(note);
        let line = format!("{} {}", stderr.styled(NOTE, "note:"), stderr.line(&note));
        writeln!(stderr.out, "{line}").ok();
    }
}

/// Returns the JSON of a list: all commands print lists in this form.
pub(crate) fn list_json(items: impl Iterator<Item = Value>) -> Value {
    json!({ "items": items.collect::<Vec<Value>>(), "next": null })
}

pub(crate) fn list_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A list, as commands print it with --json",
        "type": "object",
        "required": ["items", "next"],
        "properties": {
            "items": { "type": "array", "items": true, "description": "The entries, of one kind each" },
            "next": { "description": "The beginning of the next page; null on the last one" },
        },
    })
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

// Escapes control characters and invisible characters before text reaches a terminal.
// Names, texts and errors come from prompt files, servers and callers. Printed verbatim, an escape sequence could hide a
// line, and a bidirectional control could show a person another text than the one a model reads.

/// A text of several lines that is safe to show on a terminal: line breaks and
/// tabs stay, every other invisible character becomes `\u{…}`.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

/// The same for a text that has to stay on one line.
pub(crate) fn visible_line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// The same for JSON, whose own escapes are used: the result parses to the same value.
pub(crate) fn visible_json(json: &str) -> Cow<'_, str> {
    if json.bytes().all(|byte| (0x20..0x7f).contains(&byte) || byte == b'\n') {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len());
    let mut before = '\0';
    for c in json.chars() {
        if c == '\n' || !is_invisible(c) || joins(before, c) {
            shown.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")));
        }
        before = c;
    }
    Cow::Owned(shown)
}

/// What [`visible`] makes of a text. Moves `places` in the text to where the
/// same characters are shown.
pub(crate) fn visible_at(text: &str, places: &mut [usize]) -> String {
    let mut shown = String::with_capacity(text.len());
    // Where each replaced character ended before and ends now.
    let mut moved: Vec<(usize, usize)> = Vec::new();
    each(
        text,
        |c| matches!(c, '\n' | '\t'),
        |at, c, piece| {
            shown.push_str(piece);
            if piece.len() != c.len_utf8() {
                moved.push((at + c.len_utf8(), shown.len()));
            }
        },
    );
    for place in places {
        let index = moved.partition_point(|(old, _)| old <= place);
        let (old, new) = index.checked_sub(1).map_or((0, 0), |index| moved[index]);
        *place = (new + (*place - old)).min(shown.len());
    }
    shown
}

fn escape(text: &str, stays: impl Fn(char) -> bool + Copy) -> Cow<'_, str> {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte) || stays(char::from(byte))) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    each(text, stays, |_, _, piece| shown.push_str(piece));
    Cow::Owned(shown)
}

/// Calls `put` for each character of a text, by its place, with what to show for it.
fn each(text: &str, stays: impl Fn(char) -> bool, mut put: impl FnMut(usize, char, &str)) {
    let mut before = '\0';
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let line_end = c == '\r' && stays('\n') && characters.peek().is_some_and(|(_, next)| *next == '\n');
        if line_end {
            put(at, c, "");
        } else if stays(c) || !is_invisible(c) || joins(before, c) {
            put(at, c, c.encode_utf8(&mut [0; 4]));
        } else {
            put(at, c, &c.escape_default().to_string());
        }
        before = c;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_reordering_are_escaped() {
        assert_eq!(visible("a\x1b[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(visible("x\u{202e}y\u{e0041}z\u{200b}"), "x\\u{202e}y\\u{e0041}z\\u{200b}");
        assert_eq!(visible("a\rb"), "a\\rb");
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        for text in ["two\nlines\twith a tab", "größer, 日本語, नमस्ते", "क्\u{200d}ष", "❤\u{fe0f}\u{200d}🔥"]
        {
            assert_eq!(visible(text), text);
        }
        assert_eq!(visible("one\r\ntwo\r\n"), "one\ntwo\n");
    }

    #[test]
    fn control_characters_in_one_line_are_escaped_in_a_pipe_too() {
        let output = Output { out: Vec::new(), terminal: false, escapes: false, colours: false, width: 80 };
        let controls = (0..=0x9f).filter_map(char::from_u32).filter(|c| c.is_control());
        for text in controls.map(|control| format!("a{control}b")) {
            assert!(!output.line(&text).contains(char::is_control), "{text:?}");
        }
        assert_eq!(output.line("größer, 日本語"), "größer, 日本語");
    }

    // req: S-39
    #[test]
    fn escaped_json_has_the_same_value() {
        let value = serde_json::json!({ "a\u{202e}": "x\u{9b}2J\u{7f} \u{e0041}\n❤\u{fe0f} größer" });
        let json = serde_json::to_string_pretty(&value).expect("JSON");
        let shown = visible_json(&json);
        assert!(shown.chars().all(|c| c == '\n' || c == '\u{fe0f}' || !is_invisible(c)), "{shown}");
        assert!(shown.contains("\\u202e") && shown.contains("\\udb40\\udc41") && shown.contains("größer"), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON"), value);
    }

    #[test]
    fn line_breaks_are_escaped() {
        assert_eq!(visible_line("a\nb\tc"), "a\\nb\\tc");
    }

    #[test]
    fn offsets_follow_their_characters() {
        let text = "a\u{202e}b\x1bc\r\nd";
        let places = |at| {
            let mut places = [at];
            let shown = visible_at(text, &mut places);
            shown[places[0]..].chars().next()
        };
        for c in ['a', 'b', 'c', 'd'] {
            assert_eq!(places(text.find(c).expect("it is there")), Some(c));
        }
        let mut end = [text.len()];
        let shown = visible_at(text, &mut end);
        assert_eq!(end, [shown.len()]);
    }
}
