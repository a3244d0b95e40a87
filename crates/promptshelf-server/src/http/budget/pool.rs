//! A pool of bytes with a share for each address.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

const SHARE: usize = 4;

/// Bytes that can be reserved, up to a maximum. Clones share the pool.
///
/// A reservation is granted whatever its size if its address has no other: the largest message has to pass, however
/// small the pool is. It never exceeds the maximum unless the pool is empty.
#[derive(Clone, Default)]
pub(super) struct Pool(Arc<Inner>);

#[derive(Default)]
struct Inner {
    max: AtomicUsize,
    used: Mutex<Used>,
    refused: AtomicU64,
}

#[derive(Default)]
struct Used {
    total: usize,
    by_address: HashMap<String, usize>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("used", &self.used()).finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn set(&self, max: usize) {
        self.0.max.store(max, Ordering::Relaxed);
    }

    /// Returns an empty reservation of an address; `None` is an unknown address, which has no share.
    pub(super) fn open(&self, address: Option<&str>) -> Reservation {
        Reservation { pool: self.clone(), address: address.map(str::to_owned), bytes: 0 }
    }

    pub(super) fn used(&self) -> usize {
        self.lock().total
    }

    pub(super) fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reserved bytes; dropping them returns them to the pool.
#[derive(Debug)]
pub(super) struct Reservation {
    pool: Pool,
    address: Option<String>,
    bytes: usize,
}

impl Reservation {
    /// Reserves more bytes. Returns whether the pool and the share of the address have them.
    #[must_use]
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let max = self.pool.0.max.load(Ordering::Relaxed);
        let mut used = self.pool.lock();
        let of_address = self.address.as_ref().map(|address| used.by_address.get(address).copied().unwrap_or_default());
        let fits = |used: usize, max: usize| used == self.bytes || used.saturating_add(bytes) <= max;
        if !fits(used.total, max) || !of_address.is_none_or(|used| fits(used, max / SHARE)) {
            drop(used);
            self.pool.0.refused.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        used.total += bytes;
        if let Some(address) = &self.address {
            *used.by_address.entry(address.clone()).or_default() += bytes;
        }
        self.bytes += bytes;
        true
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut used = self.pool.lock();
        used.total -= self.bytes;
        let Some(address) = &self.address else { return };
        match used.by_address.get_mut(address) {
            Some(bytes) if *bytes > self.bytes => *bytes -= self.bytes,
            _ => drop(used.by_address.remove(address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_cannot_reserve_more_than_its_share() {
        let pool = Pool::default();
        pool.set(400);
        let mut first = pool.open(Some("192.0.2.1"));
        assert!(first.grow(60) && first.grow(500), "a single message is never refused for its size");
        assert!(!pool.open(Some("192.0.2.1")).grow(1));
        assert!(!pool.open(Some("192.0.2.2")).grow(1), "the pool is empty");
        drop(first);
        let mut taken: Vec<Reservation> = Vec::new();
        for address in ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"] {
            let mut reservation = pool.open(Some(address));
            let is_granted = reservation.grow(90);
            assert_eq!(is_granted, taken.len() < 4 && taken.iter().all(|one| one.address != reservation.address));
            if is_granted {
                taken.push(reservation);
            }
        }
        assert_eq!((pool.used(), pool.refused()), (360, 3));
        drop(taken);
        assert_eq!(pool.used(), 0);
        assert!(pool.lock().by_address.is_empty());
    }
}
