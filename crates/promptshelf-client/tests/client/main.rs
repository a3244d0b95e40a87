//! The client against a fake server at the other end of a pipe.

mod elicitation;
mod errors;
mod fake_server;
mod limits;
mod lists;
mod negotiation;
mod prompts;
