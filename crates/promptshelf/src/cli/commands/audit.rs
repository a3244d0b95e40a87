//! `promptshelf audit`: what has been recorded, read and filtered.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    args::AuditArguments,
    exit::{Exit, Failure},
    output::{Output, count},
    settings::{Day, InvalidValue},
};

/// Longer lines are none of ours.
const MAX_LINE: u64 = 1 << 20;

pub(crate) fn run(arguments: &AuditArguments) -> Result<(), Failure> {
    let filter = Filter::new(arguments)?;
    let mut paper = Output::stdout();
    let (mut unreadable, mut lost) = (0, 0);
    for path in files(&arguments.file) {
        let file = File::open(&path)
            .map_err(|error| Failure::new(Exit::Failed, format!("{} cannot be read: {error}", path.display())))?;
        let mut reader = BufReader::new(file);
        while let Some(line) = next_line(&mut reader)? {
            let Ok(record) = serde_json::from_str::<Value>(&line) else {
                unreadable += 1;
                continue;
            };
            if let Some(missing) = record["lost"].as_u64() {
                lost += missing;
                continue;
            }
            if !filter.fits(&record) {
                continue;
            }
            if arguments.json {
                writeln!(paper.out, "{}", line.trim_end())?;
            } else {
                let fields = fields(&record).map(|field| paper.line(&field).into_owned());
                writeln!(paper.out, "{}", fields.join("\t"))?;
            }
        }
    }
    paper.out.flush()?;
    let mut notes = Output::stderr();
    if lost > 0 {
        let records = count(usize::try_from(lost).unwrap_or(usize::MAX), "record");
        writeln!(notes.out, "note: {records} were lost when they should have been written").ok();
    }
    if unreadable > 0 {
        writeln!(notes.out, "note: {} cannot be understood", count(unreadable, "line")).ok();
    }
    Ok(())
}

/// The older files that are there, oldest first, and the newest.
fn files(newest: &Path) -> Vec<PathBuf> {
    let numbered = |number: u32| {
        let mut name = newest.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    let mut files: Vec<PathBuf> = (1..).map(numbered).take_while(|path| path.exists()).collect();
    files.reverse();
    files.push(newest.to_path_buf());
    files
}

/// The next line, cut where it is longer than any of ours.
fn next_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let read = io::Read::take(&mut *reader, MAX_LINE).read_until(b'\n', &mut line)?;
    Ok((read > 0).then(|| String::from_utf8_lossy(&line).into_owned()))
}

/// What is asked for.
struct Filter<'a> {
    arguments: &'a AuditArguments,
    since: Option<jiff::Timestamp>,
}

impl<'a> Filter<'a> {
    fn new(arguments: &'a AuditArguments) -> Result<Filter<'a>, Failure> {
        let since = arguments.since.as_deref().map(moment).transpose();
        let since = since.map_err(|reason| Failure::new(Exit::Usage, format!("--since: {reason}")))?;
        Ok(Filter { arguments, since })
    }

    fn fits(&self, record: &Value) -> bool {
        let is = |key: &str, wanted: &Option<String>| {
            wanted.as_deref().is_none_or(|wanted| record[key].as_str() == Some(wanted))
        };
        let arguments = self.arguments;
        let is_late = || record["time"].as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok());
        is("caller", &arguments.caller)
            && is("method", &arguments.method)
            && is("prompt", &arguments.prompt)
            && is("outcome", &arguments.outcome)
            && (!arguments.refused || record["outcome"].as_str() != Some("ok"))
            && self.since.is_none_or(|since| is_late().is_some_and(|time| time >= since))
    }
}

/// A moment as people write one: a day, or a time in RFC 3339.
fn moment(text: &str) -> Result<jiff::Timestamp, String> {
    if let Ok(moment) = text.parse() {
        return Ok(moment);
    }
    let Day(day) = text.parse().map_err(|error: InvalidValue| error.to_string())?;
    day.try_into().map_err(|_| format!("`{text}` is out of range"))
}

/// What is shown of a record: time, caller, method, what it was about, outcome, duration.
fn fields(record: &Value) -> [String; 6] {
    let text = |key: &str| record[key].as_str().unwrap_or("-").to_owned();
    let subject = ["prompt", "resource", "list"].iter().find_map(|key| record[*key].as_str()).unwrap_or("-");
    let took = format!("{:.1} ms", record["milliseconds"].as_f64().unwrap_or_default());
    [text("time"), text("caller"), text("method"), subject.to_owned(), text("outcome"), took]
}
