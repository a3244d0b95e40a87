//! Audit records: one for each operation, whatever its outcome.
//!
//! A record never holds contents or tokens. It holds the value of an argument only if the prompt's author has opted
//! in, and never that of a sensitive argument.
//!
//! Elsewhere: writing records to disk (`file`), counting further refusals (`refusals`), and removing secrets from
//! messages (`secrets`).

mod file;
mod writer;

use std::{
    borrow::Cow,
    cell::Cell,
    collections::{BTreeMap, HashMap},
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use promptshelf_core::{
    BoxFuture, Catalog, Problem, Prompt, RawArgumentValue, RawArguments, SourceText, invisible::stripped,
};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    caller::Caller,
    limit::address_key,
    rejection::Rejection,
    rollout::RolloutCall,
    slot::Slot,
    usage::{CountedCall, FormReaction},
};

pub use file::AuditFile;

/// Declares what records are of, with the words in them.
macro_rules! methods {
    ($($name:ident = $word:literal,)*) => {
        /// What a record is of. Nothing else can be recorded, so that a filter knows all words.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Method {
            $(#[doc = concat!("`", $word, "`.")] $name,)*
            /// An operation of the API, by the name that is declared with it.
            Api(&'static str),
        }

        impl Method {
            /// All but the operations of the API.
            pub const OWN: &'static [Method] = &[$(Method::$name),*];

            /// Returns the word in records.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Method::$name => $word,)*
                    Method::Api(word) => word,
                }
            }
        }
    };
}

methods! {
    List = "list",
    Get = "get",
    Complete = "complete",
    Read = "read",
    Find = "find",
    Skill = "skill",
    Folder = "folder",
    Follow = "follow",
    Subscribe = "subscribe",
    Overview = "overview",
    Describe = "describe",
    Diagnostics = "diagnostics",
    SignIn = "sign-in",
    Channel = "channel",
    Host = "host",
    LangfusePrompts = "api/langfuse-prompts",
    RolloutStep = "rollout/step",
    RolloutStop = "rollout/stop",
    StoreMigrate = "store/migrate",
    StoreCopy = "store/copy",
    StoreBackup = "store/backup",
    StoreRestore = "store/restore",
    StoreNewEpoch = "store/new-epoch",
    StoreVerify = "store/verify",
    StoreGc = "store/gc",
    StorePrune = "store/prune",
}

/// The outcome of a change that is recorded before it is made.
pub(crate) const BEGUN: &str = "begun";

/// Maximum length of a value, name or URI in a record, in bytes; the rest is cut off.
const MAX_TEXT: usize = 1_024;

/// A destination of audit records.
///
/// Called while a request is answered: an implementation must neither block nor wait.
pub trait Recorder: fmt::Debug + Send + Sync {
    /// Takes one record: a JSON object on one line, without a line end.
    fn record(&self, line: String);

    /// Returns whether records can be written. Operations are refused while they cannot.
    fn is_ready(&self) -> bool {
        true
    }

    /// Returns a future that resolves after the records of the meantime have been written, with `false` if one of them
    /// may be missing. Taken before an operation, and awaited between the operation and its answer. By default answers
    /// do not wait for their records.
    fn confirmation(&self) -> Option<BoxFuture<'static, bool>> {
        None
    }
}

pub(crate) struct AuditLog {
    recorder: Arc<dyn Recorder>,
    refusals: Refusals,
    digests: Mutex<HashMap<String, (Arc<SourceText>, String)>>,
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").field("recorder", &self.recorder).finish_non_exhaustive()
    }
}

impl AuditLog {
    pub(crate) fn new(recorder: Arc<dyn Recorder>) -> AuditLog {
        AuditLog { recorder, refusals: Refusals::default(), digests: Mutex::default() }
    }

    pub(crate) fn recorder(&self) -> &dyn Recorder {
        &*self.recorder
    }

    /// Records refusals that were only counted: all of them, or those of minutes that have passed.
    pub(crate) fn record_refusals(&self, all: bool) {
        self.refusals.take(all).into_iter().for_each(|record| self.recorder.record(record.to_string()));
    }

