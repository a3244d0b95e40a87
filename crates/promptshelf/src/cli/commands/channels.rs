//! The commands for channels: versions, review, promotion and rollback of libraries in a store.

mod access;
mod connection;
mod diff;
mod evaluate;
mod history;
mod impact;
mod init;
mod maintain;
mod policy;
mod progress;
mod promote;
mod publish;
mod pull;
mod rendered;
mod report;
mod review;
mod rollout;
pub(crate) mod tokens;
mod transfer;
mod tree_checker;
mod unified;
mod usage;

use crate::{
    args::channels::{ChannelsCommand, RolloutCommand, StoreCommand},
    exit::Failure,
};

pub(crate) use self::{
    access::check_channel,
    connection::{refresh_remote_source, remote_sources},
};

pub(crate) async fn run(command: &ChannelsCommand) -> Result<(), Failure> {
    match command {
        ChannelsCommand::Init(arguments) => init::run(arguments).await,
        ChannelsCommand::Publish(arguments) => publish::run(arguments).await,
        ChannelsCommand::Pull(arguments) => pull::run(arguments).await,
        ChannelsCommand::History(arguments) => history::run(arguments).await,
        ChannelsCommand::Diff(arguments) => diff::run(arguments).await,
        ChannelsCommand::Proposals(arguments) => review::proposals(arguments).await,
        ChannelsCommand::Approve(arguments) => review::approve(arguments).await,
        ChannelsCommand::Reject(arguments) => review::reject(arguments).await,
        ChannelsCommand::Promote(arguments) => promote::promote(arguments).await,
        ChannelsCommand::Rollback(arguments) => promote::rollback(arguments).await,
        ChannelsCommand::Policy(arguments) => policy::run(arguments).await,
        ChannelsCommand::Evaluate(arguments) => evaluate::run(arguments).await,
        ChannelsCommand::Rollout(RolloutCommand::List(arguments)) => rollout::list(arguments).await,
        ChannelsCommand::Rollout(RolloutCommand::Set(arguments)) => rollout::set(arguments).await,
        ChannelsCommand::Rollout(RolloutCommand::Stop(arguments)) => rollout::stop(arguments).await,
        ChannelsCommand::Usage(arguments) => usage::run(arguments).await,
        ChannelsCommand::Store(StoreCommand::Migrate(arguments)) => maintain::migrate(arguments).await,
        ChannelsCommand::Store(StoreCommand::Gc(arguments)) => maintain::gc(arguments).await,
        ChannelsCommand::Store(StoreCommand::Verify(arguments)) => maintain::verify(arguments).await,
        ChannelsCommand::Store(StoreCommand::NewEpoch(arguments)) => maintain::new_epoch(arguments).await,
        ChannelsCommand::Store(StoreCommand::Prune(arguments)) => maintain::prune(arguments).await,
    }
}
