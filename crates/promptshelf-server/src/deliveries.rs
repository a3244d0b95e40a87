//! Deliveries of events to webhooks: sends the outbox of a store, in order for each channel, at least once.
//!
//! A replica that finds a delivery due takes the lock of the store, sends until nothing is due, and releases it. So one
//! replica at a time delivers, any of them can be the next, and a killed one leaves nothing behind. An event is deleted
//! from the outbox after the webhook has accepted it; an event without a record is sent again, with the same idempotency key.
//!
//! - `target` is a webhook of the settings, `sender` sends one event, `addresses` checks where to, `slack` is the format
//!   for people.
//!
//! Queuing events is the task of the store.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    error::Error as _,
    fmt::{self, Write as _},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use hmac::{Hmac, KeyInit as _, Mac as _};
use ipnet::{Ipv4Net, Ipv6Net};
use promptshelf_store::{
    ChannelName, Delivery, DeliveryAttempt, DeliveryLock, Store, StoreError, Webhook, WebhookEvent, WebhookQueue,
};
use reqwest::{
    Client, StatusCode,
    dns::{Addrs, Name, Resolve, Resolving},
    header,
    redirect::Policy,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::{
    sync::{Mutex, watch},
    time::sleep,
};
use url::{Host, Url};

use crate::{ReplicaMonitor, channels::StoreHandle, random};

/// The time between two looks at the outbox, +20 % so that replicas do not query in step.
const INTERVAL: Duration = Duration::from_secs(1);

/// The time after which a replica releases the lock for others, even if more is due: their webhooks may differ.
const ROUND: Duration = Duration::from_secs(30);

const REGISTERED: Duration = Duration::from_secs(60 * 60);

/// The time between two counts of what waits, for the metrics.
const COUNTED: Duration = Duration::from_secs(10);

/// The first and the longest wait before another attempt, +40 % at random.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60 * 60));

/// The least number of attempts, even for an event that is older than the time for attempts.
const MIN_ATTEMPTS: u64 = 2;

#[derive(Clone, Copy)]
struct Pace {
    interval: Duration,
    timeout: Duration,
    retry: (Duration, Duration),
}

/// The deliveries of a server. Clones share them.
#[derive(Clone)]
pub struct Deliveries(Arc<Inner>);

struct Inner {
    senders: BTreeMap<String, Sender>,
    store: StoreHandle,
    pace: Pace,
    stop: watch::Sender<bool>,
    state: Mutex<State>,
    delivered: AtomicU64,
    failed: AtomicU64,
    given_up: AtomicU64,
    pending: AtomicU64,
    dead: AtomicU64,
}

#[derive(Default)]
struct State {
    registered: Option<Instant>,
    counted: Option<Instant>,
    broken: BTreeMap<String, u64>,
}

/// Counts of deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeliveryCounts {
    /// The events that webhooks have accepted from this server.
    pub delivered: u64,
    /// The failed attempts of this server.
    pub failed: u64,
    /// The events that this server has given up.
    pub given_up: u64,
    /// The events that wait in the store, as of the last ten seconds.
    pub pending: u64,
    /// The dead letters in the store, as of the last ten seconds.
    pub dead: u64,
}

impl fmt::Debug for Deliveries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deliveries")
    }
}

/// The HTTP client cannot be created: the system has no usable certificates.
#[derive(Debug)]
#[non_exhaustive]
pub struct DeliveryError(reqwest::Error);

impl fmt::Display for DeliveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the HTTP client of webhooks cannot be created: the system has no usable certificates")
    }
}

impl std::error::Error for DeliveryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Returns the queues with events that wait for webhooks of others, such as those with an earlier URL.
fn left_behind<'q>(queues: &'q [WebhookQueue], own: &'q [Webhook]) -> impl Iterator<Item = &'q WebhookQueue> {
    let is_own = |queue: &WebhookQueue| own.iter().any(|webhook| webhook.id == queue.id);
    queues.iter().filter(move |queue| queue.pending > 0 && !is_own(queue))
}

impl Deliveries {
    /// Creates the deliveries to webhooks with different URLs, without connecting.
    ///
    /// # Errors
    ///
    /// [`DeliveryError`] if no HTTP client can be created.
    pub fn new(store: StoreHandle, targets: Vec<WebhookTarget>) -> Result<Deliveries, DeliveryError> {
        let pace = Pace { interval: INTERVAL, timeout: TIMEOUT, retry: RETRY };
        Deliveries::with(store, targets, &system_lookup(), pace)
    }

