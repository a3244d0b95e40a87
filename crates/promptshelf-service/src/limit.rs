//! How much a caller may ask: a bucket of tokens a minute for each caller, one
//! of its own for completion, one for each address; and how much at once.
//!
//! The person at this machine is not limited, and a service without limits
//! does nothing here at all. Idle callers are forgotten. Limits can be changed
//! while they are in force: what is open at that moment goes on counting.

use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter, clock::Clock as _};

use crate::{Caller, Rejection};

/// After so many questions idle callers are forgotten.
const SWEEP: u32 = 4_096;

/// How much each caller may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Questions a minute, completion aside. All of them may come at once.
    pub requests_per_minute: NonZeroU32,
    /// Completions a minute: one a key that a person strikes.
    pub completions_per_minute: NonZeroU32,
    /// Requests a minute from one address, whoever is behind it.
    pub requests_per_minute_per_address: NonZeroU32,
    /// Questions that are being answered at the same time.
    pub concurrent_requests: NonZeroU32,
    /// Subscriptions that are open at the same time.
    pub subscriptions: NonZeroU32,
}

impl Default for Limits {
    fn default() -> Limits {
        let number = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        Limits {
            requests_per_minute: number(600),
            completions_per_minute: number(1_200),
            requests_per_minute_per_address: number(6_000),
            concurrent_requests: number(64),
            subscriptions: number(64),
        }
    }
}

/// What kind of question it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Complete,
    Other,
}

/// What has been asked of late, and what is being asked.
pub(crate) struct Meter {
    requests: Buckets,
    completions: Buckets,
    addresses: Buckets,
    concurrent: Slots,
    subscriptions: Slots,
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meter")
    }
}

impl Meter {
    pub(crate) fn new(limits: Option<&Limits>) -> Meter {
        let meter = Meter {
            requests: Buckets::default(),
            completions: Buckets::default(),
            addresses: Buckets::default(),
            concurrent: Slots::new(None),
            subscriptions: Slots::new(None),
        };
        meter.set(limits);
        meter
    }

    /// Takes other limits. Buckets whose limit stays keep what is in them.
    pub(crate) fn set(&self, limits: Option<&Limits>) {
        self.requests.set(limits.map(|limits| limits.requests_per_minute));
        self.completions.set(limits.map(|limits| limits.completions_per_minute));
        self.addresses.set(limits.map(|limits| limits.requests_per_minute_per_address));
        self.concurrent.set(limits.map(|limits| limits.concurrent_requests));
        self.subscriptions.set(limits.map(|limits| limits.subscriptions));
    }

    /// Whether anybody is limited.
    pub(crate) fn is_on(&self) -> bool {
        self.requests.limiter.load().is_some()
    }

    /// Lets a question in, for as long as the slot is held.
    pub(crate) fn admit(&self, caller: &Caller, class: Class) -> Result<Option<Slot>, Rejection> {
        if caller.is_local() || !self.is_on() {
            return Ok(None);
        }
        let key = key(caller);
        match class {
            Class::Complete => self.completions.take(&key)?,
            Class::Other => self.requests.take(&key)?,
        }
        self.concurrent.take(key).map(Some).ok_or(Rejection::TooManyAtOnce { what: "requests" })
    }

    pub(crate) fn subscribe(&self, caller: &Caller) -> Result<Option<Slot>, Rejection> {
        if caller.is_local() {
            return Ok(None);
        }
        // Counted without a limit too: one may come while it is open.
        self.subscriptions.take(key(caller)).map(Some).ok_or(Rejection::TooManyAtOnce { what: "subscriptions" })
    }

    pub(crate) fn admit_address(&self, address: IpAddr) -> Result<(), Rejection> {
        if !self.is_on() {
            return Ok(());
        }
        self.addresses.take(&address_key(address))
    }

    /// How often each limit was reached.
    pub(crate) fn refused(&self) -> Vec<(&'static str, u64)> {
        let limits = [
            ("requests-per-minute", &self.requests.refused),
            ("completions-per-minute", &self.completions.refused),
            ("requests-per-minute-per-address", &self.addresses.refused),
            ("concurrent-requests", &self.concurrent.refused),
            ("subscriptions", &self.subscriptions.refused),
        ];
        limits.map(|(limit, refused)| (limit, refused.load(Ordering::Relaxed))).into()
    }
}

/// Who counts as one: somebody known, wherever it asks from, or an address.
fn key(caller: &Caller) -> String {
    match (caller.identity(), caller.address()) {
        (Some(identity), _) => identity.key.clone(),
        (None, Some(address)) => address_key(address),
        (None, None) => caller.key().to_owned(),
    }
}

/// Who counts as one by its address: a network has 2⁶⁴ addresses of the sixth
/// version.
#[must_use]
pub fn address_key(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).to_string(),
    }
}

