//! Audit records: one for each operation, whatever its outcome.
//!
//! A record never holds contents or tokens. It holds the value of an argument only if the prompt's author has opted
//! in, and never that of a sensitive argument.
//!
//! Elsewhere: writing records to disk (`file`), counting further refusals (`refusals`), and removing secrets from
//! messages (`secrets`).

mod disk;
mod file;
mod options;
mod refusals;
mod secrets;
mod writer;

use std::{
    cell::Cell,
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use jiff::Timestamp;
use promptshelf_core::{BoxFuture, Catalog, Prompt, RawArgumentValue, RawArguments, SourceText};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use self::refusals::{Refusal, Refusals};
use crate::{
    caller::Caller,
    limit::address_key,
    rejection::Rejection,
    rollout::RolloutCall,
    slot::Slot,
    usage::{CountedCall, FormReaction},
};

pub use file::AuditFile;
pub use options::{AuditFileOptions, OnLoss};
pub(crate) use secrets::Secrets;

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
        let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
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
    pub(crate) fn begin(log: Option<&Arc<AuditLog>>, caller: &Caller, method: &'static str) -> Call {
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
            members.insert("method".into(), method.into());
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

/// The outcome of a call that is dropped.
pub(crate) fn at_drop(outcome: &'static str) -> &'static str {
    if outcome == "cancelled" && HAS_TIMED_OUT.get() { "timed-out" } else { outcome }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.outcome = at_drop(self.outcome);
        if !matches!(self.outcome, "ok" | "asked" | "cancelled") {
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
