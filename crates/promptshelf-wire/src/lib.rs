//! The contract of the HTTP API: operations, bodies, problems, and the OpenAPI document that describes them.
//!
//! [`op`] declares each operation once, as an [`Operation`]. A handler of the server and a client get path, method,
//! scopes, name in the audit and types from there. There is no code of a server or a client here.

mod channels;
mod editing;
pub mod op;
mod openapi;
mod operation;
mod problem;
mod programs;
mod usage;

pub use self::{
    channels::*,
    editing::*,
    openapi::Document,
    operation::{
        Detail, KEY_HEADER, Nothing, Operation, PREFIX, PathParameter, RawBody, Returns, Scope, Spec, VERSION,
        VERSION_HEADER,
    },
    problem::Problem,
    programs::*,
    usage::*,
};
pub use promptshelf_store::{ChannelName, Digest, Reason};