    fn with(
        store: StoreHandle,
        targets: Vec<WebhookTarget>,
        lookup: &Lookup,
        pace: Pace,
    ) -> Result<Deliveries, DeliveryError> {
        let mut senders = BTreeMap::new();
        for target in targets {
            let sender = Sender::new(target, Arc::clone(lookup), pace.timeout).map_err(DeliveryError)?;
            senders.insert(sender.target.id().to_owned(), sender);
        }
        let counter = AtomicU64::default;
        Ok(Deliveries(Arc::new(Inner {
            senders,
            store,
            pace,
            stop: watch::Sender::new(false),
            state: Mutex::default(),
            delivered: counter(),
            failed: counter(),
            given_up: counter(),
            pending: counter(),
            dead: counter(),
        })))
    }

    /// Returns the counts.
    #[must_use]
    pub fn counts(&self) -> DeliveryCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Inner { delivered, failed, given_up, pending, dead, .. } = &*self.0;
        DeliveryCounts {
            delivered: count(delivered),
            failed: count(failed),
            given_up: count(given_up),
            pending: count(pending),
            dead: count(dead),
        }
    }

    /// Delivers until [`stop`](Deliveries::stop). Also reports revisions that a replica cannot load.
    pub async fn run(&self, replicas: &[ReplicaMonitor]) {
        let mut stopped = self.0.stop.subscribe();
        let mut is_failing = false;
        while !*stopped.borrow() {
            match self.step(replicas).await {
                Ok(()) => is_failing = false,
                Err(error) => {
                    if matches!(error, StoreError::Unreachable { .. }) {
                        self.0.store.reset().await;
                    }
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!("events for webhooks wait, because the store cannot be used: {error}");
                    }
                }
            }
            tokio::select! {
                _ = stopped.changed() => {}
                () = sleep(random::share(self.0.pace.interval, 100..=120)) => {}
            }
        }
    }

    /// Ends [`run`](Deliveries::run) after the requests that have begun.
    pub fn stop(&self) {
        self.0.stop.send_replace(true);
    }

    async fn step(&self, replicas: &[ReplicaMonitor]) -> Result<(), StoreError> {
        let store = self.0.store.get().await?;
        let mut state = self.0.state.lock().await;
        let is_over = |since: Option<Instant>, time| since.is_none_or(|since| since.elapsed() >= time);
        if is_over(state.registered, REGISTERED) {
            let webhooks: Vec<_> = self.0.senders.values().map(|sender| sender.target.webhook.clone()).collect();
            store.register_webhooks(&webhooks).await?;
            if state.registered.is_none() {
                for queue in left_behind(&store.webhooks().await?, &webhooks) {
                    tracing::warn!(
                        webhook = queue.label,
                        pending = queue.pending,
                        "the store has events for a webhook that the settings of this server do not have: a webhook with \
                         another `url` is another one. No server sends them unless one has this `url` again; they are \
                         removed after a week"
                    );
                }
            }
            state.registered = Some(Instant::now());
        }
        for status in replicas.iter().map(ReplicaMonitor::status) {
            let Some(revision) = status.refused else { continue };
            let Ok(channel) = status.channel.parse::<ChannelName>() else { continue };
            if state.broken.get(&status.channel) != Some(&revision) {
                store
                    .report_broken(&channel, revision, "A server cannot load the revision, and serves an older one")
                    .await?;
                state.broken.insert(status.channel, revision);
            }
        }
        let ids: Vec<String> = self.0.senders.keys().cloned().collect();
        let is_due = !store.due_deliveries(&ids).await?.is_empty();
        if is_due && let Some(mut lock) = store.lock_deliveries().await? {
            let result = self.round(&store, &mut lock).await;
            lock.release().await;
            result?;
            state.counted = None;
        }
        if is_over(state.counted, COUNTED) {
            let queues = store.webhooks().await?;
            self.0.pending.store(queues.iter().map(|queue| queue.pending).sum(), Ordering::Relaxed);
            self.0.dead.store(queues.iter().map(|queue| queue.dead).sum(), Ordering::Relaxed);
            state.counted = Some(Instant::now());
        }
        Ok(())
    }

    /// Sends until nothing is due. A webhook that does not answer does not delay the others.
    async fn round(&self, store: &Store, lock: &mut DeliveryLock) -> Result<(), StoreError> {
        let ends = Instant::now() + ROUND;
        let mut sending = FuturesUnordered::new();
        let mut busy: HashSet<String> = HashSet::new();
        loop {
            // Requests that are cut off here are repeated by the replica that has the lock now.
            if !lock.is_held().await {
                return Ok(());
            }
            if Instant::now() < ends && !*self.0.stop.borrow() {
                let idle: Vec<String> = self.0.senders.keys().filter(|id| !busy.contains(*id)).cloned().collect();
                let mut batches: BTreeMap<String, Vec<Delivery>> = BTreeMap::new();
                for delivery in store.due_deliveries(&idle).await? {
                    batches.entry(delivery.webhook.clone()).or_default().push(delivery);
                }
                for (id, batch) in batches {
                    busy.insert(id.clone());
                    sending.push(async move { (self.send_all(store, &id, batch).await, id) });
                }
            }
            if sending.is_empty() {
                return Ok(());
            }
            tokio::select! {
                Some((result, id)) = sending.next() => {
                    busy.remove(&id);
                    result?;
                }
                () = sleep(self.0.pace.interval) => {}
            }
        }
    }

    /// Sends the oldest events of several channels to one webhook, up to the first failure.
    async fn send_all(&self, store: &Store, id: &str, batch: Vec<Delivery>) -> Result<(), StoreError> {
        let Some(sender) = self.0.senders.get(id) else { return Ok(()) };
        for delivery in batch {
            let Err(problem) = sender.send(&delivery).await else {
                store.delivered(delivery.id).await?;
                self.0.delivered.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            self.0.failed.fetch_add(1, Ordering::Relaxed);
            let (first, longest) = self.0.pace.retry;
            let wait = first.saturating_mul(1 << delivery.attempts.min(20)).min(longest);
            let attempt = DeliveryAttempt {
                problem: problem.to_string(),
                retry_in: random::share(wait, 100..=140),
                retry_for: sender.target.retry_for,
                min_attempts: MIN_ATTEMPTS,
            };
            let is_dead = store.delivery_failed(delivery.id, &attempt).await?;
            let (label, event, channel) = (sender.target.label(), delivery.event.as_str(), &delivery.channel);
            if is_dead {
                self.0.given_up.fetch_add(1, Ordering::Relaxed);
                tracing::error!(
                    "webhook {label}: the event `{event}` of channel {channel} is a dead letter now: {problem}"
                );
            } else if delivery.attempts == 0 {
                tracing::warn!(
                    "webhook {label}: the event `{event}` of channel {channel} is sent again later: {problem}"
                );
            }
            return Ok(());
        }
        Ok(())
    }
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone)]
struct Sender {
    target: WebhookTarget,
    client: Client,
    timeout: Duration,
}

