//! Rate and concurrency limits: token buckets for each caller (with a separate one for completion) and for each
//! address, and the number of concurrent requests and open subscriptions.
//!
//! The local user is not limited. Idle callers are removed. Limits can be replaced while the service runs; requests
//! and subscriptions that are open at that moment still count.

use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use crate::{
    caller::Caller,
    refusals::Refusals,
    rejection::Rejection,
    slot::{Slot, SlotHolder, Slots},
};

const SWEEP: u32 = 4_096;

/// Limits for each caller and each address.
///
/// ```
/// use std::num::NonZeroU32;
/// use promptshelf_service::Limits;
///
/// let limits = Limits { concurrent_requests: NonZeroU32::MIN, ..Limits::default() };
/// assert_eq!(limits.requests_per_minute.get(), 600);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests a minute, except completions. They may arrive in one burst. 600 by default.
    pub requests_per_minute: NonZeroU32,
    /// Completions a minute; clients send one for each keystroke. 1,200 by default.
    pub completions_per_minute: NonZeroU32,
    /// Requests a minute from one address, of all its callers together. 6,000 by default.
    pub requests_per_minute_per_address: NonZeroU32,
    /// Concurrent requests. 64 by default.
    pub concurrent_requests: NonZeroU32,
    /// Open subscriptions. 64 by default.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestClass {
    Complete,
    Other,
}

/// The state of all limits: recent and open requests.
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
            requests: Buckets::new("requests-per-minute"),
            completions: Buckets::new("completions-per-minute"),
            addresses: Buckets::new("requests-per-minute-per-address"),
            concurrent: Slots::named(Some("concurrent-requests"), None),
            subscriptions: Slots::named(Some("subscriptions"), None),
        };
        meter.set(limits);
        meter
    }

    /// Replaces the limits. Buckets whose limit stays the same keep their tokens.
    pub(crate) fn set(&self, limits: Option<&Limits>) {
        self.requests.set(limits.map(|limits| limits.requests_per_minute));
        self.completions.set(limits.map(|limits| limits.completions_per_minute));
        self.addresses.set(limits.map(|limits| limits.requests_per_minute_per_address));
        self.concurrent.set(limits.map(|limits| limits.concurrent_requests));
        self.subscriptions.set(limits.map(|limits| limits.subscriptions));
    }

    pub(crate) fn is_on(&self) -> bool {
        self.requests.limiter.load().is_some()
    }

    /// Admits a request, which counts as open until the slot is dropped. Without a slot if the caller already holds
    /// one: the requests of a batch run one after the other, and count as one.
    pub(crate) fn admit(&self, caller: &Caller, class: RequestClass) -> Result<Option<Slot>, Rejection> {
        if caller.is_local() || !self.is_on() {
            return Ok(None);
        }
        let key = caller.limit_key();
        match class {
            RequestClass::Complete => self.completions.take(&key)?,
            RequestClass::Other => self.requests.take(&key)?,
        }
        if caller.slot_holder().is_some_and(SlotHolder::is_filled) {
            return Ok(None);
        }
        self.concurrent.take(key).map(Some).ok_or(Rejection::TooManyAtOnce { what: "requests" })
    }

    /// Counts a request that is refused before it is admitted. Only for callers with a slot holder, which shows whether the
    /// request has been admitted: it must not count twice.
    pub(crate) fn count_refused(&self, caller: &Caller) -> Result<(), Rejection> {
        let is_new = caller.slot_holder().is_some_and(|holder| !holder.is_filled());
        if caller.is_local() || !is_new {
            return Ok(());
        }
        self.requests.take(&caller.limit_key())
    }

    pub(crate) fn subscribe(&self, caller: &Caller) -> Result<Option<Slot>, Rejection> {
        if caller.is_local() {
            return Ok(None);
        }
        // Counted even without a limit, because one may be set while the subscription is open.
        self.subscriptions.take(caller.limit_key()).map(Some).ok_or(Rejection::TooManyAtOnce { what: "subscriptions" })
    }

    /// Returns the number of open subscriptions and streams. Those of the local user are not counted.
    pub(crate) fn open_subscriptions(&self) -> u64 {
        self.subscriptions.open()
    }

    pub(crate) fn admit_address(&self, address: IpAddr) -> Result<(), Rejection> {
        if !self.is_on() {
            return Ok(());
        }
        self.addresses.take(&address_key(address))
    }

    pub(crate) fn refused(&self) -> Vec<(&'static str, u64)> {
        let limits = [
            ("requests-per-minute", &self.requests.refusals),
            ("completions-per-minute", &self.completions.refusals),
            ("requests-per-minute-per-address", &self.addresses.refusals),
            ("concurrent-requests", self.concurrent.refusals()),
            ("subscriptions", self.subscriptions.refusals()),
        ];
        limits.map(|(limit, refusals)| (limit, refusals.count())).into()
    }
}

impl Caller {
    /// Returns the key that limits and shares count by: the identity if authenticated, else the address.
    #[must_use]
    pub fn limit_key(&self) -> String {
        match (self.identity(), self.address()) {
            (Some(identity), _) => identity.key.clone(),
            (None, Some(address)) => address_key(address),
            (None, None) => self.key().to_owned(),
        }
    }
}

/// Returns the key that limits count an address by: a /64 network counts as one, because one host usually has all its
/// IPv6 addresses.
#[must_use]
pub fn address_key(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).to_string(),
    }
}