    /// Returns the SHA-256 of a prompt's file, computed once for each version of the file.
    fn digest(&self, prompt: &Prompt) -> Option<String> {
        let source = prompt.source();
        if source.text.is_empty() {
            return None;
        }
        let mut digests = self.digests.lock();
        if let Some((known, digest)) = digests.get(prompt.name().as_str())
            && Arc::ptr_eq(known, source)
        {
            return Some(digest.clone());
        }
        let bytes = Sha256::digest(source.text.as_bytes());
        let digest: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        digests.insert(prompt.name().to_string(), (Arc::clone(source), digest.clone()));
        Some(digest)
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.record_refusals(true);
    }
}

/// An operation in progress. Its record is written on drop, so that a cancelled operation leaves one too.
#[derive(Debug)]
pub(crate) struct Call {
    /// `None` without a recorder, so that nothing is collected.
    record: Option<Box<Record>>,
    /// Boxed, as the others are: an operation is moved through several functions, also where nothing is counted.
    counted: Option<Box<CountedCall>>,
    /// Boxed: few services have a rollout.
    compared: Option<Box<RolloutCall>>,
    _slot: Option<Slot>,
}

#[derive(Debug)]
struct Record {
    log: Arc<AuditLog>,
    started: Instant,
    outcome: &'static str,
    refusal: Refusal,
    members: Map<String, Value>,
}

impl Call {
    pub(crate) fn begin(log: Option<&Arc<AuditLog>>, caller: &Caller, method: Method) -> Call {
        let record = log.map(|log| {
            let mut members = Map::new();
            members.insert("time".into(), format!("{:.3}", Timestamp::now()).into());
            if let Some(request) = caller.request_id() {
                members.insert("request".into(), request.into());
            }
            members.insert("caller".into(), caller.name().into());
            if let Some(address) = caller.address() {
                members.insert("address".into(), address.to_string().into());
            }
            members.insert("method".into(), method.as_str().into());
            let log = Arc::clone(log);
            let address = caller.address().map(address_key);
            let refusal = Refusal { caller: caller.name().to_owned(), address, method, outcome: "" };
            Box::new(Record { log, started: Instant::now(), outcome: "cancelled", refusal, members })
        });
        Call { record, counted: None, compared: None, _slot: None }
    }

    /// Counts the operation in the usage metrics.
    pub(crate) fn count(&mut self, counted: Option<CountedCall>) {
        self.counted = counted.map(Box::new);
    }

    /// Counts the operation in the comparison of a rollout.
    pub(crate) fn compare(&mut self, call: RolloutCall) {
        self.compared = Some(Box::new(call));
    }

    /// Counts the user's reaction to a form.
    pub(crate) fn note_form(&self, reaction: FormReaction) {
        self.compared.iter().for_each(|compared| compared.note_form(reaction));
        self.counted.iter().for_each(|counted| counted.note_form(reaction));
    }

    /// Keeps a slot until the operation ends.
    pub(crate) fn hold(&mut self, slot: Option<Slot>) {
        self._slot = slot;
    }

    pub(crate) fn note(&mut self, key: &'static str, value: impl FnOnce() -> Value) {
        if let Some(record) = &mut self.record {
            record.members.insert(key.into(), value());
        }
    }

    pub(crate) fn note_generation(&mut self, catalog: &Catalog) {
        self.note("generation", || catalog.generation().into());
        self.note_provenance(catalog);
    }

    fn note_provenance(&mut self, catalog: &Catalog) {
        if let Some(found) = catalog.provenance() {
            let provenance = &found.provenance;
            if let Some(source) = provenance.source() {
                self.note("source", || source.into());
            }
            if let Some(channel) = provenance.channel() {
                self.note("channel", || channel.into());
            }
            if let Some(commit) = provenance.commit() {
                self.note("commit", || commit.id().into());
            }
        }
    }

