//! The server as clients meet it, transport by transport.

mod guided;
mod http;
mod shelf;
mod stdio;
