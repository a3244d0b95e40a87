//! The statements on each table. Those of one subject are in its module.

pub(crate) mod blob;
pub(crate) mod chain;
pub(crate) mod channel;
pub(crate) mod entry;
pub(crate) mod prompt;
pub(crate) mod proposal;
pub(crate) mod revision;

pub(crate) use crate::{
    comment::rows as comment,
    evaluation::rows as evaluation,
    policy_change::rows as policy_change,
    rollouts::{change_rows as rollout_change, rows as rollout},
    upload::rows as upload,
    usage::rows as usage,
    webhook::rows as webhook,
};
