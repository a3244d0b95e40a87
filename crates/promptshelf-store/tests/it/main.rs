//! Tests of the store on SQLite and on a real PostgreSQL.

mod contract;
#[cfg(unix)]
mod postgres;
mod sample;
mod sqlite;