    /// Adds a name or a URI that the caller sent, cut to [`MAX_TEXT`].
    pub(crate) fn note_text(&mut self, key: &'static str, text: &str) {
        self.note(key, || text[..text.floor_char_boundary(MAX_TEXT)].into());
    }

    /// Adds the version and the digest of the prompt: those of its author and file, and those of the channel.
    pub(crate) fn note_prompt(&mut self, prompt: &Prompt, catalog: &Catalog) {
        if self.record.is_none() {
            return;
        }
        if let Some((part, own)) = catalog.part_of(prompt) {
            self.note_provenance(&part.catalog);
            self.note("source", || (*part.source).into());
            return self.note_prompt(&own, &part.catalog);
        }
        let Some(record) = &mut self.record else { return };
        if let Some(found) = catalog.provenance().and_then(|found| found.prompt(prompt)) {
            record.members.insert("promptVersion".into(), found.version().into());
            record.members.insert("promptDigest".into(), found.digest().into());
            record.members.insert("approvedBy".into(), found.approved_by().into());
        }
        if let Some(version) = prompt.version() {
            record.members.insert("version".into(), version.into());
        }
        if let Some(digest) = record.log.digest(prompt) {
            record.members.insert("digest".into(), digest.into());
        }
    }

    /// Adds the total size of all values, and the values of arguments that are audited.
    pub(crate) fn note_arguments(&mut self, prompt: &Prompt, arguments: &RawArguments<'_>) {
        if let Some(counted) = &mut self.counted {
            counted.note_arguments(arguments);
        }
        let Some(record) = &mut self.record else { return };
        let text = |name: &str| match arguments.get(name) {
            Some(RawArgumentValue::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let bytes: usize = arguments
            .iter()
            .map(|(_, value)| match value {
                RawArgumentValue::Text(text) => text.len(),
                RawArgumentValue::Other(_) => 0,
            })
            .sum();
        record.members.insert("bytesIn".into(), bytes.into());
        let mut values = Map::new();
        for argument in prompt.arguments().iter().filter(|argument| argument.is_audited()) {
            if let Some(text) = text(argument.name()) {
                values.insert(argument.name().into(), text[..text.floor_char_boundary(MAX_TEXT)].into());
            }
        }
        if !values.is_empty() {
            record.members.insert("arguments".into(), values.into());
        }
    }

    /// Sets the outcome that is recorded unless a later one replaces it.
    pub(crate) fn set_outcome(&mut self, outcome: &'static str) {
        if let Some(record) = &mut self.record {
            record.outcome = outcome;
        }
        if let Some(counted) = &mut self.counted {
            counted.outcome = outcome;
        }
        if let Some(compared) = &mut self.compared {
            compared.outcome = outcome;
        }
    }

    /// Ends the operation like [`end`](Call::end), and records the size of the result.
    pub(crate) fn end_with<T>(
        mut self,
        answer: Result<T, Rejection>,
        size: impl FnOnce(&T) -> usize,
    ) -> Result<T, Rejection> {
        if let Ok(answer) = &answer
            && (self.record.is_some() || self.counted.is_some())
        {
            let bytes = size(answer);
            self.note("bytesOut", || bytes.into());
            self.counted.iter_mut().for_each(|counted| counted.note_size(bytes));
        }
        self.end(answer)
    }

    /// Ends the operation: records the outcome and returns the result.
    pub(crate) fn end<T>(mut self, answer: Result<T, Rejection>) -> Result<T, Rejection> {
        self.set_outcome(answer.as_ref().err().map_or("ok", Rejection::code));
        answer
    }
}

thread_local! {
    static HAS_TIMED_OUT: Cell<bool> = const { Cell::new(false) };
}

/// Drops a call whose time is over: it ends with the outcome `timed-out`, and not `cancelled`.
pub fn timed_out(drop: impl FnOnce()) {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            HAS_TIMED_OUT.set(false);
        }
    }
    HAS_TIMED_OUT.set(true);
    // Also after a panic.
    let _reset = Reset;
    drop();
}

