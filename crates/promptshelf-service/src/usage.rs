//! Usage: who calls which prompt how often, with which outcome. No contents and no values are counted.
//!
//! Requests add to counters in shards of bounded size; a task outside of this crate drains them. `clients` has the names
//! of client programs. The figures themselves are in `promptshelf_core::usage`.

mod clients;

use std::{
    cell::Cell,
    collections::{BTreeMap, HashMap, hash_map::Entry},
    fmt,
    hash::{Hash, Hasher},
    net::IpAddr,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use promptshelf_core::{
    Catalog, Prompt, PromptProvenance, RawArguments,
    usage::{CallerSketch, Latencies, UsageFigures, UsageKey},
};
use siphasher::sip::SipHasher13;

use self::clients::ClientNames;
use crate::caller::Caller;

pub use clients::ClientTag;

/// The number of shards. Threads use them in turn, so that they rarely wait for each other.
const SHARDS: usize = 8;

/// The most keys of a shard, about 600 bytes each.
const MAX_KEYS: usize = 2_000;

/// The most arguments of a prompt that are counted when they are left out.
const MAX_ARGUMENTS: usize = 64;

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
    shards: [Mutex<Shard>; SHARDS],
    clients: ClientNames,
    /// The key of callers' hashes.
    key: OnceLock<[u8; 16]>,
    lost: AtomicU64,
}

type Shard = HashMap<CellKey, UsageCell, foldhash::fast::RandomState>;

/// The counters of a service, with the channel that it serves.
#[derive(Clone)]
pub(crate) struct ServiceUsage {
    usage: Usage,
    channel: Arc<str>,
}

/// The key of a counter. Pointers are compared: the prompt of a reloaded file has counters of its own until the next
/// drain.
struct CellKey {
    channel: Arc<str>,
    prompt: Arc<Prompt>,
    version: u64,
    client: ClientTag,
    method: &'static str,
    outcome: &'static str,
}

impl PartialEq for CellKey {
    fn eq(&self, other: &CellKey) -> bool {
        Arc::ptr_eq(&self.prompt, &other.prompt)
            && Arc::ptr_eq(&self.channel, &other.channel)
            && self.version == other.version
            && self.client == other.client
            && self.method == other.method
            && self.outcome == other.outcome
    }
}

impl Eq for CellKey {}

impl Hash for CellKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.prompt).hash(state);
        self.client.hash(state);
        // The rest rarely differs.
        self.outcome.len().hash(state);
    }
}

#[derive(Default)]
struct UsageCell {
    count: u64,
    latencies: Latencies,
    callers: CallerSketch,
    /// By the place of the argument.
    left_out: Box<[u32]>,
}

/// A call in progress. It is counted on drop, so that a cancelled call is counted too.
pub(crate) struct CountedCall {
    service: ServiceUsage,
    started: Instant,
    caller: Option<u64>,
    client: ClientTag,
    prompt: Arc<Prompt>,
    version: u64,
    /// A bit for each of the first 64 arguments.
    left_out: u64,
    method: &'static str,
    pub(crate) outcome: &'static str,
}

impl fmt::Debug for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Usage")
    }
}

impl fmt::Debug for ServiceUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceUsage({})", self.channel)
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
    #[expect(clippy::mutable_key_type, reason = "prompts are compared by their address")]
    pub fn drain(&self) -> BTreeMap<UsageKey, UsageFigures> {
        let mut drained: BTreeMap<UsageKey, UsageFigures> = BTreeMap::new();
        for shard in &self.0.shards {
            let cells = std::mem::take(&mut *shard.lock().unwrap_or_else(PoisonError::into_inner));
            for (key, cell) in cells {
                let arguments = key.prompt.arguments().iter().zip(&cell.left_out);
                let left_out = arguments
                    .filter(|(_, count)| **count > 0)
                    .map(|(argument, count)| (argument.name().to_owned(), u64::from(*count)))
                    .collect();
                let UsageCell { count, latencies, callers, .. } = cell;
                let figures = UsageFigures { count, latencies, callers, left_out };
                drained.entry(key.describe()).or_default().merge(&figures);
            }
        }
        self.0.clients.forget_unused();
        drained
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

    fn count(&self, key: CellKey, call: &CountedCall) {
        let mut shard = self.0.shards[shard_of_thread()].lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = shard.len() >= MAX_KEYS;
        let cell = match shard.entry(key) {
            Entry::Occupied(cell) => cell.into_mut(),
            Entry::Vacant(_) if is_full => return self.add_lost(1),
            Entry::Vacant(place) => {
                let arguments = call.prompt.arguments().len().min(MAX_ARGUMENTS);
                place.insert(UsageCell { left_out: vec![0; arguments].into(), ..UsageCell::default() })
            }
        };
        cell.count += 1;
        cell.latencies.add(call.started.elapsed());
        call.caller.iter().for_each(|caller| cell.callers.add(*caller));
        let mut bits = call.left_out;
        while bits != 0 {
            if let Some(count) = cell.left_out.get_mut(bits.trailing_zeros() as usize) {
                *count += 1;
            }
            bits &= bits - 1;
        }
    }
}

impl CellKey {
    fn describe(&self) -> UsageKey {
        let (client, client_version, protocol) = self.client.parts();
        UsageKey {
            channel: self.channel.to_string(),
            prompt: self.prompt.name().to_string(),
            version: self.version,
            client: client.to_owned(),
            client_version: client_version.to_owned(),
            protocol: protocol.to_owned(),
            method: self.method.to_owned(),
            outcome: self.outcome.to_owned(),
        }
    }
}

impl ServiceUsage {
    pub(crate) fn new(usage: &Usage, channel: &str) -> ServiceUsage {
        ServiceUsage { usage: usage.clone(), channel: channel.into() }
    }

    pub(crate) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Begins to count a call of a prompt that the caller may use.
    pub(crate) fn begin(
        &self,
        caller: &Caller,
        method: &'static str,
        prompt: &Arc<Prompt>,
        catalog: &Catalog,
    ) -> CountedCall {
        let version = catalog.provenance().and_then(|found| found.prompt(prompt)).map_or(0, PromptProvenance::version);
        CountedCall {
            service: self.clone(),
            started: Instant::now(),
            caller: self.usage.hash(caller),
            client: caller.client().clone(),
            prompt: Arc::clone(prompt),
            version,
            left_out: 0,
            method,
            outcome: "cancelled",
        }
    }
}

impl CountedCall {
    /// Notes the arguments that a call leaves out.
    pub(crate) fn note_arguments(&mut self, arguments: &RawArguments<'_>) {
        for (place, argument) in self.prompt.arguments().iter().enumerate().take(MAX_ARGUMENTS) {
            if arguments.get(argument.name()).is_none() {
                self.left_out |= 1 << place;
            }
        }
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        let key = CellKey {
            channel: Arc::clone(&self.service.channel),
            prompt: Arc::clone(&self.prompt),
            version: self.version,
            client: self.client.clone(),
            method: self.method,
            outcome: self.outcome,
        };
        self.service.usage.count(key, self);
    }
}

/// The shard of this thread.
fn shard_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
    }
    SHARD.get()
}
