//! Parses a transcript into steps, and writes recorded responses back.

use std::ops::Range;

use http::{HeaderName, HeaderValue, Method};
use promptshelf::mcp::Revision;

use super::expected::Recorded;

/// A transport that a transcript is played on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Memory,
    Stdio,
    Http,
}

/// A parsed transcript.
#[derive(Debug)]
pub(crate) struct Script {
    lines: Vec<String>,
    /// The folder of the repository that is served.
    pub(crate) library: Option<String>,
    /// Files that are written before the first message.
    pub(crate) files: Vec<(String, String)>,
    pub(crate) over: Vec<Over>,
    pub(crate) conversations: Vec<Conversation>,
}

#[derive(Debug)]
pub(crate) struct Conversation {
    /// The revisions, one after the other; `None` if the transcript performs the handshake itself.
    pub(crate) revisions: Vec<Option<Revision>>,
    pub(crate) steps: Vec<Step>,
}

/// One block of a transcript.
#[derive(Debug)]
pub(crate) struct Step {
    /// The line of the file, counted from 1.
    pub(crate) line: usize,
    pub(crate) act: Act,
}

#[derive(Debug)]
pub(crate) enum Act {
    Client { head: Head, text: String, raw: bool, again: bool },
    Server { head: Head, status: Option<u16>, text: String, place: Range<usize> },
    Write { path: String, text: String },
    Remove { path: String },
    ShutDown,
}

/// The header lines of a block, for HTTP.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) verb: Option<Method>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) without: Vec<HeaderName>,
    pub(crate) bare: bool,
}

impl Script {
    pub(crate) fn parse(text: &str) -> Result<Script, String> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if !lines.first().is_some_and(|line| line.starts_with("# ")) {
            return Err("line 1: a transcript begins with a title".to_owned());
        }
        let mut script = Script {
            library: None,
            files: Vec::new(),
            over: vec![Over::Memory, Over::Stdio, Over::Http],
            conversations: Vec::new(),
            lines: Vec::new(),
        };
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            at += 1;
            if let Some(path) = line.strip_prefix("Library: ") {
                script.library = Some(path.to_owned());
            } else if let Some(wires) = line.strip_prefix("Over: ") {
                script.over = wires.split(", ").map(wire).collect::<Result<_, _>>()?;
            } else if let Some(heading) = line.strip_prefix("## ") {
                let revisions = revisions(heading).map_err(|error| format!("line {at}: {error}"))?;
                script.conversations.push(Conversation { revisions, steps: Vec::new() });
            } else if let Some(opening) = line.strip_prefix("~~~") {
                let end = (at..lines.len()).find(|end| lines[*end] == "~~~");
                let end = end.ok_or_else(|| format!("line {at}: this block does not end"))?;
                script.block(opening, &lines, at..end).map_err(|error| format!("line {at}: {error}"))?;
                at = end + 1;
            }
        }
        if script.conversations.is_empty() {
            return Err("there is no conversation".to_owned());
        }
        Ok(Script { lines, ..script })
    }

    fn block(&mut self, opening: &str, lines: &[String], place: Range<usize>) -> Result<(), String> {
        let (kind, rest) = opening.split_once(' ').unwrap_or((opening, ""));
        let line = place.start;
        let body = &lines[place.clone()];
        if self.conversations.is_empty() {
            if kind != "file" {
                return Err("only files can stand before the first conversation".to_owned());
            }
            self.files.push((rest.to_owned(), file(body)));
            return Ok(());
        }
        let (head, body) = if self.over == [Over::Http] { Head::parse(body)? } else { (Head::default(), body) };
        let text = body.join("\n");
        let act = match (kind, rest) {
            ("client", "" | "again") => Act::Client { head, text, raw: false, again: rest == "again" },
            ("raw", "") => Act::Client { head, text, raw: true, again: false },
            ("server", status) => {
                let place = place.end - body.len()..place.end;
                let status = (!status.is_empty()).then(|| status.parse().map_err(|_| "a status is a number"));
                Act::Server { head, status: status.transpose()?, text, place }
            }
            ("file", path) => Act::Write { path: path.to_owned(), text: file(body) },
            ("remove", path) => Act::Remove { path: path.to_owned() },
            ("shutdown", "") => Act::ShutDown,
            _ => return Err(format!("there is no block ~~~{opening}")),
        };
        let conversation = self.conversations.last_mut().ok_or("a block before the first conversation")?;
        conversation.steps.push(Step { line, act });
        Ok(())
    }

    /// Returns the text with replaced responses.
    pub(crate) fn with(&self, mut answers: Vec<Recorded>) -> String {
        answers.sort_by_key(|answer| answer.place.start);
        let mut lines = self.lines.clone();
        for answer in answers.into_iter().rev() {
            let status = answer.status.map(|status| format!(" {status}")).unwrap_or_default();
            let opening = (0..answer.place.start).rev().find(|at| lines[*at].starts_with("~~~server"));
            if let Some(opening) = opening {
                lines[opening] = format!("~~~server{status}");
            }
            lines.splice(answer.place, answer.text.lines().map(str::to_owned));
        }
        lines.join("\n") + "\n"
    }
}

fn file(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn wire(name: &str) -> Result<Over, String> {
    match name {
        "memory" => Ok(Over::Memory),
        "stdio" => Ok(Over::Stdio),
        "http" => Ok(Over::Http),
        other => Err(format!("there is no wire {other:?}")),
    }
}

/// Parses the revisions at the beginning of a heading.
fn revisions(heading: &str) -> Result<Vec<Option<Revision>>, String> {
    let named = heading.split_once(':').map_or(heading, |(named, _)| named);
    if named == "No revision" {
        return Ok(vec![None]);
    }
    let revision = |name| Revision::parse(name).ok_or_else(|| format!("there is no revision {name:?}"));
    named.split(", ").map(|name| revision(name).map(Some)).collect()
}

impl Head {
    /// Parses the header lines of a block, and returns them and the lines of the body.
    fn parse(lines: &[String]) -> Result<(Head, &[String]), String> {
        let mut head = Head::default();
        for (at, line) in lines.iter().enumerate() {
            if let Some((name, value)) = line.split_once(": ").filter(|_| !line.starts_with(['{', '[', ' ', '"'])) {
                let bytes = super::sent::expand(value, &|_| None)?;
                let value = HeaderValue::from_bytes(&bytes).map_err(|_| format!("{value:?} is no header's value"))?;
                head.headers.push((header_name(name)?, value));
            } else if line == "-" {
                head.bare = true;
            } else if let Some(name) = line.strip_prefix('-') {
                head.without.push(header_name(name)?);
            } else if line.len() > 2 && line.bytes().all(|byte| byte.is_ascii_uppercase()) {
                head.verb = Some(line.parse().map_err(|_| format!("{line:?} is no verb"))?);
            } else {
                return Ok((head, &lines[at..]));
            }
        }
        Ok((head, &lines[lines.len()..]))
    }
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    name.parse().map_err(|_| format!("{name:?} is no header's name"))
}