/// Returns the outcome of a call that is dropped: `timed-out` in place of `cancelled`, if its time is over.
#[must_use]
pub fn outcome_at_drop(outcome: &'static str) -> &'static str {
    if outcome == "cancelled" && HAS_TIMED_OUT.get() { "timed-out" } else { outcome }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.outcome = outcome_at_drop(self.outcome);
        if !matches!(self.outcome, "ok" | "asked" | "cancelled" | BEGUN) {
            self.refusal.outcome = self.outcome;
            if !self.log.refusals.admit(&self.refusal) {
                return self.log.record_refusals(false);
            }
        }
        let mut members = std::mem::take(&mut self.members);
        members.insert("outcome".into(), self.outcome.into());
        let milliseconds = self.started.elapsed().as_micros() as f64 / 1_000.0;
        members.insert("milliseconds".into(), json!(milliseconds));
        self.log.recorder.record(Value::Object(members).to_string());
    }
}

/// Path, size and number of audit files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditFileOptions {
    /// The newest file. The names of older files end with `.1`, `.2` and so on.
    pub path: PathBuf,
    /// Size of a file at which the next one begins, in bytes. A file grows beyond it only if it cannot be rotated.
    pub max_bytes: u64,
    /// Number of older files.
    pub keep: u32,
    /// The age up to which older files stay, even if there are more than `keep`.
    pub keep_for: Option<Duration>,
    /// The consequence of records that cannot be written.
    pub on_loss: OnLoss,
}

/// The consequence of records that cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnLoss {
    /// Requests are answered, and lost records are counted.
    #[default]
    Count,
    /// A request is answered only after its record has been synchronised to disk, and refused otherwise.
    Refuse,
}

impl AuditFileOptions {
    /// Returns the default options: files of 64 MiB, eight older files, and losses are counted.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> AuditFileOptions {
        AuditFileOptions { path: path.into(), max_bytes: 64 << 20, keep: 8, keep_for: None, on_loss: OnLoss::Count }
    }
}

const HIDDEN: &str = "…";

#[derive(Debug)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    pub(crate) fn of(prompt: &Prompt, arguments: &RawArguments<'_>) -> Secrets {
        let sensitive = prompt.arguments().iter().filter(|argument| argument.is_sensitive());
        let texts = sensitive.filter_map(|argument| match arguments.get(argument.name()) {
            Some(RawArgumentValue::Text(text)) if !text.trim().is_empty() => Some(text.trim()),
            _ => None,
        });
        // Prompts may receive values without their invisible characters.
        let mut values: Vec<String> =
            texts.flat_map(|text| [text.into(), stripped(text)]).map(Cow::into_owned).collect();
        values.retain(|value| !value.trim().is_empty());
        // One value may contain another one, so longer values are replaced first.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Secrets(values)
    }

    /// Returns a text without the secrets.
    pub(crate) fn hide(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| if text.contains(secret) { text.replace(secret, HIDDEN) } else { text })
    }

    /// Returns a rejection without the secrets.
    pub(crate) fn hide_in(&self, rejection: Rejection) -> Rejection {
        if self.0.is_empty() {
            return rejection;
        }
        match rejection {
            Rejection::InvalidArguments { prompt, problems } => {
                let hidden = |problem: Problem| Problem { reason: self.hide(problem.reason), ..problem };
                Rejection::InvalidArguments { prompt, problems: problems.into_iter().map(hidden).collect() }
            }
            Rejection::UnusableArguments { prompt, reason } => {
                Rejection::UnusableArguments { prompt, reason: self.hide(reason) }
            }
            other => other,
        }
    }
}

trait Disk: fmt::Debug + Send {
    fn open(&mut self, path: &Path) -> io::Result<Box<dyn AppendFile>>;
    /// Creates an empty file, in place of an existing one.
    fn create(&mut self, path: &Path) -> io::Result<Box<dyn AppendFile>>;
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&mut self, path: &Path) -> io::Result<()>;
    /// Returns the numbers of rotated files, with the time of the last record of each.
    fn rotated(&mut self, path: &Path) -> io::Result<BTreeMap<u32, SystemTime>>;
}

