//! `promptshelf help`: the help text of a command, or a page of the guide.

use std::{
    borrow::Cow,
    io::{self, Write},
    mem,
};

use anstyle::Style;
use clap::Args;
use promptshelf_core::nearest;
use textwrap::{Options, WordSplitter, core::display_width};

use crate::{
    args::CommandLine,
    exit::{Exit, Failure},
    output::Output,
};

const HELP_EXAMPLES: &str = "\
Examples:
  promptshelf help get
  promptshelf help templates";

#[derive(Debug, Args)]
#[command(after_help = HELP_EXAMPLES)]
pub(crate) struct HelpArguments {
    /// A command, or a page of the guide such as `templates` [default: list both]
    #[arg(value_name = "TOPIC")]
    pub(crate) topic: Vec<String>,
}

macro_rules! pages {
    ($($topic:literal: $path:literal,)+) => {
        /// The pages of the guide by topic. The generated reference is left out: commands print it.
        const PAGES: &[(&str, &str, &str)] = &[$(($topic, $path, include_str!(concat!("../../../guide/", $path)))),+];
    };
}

pages! {
    "introduction": "introduction.md",
    "first-steps": "first-steps.md",
    "command-line": "using/command-line.md",
    "prompt-files": "writing/prompt-files.md",
    "arguments": "writing/arguments.md",
    "templates": "writing/templates.md",
    "files": "writing/resources.md",
    "guided": "writing/guided.md",
    "editors": "writing/editors.md",
    "testing": "writing/testing.md",
    "ci": "writing/ci.md",
    "untrusted-values": "writing/untrusted-values.md",
    "formats": "writing/formats.md",
    "clients": "using/clients.md",
    "page": "using/page.md",
    "editor": "using/editor.md",
    "terminal": "using/terminal.md",
    "rust": "using/rust.md",
    "serving": "serving/overview.md",
    "channels": "serving/channels.md",
    "channels-page": "serving/page.md",
    "evaluations": "serving/evaluations.md",
    "sources": "serving/sources.md",
    "sign-in": "serving/sign-in.md",
    "access": "serving/access.md",
    "api": "serving/api.md",
    "programs": "serving/programs.md",
    "reach": "serving/reach.md",
    "limits": "serving/limits-audit.md",
    "scope": "serving/scope.md",
    "usage": "serving/usage.md",
    "webhooks": "serving/webhooks.md",
    "rollout": "serving/rollout.md",
    "walkthrough": "serving/walkthrough.md",
    "operators-walk": "serving/operators-walk.md",
    "observability": "serving/observability.md",
    "runbook": "serving/runbook.md",
    "tls": "serving/tls-proxy.md",
    "replicas": "serving/replicas.md",
    "deployment": "serving/deployment.md",
    "troubleshooting": "troubleshooting.md",
    "versions": "versions.md",
}

pub(crate) fn topics() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|(topic, ..)| *topic)
}

pub(crate) fn run(arguments: &HelpArguments) -> Result<(), Failure> {
    let mut root = CommandLine::complete();
    root.build();
    let [first, rest @ ..] = arguments.topic.as_slice() else {
        print(&root.render_long_help().to_string())?;
        let topics: Vec<&str> = PAGES.iter().map(|(topic, ..)| *topic).collect();
        return print(&format!("\nPages of the guide, for `promptshelf help TOPIC`:\n{}\n", wrapped(&topics)));
    };
    let mut command = Some(&mut root);
    for word in &arguments.topic {
        command = command.and_then(|command| command.find_subcommand_mut(word));
    }
    if let Some(command) = command {
        return print(&command.render_long_help().to_string());
    }
    if let (Some((.., text)), []) = (PAGES.iter().find(|(topic, ..)| topic == first), rest) {
        return print_page(text);
    }
    let commands = root.get_subcommands().map(|command| command.get_name().to_owned());
    let names: Vec<String> = commands.chain(PAGES.iter().map(|(topic, ..)| (*topic).to_owned())).collect();
    let failure = Failure::new(Exit::NotFound, format!("no command or page is called `{}`", arguments.topic.join(" ")));
    Err(match nearest(first, names.iter().map(String::as_str)) {
        Some(name) => failure.help(format!("did you mean `promptshelf help {name}`?")),
        None => failure.help("`promptshelf help` lists commands and pages"),
    })
}

fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    Ok(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())?)
}

/// The widest text that is read with ease, in columns.
const WIDEST: usize = 88;

fn wrapped(words: &[&str]) -> String {
    textwrap::fill(&words.join(" "), Options::new(78).initial_indent("  ").subsequent_indent("  ").break_words(false))
}

/// Prints a page as text: links become their text, comments are left out, headings are bold, and paragraphs, lists and
/// tables have the width of the terminal.
fn print_page(text: &str) -> Result<(), Failure> {
    let mut output = Output::stdout();
    let width = output.width.min(WIDEST);
    for line in laid_out(text, width) {
        let line = match line {
            Line::Heading(text) => output.styled(Style::new().bold(), &text),
            Line::Text(text) => text,
        };
        writeln!(output.out, "{}", line.trim_end())?;
    }
    Ok(output.out.flush()?)
}

enum Line {
    Heading(String),
    Text(String),
}

/// Lays out a page of Markdown in lines of `width` columns. Code keeps its lines.
fn laid_out(text: &str, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let (mut paragraph, mut rows) = (String::new(), Vec::<Vec<String>>::new());
    let mut is_code = false;
    // A blank line ends what is open.
    for line in text.lines().filter(|line| !line.starts_with("<!--")).chain([""]) {
        let is_fence = line.trim_start().starts_with("```");
        let begins_item = is_item(line.trim_start());
        let is_row = !is_code && line.starts_with('|');
        if is_code || is_fence || is_row || begins_item || line.trim().is_empty() || line.starts_with('#') {
            lines.extend(filled(&without_links(&mem::take(&mut paragraph)), width).into_iter().map(Line::Text));
        }
        if !is_row {
            lines.extend(table(&mem::take(&mut rows), width).into_iter().map(Line::Text));
        }
        if is_fence {
            is_code = !is_code;
        } else if is_code {
            lines.push(Line::Text(format!("    {line}")));
        } else if let Some(heading) = line.strip_prefix('#') {
            lines.push(Line::Heading(heading.trim_start_matches('#').trim().to_owned()));
        } else if is_row {
            let cells = line.trim_matches('|').replace("\\|", "\u{0}");
            let cells = cells.split('|').map(|cell| without_links(cell.trim()).replace('\u{0}', "|"));
            rows.extend(
                Some(cells.collect()).filter(|cells: &Vec<String>| !cells.iter().all(|it| it.starts_with("--"))),
            );
        } else if line.trim().is_empty() {
            lines.push(Line::Text(String::new()));
        } else if paragraph.is_empty() {
            paragraph = line.to_owned();
        } else {
            paragraph.push(' ');
            paragraph.push_str(line.trim());
        }
    }
    lines.pop();
    lines
}

/// Returns whether a line begins an item of a list.
fn is_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ") || number.len() < line.len() && number.starts_with(". ")
}

/// Breaks a paragraph or an item into lines. The lines of an item begin below its text.
fn filled(paragraph: &str, width: usize) -> Vec<String> {
    let text = paragraph.trim_start();
    let mut indent = paragraph.len() - text.len();
    if is_item(text) {
        indent += text.find(' ').map_or(0, |at| at + 1);
    }
    let indent = " ".repeat(indent);
    let options = Options::new(width).subsequent_indent(&indent).break_words(false);
    let options = options.word_splitter(WordSplitter::NoHyphenation);
    let lines = if text.is_empty() { Vec::new() } else { textwrap::wrap(paragraph, options) };
    lines.into_iter().map(Cow::into_owned).collect()
}

