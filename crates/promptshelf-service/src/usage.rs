//! Usage: who calls which prompt how often, with which outcome. No contents and no values are counted.
//!
//! Requests add to a table of bounded size; a task outside of this crate drains it. `clients` has the names of client
//! programs. The figures themselves are in `promptshelf_core::usage`.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    hash::Hasher,
    net::IpAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU16, AtomicU64, Ordering},
    },
    time::Instant,
};

use parking_lot::{Mutex, RwLock};
use promptshelf_core::{
    Argument, Catalog, CatalogProvenance, CompletionSource, Prompt, PromptName, PromptProvenance, RawArgumentValue,
    RawArguments,
    usage::{FormCounts, UsageFigures, UsageKey},
};
use serde_json::Value;
use siphasher::sip::SipHasher13;

use crate::{audit::outcome_at_drop, caller::Caller};

/// The most keys between two drains, about 600 bytes each.
const MAX_KEYS: usize = 16_000;

const MAX_ARGUMENTS: usize = 64;

/// The outcome of requests for names that do not exist, or that their callers may not see.
pub const UNKNOWN_PROMPT: &str = "unknown-prompt";

/// The most unknown names between two drains.
const MAX_UNKNOWN: usize = 500;

const MAX_SUGGESTIONS: usize = 64;

/// Counters of all services of a server. Clones share them.
///
/// ```
/// use promptshelf_core::{CatalogHandle, Definitions, PromptDefinition, RawArguments, check};
/// use promptshelf_service::{Caller, Service, Usage};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), promptshelf_service::Rejection> {
/// let greet = PromptDefinition::template("greet", "Say hello.");
/// let definitions = Definitions { prompts: vec![greet.into()], ..Definitions::default() };
/// let usage = Usage::new();
/// let service = Service::new(CatalogHandle::new(check(definitions, None).catalog)).with_usage(&usage, "");
/// service.get(&Caller::local(), "greet", &RawArguments::new()).await?;
/// let drained = usage.drain();
/// let (key, figures) = drained.iter().next().unwrap();
/// assert_eq!((key.prompt.as_str(), key.outcome.as_str(), figures.count), ("greet", "ok", 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Usage(Arc<Inner>);

#[derive(Default)]
struct Inner {
    figures: Mutex<Figures>,
    clients: ClientNames,
    key: OnceLock<[u8; 16]>,
    lost: AtomicU64,
}

#[derive(Default)]
struct Figures {
    of: BTreeMap<UsageKey, UsageFigures>,
    /// The number of keys with unknown names.
    unknown: usize,
    drained: PromptCalls,
}

/// The number of calls by prompt and outcome, and of those among them with an unknown argument. Calls of unknown prompts have
/// an empty name.
pub type PromptCalls = BTreeMap<(String, String), (u64, u64)>;

/// The most prompts and outcomes that [`PromptCalls`] tells apart; the rest is `other`.
const MAX_CALLS: usize = 10_000;

fn add_calls(calls: &mut PromptCalls, figures: &BTreeMap<UsageKey, UsageFigures>) {
    for (key, figures) in figures.iter().filter(|(key, _)| key.method != "completion/complete") {
        let name = if key.outcome == UNKNOWN_PROMPT { "" } else { &key.prompt };
        let mut place = (name.to_owned(), key.outcome.clone());
        if calls.len() >= MAX_CALLS && !calls.contains_key(&place) {
            OTHER.clone_into(&mut place.0);
        }
        let (count, unknown) = calls.entry(place).or_default();
        *count += figures.count;
        *unknown += figures.unknown_arguments;
    }
}

/// The counters of a service, with the channel that it serves. Clones share them.
#[derive(Clone)]
pub(crate) struct ServiceUsage(Arc<ChannelUsage>);

struct ChannelUsage {
    usage: Usage,
    channel: String,
}

/// A call in progress. It is counted on drop, so that a cancelled call is counted too.
pub(crate) struct CountedCall {
    service: Arc<ChannelUsage>,
    started: Instant,
    caller: Option<u64>,
    client: ClientTag,
    prompt: Arc<Prompt>,
    name: String,
    version: u64,
    left_out: Vec<usize>,
    taken: Vec<usize>,
    has_unknown: bool,
    /// The size of the answer, in bytes.
    bytes_out: u64,
    forms: [AtomicU16; 3],
    method: &'static str,
    pub(crate) outcome: &'static str,
}

/// The user's reaction to a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormReaction {
    /// The form was filled in.
    Accepted,
    /// The user refused to answer.
    Declined,
    /// The form was closed without a choice.
    Cancelled,
}