/// A file that is only appended to.
trait AppendFile: fmt::Debug + Send {
    fn length(&mut self) -> io::Result<u64>;
    /// Returns whether the file is empty or its last line has an end.
    fn ends_with_a_line(&mut self) -> io::Result<bool>;
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    fn truncate(&mut self, length: u64) -> io::Result<()>;
    /// Waits until all bytes are on the disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Returns what other programs have done with the file, whose name is the path.
    fn fate(&self, path: &Path) -> Fate;
}

/// What other programs have done with an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InPlace,
    /// The file has another name, or none that is known.
    Moved,
    /// The file has no name: what is written to it is lost.
    Removed,
}

#[derive(Debug)]
struct RealDisk;

impl Disk for RealDisk {
    fn open(&mut self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        Ok(Box::new(RealFile { file: options().append(true).open(path)?, path: path.to_owned() }))
    }

    fn create(&mut self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        // Appending and truncating exclude each other, but a link in the way must not be followed.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = options().append(true).create_new(true).open(path)?;
        Ok(Box::new(RealFile { file, path: path.to_owned() }))
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn rotated(&mut self, path: &Path) -> io::Result<BTreeMap<u32, SystemTime>> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let prefix = path.file_name().and_then(|name| name.to_str()).map(|name| format!("{name}."));
        let mut rotated = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(prefix.as_deref()?)).and_then(number);
            if let Some(number) = number {
                rotated.insert(number, entry.metadata()?.modified()?);
            }
        }
        Ok(rotated)
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Parses the number of a rotated file: decimal, from 1, without leading zeros.
fn number(suffix: &str) -> Option<u32> {
    let number = suffix.parse::<u32>().ok().filter(|number| *number > 0)?;
    (suffix == number.to_string()).then_some(number)
}

#[derive(Debug)]
struct RealFile {
    file: File,
    path: PathBuf,
}

impl AppendFile for RealFile {
    fn length(&mut self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn ends_with_a_line(&mut self) -> io::Result<bool> {
        if self.length()? == 0 {
            return Ok(true);
        }
        // The file itself is open for writing only.
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        Ok(last == *b"\n")
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    #[cfg(unix)]
    fn fate(&self, path: &Path) -> Fate {
        use std::os::unix::fs::MetadataExt as _;

        let id = |found: &fs::Metadata| (found.dev(), found.ino());
        match (self.file.metadata(), fs::metadata(path)) {
            (Ok(open), Ok(named)) if id(&open) == id(&named) => Fate::InPlace,
            (Ok(open), _) if open.nlink() == 0 => Fate::Removed,
            (Ok(_), Ok(_)) => Fate::Moved,
            (Ok(_), Err(error)) if error.kind() == io::ErrorKind::NotFound => Fate::Moved,
            // What cannot be seen is no reason to leave a file that can be written.
            _ => Fate::InPlace,
        }
    }

    #[cfg(not(unix))]
    fn fate(&self, path: &Path) -> Fate {
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Fate::Moved,
            _ => Fate::InPlace,
        }
    }
}

// Repeated refusals of a caller, which are counted instead of recorded one by one: a caller that sends requests to be
// refused would otherwise replace the records of everything else.

/// The number of refusals of one kind that are recorded in full within an interval.
const IN_FULL: u64 = 10;

/// The time that one count covers.
const INTERVAL: Duration = Duration::from_secs(60);

const SEARCH: Duration = Duration::from_secs(1);

/// Maximum number of counts at once; beyond it all are recorded and start again.
const MAX_COUNTS: usize = 1_024;

/// The kind of a refusal: refusals that are equal are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Refusal {
    caller: String,
    address: Option<String>,
    method: Method,
    outcome: &'static str,
}

#[derive(Debug)]
struct Count {
    begun: Instant,
    /// The time of the first refusal that was only counted.
    since: Timestamp,
    refusals: u64,
}

