//! How much a caller may ask: a bucket of tokens a minute for each caller, one
//! of its own for completion, one for each address; and how much at once.
//!
//! The person at this machine is not limited, and a service without limits
//! does nothing here at all. Idle callers are forgotten.

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
    pub(crate) fn new(limits: &Limits) -> Meter {
        Meter {
            requests: Buckets::new(limits.requests_per_minute),
            completions: Buckets::new(limits.completions_per_minute),
            addresses: Buckets::new(limits.requests_per_minute_per_address),
            concurrent: Slots::new(limits.concurrent_requests),
            subscriptions: Slots::new(limits.subscriptions),
        }
    }

    /// Lets a question in, for as long as the slot is held.
    pub(crate) fn admit(&self, caller: &Caller, class: Class) -> Result<Option<Slot>, Rejection> {
        if caller.is_local() {
            return Ok(None);
        }
        let key = key(caller);
        match class {
            Class::Complete => self.completions.take(&key)?,
            Class::Other => self.requests.take(&key)?,
        }
        self.concurrent.take(key, "requests").map(Some)
    }

    pub(crate) fn subscribe(&self, caller: &Caller) -> Result<Option<Slot>, Rejection> {
        if caller.is_local() {
            return Ok(None);
        }
        self.subscriptions.take(key(caller), "subscriptions").map(Some)
    }

    pub(crate) fn admit_address(&self, address: IpAddr) -> Result<(), Rejection> {
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

/// One network has 2⁶⁴ addresses of the sixth version and counts as one.
fn address_key(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).to_string(),
    }
}

/// A bucket for each key.
struct Buckets {
    limiter: DefaultKeyedRateLimiter<String>,
    asked: AtomicU32,
    refused: AtomicU64,
}

impl Buckets {
    fn new(per_minute: NonZeroU32) -> Buckets {
        Buckets {
            limiter: RateLimiter::keyed(Quota::per_minute(per_minute)),
            asked: AtomicU32::new(0),
            refused: AtomicU64::new(0),
        }
    }

    fn take(&self, key: &String) -> Result<(), Rejection> {
        if self.asked.fetch_add(1, Ordering::Relaxed) % SWEEP == SWEEP - 1 {
            // A full bucket is what somebody unknown has as well.
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
        self.limiter.check_key(key).map_err(|until| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            let wait = until.wait_time_from(governor::clock::DefaultClock::default().now());
            Rejection::TooManyRequests { retry_after: wait.max(Duration::from_millis(1)) }
        })
    }
}

/// How many things of a kind each key has at the moment.
#[derive(Clone)]
struct Slots {
    most: u32,
    taken: Arc<Mutex<HashMap<String, u32>>>,
    refused: Arc<AtomicU64>,
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
    fn new(most: NonZeroU32) -> Slots {
        Slots { most: most.get(), taken: Arc::default(), refused: Arc::default() }
    }

    fn take(&self, key: String, what: &'static str) -> Result<Slot, Rejection> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.get(&key).copied().unwrap_or_default();
        if count >= self.most {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Rejection::TooManyAtOnce { what });
        }
        taken.insert(key.clone(), count + 1);
        Ok(Slot { slots: self.clone(), key })
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
        let buckets = Buckets::new(NonZeroU32::new(60_000_000).expect("it is not zero"));
        for number in 0..SWEEP * 3 {
            buckets.take(&format!("caller {number}")).expect("the bucket is full");
        }
        assert!(buckets.limiter.len() < 2 * SWEEP as usize, "{}", buckets.limiter.len());

        let slots = Slots::new(NonZeroU32::MIN);
        drop(slots.take("somebody".to_owned(), "things"));
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
}