impl fmt::Debug for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Usage")
    }
}

impl fmt::Debug for ServiceUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceUsage({})", self.0.channel)
    }
}

impl fmt::Debug for CountedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CountedCall({}, {})", self.method, self.outcome)
    }
}

impl Usage {
    /// Creates counters without a key: callers are not distinguished until [`set_key`](Usage::set_key).
    #[must_use]
    pub fn new() -> Usage {
        Usage::default()
    }

    /// Sets the key of callers' hashes. Figures with the same key can be merged. The first call counts.
    pub fn set_key(&self, key: [u8; 16]) {
        // Another key would count every caller twice.
        let _ = self.0.key.set(key);
    }

    /// Returns whether the key is set.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.0.key.get().is_some()
    }

    /// Returns the tag of a client program that declares itself in JSON, as `clientInfo` of the protocol does, or in a
    /// header `User-Agent`. `protocol` is the revision of the protocol.
    ///
    /// Names and versions are cut to 64 characters. At most 500 programs are distinguished between two drains; further
    /// ones, and texts of more than 1,024 bytes, are `other`.
    #[must_use]
    pub fn client(&self, declared: &str, protocol: &'static str) -> ClientTag {
        self.0.clients.tag(declared, protocol)
    }

    /// Returns how many calls were not counted because too many figures were waiting.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Counts calls as lost whose figures were given up after a drain.
    pub fn add_lost(&self, calls: u64) {
        self.0.lost.fetch_add(calls, Ordering::Relaxed);
    }

    /// Takes all figures out of the counters.
    #[must_use]
    pub fn drain(&self) -> BTreeMap<UsageKey, UsageFigures> {
        let mut figures = self.0.figures.lock();
        figures.unknown = 0;
        let drained = std::mem::take(&mut figures.of);
        add_calls(&mut figures.drained, &drained);
        self.0.clients.forget_unused();
        drained
    }

    /// Returns all calls since the start, drained or not.
    #[must_use]
    pub fn calls(&self) -> PromptCalls {
        let figures = self.0.figures.lock();
        let mut calls = figures.drained.clone();
        add_calls(&mut calls, &figures.of);
        calls
    }

    /// The keyed hash of a caller: of its identity, or the address of an anonymous one.
    fn hash(&self, caller: &Caller) -> Option<u64> {
        let mut hasher = SipHasher13::new_with_key(self.0.key.get()?);
        hasher.write(caller.key().as_bytes());
        if caller.identity().is_none() {
            match caller.address() {
                Some(IpAddr::V4(address)) => hasher.write(&address.octets()),
                // A household or a machine has a network of 64 bits.
                Some(IpAddr::V6(address)) => hasher.write(&address.octets()[..8]),
                None => {}
            }
        }
        Some(hasher.finish())
    }

    fn count(&self, call: &CountedCall) {
        let key = call.key();
        let mut figures = self.0.figures.lock();
        if figures.of.len() < MAX_KEYS || figures.of.contains_key(&key) {
            call.add_to(figures.of.entry(key).or_default());
        } else {
            self.add_lost(1);
        }
    }
}

impl ServiceUsage {
    pub(crate) fn new(usage: &Usage, channel: &str) -> ServiceUsage {
        ServiceUsage(Arc::new(ChannelUsage { usage: usage.clone(), channel: channel.to_owned() }))
    }

    pub(crate) fn usage(&self) -> &Usage {
        &self.0.usage
    }

    /// Counts a call of a name that is no prompt for the caller.
    pub(crate) fn count_unknown(&self, caller: &Caller, method: &'static str, name: &str) {
        let (client, client_version, protocol) = caller.client().parts();
        let mut key = UsageKey {
            channel: self.0.channel.clone(),
            // Other texts are no names that a prompt ever had.
            prompt: PromptName::new(name).map_or_else(|_| OTHER.to_owned(), |name| name.to_string()),
            version: 0,
            client: client.to_owned(),
            client_version: client_version.to_owned(),
            protocol: protocol.to_owned(),
            method: method.to_owned(),
            outcome: UNKNOWN_PROMPT.to_owned(),
        };
        let usage = &self.0.usage;
        let mut figures = usage.0.figures.lock();
        if !figures.of.contains_key(&key) {
            if figures.unknown >= MAX_UNKNOWN {
                key.prompt = OTHER.to_owned();
            }
            figures.unknown += 1;
        }
        let counted = figures.of.entry(key).or_default();
        counted.count += 1;
        usage.hash(caller).into_iter().for_each(|caller| counted.callers.add(caller));
    }

