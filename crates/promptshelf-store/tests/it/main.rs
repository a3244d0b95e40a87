//! Tests of the store on SQLite and on a real PostgreSQL.

mod contract;
mod sample;
mod sqlite;
