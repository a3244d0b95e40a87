//! `promptshelf audit`: reads and filters recorded requests.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
};

use promptshelf_core::nearest;
use serde_json::Value;

use crate::{
    args::AuditArguments,
    exit::{Exit, Failure},
    output::{Output, count, visible_json},
    settings::{Day, InvalidValue},
};

/// The maximum length of a line, in bytes. The server writes shorter ones.
const MAX_LINE_BYTES: u64 = 1 << 20;

pub(crate) fn run(arguments: &AuditArguments) -> Result<(), Failure> {
    let filter = Filter::new(arguments)?;
    let mut output = Output::stdout();
    let (mut invalid, mut lost) = (0, 0);
    for path in files(&arguments.file) {
        let file = File::open(&path)
            .map_err(|error| Failure::new(Exit::Failed, format!("{} cannot be read: {error}", path.display())))?;
        let mut reader = BufReader::new(file);
        while let Some(line) = next_line(&mut reader)? {
            let Ok(record) = serde_json::from_str::<Value>(&line) else {
                invalid += 1;
                continue;
            };
            if let Some(number) = record["lost"].as_u64() {
                lost += number;
                continue;
            }
            if !filter.matches(&record) {
                continue;
            }
            if arguments.json {
                let line = line.trim_end();
                let line = if output.escapes { visible_json(line) } else { line.into() };
                writeln!(output.out, "{line}")?;
            } else {
                let fields = fields(&record).map(|field| output.line(&field).into_owned());
                writeln!(output.out, "{}", fields.join("\t"))?;
            }
        }
    }
    output.out.flush()?;
    let mut stderr = Output::stderr();
    if lost > 0 {
        let records = count(usize::try_from(lost).unwrap_or(usize::MAX), "record");
        writeln!(stderr.out, "note: {records} could not be written, and are missing").ok();
    }
    if invalid > 0 {
        writeln!(stderr.out, "note: {} skipped: expected a JSON object on each line", count(invalid, "line")).ok();
    }
    Ok(())
}

/// Returns the existing rotated files, oldest first, and then the newest file. A number is missing if a rotation was
/// interrupted.
fn files(newest: &Path) -> Vec<PathBuf> {
    let folder = newest.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let prefix = newest.file_name().and_then(|name| name.to_str()).map(|name| format!("{name}."));
    let number = |name: &str| name.strip_prefix(prefix.as_deref()?)?.parse::<u32>().ok();
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let mut rotated: Vec<(u32, PathBuf)> =
        entries.filter_map(|entry| Some((number(entry.file_name().to_str()?)?, entry.path()))).collect();
    rotated.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    rotated.into_iter().map(|(_, path)| path).chain([newest.to_path_buf()]).collect()
}

/// Reads the next line, cut at [`MAX_LINE_BYTES`].
fn next_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let read = io::Read::take(&mut *reader, MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
    Ok((read > 0).then(|| String::from_utf8_lossy(&line).into_owned()))
}

/// A word for `--method`: the `method` of records, or a method of the protocol with the records that it leaves.
struct Method {
    word: &'static str,
    recorded: &'static str,
    list: Option<&'static str>,
}

const METHODS: &[Method] = &[
    Method { word: "list", recorded: "list", list: None },
    Method { word: "get", recorded: "get", list: None },
    Method { word: "complete", recorded: "complete", list: None },
    Method { word: "read", recorded: "read", list: None },
    Method { word: "find", recorded: "find", list: None },
    Method { word: "skill", recorded: "skill", list: None },
    Method { word: "folder", recorded: "folder", list: None },
    Method { word: "follow", recorded: "follow", list: None },
    Method { word: "subscribe", recorded: "subscribe", list: None },
    Method { word: "overview", recorded: "overview", list: None },
    Method { word: "describe", recorded: "describe", list: None },
    Method { word: "diagnostics", recorded: "diagnostics", list: None },
    Method { word: "prompts/list", recorded: "list", list: Some("prompts") },
    Method { word: "prompts/get", recorded: "get", list: None },
    Method { word: "resources/list", recorded: "list", list: Some("resources") },
    Method { word: "resources/templates/list", recorded: "list", list: Some("resource-templates") },
    Method { word: "resources/read", recorded: "read", list: None },
    Method { word: "resources/directory/read", recorded: "folder", list: None },
    Method { word: "skills/list", recorded: "list", list: Some("skills") },
    Method { word: "skills/get", recorded: "skill", list: None },
    Method { word: "tools/list", recorded: "list", list: Some("tools") },
    Method { word: "resources/subscribe", recorded: "follow", list: None },
    Method { word: "subscriptions/listen", recorded: "subscribe", list: None },
    Method { word: "completion/complete", recorded: "complete", list: None },
];

fn find_method(word: &str) -> Result<&'static Method, Failure> {
    METHODS.iter().find(|method| method.word == word).ok_or_else(|| {
        let words = || METHODS.iter().map(|method| method.word);
        let help = match nearest(word, words()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("expected one of {}", words().collect::<Vec<_>>().join(", ")),
        };
        Failure::new(Exit::Usage, format!("--method: unknown method `{word}`")).help(help)
    })
}

/// The conditions that a record has to meet.
struct Filter<'a> {
    arguments: &'a AuditArguments,
    method: Option<&'static Method>,
    since: Option<jiff::Timestamp>,
}

impl<'a> Filter<'a> {
    fn new(arguments: &'a AuditArguments) -> Result<Filter<'a>, Failure> {
        let since = arguments.since.as_deref().map(parse_time).transpose();
        let since = since.map_err(|reason| Failure::new(Exit::Usage, format!("--since: {reason}")))?;
        let method = arguments.method.as_deref().map(find_method).transpose()?;
        Ok(Filter { arguments, method, since })
    }

    fn matches(&self, record: &Value) -> bool {
        let equals = |key: &str, expected: &Option<String>| {
            expected.as_deref().is_none_or(|expected| record[key].as_str() == Some(expected))
        };
        let arguments = self.arguments;
        let time = || record["time"].as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok());
        equals("caller", &arguments.caller)
            && self.method.is_none_or(|method| {
                record["method"].as_str() == Some(method.recorded)
                    && method.list.is_none_or(|list| record["list"].as_str() == Some(list))
            })
            && equals("prompt", &arguments.prompt)
            && equals("outcome", &arguments.outcome)
            && (!arguments.refused || record["outcome"].as_str() != Some("ok"))
            && self.since.is_none_or(|since| time().is_some_and(|time| time >= since))
    }
}

/// Parses a day (its beginning in UTC) or a time in RFC 3339.
fn parse_time(text: &str) -> Result<jiff::Timestamp, String> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let Day(day) = text.parse().map_err(|error: InvalidValue| error.to_string())?;
    day.try_into().map_err(|_| format!("`{text}` is out of range"))
}

/// Returns the columns of a record: time, caller, method, subject, outcome and duration.
fn fields(record: &Value) -> [String; 6] {
    let text = |key: &str| record[key].as_str().unwrap_or("-").to_owned();
    let subject = ["prompt", "resource", "list", "claimed"].iter().find_map(|key| record[*key].as_str());
    let subject = match (subject, record["count"].as_u64()) {
        // Refusals that were counted because they repeat others.
        (None, Some(count)) => format!("{count} more"),
        (subject, _) => subject.unwrap_or("-").to_owned(),
    };
    let duration = format!("{:.1} ms", record["milliseconds"].as_f64().unwrap_or_default());
    [text("time"), text("caller"), text("method"), subject, text("outcome"), duration]
}