/// Why an event did not arrive. It has no part of the URL, and nothing that the receiver sent but its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Problem {
    Private(IpAddr),
    Unresolved,
    Unreachable,
    Proxy,
    TimedOut(Duration),
    Redirect(StatusCode),
    Status(StatusCode),
    Interrupted,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Private(address) => PrivateAddress(*address).fmt(f),
            Problem::Unresolved => f.write_str("the name of the host cannot be resolved"),
            Problem::Unreachable => f.write_str("no connection: refused, unreachable, or not the expected TLS"),
            Problem::Proxy => f.write_str(
                "no connection through the proxy that HTTPS_PROXY of the server names: the proxy or the receiver refuses it",
            ),
            Problem::TimedOut(limit) => write!(f, "no answer within {} s", limit.as_secs_f32()),
            Problem::Redirect(status) => {
                write!(f, "a redirect ({}), which is not followed: set `url` to its target", status.as_u16())
            }
            Problem::Status(status) => write!(f, "the status {}", status.as_u16()),
            Problem::Interrupted => f.write_str("the connection ended before an answer"),
        }
    }
}

impl Sender {
    /// Creates the client of a webhook. `limit` bounds each attempt.
    fn new(target: WebhookTarget, lookup: Lookup, timeout: Duration) -> Result<Sender, reqwest::Error> {
        let resolver = CheckedResolver { lookup, allows_private: target.allows_private };
        // A proxy resolves the name itself, and connects without a check.
        let client = if target.uses_proxy { Client::builder() } else { Client::builder().no_proxy() };
        let client = client
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .dns_resolver(Arc::new(resolver))
            // Each request resolves and checks again.
            .pool_max_idle_per_host(0)
            .http1_only()
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT.min(timeout))
            .timeout(timeout)
            .user_agent(concat!("promptshelf/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Sender { target, client, timeout })
    }

    /// Sends an event once. The body of the answer is not read.
    async fn send(&self, delivery: &Delivery) -> Result<(), Problem> {
        let body = match self.target.format {
            WebhookFormat::Json => delivery.body.clone(),
            WebhookFormat::Slack => slack_body(&delivery.body),
        };
        let mut request = self
            .client
            .post(self.target.url.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header("Idempotency-Key", delivery.key.as_str())
            .header("X-Promptshelf-Event", delivery.event.as_str());
        if let Some(secret) = &self.target.secret {
            request = request.header("X-Promptshelf-Signature", signature(secret, body.as_bytes()));
        }
        let status = request.body(body).send().await.map_err(|error| self.problem(&error))?.status();
        match status {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => Err(Problem::Redirect(status)),
            status => Err(Problem::Status(status)),
        }
    }

    fn problem(&self, error: &reqwest::Error) -> Problem {
        let mut cause = error.source();
        while let Some(error) = cause {
            if let Some(private) = error.downcast_ref::<PrivateAddress>() {
                return Problem::Private(private.0);
            }
            cause = error.source();
        }
        match error {
            error if error.is_timeout() => Problem::TimedOut(self.timeout),
            error if error.is_dns() => Problem::Unresolved,
            error if error.is_connect() && self.target.uses_proxy => Problem::Proxy,
            error if error.is_connect() => Problem::Unreachable,
            _ => Problem::Interrupted,
        }
    }
}

/// Returns the value of `X-Promptshelf-Signature`: the HMAC-SHA256 (RFC 2104) of the exact body.
fn signature(secret: &[u8], body: &[u8]) -> String {
    let mut text = String::from("sha256=");
    // A key of any length is valid.
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) {
        mac.update(body);
        for byte in mac.finalize().into_bytes() {
            let _ = write!(text, "{byte:02x}");
        }
    }
    text
}

// The addresses that webhooks are sent to: public ones, unless the operator allows others.
// A name is resolved once for each connection. The addresses are checked, and the connection goes to one of those: a name
// that resolves to another address a moment later (DNS rebinding) is never connected to unchecked.

/// IPv4 networks that are not public: the IANA special-purpose address registry, multicast and reserved ones.
static NOT_PUBLIC_V4: LazyLock<Vec<Ipv4Net>> = LazyLock::new(|| {
    let networks = [
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    ];
    networks.iter().filter_map(|network| network.parse().ok()).collect()
});

/// The same for IPv6, within the global unicast addresses: protocol assignments with Teredo, documentation, 6to4.
static NOT_PUBLIC_V6: LazyLock<Vec<Ipv6Net>> = LazyLock::new(|| {
    let networks = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];
    networks.iter().filter_map(|network| network.parse().ok()).collect()
});

fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !NOT_PUBLIC_V4.iter().any(|network| network.contains(&address))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, high, low] = address.segments();
    // NAT64 (RFC 6052) reaches the IPv4 address in the last 32 bits.
    if [a, b, c, d, e, f] == [0x64, 0xff9b, 0, 0, 0, 0] {
        return is_public_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    }
    // All global unicast addresses are in 2000::/3.
    a >> 13 == 1 && !NOT_PUBLIC_V6.iter().any(|network| network.contains(&address))
}

/// A name has no public address, and others are not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PrivateAddress(IpAddr);

impl fmt::Display for PrivateAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the host resolves to {}, which is not a public address: `allow-private = true` permits it", self.0)
    }
}

impl std::error::Error for PrivateAddress {}

type Lookup = Arc<dyn Fn(String) -> Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>> + Send + Sync>;

fn system_lookup() -> Lookup {
    Arc::new(|name| {
        // The client replaces the port.
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
    })
}

struct CheckedResolver {
    lookup: Lookup,
    allows_private: bool,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolving = (self.lookup)(name.as_str().to_owned());
        let allows_private = self.allows_private;
        Box::pin(async move {
            let found = resolving.await?;
            let first = found.first().map(SocketAddr::ip);
            let may_connect = |address: &SocketAddr| allows_private || is_public(address.ip());
            let allowed: Vec<SocketAddr> = found.into_iter().filter(may_connect).collect();
            match first {
                Some(first) if allowed.is_empty() => Err(PrivateAddress(first).into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod addresses_tests {
    use super::*;

    // req: S-190
    #[test]
    fn special_addresses_are_not_public() {
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.31.255.255",
            "192.168.0.1",
            "198.19.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:a00:1::",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().expect("an address")), "{address}");
        }
        for address in ["1.1.1.1", "172.32.0.1", "192.169.0.1", "::ffff:1.1.1.1", "64:ff9b::101:101", "2606:4700::1111"]
        {
            assert!(is_public(address.parse().expect("an address")), "{address}");
        }
    }

    fn changing(answers: &[&[&str]]) -> CheckedResolver {
        let answers: Vec<Vec<SocketAddr>> = answers
            .iter()
            .map(|answer| answer.iter().map(|ip| SocketAddr::new(ip.parse().expect("an address"), 0)).collect())
            .collect();
        let answers = parking_lot::Mutex::new(answers.into_iter());
        let lookup: Lookup = Arc::new(move |_| {
            let answer = answers.lock().next().expect("an answer");
            Box::pin(async move { Ok(answer) })
        });
        CheckedResolver { lookup, allows_private: false }
    }

    // req: S-190
    #[tokio::test]
    async fn each_answer_of_a_changing_name_is_checked() {
        let resolver = changing(&[&["1.1.1.1"], &["127.0.0.1"], &["10.0.0.1", "1.1.1.1", "::1"], &[]]);
        let name = || "rebinding.example".parse::<Name>().expect("a name");
        let addresses = |addresses: Addrs| addresses.map(|one| one.ip().to_string()).collect::<Vec<_>>();
        assert_eq!(addresses(resolver.resolve(name()).await.expect("public")), ["1.1.1.1"]);
        let error = resolver.resolve(name()).await.err().expect("private");
        assert!(error.is::<PrivateAddress>(), "{error}");
        assert_eq!(addresses(resolver.resolve(name()).await.expect("one of them")), ["1.1.1.1"]);
        assert_eq!(addresses(resolver.resolve(name()).await.expect("none")), [""; 0]);
    }
}

const RETRY_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// The format of the requests to a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebhookFormat {
    /// The event as JSON.
    #[default]
    Json,
    /// A sentence for people, as `{"text": …}`: the format of Slack's incoming webhooks, which others understand too.
    Slack,
}

/// A webhook: where events are sent, and how. `Debug` shows neither the URL's path, which may be secret, nor the secret.
///
/// ```
/// use promptshelf_server::deliveries::WebhookTarget;
/// use promptshelf_store::WebhookEvent;
///
/// let target = WebhookTarget::new("https://ci.example.com/hooks/7f3a", [WebhookEvent::Published], false)?;
/// assert_eq!(target.label(), "https://ci.example.com");
/// assert!(WebhookTarget::new("https://10.0.0.7/", [WebhookEvent::Published], false).is_err());
/// # Ok::<(), promptshelf_server::deliveries::InvalidWebhook>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookTarget {
    url: Url,
    secret: Option<Box<[u8]>>,
    allows_private: bool,
    uses_proxy: bool,
    format: WebhookFormat,
    retry_for: Duration,
    webhook: Webhook,
}