/// A bucket for each key, while there is a limit.
#[derive(Default)]
struct Buckets {
    limiter: ArcSwapOption<Limiter>,
    asked: AtomicU32,
    refused: AtomicU64,
}

struct Limiter {
    per_minute: NonZeroU32,
    buckets: DefaultKeyedRateLimiter<String>,
}

impl Buckets {
    fn set(&self, per_minute: Option<NonZeroU32>) {
        if self.limiter.load().as_ref().map(|limiter| limiter.per_minute) == per_minute {
            return;
        }
        let limiter = |per_minute| Limiter { per_minute, buckets: RateLimiter::keyed(Quota::per_minute(per_minute)) };
        self.limiter.store(per_minute.map(limiter).map(Arc::new));
    }

    fn take(&self, key: &String) -> Result<(), Rejection> {
        let limiter = self.limiter.load();
        let Some(Limiter { buckets, .. }) = limiter.as_deref() else { return Ok(()) };
        if self.asked.fetch_add(1, Ordering::Relaxed) % SWEEP == SWEEP - 1 {
            // A full bucket is what somebody unknown has as well.
            buckets.retain_recent();
            buckets.shrink_to_fit();
        }
        buckets.check_key(key).map_err(|until| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            let wait = until.wait_time_from(governor::clock::DefaultClock::default().now());
            Rejection::TooManyRequests { retry_after: wait.max(Duration::from_millis(1)) }
        })
    }
}

/// How many things of a kind each key has at the moment. Clones count together.
#[derive(Clone)]
pub struct Slots {
    most: Arc<AtomicU32>,
    taken: Arc<Mutex<HashMap<String, u32>>>,
    refused: Arc<AtomicU64>,
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slots")
    }
}

/// Something of which a caller may not have too many. Dropping it gives it back.
pub struct Slot {
    slots: Slots,
    key: String,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slot")
    }
}

impl Slots {
    /// So many for each key, or any number.
    #[must_use]
    pub fn new(most: Option<NonZeroU32>) -> Slots {
        let slots = Slots { most: Arc::default(), taken: Arc::default(), refused: Arc::default() };
        slots.set(most);
        slots
    }

    fn set(&self, most: Option<NonZeroU32>) {
        self.most.store(most.map_or(u32::MAX, NonZeroU32::get), Ordering::Relaxed);
    }

    /// Takes one for a key, unless it has as many as it can.
    #[must_use]
    pub fn take(&self, key: String) -> Option<Slot> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.get(&key).copied().unwrap_or_default();
        if count >= self.most.load(Ordering::Relaxed) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        taken.insert(key.clone(), count + 1);
        Some(Slot { slots: self.clone(), key })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.get_mut(&self.key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.remove(&self.key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_idle_is_forgotten() {
        // A token comes back each microsecond, so that a bucket is full again at once.
        let buckets = Buckets::default();
        buckets.set(NonZeroU32::new(60_000_000));
        for number in 0..SWEEP * 3 {
            buckets.take(&format!("caller {number}")).expect("the bucket is full");
        }
        let kept = buckets.limiter.load().as_ref().expect("a limit").buckets.len();
        assert!(kept < 2 * SWEEP as usize, "{kept}");

        let slots = Slots::new(Some(NonZeroU32::MIN));
        drop(slots.take("somebody".to_owned()));
        assert!(slots.taken.lock().expect("nobody panicked").is_empty());
    }

    #[test]
    fn a_network_of_the_sixth_version_counts_as_one() {
        let key = |text: &str| address_key(text.parse().expect("an address"));
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff:1"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
        assert_eq!(key("::ffff:10.0.0.1"), key("10.0.0.1"));
        assert_ne!(key("10.0.0.1"), key("10.0.0.2"));
    }

    #[test]
    fn other_limits_hold_at_once_and_what_is_open_goes_on_counting() {
        let limits = |requests, subscriptions| {
            let number = |number| NonZeroU32::new(number).expect("it is not zero");
            Limits { requests_per_minute: number(requests), subscriptions: number(subscriptions), ..Limits::default() }
        };
        let (meter, caller) = (Meter::new(None), Caller::anonymous());
        let ask = || meter.admit(&caller, Class::Other).map(drop);
        let open = meter.subscribe(&caller).expect("nobody is limited");
        assert!(!meter.is_on() && (0..10).all(|_| ask().is_ok()));

        meter.set(Some(&limits(2, 1)));
        assert!(meter.is_on() && ask().is_ok() && ask().is_ok() && ask().is_err());
        assert!(meter.subscribe(&caller).is_err(), "one is open since before the limit");
        meter.set(Some(&limits(2, 2)));
        assert!(ask().is_err(), "an unchanged limit forgets nothing");
        let second = meter.subscribe(&caller).expect("there may be two now");
        drop((open, second));
        meter.set(None);
        assert!((0..10).all(|_| ask().is_ok()));
    }
}
