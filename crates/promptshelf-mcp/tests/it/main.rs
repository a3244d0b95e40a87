//! Tests of the server through its transports.

mod guided;
mod http;
mod library;
mod stdio;