/// Why a URL cannot be that of a webhook. Messages do not repeat the URL, which may be secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidWebhook {
    /// It is not an `http` or `https` URL with a host, or it has a user, a password or a fragment.
    Url,
    /// It is an `http` URL, and only public addresses are allowed.
    NotHttps,
    /// Its host is an address that is not public.
    PrivateAddress,
}

impl fmt::Display for InvalidWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InvalidWebhook::Url => "expected an https URL without user, password and fragment",
            InvalidWebhook::NotHttps => "expected an https URL; http needs `allow-private = true`",
            InvalidWebhook::PrivateAddress => {
                "expected a public address; private, loopback and link-local ones need `allow-private = true`"
            }
        })
    }
}

impl std::error::Error for InvalidWebhook {}

impl WebhookTarget {
    /// Creates a webhook without a secret, in the default format, whose deliveries are repeated for a day. Only
    /// `allows_private` permits plain http and addresses that are not public.
    ///
    /// # Errors
    ///
    /// [`InvalidWebhook`] for a URL that events cannot be sent to.
    pub fn new(
        url: &str,
        events: impl IntoIterator<Item = WebhookEvent>,
        allows_private: bool,
    ) -> Result<WebhookTarget, InvalidWebhook> {
        let url = Url::parse(url).map_err(|_| InvalidWebhook::Url)?;
        let is_plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        let address = match url.host() {
            None => return Err(InvalidWebhook::Url),
            // The resolver is not used for addresses, so they are checked here.
            Some(Host::Ipv4(address)) => Some(address.into()),
            Some(Host::Ipv6(address)) => Some(address.into()),
            Some(Host::Domain(_)) => None,
        };
        match url.scheme() {
            "https" | "http" if !is_plain => return Err(InvalidWebhook::Url),
            "https" => {}
            "http" if allows_private => {}
            "http" => return Err(InvalidWebhook::NotHttps),
            _ => return Err(InvalidWebhook::Url),
        }
        if address.is_some_and(|address| !allows_private && !is_public(address)) {
            return Err(InvalidWebhook::PrivateAddress);
        }
        let mut id = String::new();
        for byte in &Sha256::digest(url.as_str())[..8] {
            let _ = write!(id, "{byte:02x}");
        }
        let events: BTreeSet<WebhookEvent> = events.into_iter().collect();
        let webhook = Webhook { id, label: url.origin().ascii_serialization(), events };
        let format = WebhookFormat::default();
        let (uses_proxy, retry_for) = (false, RETRY_FOR);
        Ok(WebhookTarget { url, secret: None, allows_private, uses_proxy, format, retry_for, webhook })
    }

