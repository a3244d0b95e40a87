//! The `promptshelf` program: its command line, its terminal host and its
//! settings. `promptshelf --help` says what it does; as a crate it has one
//! function, [`run`].

mod app;
mod config;
mod exit;
mod host;
mod observe;
mod telemetry;
mod verbs;

pub use app::run;