/// Lays out a table: in columns if they fit, else each row as a paragraph below its first cell.
fn table(rows: &[Vec<String>], width: usize) -> Vec<String> {
    const GAP: usize = 2;

    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let widths: Vec<usize> =
        (0..columns).map(|column| cells(column).map(|it| display_width(it)).max().unwrap_or(0)).collect();
    if widths.iter().map(|width| width + GAP).sum::<usize>() <= width + GAP {
        let line = |row: &Vec<String>| {
            let cells = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell}{}", " ".repeat(width + GAP - display_width(cell))));
            cells.collect::<String>()
        };
        return rows.iter().map(line).collect();
    }
    let mut lines = Vec::new();
    for row in rows.iter().skip(1) {
        let [first, rest @ ..] = row.as_slice() else { continue };
        lines.extend(filled(first, width));
        let rest: Vec<&str> = rest.iter().map(String::as_str).filter(|cell| !cell.is_empty()).collect();
        lines.extend(filled(&format!("    {}", rest.join(" · ")), width));
    }
    lines
}

/// Replaces `[text](address)` by the text. Addresses of other sites stay; a picture is named.
fn without_links(line: &str) -> String {
    let (mut shown, mut rest) = (String::new(), line);
    while let Some((before, after)) = rest.split_once('[') {
        let link = after.split_once("](").and_then(|(text, after)| {
            let (address, after) = after.split_once(')')?;
            (!text.contains('[')).then_some((text, address, after))
        });
        let Some((text, address, after)) = link else { break };
        let picture = before.strip_suffix('!');
        shown.push_str(picture.unwrap_or(before));
        shown.push_str(&picture.map_or_else(|| text.to_owned(), |_| format!("(picture: {text})")));
        if address.starts_with("http") && picture.is_none() {
            shown.push_str(&format!(" ({address})"));
        }
        rest = after;
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn links_become_text() {
        assert_eq!(
            without_links("See [a](b.md) and [c](https://d.example), `x[0]`."),
            "See a and c (https://d.example), `x[0]`."
        );
        assert_eq!(without_links("![A chart](a.png) [b](c.md)"), "(picture: A chart) b");
    }

    #[test]
    fn pages_have_the_width_of_the_terminal() {
        let shown = |text: &str, width| {
            let lines = laid_out(text, width).into_iter();
            lines.map(|line| match line {
                Line::Heading(text) => format!("# {text}"),
                Line::Text(text) => text.trim_end().to_owned(),
            })
        };
        let page = "# One\n\nA paragraph of\n[two](a.md) lines.\n\n- an item of\n  several lines\n- another\n\n```sh\na line of code that is longer\n```\n\n\
                    | key | meaning |\n|---|---|\n| `a` | first |\n| `b\\|c` | second |\n";
        let wide: Vec<String> = shown(page, 40).collect();
        let expected = "# One\n\nA paragraph of two lines.\n\n- an item of several lines\n- another\n\n    a line of code that is longer\n\n\
                        key    meaning\n`a`    first\n`b|c`  second";
        assert_eq!(wide.join("\n"), expected);
        let small: Vec<String> = shown(page, 12).collect();
        let expected = "# One\n\nA paragraph\nof two\nlines.\n\n- an item of\n  several\n  lines\n- another\n\n    a line of code that is longer\n\n\
                        `a`\n    first\n`b|c`\n    second";
        assert_eq!(small.join("\n"), expected);
        for (topic, _, text) in PAGES {
            for line in shown(text, 40).filter(|line| !line.starts_with([' ', '#', '`'])) {
                let words = line.split_whitespace().count();
                assert!(display_width(&line) <= 40 || words < 3, "{topic}: {line}");
            }
        }
    }

    #[test]
    fn every_page_of_the_guide_is_a_topic() {
        let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("guide");
        let summary = std::fs::read_to_string(guide.join("SUMMARY.md")).expect("the summary");
        let listed = summary.split("](").skip(1).filter_map(|link| link.split(')').next());
        for path in listed.filter(|path| !path.starts_with("reference/")) {
            assert!(PAGES.iter().any(|(_, page, _)| *page == path), "{path} is not a topic of `promptshelf help`");
        }
    }
}