    /// Sets the key of the signature.
    #[must_use]
    pub fn secret(mut self, secret: impl AsRef<[u8]>) -> WebhookTarget {
        self.secret = Some(secret.as_ref().into());
        self
    }

    /// Sets the format.
    #[must_use]
    pub fn format(mut self, format: WebhookFormat) -> WebhookTarget {
        self.format = format;
        self
    }

    /// Sets the time after an event during which its delivery is repeated, one day by default.
    #[must_use]
    pub fn retry_for(mut self, time: Duration) -> WebhookTarget {
        self.retry_for = time;
        self
    }

    /// Sends events through the proxy of the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`), which resolves the name
    /// and decides which addresses may be reached. Off by default.
    #[must_use]
    pub fn through_proxy(mut self, uses_proxy: bool) -> WebhookTarget {
        self.uses_proxy = uses_proxy;
        self
    }

    /// Returns the host and the port; `None` if a proxy resolves the name.
    #[cfg(feature = "serve")]
    pub(crate) fn host(&self) -> Option<(&str, u16)> {
        Some((self.url.host_str()?, self.url.port_or_known_default()?)).filter(|_| !self.uses_proxy)
    }

    /// Identifies the URL in the store.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.webhook.id
    }

    /// Scheme, host and port of the URL, for people.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.webhook.label
    }
}

impl fmt::Debug for WebhookTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookTarget({})", self.webhook.label)
    }
}

#[cfg(test)]
mod signature_tests {
    use super::*;

    /// The values were computed with `openssl dgst -sha256 -hmac`.
    #[test]
    fn signature_is_the_hmac_of_the_body() {
        assert_eq!(
            signature(b"key", b"The quick brown fox jumps over the lazy dog"),
            "sha256=f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"
        );
    }
}

#[cfg(test)]
mod target_tests {
    use super::*;

    fn target(url: &str, allows_private: bool) -> Result<WebhookTarget, InvalidWebhook> {
        WebhookTarget::new(url, WebhookEvent::ALL, allows_private)
    }

    // req: S-190
    #[test]
    fn private_addresses_in_any_notation_are_refused() {
        for url in [
            "https://127.0.0.1/",
            "https://127.1/",
            "https://0x7f000001/",
            "https://2130706433/",
            "https://0177.0.0.1/",
            "https://[::1]/",
            "https://[::ffff:192.168.0.1]/",
            "https://169.254.169.254/latest",
            "https://10.0.0.1:8443/",
        ] {
            assert_eq!(target(url, false).err(), Some(InvalidWebhook::PrivateAddress), "{url}");
            assert!(target(url, true).is_ok(), "{url}");
        }
        assert_eq!(target("http://hooks.example/", false).err(), Some(InvalidWebhook::NotHttps));
        for url in
            ["", "hooks.example", "ftp://a.example/", "https://me:pass@a.example/", "https://a.example/#x", "https://"]
        {
            assert_eq!(target(url, true).err(), Some(InvalidWebhook::Url), "{url}");
        }
    }

