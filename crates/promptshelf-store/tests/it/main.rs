//! Tests of the store on SQLite and on a real PostgreSQL.

mod contract;
#[cfg(unix)]
mod faults;
#[cfg(unix)]
mod postgres;
#[cfg(unix)]
mod refusals;
mod sample;
mod sqlite;
