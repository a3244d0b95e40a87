//! The client against a fake server at the other end of a pipe, or over HTTP.

mod changes;
mod elicitation;
mod errors;
mod fake_server;
mod http_server;
mod limits;
mod lists;
mod negotiation;
mod prompts;
mod reconnection;
