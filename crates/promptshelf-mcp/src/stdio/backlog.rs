//! Lines that are ready to be read by the client, and that it has not read yet.
//!
//! A client that does not read what it has asked for is not read either, until
//! it does: otherwise its answers would pile up here without a bound.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::Notify;

/// The most bytes that may wait before the input is left alone.
const MOST_BYTES: usize = 32 << 20;

/// What a waiting line costs besides its bytes.
const BYTES_PER_LINE: usize = 4 << 10;

/// How much is waiting.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    bytes: AtomicUsize,
    room: Notify,
}

impl Backlog {
    pub(super) fn add(&self, line: &Bytes) {
        self.bytes.fetch_add(line.len() + BYTES_PER_LINE, Ordering::AcqRel);
    }

    pub(super) fn remove(&self, line: &Bytes) {
        let cost = line.len() + BYTES_PER_LINE;
        let before = self.bytes.fetch_sub(cost, Ordering::AcqRel);
        if before > MOST_BYTES && before - cost <= MOST_BYTES {
            self.room.notify_one();
        }
    }

    /// Waits until more may come. There is one reader, and so one that waits.
    pub(super) async fn has_room(&self) {
        while self.bytes.load(Ordering::Acquire) > MOST_BYTES {
            self.room.notified().await;
        }
    }
}
