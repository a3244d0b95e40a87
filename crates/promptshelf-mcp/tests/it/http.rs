//! The endpoint of Streamable HTTP, asked without a socket where none is needed.

mod any_bytes;
mod batches;
mod callers;
mod endpoint;
mod gate;
mod guided;
mod headers;
mod legacy;
mod listener;
mod messages;
mod modern;
mod observed;
mod one_catalog;
mod streams;
