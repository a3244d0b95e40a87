//! Figures about the use of prompts: mergeable counts without contents, values or names of callers.

use std::{collections::BTreeMap, time::Duration};

const CLASSES: usize = 96;

const FIRST_CLASS: u64 = 8;

/// The number of distinct callers up to which they are counted exactly.
const EXACT_CALLERS: usize = 64;

/// The use of a prompt, by which program and with which outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UsageKey {
    /// The channel; empty for a folder.
    pub channel: String,
    /// The prompt.
    pub prompt: String,
    /// The number of its version in a store; 0 for a folder.
    pub version: u64,
    /// The name of the client program, as it declares it. Empty if it declares none; `other` beyond a bound.
    pub client: String,
    /// The version of the client program.
    pub client_version: String,
    /// The revision of the protocol, or `http` for the API for programs.
    pub protocol: String,
    /// The method, such as `prompts/get`.
    pub method: String,
    /// `ok`, or the stable code of a refusal.
    pub outcome: String,
}

/// The figures of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageFigures {
    /// The number of calls.
    pub count: u64,
    /// Their latencies.
    pub latencies: Latencies,
    /// Their distinct callers.
    pub callers: CallerSketch,
    /// For each argument that some calls left out, the number of those calls.
    pub left_out: BTreeMap<String, u64>,
    /// For each argument whose value was one of its fixed suggestions in some calls, the number of those calls.
    pub taken: BTreeMap<String, u64>,
    /// The calls with an argument that the prompt does not have.
    pub unknown_arguments: u64,
    /// The size of all answers together, in bytes of text and data.
    pub bytes_out: u64,
    /// The forms that were answered.
    pub forms: FormCounts,
}

/// How often users accepted, declined and cancelled the forms of guided prompts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FormCounts {
    /// The forms that were filled in.
    pub accepted: u64,
    /// The forms that users refused to fill in.
    pub declined: u64,
    /// The forms that were closed without a choice.
    pub cancelled: u64,
}

impl FormCounts {
    /// Adds other counts.
    pub fn merge(&mut self, other: FormCounts) {
        self.accepted = self.accepted.saturating_add(other.accepted);
        self.declined = self.declined.saturating_add(other.declined);
        self.cancelled = self.cancelled.saturating_add(other.cancelled);
    }
}

impl UsageFigures {
    /// Adds other figures.
    pub fn merge(&mut self, other: &UsageFigures) {
        self.count = self.count.saturating_add(other.count);
        self.latencies.merge(&other.latencies);
        self.callers.merge(&other.callers);
        self.unknown_arguments = self.unknown_arguments.saturating_add(other.unknown_arguments);
        self.bytes_out = self.bytes_out.saturating_add(other.bytes_out);
        self.forms.merge(other.forms);
        for (own, other) in [(&mut self.left_out, &other.left_out), (&mut self.taken, &other.taken)] {
            for (argument, count) in other {
                let sum = own.entry(argument.clone()).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
    }
}

/// A distribution of latencies in classes of fixed size: four for each doubling, from 8 microseconds to a minute.
/// A quantile is exact to 13 %.
///
/// ```
/// use std::time::Duration;
/// use promptshelf_core::usage::Latencies;
///
/// let mut latencies = Latencies::default();
/// (1..=100).for_each(|millis| latencies.add(Duration::from_millis(millis)));
/// let median = latencies.quantile(0.5).unwrap().as_secs_f64();
/// assert!((0.043..0.057).contains(&median));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latencies([u32; CLASSES]);

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies([0; CLASSES])
    }
}

impl Latencies {
    /// Adds one latency.
    pub fn add(&mut self, latency: Duration) {
        let class = &mut self.0[class_of(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX))];
        *class = class.saturating_add(1);
    }

    /// Adds another distribution.
    pub fn merge(&mut self, other: &Latencies) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own = own.saturating_add(other);
        }
    }

    /// Returns the latency that this share of the calls did not exceed; `None` without calls.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let total: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        // The rank is exact up to 2^53.
        let rank = ((share.clamp(0.0, 1.0) * total as f64).ceil() as u64).max(1);
        let mut sum = 0;
        let class = self.0.iter().position(|count| {
            sum += u64::from(*count);
            sum >= rank
        })?;
        let middle = u64::midpoint(lower_bound(class), lower_bound(class + 1));
        Some(Duration::from_micros(middle))
    }

    /// Encodes the classes that are not empty: each as its number and its count in seven-bit groups.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (class, count) in (0_u8..).zip(self.0).filter(|(_, count)| *count > 0) {
            bytes.push(class);
            let mut rest = count;
            while rest >= 0x80 {
                bytes.push((rest & 0x7f) as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
        }
        bytes
    }

    /// Decodes [`to_bytes`](Latencies::to_bytes); `None` if malformed.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Latencies> {
        let mut latencies = Latencies::default();
        let mut bytes = bytes.iter();
        while let Some(class) = bytes.next() {
            let place = latencies.0.get_mut(usize::from(*class))?;
            let (mut count, mut shift) = (0_u64, 0);
            loop {
                let group = *bytes.next()?;
                count |= u64::from(group & 0x7f) << shift;
                shift += 7;
                if group < 0x80 {
                    break;
                }
                if shift > 28 {
                    return None;
                }
            }
            *place = u32::try_from(count).ok()?;
        }
        Some(latencies)
    }
}

