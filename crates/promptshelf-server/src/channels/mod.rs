//! Channels of a store: following them, and the check of a tree before a publish.
//!
//! [`Follower`] keeps a library equal to the newest revision of a channel. Requests are answered from memory only; the
//! store is read by the follower alone.

mod cache;
mod checker;
mod copy;
mod effects;
mod follower;
mod prompt_files;
#[cfg(test)]
mod simulation;
mod source_signals;
mod store_handle;
mod token_follower;
mod versions;

#[cfg(feature = "serve")]
pub(crate) use self::follower::revision_of_copy;
pub(crate) use self::{checker::CallerChecker, prompt_files::prompt_files, versions::provenance_of};
pub use self::{
    checker::LibraryChecker,
    follower::{FollowError, FollowOptions, Follower},
    source_signals::SourceSignals,
    store_handle::StoreHandle,
    token_follower::TokenFollower,
};