    // req: S-192
    #[test]
    fn debug_and_label_show_no_secret() {
        let target = target("https://hooks.example/services/T0/s3cret?key=s3cret", false).expect("valid");
        let shown = format!("{:?} {} {}", target.clone().secret("s3cret"), target.label(), target.id());
        assert!(shown.contains("https://hooks.example") && !shown.contains("s3cret"), "{shown}");
    }
}

const MAX_TEXT: usize = 500;

const MAX_ITEMS: usize = 10;

fn slack_body(event: &str) -> String {
    let event: Value = serde_json::from_str(event).unwrap_or_default();
    json!({ "text": sentence(&event) }).to_string()
}

fn sentence(event: &Value) -> String {
    let text = |value: &Value| escaped(value.as_str().unwrap_or_default());
    let (channel, author) = (text(&event["channel"]), text(&event["author"]));
    let (revision, proposal) = (&event["revision"], &event["proposal"]);
    let rollout = &event["rollout"];
    let (to, percent) = (text(&rollout["to"]), &rollout["percent"]);
    let mut sentence = format!("*{channel}*: ");
    let _ = match event["event"].as_str().unwrap_or_default() {
        "published" if event["kind"] == "promote" => write!(sentence, "{author} promoted revision {revision}"),
        "published" => write!(sentence, "{author} published revision {revision}"),
        "rolled-back" => write!(sentence, "{author} rolled back, as revision {revision}"),
        "proposed" if event["kind"] == "policy" => write!(sentence, "{author} proposes another policy ({proposal})"),
        "proposed" => write!(sentence, "{author} made proposal {proposal}"),
        "reviewed" => {
            let verdict = if event["review"]["verdict"] == "reject" { "rejected" } else { "approved" };
            let reviewer = text(&event["review"]["reviewer"]);
            write!(sentence, "{reviewer} {verdict} proposal {proposal} of {author}")
        }
        "broken" => write!(sentence, "revision {revision} is broken"),
        "policy-changed" if event["policy"]["byOperator"] == true => {
            write!(sentence, "{author} changed the policy, with direct access to the database")
        }
        "policy-changed" => write!(sentence, "{author} changed the policy"),
        "rollout-started" => write!(sentence, "{author} serves {to} to {percent} % of the callers"),
        "rollout-step" => write!(sentence, "{to} is served to {percent} % of the callers ({author})"),
        "rollout-stopped" if rollout["automatic"] == true => {
            write!(sentence, "the server has stopped the rollout of {to}")
        }
        "rollout-stopped" => write!(sentence, "{author} stopped the rollout of {to}"),
        "rollout-finished" => write!(sentence, "{to} was promoted by {author}, and its rollout is finished"),
        other => write!(sentence, "{}", escaped(other)),
    };
    let is_broken = event["event"] == "broken";
    let message = if event["review"].is_object() { &event["review"]["note"] } else { &event["message"] };
    match text(message) {
        message if message.is_empty() || is_broken => {}
        message => {
            let _ = write!(sentence, ": {message}");
        }
    }
    if let Some(reason) = event["emergency"].as_str() {
        let _ = write!(sentence, "\nWithout the policy: {}", escaped(reason));
    }
    for line in changed_conditions(&event["policy"]) {
        let _ = write!(sentence, "\n• {}", escaped(&line));
    }
    let items = |key: &str| event[key].as_array().map_or(&[][..], Vec::as_slice);
    let prompts = items("prompts");
    for prompt in prompts.iter().take(MAX_ITEMS) {
        let (name, version, change) = (text(&prompt["name"]), &prompt["version"], text(&prompt["change"]));
        let _ = match version.as_u64() {
            // It gets its number when it is published.
            Some(0) => write!(sentence, "\n• {name} {change}, new version"),
            _ => write!(sentence, "\n• {name} {change}, version {version}"),
        };
    }
    let more = prompts.len().saturating_sub(MAX_ITEMS) as u64 + event["morePrompts"].as_u64().unwrap_or_default();
    if more > 0 {
        let _ = write!(sentence, "\n• {more} more");
    }
    for line in items("findings").iter().chain(items("lacks")).take(MAX_ITEMS) {
        let _ = write!(sentence, "\n• {}", text(line));
    }
    sentence
}