    /// Begins to count a call of a prompt that the caller may use.
    pub(crate) fn begin(
        &self,
        caller: &Caller,
        method: &'static str,
        prompt: &Arc<Prompt>,
        catalog: &Catalog,
    ) -> CountedCall {
        // A prompt of a channel is counted under its name there, as reviews and the history name it.
        let name = catalog.name_in_channel(prompt);
        let version = |found: Option<&CatalogProvenance>, prompt: &Prompt| {
            found.and_then(|found| found.prompt(prompt)).map_or(0, PromptProvenance::version)
        };
        let version = match catalog.part_of(prompt) {
            Some((part, own)) => version(part.catalog.provenance(), &own),
            None => version(catalog.provenance(), prompt),
        };
        CountedCall {
            service: Arc::clone(&self.0),
            started: Instant::now(),
            caller: self.0.usage.hash(caller),
            client: caller.client().clone(),
            prompt: Arc::clone(prompt),
            name: name.to_string(),
            version,
            left_out: Vec::new(),
            taken: Vec::new(),
            has_unknown: false,
            bytes_out: 0,
            forms: Default::default(),
            method,
            outcome: "cancelled",
        }
    }
}

impl CountedCall {
    /// Counts the call under the former name that it asks for.
    pub(crate) fn under(mut self, alias: Option<&str>) -> CountedCall {
        alias.iter().for_each(|alias| self.name = (*alias).to_owned());
        self
    }

    /// Notes the arguments that a call leaves out, and those whose value is one of the suggestions for them.
    pub(crate) fn note_arguments(&mut self, arguments: &RawArguments<'_>) {
        let is_known = |name: &str| self.prompt.arguments().iter().any(|argument| argument.name() == name);
        self.has_unknown = arguments.names().take(MAX_ARGUMENTS).any(|name| !is_known(name));
        for (index, argument) in self.prompt.arguments().iter().enumerate().take(MAX_ARGUMENTS) {
            match arguments.get(argument.name()) {
                None => self.left_out.push(index),
                Some(RawArgumentValue::Text(value)) if is_suggested(argument, value) => self.taken.push(index),
                Some(_) => {}
            }
        }
    }

    /// Notes the size of the answer, in bytes.
    pub(crate) fn note_size(&mut self, bytes: usize) {
        self.bytes_out = bytes as u64;
    }

    pub(crate) fn note_form(&self, reaction: FormReaction) {
        self.forms[reaction as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn key(&self) -> UsageKey {
        let (client, client_version, protocol) = self.client.parts();
        UsageKey {
            channel: self.service.channel.clone(),
            prompt: self.name.clone(),
            version: self.version,
            client: client.to_owned(),
            client_version: client_version.to_owned(),
            protocol: protocol.to_owned(),
            method: self.method.to_owned(),
            outcome: self.outcome.to_owned(),
        }
    }

    fn add_to(&self, figures: &mut UsageFigures) {
        figures.count += 1;
        figures.latencies.add(self.started.elapsed());
        self.caller.iter().for_each(|caller| figures.callers.add(*caller));
        figures.bytes_out = figures.bytes_out.saturating_add(self.bytes_out);
        let [accepted, declined, cancelled] = self.forms.each_ref().map(|form| form.load(Ordering::Relaxed).into());
        figures.forms.merge(FormCounts { accepted, declined, cancelled });
        let arguments = self.prompt.arguments();
        let add = |counts: &mut BTreeMap<String, u64>, index: usize, count| {
            *counts.entry(arguments[index].name().to_owned()).or_default() += count;
        };
        // A rendered call notes its arguments: zero means that this version has the argument.
        if self.outcome == "ok" && ["prompts/get", "tools/call"].contains(&self.method) {
            (0..arguments.len().min(MAX_ARGUMENTS)).for_each(|index| add(&mut figures.left_out, index, 0));
        }
        figures.unknown_arguments += u64::from(self.has_unknown);
        self.left_out.iter().for_each(|index| add(&mut figures.left_out, *index, 1));
        self.taken.iter().for_each(|index| add(&mut figures.taken, *index, 1));
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        self.outcome = outcome_at_drop(self.outcome);
        self.service.usage.count(self);
    }
}

/// Whether a value is one of the fixed suggestions for an argument. A sensitive value is not compared, and neither are
/// long lists, which would cost more than the rest of the count.
fn is_suggested(argument: &Argument, value: &str) -> bool {
    if argument.is_sensitive() {
        return false;
    }
    match argument.completion() {
        Some(CompletionSource::Values(values)) if values.len() <= MAX_SUGGESTIONS => {
            values.iter().any(|one| one == value)
        }
        Some(_) => false,
        None => argument.choices().iter().take(MAX_SUGGESTIONS).any(|choice| choice.value == value),
    }
}

const MAX_CLIENTS: usize = 500;

/// The longest declaration that is read, in bytes.
const MAX_DECLARATION: usize = 1_024;

const MAX_NAME: usize = 64;

const OTHER: &str = "other";

const PREVIEW: &str = "promptshelf-preview";

/// A client program and the revision of the protocol that it speaks. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientTag {
    name: Option<Arc<ClientName>>,
    protocol: &'static str,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ClientName {
    name: String,
    version: String,
}

impl ClientTag {
    fn parts(&self) -> (&str, &str, &str) {
        let (name, version) = self.name.as_ref().map_or(("", ""), |name| (&name.name, &name.version));
        (name, version, self.protocol)
    }