fn class_of(micros: u64) -> usize {
    if micros < FIRST_CLASS {
        return 0;
    }
    let octave = micros.ilog2() as usize;
    let quarter = (micros >> (octave - 2)) as usize & 3;
    ((octave - 3) * 4 + quarter + 1).min(CLASSES - 1)
}

fn lower_bound(class: usize) -> u64 {
    match class.checked_sub(1) {
        None => 0,
        Some(class) => (4 + class as u64 % 4) << (class / 4 + 1),
    }
}

/// The number of distinct callers, from keyed hashes: the 64 smallest ones. Exact up to 64, beyond that to about 13 %.
/// Sketches with the same key can be merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerSketch(Vec<u64>);

impl CallerSketch {
    /// Adds the keyed hash of a caller.
    pub fn add(&mut self, hash: u64) {
        if self.0.len() == EXACT_CALLERS && self.0.last().is_some_and(|largest| hash >= *largest) {
            return;
        }
        if let Err(place) = self.0.binary_search(&hash) {
            self.0.insert(place, hash);
            self.0.truncate(EXACT_CALLERS);
        }
    }

    /// Adds all callers of another sketch.
    pub fn merge(&mut self, other: &CallerSketch) {
        other.0.iter().for_each(|hash| self.add(*hash));
    }

    /// Returns the number of distinct callers.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self.0.last() {
            Some(largest) if self.0.len() == EXACT_CALLERS => {
                // The 64th smallest of n uniform hashes is expected at 64/n of their range.
                let share = (*largest as f64 / u64::MAX as f64).max(f64::MIN_POSITIVE);
                ((EXACT_CALLERS - 1) as f64 / share).round() as u64
            }
            _ => self.0.len() as u64,
        }
    }

    /// Encodes the hashes, eight bytes each.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|hash| hash.to_be_bytes()).collect()
    }

    /// Decodes [`to_bytes`](CallerSketch::to_bytes); `None` if malformed.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<CallerSketch> {
        let (hashes, []) = bytes.as_chunks::<8>() else { return None };
        let mut sketch = CallerSketch::default();
        hashes.iter().for_each(|hash| sketch.add(u64::from_be_bytes(*hash)));
        Some(sketch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_cover_every_latency() {
        for micros in (0..100_000).chain([1 << 20, 1 << 26, 1 << 40, u64::MAX]) {
            let class = class_of(micros);
            assert!(lower_bound(class) <= micros, "{micros}");
            assert!(class == CLASSES - 1 || micros < lower_bound(class + 1), "{micros}");
        }
    }

    #[test]
    fn figures_survive_encoding_and_merging() {
        let mut latencies = Latencies::default();
        for millis in [0, 1, 1, 20, 90_000] {
            latencies.add(Duration::from_millis(millis));
        }
        (0..300).for_each(|_| latencies.add(Duration::from_micros(50)));
        assert_eq!(Latencies::from_bytes(&latencies.to_bytes()), Some(latencies.clone()));
        let mut twice = latencies.clone();
        twice.merge(&latencies);
        assert_eq!(twice.quantile(0.5), latencies.quantile(0.5));
        assert_eq!(Latencies::default().quantile(0.5), None);
        for malformed in [&[96, 1][..], &[1], &[1, 0x80], &[1, 0xff, 0xff, 0xff, 0xff, 0xff, 1]] {
            assert_eq!(Latencies::from_bytes(malformed), None, "{malformed:?}");
        }
        assert_eq!(CallerSketch::from_bytes(&[1, 2, 3]), None);
    }

    #[test]
    fn distinct_callers_are_exact_up_to_64_and_estimated_beyond() {
        // A multiplicative generator with full period: distinct and spread.
        let hash = |caller: u64| caller.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let of = |callers: std::ops::Range<u64>| {
            let mut sketch = CallerSketch::default();
            callers.for_each(|caller| sketch.add(hash(caller)));
            sketch
        };
        assert_eq!((of(0..4).count(), of(0..63).count()), (4, 63));
        let mut merged = of(0..600);
        merged.merge(&of(300..1_000));
        assert_eq!(merged, of(0..1_000), "merging counts each caller once");
        assert!((800..1_250).contains(&merged.count()), "{}", merged.count());
        assert_eq!(CallerSketch::from_bytes(&merged.to_bytes()), Some(merged));
    }
}
