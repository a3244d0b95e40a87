//! Slots: open requests, subscriptions and connections, counted for each key.

use std::{
    collections::HashMap,
    fmt,
    hash::{Hash, Hasher},
    num::NonZeroU32,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::refusals::Refusals;
use parking_lot::Mutex;

/// Counts open items (requests, connections) for each key, up to a maximum. Clones share the counts.
///
/// ```
/// use std::num::NonZeroU32;
/// use promptshelf_service::Slots;
///
/// let slots = Slots::new(Some(NonZeroU32::MIN));
/// let first = slots.take("ada".to_owned());
/// assert!(first.is_some() && slots.take("ada".to_owned()).is_none());
/// drop(first);
/// assert!(slots.take("ada".to_owned()).is_some());
/// ```
#[derive(Clone)]
pub struct Slots {
    max: Arc<AtomicU32>,
    taken: Arc<Mutex<HashMap<String, u32>>>,
    refusals: Arc<Refusals>,
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slots")
    }
}

/// One counted item; dropping it frees its place.
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
    /// Creates counters with a maximum for each key; `None` means unlimited.
    #[must_use]
    pub fn new(max: Option<NonZeroU32>) -> Slots {
        Slots::named(None, max)
    }

    pub(crate) fn named(limit: Option<&'static str>, max: Option<NonZeroU32>) -> Slots {
        let refusals = Arc::new(Refusals::new(limit));
        let slots = Slots { max: Arc::default(), taken: Arc::default(), refusals };
        slots.set(max);
        slots
    }

    pub(crate) fn set(&self, max: Option<NonZeroU32>) {
        self.max.store(max.map_or(u32::MAX, NonZeroU32::get), Ordering::Relaxed);
    }

    pub(crate) fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    pub(crate) fn open(&self) -> u64 {
        self.taken.lock().values().copied().map(u64::from).sum()
    }

    /// Counts one more item for a key; `None` if the key is at its maximum.
    #[must_use]
    pub fn take(&self, key: String) -> Option<Slot> {
        let mut taken = self.taken.lock();
        let count = taken.get(&key).copied().unwrap_or_default();
        if count >= self.max.load(Ordering::Relaxed) {
            drop(taken);
            self.refusals.add(&key);
            return None;
        }
        taken.insert(key.clone(), count + 1);
        Some(Slot { slots: self.clone(), key })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken.lock();
        match taken.get_mut(&self.key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.remove(&self.key)),
        }
    }
}

/// Holds the slot of a caller's request for longer than the operation takes: until the client has received the whole
/// response. Clones share the slot, which is freed with the last of them.
///
/// A front end adds a holder to the caller of each request ([`Caller::with_slot_holder`]) and drops its clone when the
/// response has been sent.
///
/// [`Caller::with_slot_holder`]: crate::Caller::with_slot_holder
#[derive(Clone, Debug, Default)]
pub struct SlotHolder(Arc<OnceLock<Slot>>);

impl SlotHolder {
    /// Takes over a slot; returns it if there is one already.
    pub(crate) fn hold(&self, slot: Slot) -> Option<Slot> {
        self.0.set(slot).err()
    }

    pub(crate) fn is_filled(&self) -> bool {
        self.0.get().is_some()
    }
}

/// All are equal: a holder is not part of a caller's identity.
impl PartialEq for SlotHolder {
    fn eq(&self, _: &SlotHolder) -> bool {
        true
    }
}

impl Eq for SlotHolder {}

impl Hash for SlotHolder {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_keys_are_removed() {
        let slots = Slots::new(Some(NonZeroU32::MIN));
        drop(slots.take("caller".to_owned()));
        assert!(slots.taken.lock().is_empty());
    }

    #[test]
    fn held_slot_is_freed_with_the_last_holder() {
        let slots = Slots::new(Some(NonZeroU32::MIN));
        let holder = SlotHolder::default();
        assert!(!holder.is_filled());
        assert!(holder.hold(slots.take("ada".to_owned()).expect("a slot")).is_none());
        let sent = holder.clone();
        drop(holder);
        assert!(sent.is_filled() && slots.take("ada".to_owned()).is_none());
        drop(sent);
        assert!(slots.take("ada".to_owned()).is_some());
    }
}
