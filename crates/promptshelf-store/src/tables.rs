//! The statements on each table.

pub(crate) mod blob;
pub(crate) mod chain;
pub(crate) mod channel;
pub(crate) mod comment;
pub(crate) mod entry;
pub(crate) mod evaluation;
pub(crate) mod policy_change;
pub(crate) mod prompt;
pub(crate) mod proposal;
pub(crate) mod revision;
pub(crate) mod rollout;
pub(crate) mod rollout_change;
pub(crate) mod upload;
pub(crate) mod usage;
pub(crate) mod webhook;
