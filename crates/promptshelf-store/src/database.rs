//! Connections, transactions and migrations on SQLite and PostgreSQL behind one interface.
//!
//! Both databases understand the same statements: `$1` placeholders, three types, multi-row `VALUES`, `RETURNING`. The
//! few differences are methods of [`Transaction`].

mod bulk;
mod failure;
mod guard;
mod migrate;
mod older;
mod open_file;
mod pool;
mod transaction;
mod value;

pub(crate) use bulk::{insert, list};
pub(crate) use guard::Guard;
pub(crate) use migrate::{KNOWN_MAJOR, Migrated, NEWEST, migrate, version};
pub(crate) use pool::{Database, Mode, listener_pool};
pub(crate) use transaction::{CHANNEL_OF_HINTS, Transaction};
pub(crate) use value::{Row, Value, json, malformed};
