//! Tests with the real program `git` and real repositories.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]
#![cfg(unix)]

mod faults;
mod following;
mod hostile;
mod http;
mod pins;
mod sample;
mod signatures;
