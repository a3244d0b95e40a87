//! What happened: one record a question, whatever became of it.
//!
//! A record never holds contents, tokens, or values of arguments, except of
//! those whose author has opted in; and never those of a sensitive one.

mod file;
mod secrets;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use jiff::Timestamp;
use promptshelf_core::{Prompt, RawArgumentValue, RawArguments, SourceText};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{Caller, Rejection, limit::Slot};

pub use file::{AuditFile, AuditFileOptions};
pub(crate) use secrets::Secrets;

/// The most bytes of a value, a name or a URI that a record holds.
const MAX_TEXT: usize = 1_024;

/// Takes records. It has to be quick, and must not wait.
pub trait Recorder: fmt::Debug + Send + Sync {
    /// Takes one record, as one line of JSON without its end.
    fn record(&self, line: String);
}

/// Where records go, and what makes them cheap.
pub(crate) struct Journal {
    recorder: Arc<dyn Recorder>,
    /// By prompt, the text that a digest was last computed of.
    digests: Mutex<HashMap<String, (Arc<SourceText>, String)>>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("recorder", &self.recorder).finish_non_exhaustive()
    }
}

impl Journal {
    pub(crate) fn new(recorder: Arc<dyn Recorder>) -> Journal {
        Journal { recorder, digests: Mutex::default() }
    }

    /// The SHA-256 of a prompt's file, computed once for each version of it.
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

/// A question that is being answered. What is known of it is recorded when it
/// is dropped, so that a question that nobody waits for leaves a record too.
#[derive(Debug)]
pub(crate) struct Call {
    /// Nothing is gathered where nothing is recorded.
    entry: Option<Box<Entry>>,
    _slot: Option<Slot>,
}

#[derive(Debug)]
struct Entry {
    journal: Arc<Journal>,
    started: Instant,
    /// What became of it, unless somebody says otherwise.
    outcome: &'static str,
    members: Map<String, Value>,
}

impl Call {
    pub(crate) fn begin(journal: Option<&Arc<Journal>>, caller: &Caller, method: &'static str) -> Call {
        let entry = journal.map(|journal| {
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
            let journal = Arc::clone(journal);
            Box::new(Entry { journal, started: Instant::now(), outcome: "cancelled", members })
        });
        Call { entry, _slot: None }
    }

    pub(crate) fn hold(&mut self, slot: Option<Slot>) {
        self._slot = slot;
    }

    /// Adds something that the question or the answer says of itself.
    pub(crate) fn note(&mut self, key: &'static str, value: impl FnOnce() -> Value) {
        if let Some(entry) = &mut self.entry {
            entry.members.insert(key.into(), value());
        }
    }

    /// Adds a name or a URI that a caller sent.
    pub(crate) fn name(&mut self, key: &'static str, text: &str) {
        self.note(key, || text[..text.floor_char_boundary(MAX_TEXT)].into());
    }

    pub(crate) fn prompt(&mut self, prompt: &Prompt) {
        let Some(entry) = &mut self.entry else { return };
        if let Some(version) = prompt.version() {
            entry.members.insert("version".into(), version.into());
        }
        if let Some(digest) = entry.journal.digest(prompt) {
            entry.members.insert("digest".into(), digest.into());
        }
    }

    /// Adds how large the values are, and those that may be recorded.
    pub(crate) fn given(&mut self, prompt: &Prompt, given: &RawArguments<'_>) {
        let Some(entry) = &mut self.entry else { return };
        let text = |name: &str| match given.get(name) {
            Some(RawArgumentValue::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let bytes: usize = given.names().filter_map(text).map(|text| text.len()).sum();
        entry.members.insert("bytesIn".into(), bytes.into());
        let mut values = Map::new();
        for argument in prompt.arguments().iter().filter(|argument| argument.is_audited()) {
            if let Some(text) = text(argument.name()) {
                values.insert(argument.name().into(), text[..text.floor_char_boundary(MAX_TEXT)].into());
            }
        }
        if !values.is_empty() {
            entry.members.insert("arguments".into(), values.into());
        }
    }

    /// Says what it is called when nothing more happens.
    pub(crate) fn otherwise(&mut self, outcome: &'static str) {
        if let Some(entry) = &mut self.entry {
            entry.outcome = outcome;
        }
    }

    /// The same, with how large the answer is.
    pub(crate) fn end_with<T>(
        mut self,
        answer: Result<T, Rejection>,
        size: impl FnOnce(&T) -> usize,
    ) -> Result<T, Rejection> {
        if let Ok(answer) = &answer {
            self.note("bytesOut", || size(answer).into());
        }
        self.end(answer)
    }

    /// Says what became of it, and passes it on.
    pub(crate) fn end<T>(mut self, answer: Result<T, Rejection>) -> Result<T, Rejection> {
        self.otherwise(answer.as_ref().err().map_or("ok", Rejection::code));
        answer
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut members = std::mem::take(&mut self.members);
        members.insert("outcome".into(), self.outcome.into());
        let milliseconds = self.started.elapsed().as_micros() as f64 / 1_000.0;
        members.insert("milliseconds".into(), json!(milliseconds));
        self.journal.recorder.record(Value::Object(members).to_string());
    }
}
