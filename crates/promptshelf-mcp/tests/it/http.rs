//! The Streamable HTTP endpoint, without a socket where possible.

mod arbitrary_input;
mod batches;
mod callers;
mod endpoint;
mod guided;
mod headers;
mod host_check;
mod legacy;
mod listener;
mod messages;
mod modern;
mod observed;
mod one_catalog;
mod prompt_tools;
mod skills;
mod streams;
mod tools;