    /// Whether the requests are previews, which are not calls: the page renders a prompt while its form is filled in.
    #[must_use]
    pub fn is_preview(&self) -> bool {
        self.name.as_ref().is_some_and(|name| name.name == PREVIEW)
    }

    /// Sets the revision of the protocol, and keeps the program.
    #[must_use]
    pub fn with_protocol(self, protocol: &'static str) -> ClientTag {
        ClientTag { protocol, ..self }
    }
}

#[derive(Debug)]
struct ClientNames {
    known: RwLock<HashMap<Box<str>, Arc<ClientName>>>,
    other: Arc<ClientName>,
}

impl Default for ClientNames {
    fn default() -> ClientNames {
        let other = Arc::new(ClientName { name: OTHER.to_owned(), version: String::new() });
        ClientNames { known: RwLock::default(), other }
    }
}

impl ClientNames {
    fn tag(&self, declared: &str, protocol: &'static str) -> ClientTag {
        ClientTag { name: Some(self.name(declared)), protocol }
    }

    fn name(&self, declared: &str) -> Arc<ClientName> {
        if declared.len() > MAX_DECLARATION {
            return Arc::clone(&self.other);
        }
        let known = self.known.read();
        if let Some(name) = known.get(declared) {
            return Arc::clone(name);
        }
        if known.len() >= MAX_CLIENTS {
            return Arc::clone(&self.other);
        }
        drop(known);
        let name = Arc::new(ClientName::read(declared));
        let mut known = self.known.write();
        Arc::clone(known.entry(declared.into()).or_insert(name))
    }

    /// Makes room for other programs once the table is full.
    fn forget_unused(&self) {
        let mut known = self.known.write();
        if known.len() >= MAX_CLIENTS {
            known.retain(|_, name| Arc::strong_count(name) > 1);
        }
    }
}

impl ClientName {
    /// Reads the members `name` and `version` of an object, or the first product of a `User-Agent`.
    fn read(declared: &str) -> ClientName {
        let (name, version) = match serde_json::from_str(declared) {
            Ok(Value::Object(members)) => {
                let text = |key: &str| members.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                (text("name"), text("version"))
            }
            _ => {
                let product = declared.split_whitespace().next().unwrap_or_default();
                let (name, version) = product.split_once('/').unwrap_or((product, ""));
                (name.to_owned(), version.to_owned())
            }
        };
        ClientName { name: clean(&name), version: clean(&version) }
    }
}

fn clean(text: &str) -> String {
    promptshelf_core::invisible::stripped(text).chars().filter(|c| !c.is_control()).take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-185
    #[test]
    fn clients_are_bounded_and_their_names_clean() {
        let names = ClientNames::default();
        let of = |declared: &str| {
            let tag = names.tag(declared, "2026-07-28");
            (tag.parts().0.to_owned(), tag.parts().1.to_owned())
        };
        assert_eq!(
            of(r#"{"name":"ed\u001b[1m\u202eitor","version":"1.2"}"#),
            ("ed[1mitor".to_owned(), "1.2".to_owned())
        );
        assert_eq!(of("node/22.1 (linux) undici/7"), ("node".to_owned(), "22.1".to_owned()));
        assert_eq!(of(r#"{"name":7}"#), (String::new(), String::new()));
        assert_eq!(of(&"x".repeat(1_025)).0, OTHER);
        assert_eq!(of(&format!("{{\"name\":\"{}\"}}", "y".repeat(900))).0.len(), MAX_NAME);
        let first = names.tag("kept/1", "http");
        for number in 0..10_000 {
            of(&format!("client-{number}/1"));
        }
        assert_eq!(of("one-more/1").0, OTHER);
        names.forget_unused();
        assert_eq!(of("one-more/1").0, "one-more");
        assert_eq!(names.tag("kept/1", "http"), first, "it is in use");
    }
}