/// A token bucket for each key, if a limit is set.
struct Buckets {
    limiter: ArcSwapOption<Limiter>,
    refusals: Refusals,
}

struct Limiter {
    per_minute: NonZeroU32,
    interval: Duration,
    buckets: Mutex<Times>,
}

#[derive(Default)]
struct Times {
    /// When each bucket is full again. A full bucket equals a missing one.
    full_at: HashMap<String, Instant>,
    requests: u32,
}

impl Limiter {
    /// Takes a token of a bucket, or returns the time until it has one.
    fn take(&self, key: &str, now: Instant) -> Result<(), Duration> {
        let mut times = self.buckets.lock();
        times.requests = times.requests.wrapping_add(1);
        if times.requests.is_multiple_of(SWEEP) {
            times.full_at.retain(|_, full_at| *full_at > now);
            times.full_at.shrink_to_fit();
        }
        let full_at = times.full_at.get(key).map_or(now, |full_at| now.max(*full_at)) + self.interval;
        match full_at.duration_since(now).checked_sub(self.interval * self.per_minute.get()) {
            Some(wait) if !wait.is_zero() => Err(wait),
            _ => {
                match times.full_at.get_mut(key) {
                    Some(known) => *known = full_at,
                    None => _ = times.full_at.insert(key.to_owned(), full_at),
                }
                Ok(())
            }
        }
    }
}

impl Buckets {
    fn new(limit: &'static str) -> Buckets {
        Buckets { limiter: ArcSwapOption::default(), refusals: Refusals::new(Some(limit)) }
    }

    fn set(&self, per_minute: Option<NonZeroU32>) {
        if self.limiter.load().as_ref().map(|limiter| limiter.per_minute) == per_minute {
            return;
        }
        let limiter = |per_minute: NonZeroU32| {
            let interval = Duration::from_secs(60) / per_minute.get();
            Arc::new(Limiter { per_minute, interval, buckets: Mutex::default() })
        };
        self.limiter.store(per_minute.map(limiter));
    }

    fn take(&self, key: &str) -> Result<(), Rejection> {
        let limiter = self.limiter.load();
        let Some(limiter) = limiter.as_deref() else { return Ok(()) };
        limiter.take(key, Instant::now()).map_err(|wait| {
            self.refusals.add(key);
            Rejection::TooManyRequests { retry_after: wait.max(Duration::from_millis(1)) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_callers_are_removed() {
        // A token comes back each microsecond, so that a bucket is full again at once.
        let buckets = Buckets::new("requests-per-minute");
        buckets.set(NonZeroU32::new(60_000_000));
        for number in 0..SWEEP * 3 {
            buckets.take(&format!("caller {number}")).expect("the bucket is full");
        }
        let limiter = buckets.limiter.load();
        let kept = limiter.as_ref().expect("a limit").buckets.lock().full_at.len();
        assert!(kept < 2 * SWEEP as usize, "{kept}");
    }

    #[test]
    fn bucket_is_filled_evenly() {
        let buckets = Buckets::new("requests-per-minute");
        buckets.set(NonZeroU32::new(60));
        let limiter = buckets.limiter.load_full().expect("a limit");
        let start = Instant::now();
        let after = |seconds: f64| start + Duration::from_secs_f64(seconds);
        assert!((0..60).all(|_| limiter.take("ada", start).is_ok()), "a minute's requests may come at once");
        assert_eq!(limiter.take("ada", start), Err(Duration::from_secs(1)));
        assert!(limiter.take("bob", start).is_ok(), "each caller has a bucket");
        assert_eq!(limiter.take("ada", after(0.75)), Err(Duration::from_millis(250)));
        assert!(limiter.take("ada", after(1.0)).is_ok() && limiter.take("ada", after(1.0)).is_err());
        assert!(
            (0..60).all(|_| limiter.take("ada", after(120.0)).is_ok()) && limiter.take("ada", after(120.0)).is_err()
        );
    }

    #[test]
    fn ipv6_network_counts_as_one() {
        let key = |text: &str| address_key(text.parse().expect("an address"));
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff:1"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
        assert_eq!(key("::ffff:10.0.0.1"), key("10.0.0.1"));
        assert_ne!(key("10.0.0.1"), key("10.0.0.2"));
    }

    #[test]
    fn new_limits_apply_to_open_items() {
        let limits = |requests, subscriptions| {
            let number = |number| NonZeroU32::new(number).expect("it is not zero");
            Limits { requests_per_minute: number(requests), subscriptions: number(subscriptions), ..Limits::default() }
        };
        let (meter, caller) = (Meter::new(None), Caller::anonymous());
        let ask = || meter.admit(&caller, RequestClass::Other).map(drop);
        let open = meter.subscribe(&caller).expect("no limits");
        assert!(!meter.is_on() && (0..10).all(|_| ask().is_ok()));

        meter.set(Some(&limits(2, 1)));
        assert!(meter.is_on() && ask().is_ok() && ask().is_ok() && ask().is_err());
        assert!(meter.subscribe(&caller).is_err(), "one is open since before the limit");
        meter.set(Some(&limits(2, 2)));
        assert!(ask().is_err(), "an unchanged limit forgets nothing");
        let second = meter.subscribe(&caller).expect("there may be two now");
        assert_eq!(meter.open_subscriptions(), 2);
        drop((open, second));
        assert_eq!(meter.open_subscriptions(), 0);
        meter.set(None);
        assert!((0..10).all(|_| ask().is_ok()));
    }
}