/// Returns the conditions of a policy that differ, such as `approvals: 2, before 1`.
fn changed_conditions(policy: &Value) -> Vec<String> {
    let (before, Some(after)) = (&policy["before"], policy["after"].as_object()) else { return Vec::new() };
    let changed = after.iter().filter(|(name, value)| before[name.as_str()] != **value);
    changed.map(|(name, value)| format!("{name}: {value}, before {}", before[name.as_str()])).collect()
}

/// Cuts a text, and replaces the three characters of control sequences such as `<!channel>` (Slack: formatting text).
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len().min(MAX_TEXT));
    let mut before = ' ';
    let mut rest = text.chars().take(MAX_TEXT).peekable();
    while let Some(c) = rest.next() {
        let is_inside = before.is_alphanumeric() && rest.peek().is_some_and(|next| next.is_alphanumeric());
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            // Slack has no escape for them: similar characters that mean nothing.
            '*' => escaped.push('∗'),
            '`' => escaped.push('ˋ'),
            '~' => escaped.push('∼'),
            '_' if !is_inside => escaped.push('ˍ'),
            '/' if before == ':' => escaped.push('∕'),
            c if c.is_whitespace() || c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
        before = c;
    }
    if text.chars().nth(MAX_TEXT).is_some() {
        escaped.push('…');
    }
    escaped
}

#[cfg(test)]
mod slack_tests {
    use super::*;

    fn text(event: &Value) -> String {
        let body: Value = serde_json::from_str(&slack_body(&event.to_string())).expect("JSON");
        body["text"].as_str().expect("a text").to_owned()
    }

    #[test]
    fn each_event_is_a_sentence() {
        let prompt = json!({ "name": "hello", "version": 3, "change": "changed" });
        let mut event = json!({
            "event": "published", "channel": "production", "revision": 12, "proposal": 7, "kind": "publish",
            "author": "ada", "message": "First", "prompts": [prompt],
        });
        assert_eq!(text(&event), "*production*: ada published revision 12: First\n• hello changed, version 3");
        event["event"] = "rolled-back".into();
        assert!(text(&event).starts_with("*production*: ada rolled back, as revision 12: First"));
        event["event"] = "proposed".into();
        event["lacks"] = json!(["1 more approval is needed"]);
        let proposed = text(&event);
        assert!(proposed.contains("ada made proposal 7: First") && proposed.ends_with("• 1 more approval is needed"));
        let review = json!({ "reviewer": "ben", "verdict": "reject", "note": "No" });
        let event = json!({ "event": "reviewed", "channel": "c", "proposal": 7, "author": "ada", "review": review });
        assert_eq!(text(&event), "*c*: ben rejected proposal 7 of ada: No");
        let event = json!({ "event": "broken", "channel": "c", "revision": 2, "findings": ["a.md:1: error"] });
        assert_eq!(text(&event), "*c*: revision 2 is broken\n• a.md:1: error");
    }

    // req: S-193
    #[test]
    fn texts_of_authors_cannot_notify_or_link() {
        let message = format!("<!channel> <https://evil.example|click> & {}", "x".repeat(10_000));
        let event =
            json!({ "event": "published", "channel": "c", "revision": 1, "author": "<@U1>", "message": message });
        let text = text(&event);
        assert!(text.contains("&lt;!channel&gt;") && text.contains("&lt;@U1&gt;") && !text.contains('<'), "{text}");
        assert!(text.chars().count() < 700, "{text}");
        // One line is one event, and what is bold or a link comes from the server.
        for forged in [
            "fix typo\n*production*: boss approved proposal 9 of ada\nhttps://evil.example/x",
            "a\r\n\u{2028}\u{b}• x *b* _i_ ~s~ `c` http://evil.example",
        ] {
            let event = json!({
                "event": "published", "channel": "a*b", "revision": 1, "author": forged, "message": forged,
                "emergency": forged, "prompts": [{ "name": "snake_case", "version": 1, "change": "changed" }],
            });
            let text = super::slack_tests::text(&event);
            let of_server: String = text.replacen("*a∗b*: ", "", 1);
            assert!(
                !of_server.contains(['*', '`', '~']) && !of_server.contains("://") && !text.contains(" _"),
                "{text}"
            );
            assert_eq!(text.lines().count(), 3, "{text}");
            assert!(text.ends_with("• snake_case changed, version 1"), "{text}");
        }
    }
}
