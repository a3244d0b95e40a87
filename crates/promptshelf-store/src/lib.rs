//! Channels: prompt libraries with versions, review, promotion and rollback, on SQLite and PostgreSQL.
//!
//! A channel is a tree of files with a history. Every publish, promotion and rollback makes a new revision of the whole
//! tree; history only grows.
//!
//! - [`Store`] reads and changes channels. [`StoreUrl`] is its place, [`ChannelAddress`] a channel of it.
//! - [`Proposal`], [`Review`] and [`Policy`] decide about a publish.
//! - [`Evaluation`] is a stored result of a program that judges a version of a prompt; a policy can require it.
//! - [`Checker`] is the interface to the check and the tests of a tree; the crate that serves libraries implements it.
//!
//! HTTP and the protocol are deliberately not part of this crate.

mod address;
mod announce;
mod check;
mod comment;
mod database;
mod digest;
mod draft;
mod effect;
mod error;
mod evaluation;
mod gate;
mod hints;
mod input;
mod model;
mod moving;
mod once;
mod policy;
mod policy_change;
mod promote;
mod publish;
mod read;
mod reason;
mod retention;
mod review;
mod rollout;
mod rollout_report;
mod rollouts;
mod snapshot;
mod source_signals;
mod standing;
mod store;
mod tables;
mod tokens;
mod upload;
mod usage;
mod verify;
mod versions;
mod webhook;

pub use address::{ChannelAddress, ChannelName, StoreUrl};
pub use check::*;
pub use comment::*;
#[doc(hidden)]
pub use database::Fault;
pub use effect::*;
pub use error::StoreError;
pub use evaluation::*;
pub use hints::ChangeHints;
pub use input::{MAX_FILE_BYTES, MAX_PROPOSAL_BYTES};
pub use model::*;
pub use moving::StoreCopy;
pub use once::*;
pub use policy::loosened;
pub use reason::Reason;
pub use retention::Prunable;
pub use rollout::*;
pub use rollout_report::*;
pub use rollouts::RolloutEdit;
pub use standing::*;
pub use store::Store;
pub use tokens::{NewToken, TOKEN_CALLER, TokenInfo, TokenState, taken};
pub use usage::UsageQuery;
pub use verify::*;
pub use webhook::*;
