//! Tests of the server through its transports.

mod guided;
mod http;
mod library;
mod provenance;
mod stdio;
#[cfg(target_os = "linux")]
mod work;
