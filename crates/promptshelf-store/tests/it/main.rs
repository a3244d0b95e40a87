//! Tests of the store on SQLite and on a real PostgreSQL.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod contract;
#[cfg(unix)]
mod faults;
#[cfg(unix)]
mod model;
#[cfg(unix)]
mod moving;
#[cfg(unix)]
mod older;
#[cfg(unix)]
mod postgres;
#[cfg(unix)]
mod refusals;
mod rollouts;
mod sample;
#[cfg(unix)]
mod sequences;
mod sqlite;
#[cfg(unix)]
mod statements;
#[cfg(unix)]
mod threats;