#[derive(Debug, Default)]
struct Refusals(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    counts: HashMap<Refusal, Count>,
    /// Counts that made room for others, and wait to be recorded.
    displaced: Vec<Value>,
    searched: Option<Instant>,
}

impl Refusals {
    /// Counts a refusal. Returns whether it is recorded in full.
    fn admit(&self, refusal: &Refusal) -> bool {
        let State { counts, displaced, .. } = &mut *self.state();
        if counts.len() >= MAX_COUNTS && !counts.contains_key(refusal) {
            displaced.extend(counts.drain().filter_map(|(refusal, count)| record(&refusal, &count)));
        }
        let new = || Count { begun: Instant::now(), since: Timestamp::now(), refusals: 0 };
        let count = counts.entry(refusal.clone()).or_insert_with(new);
        count.refusals += 1;
        if count.refusals == IN_FULL + 1 {
            count.since = Timestamp::now();
        }
        count.refusals <= IN_FULL
    }

    /// Removes the counts of intervals that have passed, or all of them, and returns their records.
    fn take(&self, all: bool) -> Vec<Value> {
        let State { counts, displaced, searched } = &mut *self.state();
        let mut records = std::mem::take(displaced);
        // Called for each refusal: a search of all counts each time would make refusals expensive.
        if !all && searched.is_some_and(|searched| searched.elapsed() < SEARCH) {
            return records;
        }
        *searched = Some(Instant::now());
        let passed = counts.extract_if(|_, count| all || count.begun.elapsed() >= INTERVAL);
        records.extend(passed.filter_map(|(refusal, count)| record(&refusal, &count)));
        records
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

/// Returns the record of refusals that were not recorded in full.
fn record(refusal: &Refusal, count: &Count) -> Option<Value> {
    let further = count.refusals.checked_sub(IN_FULL).filter(|further| *further > 0)?;
    let mut record = json!({
        "time": format!("{:.3}", Timestamp::now()),
        "since": format!("{:.3}", count.since),
        "caller": refusal.caller,
        "method": refusal.method.as_str(),
        "outcome": refusal.outcome,
        "count": further,
    });
    if let Some(address) = &refusal.address {
        record["address"] = address.as_str().into();
    }
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(caller: &str, outcome: &'static str) -> Refusal {
        Refusal { caller: caller.to_owned(), address: Some("10.0.0.1".to_owned()), method: Method::Get, outcome }
    }

    // req: S-79
    #[test]
    fn refusals_are_counted_per_caller_and_reason() {
        let refusals = Refusals::default();
        let in_full = (0..5_000).filter(|_| refusals.admit(&refusal("eve", "unknown-prompt"))).count();
        assert_eq!(in_full as u64, IN_FULL);
        assert!(
            refusals.admit(&refusal("eve", "invalid-arguments")) && refusals.admit(&refusal("ada", "unknown-prompt"))
        );
        assert!(refusals.take(false).is_empty(), "the interval has not passed");
        let records = refusals.take(true);
        assert_eq!(records.len(), 1, "{records:?}");
        assert_eq!(
            (&records[0]["caller"], &records[0]["outcome"], &records[0]["count"]),
            (&json!("eve"), &json!("unknown-prompt"), &json!(4_990))
        );
        assert!(refusals.take(true).is_empty() && refusals.admit(&refusal("eve", "unknown-prompt")));
    }

    // req: S-79
    #[test]
    fn many_callers_are_bounded_and_counted() {
        let refusals = Refusals::default();
        let mut in_full = 0;
        for number in 0..20_000 {
            let caller = refusal(&format!("caller {}", number % 1_500), "too-many-requests");
            in_full += u64::from(refusals.admit(&caller));
            assert!(refusals.state().counts.len() <= MAX_COUNTS);
        }
        let counted: u64 = refusals.take(true).iter().filter_map(|record| record["count"].as_u64()).sum();
        assert_eq!(in_full + counted, 20_000);
    }
}
