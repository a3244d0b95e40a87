//! `promptshelf help`: the help text of a command, or a page of the guide.

use std::{
    io::{self, Write},
    iter,
};

use anstyle::Style;
use promptshelf_core::nearest;

use crate::{
    args::{CommandLine, HelpArguments},
    exit::{Exit, Failure},
    output::Output,
};

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

fn wrapped(words: &[&str]) -> String {
    const COLUMNS: usize = 78;

    let mut lines = vec![String::from(" ")];
    for word in words {
        if lines.last().is_some_and(|line| line.len() + word.len() >= COLUMNS) {
            lines.push(String::from(" "));
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(&format!(" {word}"));
        }
    }
    lines.join("\n")
}

/// Prints a page as text: links become their text, comments are left out, and headings are bold.
fn print_page(text: &str) -> Result<(), Failure> {
    const HEADING: Style = Style::new().bold();

    let mut output = Output::stdout();
    let mut is_code = false;
    for line in text.lines().filter(|line| !line.starts_with("<!--")) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            continue;
        }
        let line = match (is_code, line.strip_prefix('#')) {
            (true, _) => format!("    {line}"),
            (false, Some(heading)) => output.styled(HEADING, heading.trim_start_matches('#').trim()),
            (false, None) => without_links(line),
        };
        writeln!(output.out, "{}", line.trim_end())?;
    }
    Ok(output.out.flush()?)
}

/// Replaces `[text](address)` by the text. Addresses of other sites stay.
fn without_links(line: &str) -> String {
    let (mut shown, mut rest) = (String::new(), line);
    while let Some((before, after)) = rest.split_once('[') {
        let link = after.split_once("](").and_then(|(text, after)| {
            let (address, after) = after.split_once(')')?;
            (!text.contains('[')).then_some((text, address, after))
        });
        let Some((text, address, after)) = link else { break };
        shown.extend(iter::once(before).chain(iter::once(text)));
        if address.starts_with("http") {
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
