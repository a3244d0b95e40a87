//! The counters of a shard, found by reference: a call takes no memory for a key that exists.

use std::{
    hash::BuildHasher,
    sync::{Arc, atomic::Ordering},
};

use hashbrown::{HashTable, hash_table::Entry};
use promptshelf_core::{
    Argument, Prompt,
    usage::{CallerSketch, FormCounts, Latencies, UsageFigures, UsageKey},
};

use super::{ChannelUsage, ClientTag, CountedCall, MAX_ARGUMENTS};

/// The most keys of a shard, about 600 bytes each.
const MAX_KEYS: usize = 2_000;

#[derive(Default)]
pub(super) struct Cells {
    table: HashTable<Cell>,
    hasher: foldhash::fast::RandomState,
}

/// A counter. Pointers are compared: the prompt of a reloaded file has counters of its own until the next drain.
struct Cell {
    service: Arc<ChannelUsage>,
    prompt: Arc<Prompt>,
    version: u64,
    client: ClientTag,
    method: &'static str,
    outcome: &'static str,
    count: u64,
    latencies: Latencies,
    callers: CallerSketch,
    bytes_out: u64,
    forms: FormCounts,
    /// By the place of the argument: how often it was left out, and how often its value was a suggestion.
    arguments: Box<[(u32, u32)]>,
}

impl Cells {
    /// Adds a call. Returns whether there was space for it.
    pub(super) fn add(&mut self, call: &CountedCall) -> bool {
        let is_full = self.table.len() >= MAX_KEYS;
        let hash = hash(&self.hasher, &call.prompt, &call.client, call.outcome);
        let rehash = |cell: &Cell| self::hash(&self.hasher, &cell.prompt, &cell.client, cell.outcome);
        let cell = match self.table.entry(hash, |cell| cell.counts(call), rehash) {
            Entry::Occupied(cell) => cell.into_mut(),
            Entry::Vacant(_) if is_full => return false,
            Entry::Vacant(place) => place.insert(Cell::new(call)).into_mut(),
        };
        cell.add(call);
        true
    }

    pub(super) fn into_figures(self) -> impl Iterator<Item = (UsageKey, UsageFigures)> {
        self.table.into_iter().map(|cell| (cell.key(), cell.into_figures()))
    }
}

fn hash(hasher: &foldhash::fast::RandomState, prompt: &Arc<Prompt>, client: &ClientTag, outcome: &str) -> u64 {
    hasher.hash_one((Arc::as_ptr(prompt), client, outcome.len()))
}

impl Cell {
    fn new(call: &CountedCall) -> Cell {
        let arguments = call.prompt.arguments().len().min(MAX_ARGUMENTS);
        Cell {
            service: Arc::clone(&call.service),
            prompt: Arc::clone(&call.prompt),
            version: call.version,
            client: call.client.clone(),
            method: call.method,
            outcome: call.outcome,
            count: 0,
            latencies: Latencies::default(),
            callers: CallerSketch::default(),
            bytes_out: 0,
            forms: FormCounts::default(),
            arguments: vec![(0, 0); arguments].into(),
        }
    }

    fn counts(&self, call: &CountedCall) -> bool {
        Arc::ptr_eq(&self.prompt, &call.prompt)
            && Arc::ptr_eq(&self.service, &call.service)
            && self.version == call.version
            && self.client == call.client
            && self.method == call.method
            && self.outcome == call.outcome
    }

    fn add(&mut self, call: &CountedCall) {
        self.count += 1;
        self.latencies.add(call.started.elapsed());
        call.caller.iter().for_each(|caller| self.callers.add(*caller));
        self.bytes_out = self.bytes_out.saturating_add(call.bytes_out);
        let [accepted, declined, cancelled] = &call.forms;
        self.forms.accepted += u64::from(accepted.load(Ordering::Relaxed));
        self.forms.declined += u64::from(declined.load(Ordering::Relaxed));
        self.forms.cancelled += u64::from(cancelled.load(Ordering::Relaxed));
        let mut bits = call.left_out | call.taken;
        while bits != 0 {
            let place = bits.trailing_zeros();
            if let Some((left_out, taken)) = self.arguments.get_mut(place as usize) {
                *left_out += u32::from(call.left_out >> place & 1 == 1);
                *taken += u32::from(call.taken >> place & 1 == 1);
            }
            bits &= bits - 1;
        }
    }

    fn key(&self) -> UsageKey {
        let (client, client_version, protocol) = self.client.parts();
        UsageKey {
            channel: self.service.channel.clone(),
            prompt: self.prompt.name().to_string(),
            version: self.version,
            client: client.to_owned(),
            client_version: client_version.to_owned(),
            protocol: protocol.to_owned(),
            method: self.method.to_owned(),
            outcome: self.outcome.to_owned(),
        }
    }

    fn into_figures(self) -> UsageFigures {
        let Cell { prompt, count, latencies, callers, bytes_out, forms, arguments, method, outcome, .. } = self;
        // A rendered call notes its arguments: zero means that this version has the argument.
        let is_rendered = outcome == "ok" && ["prompts/get", "tools/call"].contains(&method);
        let counts = |with_zeros: bool, select: fn(&(u32, u32)) -> u32| {
            let counted = prompt.arguments().iter().zip(arguments.iter().map(select));
            let counted = counted.filter(move |(_, count)| with_zeros || *count > 0);
            counted.map(|(argument, count): (&Argument, u32)| (argument.name().to_owned(), u64::from(count))).collect()
        };
        let left_out = counts(is_rendered, |(left_out, _)| *left_out);
        let taken = counts(false, |(_, taken)| *taken);
        UsageFigures { count, latencies, callers, left_out, taken, bytes_out, forms }
    }
}
