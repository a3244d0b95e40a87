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
mod commenting;
mod database;
mod digest;
mod draft;
mod effect;
mod error;
mod evaluating;
mod evaluation;
mod gate;
mod hints;
mod input;
mod model;
mod moving;
mod once;
mod outbox;
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
mod webhook_body;

pub use address::{ChannelAddress, ChannelName, StoreUrl};
pub use check::{CheckReport, CheckSummary, Checker, Checking, PromptFile, Trees, check_now};
pub use comment::{Comment, CommentLine, CommentSide, NewComment};
#[doc(hidden)]
pub use database::Fault;
pub use effect::{BrokenCalls, Effect, EffectImpact};
pub use error::StoreError;
pub use evaluation::{
    CaseChange, CaseResult, Evaluation, EvaluationQuery, EvaluationsOfPrompt, NewEvaluation, ProposalEvaluations,
    ResultChange,
};
pub use hints::ChangeHints;
pub use input::{MAX_FILE_BYTES, MAX_PROPOSAL_BYTES};
pub use model::{
    Actor, Change, ChannelInfo, CheckLevel, Delta, Digest, Epoch, FileChange, FileEntry, Head, HistoryQuery, NewReview,
    Policy, PolicyChange, PolicyGuard, PolicyOutcome, PolicyRoles, Promotion, PromptChange, PromptChangeKind, Proposal,
    ProposalQuery, ProposalSource, ProposalState, ProposedPolicy, Publish, Published, Review, Revision, RevisionKind,
    Rollback, Served, Verdict,
};
pub use moving::StoreCopy;
pub use once::{ANSWER_KEPT, Claim, KeptAnswer, KeyedRequest};
pub use outbox::DeliveryLock;
pub use policy::loosened;
pub use reason::Reason;
pub use rollout::{GroupCounts, RolloutCounts, RolloutPhase, RolloutPlan, RolloutProgress, RolloutState};
pub use rollout_report::{RolloutChange, RolloutChangeKind, RolloutReport, RolloutStep};
pub use rollouts::RolloutEdit;
pub use standing::{PromptStanding, Standing, StandingQuery, Standings};
pub use store::Store;
pub use tokens::{NewToken, TOKEN_CALLER, TokenInfo, TokenState, taken};
pub use usage::UsageQuery;
pub use verify::{Misfit, VerifiedChannel};
pub use webhook::{DeadLetter, Delivery, DeliveryAttempt, Webhook, WebhookEvent, WebhookQueue};
