//! `promptshelf audit`: reads and filters recorded requests.

use std::{
    collections::{HashSet, VecDeque},
    fs::File,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use promptshelf_core::nearest;
use promptshelf_server::api::audit_methods;
use serde_json::Value;

use crate::{
    args::time::Moment,
    exit::{Exit, Failure},
    output::{Output, count, note, visible_json},
};

const AUDIT_EXAMPLES: &str = "\
Each record is one line: time, caller, method, subject, outcome, duration,
channel and request id, separated by tabs.

Examples:
  promptshelf audit audit.jsonl --refused --since 2027-01-31
  promptshelf audit one/audit.jsonl two/audit.jsonl --channel production
  promptshelf audit audit.jsonl --method prompts/get --json | jq -r .caller";

#[derive(Debug, Args)]
#[command(after_help = AUDIT_EXAMPLES)]
pub(crate) struct AuditArguments {
    /// The file of `serve --audit`, or those of several servers, whose records are joined in the order of time; rotated
    /// files (FILE.1, FILE.2, …) next to each are read too
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Only requests of this caller
    #[arg(long, value_name = "NAME")]
    pub(crate) caller: Option<String>,

    /// Only records of this kind: a method of MCP such as `prompts/get`, or the word in the records, such as get, sign-in,
    /// api/publish, rollout/stop or store/restore
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Option<String>,

    /// Only requests for this prompt
    #[arg(long, value_name = "NAME")]
    pub(crate) prompt: Option<String>,

    /// Only requests with this outcome, such as ok or unknown-prompt
    #[arg(long, value_name = "OUTCOME")]
    pub(crate) outcome: Option<String>,

    /// Only requests that failed or were rejected
    #[arg(long, conflicts_with = "outcome")]
    pub(crate) refused: bool,

    /// Only requests since a day or a time, such as 2027-01-31 or 2027-01-31T14:05:00Z; in UTC without a zone
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<Moment>,

    /// Only requests before a day or a time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<Moment>,

    /// Only requests for this channel
    #[arg(long, value_name = "NAME")]
    pub(crate) channel: Option<String>,

    /// Only the request with this id, which its answer has as `x-request-id`
    #[arg(long, value_name = "ID")]
    pub(crate) request: Option<String>,

    /// Only requests from this address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) address: Option<String>,

    /// Print the records unchanged, one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// The maximum length of a line, in bytes. The server writes shorter ones.
const MAX_LINE_BYTES: u64 = 1 << 20;

pub(crate) fn run(arguments: &AuditArguments) -> Result<(), Failure> {
    let filter = Filter::new(arguments)?;
    let mut output = Output::stdout();
    // `audit.jsonl*` names rotated files too, which are read once.
    let absolute = |file: &Path| std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let rotated = |file: &PathBuf| {
        let others = arguments.files.iter().filter(|other| *other != file);
        others.flat_map(|other| files(other)).any(|other| absolute(&other) == absolute(file))
    };
    let logs = arguments.files.iter().filter(|file| !rotated(file)).map(|file| Log::open(file));
    let mut logs = logs.collect::<Result<Vec<Log>, Failure>>()?;
    let (mut lost, mut counted, mut is_found) = (0, 0, false);
    // Each is in the order of time, and so are all together.
    while let Some(log) = logs.iter_mut().filter(|log| log.next.is_some()).min_by_key(|log| log.time) {
        let Some((line, record)) = log.take()? else { continue };
        if let Some(number) = record["lost"].as_u64() {
            lost += number;
            continue;
        }
        if !filter.matches(&record) {
            counted += filter.counted(&record);
            continue;
        }
        is_found = true;
        if arguments.json {
            let line = line.trim_end();
            let line = if output.escapes { visible_json(line) } else { line.into() };
            writeln!(output.out, "{line}")?;
        } else {
            let fields = fields(&record).map(|field| output.line(&field).into_owned());
            writeln!(output.out, "{}", fields.join("\t"))?;
        }
    }
    output.out.flush()?;
    if lost > 0 {
        let records = count(usize::try_from(lost).unwrap_or(usize::MAX), "record");
        note(&[format!("{records} could not be written, and are missing")]);
    }
    if counted > 0 && !(is_found && arguments.request.is_some()) {
        let refusals = count(usize::try_from(counted).unwrap_or(usize::MAX), "refusal");
        note(&[format!(
            "{refusals} more of these callers, methods and outcomes were only counted, so that their prompt, channel and id \
             are not known"
        )]);
    }
    let invalid = logs.iter().map(|log| log.invalid).sum();
    if invalid > 0 {
        note(&[format!("{} skipped: expected a JSON object on each line", count(invalid, "line"))]);
    }
    Ok(())
}

/// The records of one server: a file, after those that it was rotated to.
struct Log {
    newest: PathBuf,
    files: VecDeque<(PathBuf, Option<FileId>)>,
    reader: Option<BufReader<File>>,
    next: Option<(String, Value)>,
    /// The time of the next record; that of the one before if it has none.
    time: jiff::Timestamp,
    invalid: usize,
}

impl Log {
    fn open(newest: &Path) -> Result<Log, Failure> {
        // A server may rotate the files meanwhile, which only raises their numbers: in the order of their numbers none is
        // missed, and one that is met twice is known.
        let mut seen = HashSet::new();
        let listed = files(newest).into_iter().rev();
        let mut files: VecDeque<_> = VecDeque::new();
        for path in listed {
            let id = id(&path);
            if id.is_none_or(|id| seen.insert(id)) {
                files.push_front((path, id));
            }
        }
        let (newest, time) = (newest.to_owned(), jiff::Timestamp::MIN);
        let mut log = Log { newest, files, reader: None, next: None, time, invalid: 0 };
        log.advance()?;
        Ok(log)
    }

    fn take(&mut self) -> Result<Option<(String, Value)>, Failure> {
        let taken = self.next.take();
        self.advance()?;
        Ok(taken)
    }

    fn advance(&mut self) -> Result<(), Failure> {
        loop {
            let Some(reader) = &mut self.reader else {
                let Some((path, id)) = self.files.pop_front() else { return Ok(()) };
                self.reader = Some(BufReader::new(self.opened(&path, id)?));
                continue;
            };
            let Some(line) = next_line(reader)? else {
                self.reader = None;
                continue;
            };
            match serde_json::from_str::<Value>(&line) {
                Ok(record) => {
                    self.time = time(&record).unwrap_or(self.time);
                    self.next = Some((line, record));
                    return Ok(());
                }
                Err(_) => self.invalid += 1,
            }
        }
    }
}

impl Log {
    /// Opens a file, also one that was rotated to another name since it was listed.
    fn opened(&self, path: &Path, expected: Option<FileId>) -> Result<File, Failure> {
        let names = || [path.to_owned()].into_iter().chain(files(&self.newest));
        let open = |path: PathBuf| File::open(&path).ok().filter(|file| expected.is_none() || id_of(file) == expected);
        match (0..ATTEMPTS).find_map(|_| names().find_map(open)) {
            Some(file) => Ok(file),
            None => Err(match File::open(path) {
                Ok(_) => Failure::new(Exit::Failed, format!("{} was removed while it was read", path.display())),
                Err(error) => Failure::new(Exit::Failed, format!("{} cannot be read: {error}", path.display())),
            }),
        }
    }
}

/// The number of looks for a file that is rotated again and again.
const ATTEMPTS: usize = 10;

/// Tells a file from others of its name. None where the system has no such number.
type FileId = (u64, u64);

#[cfg(unix)]
fn id_of(file: &File) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt as _;

    file.metadata().ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn id_of(_: &File) -> Option<FileId> {
    None
}

fn id(path: &Path) -> Option<FileId> {
    File::open(path).ok().and_then(|file| id_of(&file))
}

fn time(record: &Value) -> Option<jiff::Timestamp> {
    record["time"].as_str()?.parse().ok()
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
#[derive(Clone, Copy)]
struct Method {
    word: &'static str,
    recorded: &'static str,
    list: Option<&'static str>,
}

/// The methods of the protocol.
const METHODS: &[Method] = &[
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

fn find_method(word: &str) -> Result<Method, Failure> {
    let own = audit_methods().map(|word| Method { word, recorded: word, list: None });
    let methods: Vec<Method> = METHODS.iter().copied().chain(own).collect();
    methods.iter().find(|method| method.word == word).copied().ok_or_else(|| {
        let words = || methods.iter().map(|method| method.word);
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
    method: Option<Method>,
    since: Option<jiff::Timestamp>,
    until: Option<jiff::Timestamp>,
}

impl<'a> Filter<'a> {
    fn new(arguments: &'a AuditArguments) -> Result<Filter<'a>, Failure> {
        let [since, until] = [&arguments.since, &arguments.until].map(|limit| limit.as_ref().map(|limit| limit.begin));
        let method = arguments.method.as_deref().map(find_method).transpose()?;
        Ok(Filter { arguments, method, since, until })
    }

    fn matches(&self, record: &Value) -> bool {
        let AuditArguments { prompt, channel, request, .. } = self.arguments;
        self.matches_common(record)
            && [("prompt", prompt), ("channel", channel), ("request", request)]
                .into_iter()
                .all(|(key, expected)| equals(record, key, expected.as_deref()))
            && self.method.and_then(|method| method.list).is_none_or(|list| record["list"].as_str() == Some(list))
    }

    /// Returns the number of refusals that could be meant, but of which only the number was recorded.
    fn counted(&self, record: &Value) -> u64 {
        record["count"].as_u64().filter(|_| self.matches_common(record)).unwrap_or_default()
    }

    /// Compares what records of single and of counted requests have.
    fn matches_common(&self, record: &Value) -> bool {
        let arguments = self.arguments;
        equals(record, "caller", arguments.caller.as_deref())
            && equals(record, "address", arguments.address.as_deref())
            && equals(record, "method", self.method.map(|method| method.recorded))
            && equals(record, "outcome", arguments.outcome.as_deref())
            && (!arguments.refused || !matches!(record["outcome"].as_str(), Some("ok" | "begun")))
            && self.since.is_none_or(|since| time(record).is_some_and(|time| time >= since))
            && self.until.is_none_or(|until| time(record).is_some_and(|time| time < until))
    }
}

fn equals(record: &Value, key: &str, expected: Option<&str>) -> bool {
    expected.is_none_or(|expected| record[key].as_str() == Some(expected))
}

/// Returns the columns of a record: time, caller, method, subject, outcome, duration, channel, request id, address and reason.
fn fields(record: &Value) -> [String; 10] {
    let text = |key: &str| record[key].as_str().unwrap_or("-").to_owned();
    let subject = ["prompt", "resource", "list", "claimed", "path", "to"].iter().find_map(|key| record[*key].as_str());
    let revision = record["revision"].as_u64().map(|revision| format!(", revision {revision}")).unwrap_or_default();
    let verdict = record["verdict"].as_str().map(|verdict| format!(": {verdict}")).unwrap_or_default();
    let subject = match (subject, record["proposal"].as_u64(), record["count"].as_u64()) {
        (Some(subject), ..) => subject.to_owned(),
        (None, Some(proposal), _) => format!("proposal {proposal}{verdict}{revision}"),
        // Refusals that were counted because they repeat others.
        (None, None, Some(count)) => format!("{count} more"),
        (None, None, None) => "-".to_owned(),
    };
    let duration = format!("{:.1} ms", record["milliseconds"].as_f64().unwrap_or_default());
    let [time, caller, method, outcome] = ["time", "caller", "method", "outcome"].map(text);
    let [channel, request, address, reason] = ["channel", "request", "address", "reason"].map(text);
    [time, caller, method, subject, outcome, duration, channel, request, address, reason]
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    // req: S-583
    #[test]
    fn rotation_during_a_read_hides_and_repeats_no_record() {
        for at in 0..6 {
            let folder = tempfile::tempdir().expect("a folder");
            let path = |suffix: &str| folder.path().join(format!("audit.jsonl{suffix}"));
            for (suffix, number) in [(".2", 0), (".1", 2), ("", 4)] {
                fs::write(path(suffix), format!("{{\"n\":{number}}}\n{{\"n\":{}}}\n", number + 1)).expect("written");
            }
            let mut log = Log::open(&path("")).expect("it opens");
            let mut numbers = Vec::new();
            while log.next.is_some() {
                if numbers.len() == at {
                    for (from, to) in [(".2", ".3"), (".1", ".2"), ("", ".1")] {
                        fs::rename(path(from), path(to)).expect("rotated");
                    }
                    fs::write(path(""), "{\"n\":6}\n").expect("written");
                }
                let (_, record) = log.take().expect("read").expect("a record");
                numbers.push(record["n"].as_u64().expect("a number"));
            }
            assert_eq!(numbers, [0, 1, 2, 3, 4, 5], "rotated after {at}");
        }
    }
}
