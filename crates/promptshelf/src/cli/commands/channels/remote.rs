//! A store behind the API of a server: every operation of a command as requests.
//!
//! - `connection` sends a request and reads the answer; `error` converts refusals to the errors of a store.
//! - `operations`, `evaluations`, `rollouts`, `tokens` and `transfer` have the operations, `model` the bodies.

mod connection;
mod error;
mod evaluations;
mod model;
mod operations;
mod rollouts;
mod sources;
mod tokens;
mod transfer;

pub(super) use self::connection::Remote;
pub(crate) use self::sources::{refresh_remote_source, remote_sources};
