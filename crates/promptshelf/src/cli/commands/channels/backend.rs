//! One interface to a store: opened by the command itself, or through the API of a server.

use std::sync::Arc;

use promptshelf_source::MemoryTree;
use promptshelf_store::{
    Actor, ChannelInfo, ChannelName, Checker, Digest, Evaluation, EvaluationQuery, FileEntry, Head, HistoryQuery,
    NewEvaluation, NewReview, Policy, PolicyChange, PolicyGuard, PolicyOutcome, Promotion, Proposal,
    ProposalEvaluations, ProposalQuery, Publish, Published, Revision, RolloutReport, Served, Store,
};

use super::{
    answer::{Answer, ChangedContent},
    remote::Remote,
    tree_checker::checker,
};

/// The access to a store. An [`Actor`] counts for a store only: a server authenticates the caller.
pub(super) enum Backend {
    Store(Store),
    Server(Box<Remote>),
}

impl Backend {
    /// Closes the connections. SQLite then removes the files next to the store.
    pub(super) async fn close(&self) {
        if let Backend::Store(store) = self {
            store.close().await;
        }
    }

    pub(super) async fn channels(&self) -> Answer<Vec<ChannelInfo>> {
        match self {
            Backend::Store(store) => Ok(store.channels().await?),
            Backend::Server(server) => server.channels().await,
        }
    }

    pub(super) async fn channel(&self, channel: &ChannelName) -> Answer<ChannelInfo> {
        match self {
            Backend::Store(store) => Ok(store.channel(channel).await?),
            Backend::Server(server) => server.channel(channel).await,
        }
    }

    pub(super) async fn set_policy(
        &self,
        channel: &ChannelName,
        policy: &Policy,
        guard: &PolicyGuard,
        message: &str,
        actor: &Actor,
    ) -> Answer<PolicyOutcome> {
        match self {
            Backend::Store(store) => {
                Ok(PolicyOutcome::Changed(Box::new(store.set_policy(channel, policy, guard, message, actor).await?)))
            }
            Backend::Server(server) => server.set_policy(channel, policy, guard, message).await,
        }
    }

    pub(super) async fn policy_history(&self, channel: &ChannelName, limit: usize) -> Answer<Vec<PolicyChange>> {
        match self {
            Backend::Store(store) => Ok(store.policy_history(channel, None, limit).await?),
            Backend::Server(server) => server.policy_history(channel, limit).await,
        }
    }

    pub(super) async fn files(&self, channel: &ChannelName, revision: Option<u64>) -> Answer<(Head, Vec<FileEntry>)> {
        match self {
            Backend::Store(store) => Ok(store.files(channel, revision).await?),
            Backend::Server(server) => server.files(channel, revision).await,
        }
    }

    pub(super) async fn contents(
        &self,
        channel: &ChannelName,
        revision: u64,
        files: &[&FileEntry],
    ) -> Answer<Vec<(Digest, Arc<[u8]>)>> {
        match self {
            Backend::Store(store) => {
                let digests: Vec<Digest> = files.iter().map(|file| file.digest).collect();
                Ok(store.blobs(&digests).await?)
            }
            Backend::Server(server) => server.contents(channel, revision, files).await,
        }
    }

    pub(super) async fn tree(&self, channel: &ChannelName, revision: Option<u64>) -> Answer<(Head, MemoryTree)> {
        match self {
            Backend::Store(store) => Ok(store.tree(channel, revision).await?),
            Backend::Server(server) => server.tree(channel, revision).await,
        }
    }

    pub(super) async fn history(&self, channel: &ChannelName, query: &HistoryQuery) -> Answer<Vec<Revision>> {
        match self {
            Backend::Store(store) => Ok(store.history(channel, query).await?),
            Backend::Server(server) => server.history(channel, query).await,
        }
    }

    pub(super) async fn served(&self, channel: &ChannelName, revision: u64) -> Answer<Vec<Served>> {
        match self {
            Backend::Store(store) => Ok(store.served(channel, revision).await?),
            Backend::Server(server) => server.served(channel, revision).await,
        }
    }

    pub(super) async fn proposals(&self, query: &ProposalQuery) -> Answer<Vec<Proposal>> {
        match self {
            Backend::Store(store) => Ok(store.proposals(query).await?),
            Backend::Server(server) => server.proposals(query).await,
        }
    }

    pub(super) async fn proposal(&self, id: u64) -> Answer<Proposal> {
        match self {
            Backend::Store(store) => Ok(store.proposal(id).await?),
            Backend::Server(server) => server.proposal(id).await,
        }
    }

    pub(super) async fn proposal_contents(&self, id: u64) -> Answer<Vec<ChangedContent>> {
        match self {
            Backend::Store(store) => Ok(store.proposal_contents(id).await?),
            Backend::Server(server) => server.proposal_contents(id).await,
        }
    }

    pub(super) async fn publish(&self, publish: Publish, actor: &Actor) -> Answer<Published> {
        match self {
            Backend::Store(store) => Ok(store.publish(publish, actor, checker()).await?),
            Backend::Server(server) => server.publish(publish).await,
        }
    }

    pub(super) async fn publish_proposal(
        &self,
        id: u64,
        digest: Digest,
        emergency: String,
        actor: &Actor,
    ) -> Answer<Published> {
        match self {
            Backend::Store(store) => {
                Ok(store.publish_proposal(id, Some(digest), Some(emergency), actor, checker()).await?)
            }
            Backend::Server(server) => server.publish_proposal(id, digest, &emergency).await,
        }
    }

    pub(super) async fn review(&self, id: u64, review: &NewReview, actor: &Actor) -> Answer<Published> {
        match self {
            Backend::Store(store) => Ok(store.review(id, review, actor, checker()).await?),
            Backend::Server(server) => server.review(id, review).await,
        }
    }

    pub(super) async fn proposal_evaluations(&self, id: u64) -> Answer<ProposalEvaluations> {
        match self {
            Backend::Store(store) => Ok(store.proposal_evaluations(id).await?),
            Backend::Server(server) => server.proposal_evaluations(id).await,
        }
    }

    pub(super) async fn evaluations(&self, channel: &ChannelName, query: &EvaluationQuery) -> Answer<Vec<Evaluation>> {
        match self {
            Backend::Store(store) => Ok(store.evaluations(channel, query).await?),
            Backend::Server(server) => server.evaluations(channel, query).await,
        }
    }

    pub(super) async fn add_evaluation(
        &self,
        channel: &ChannelName,
        new: &NewEvaluation,
        actor: &Actor,
        checker: Arc<dyn Checker>,
    ) -> Answer<Evaluation> {
        match self {
            Backend::Store(store) => Ok(store.add_evaluation(channel, new, actor, checker).await?),
            Backend::Server(server) => server.add_evaluation(channel, new).await,
        }
    }

    pub(super) async fn withdraw(&self, id: u64, actor: &Actor) -> Answer<Proposal> {
        match self {
            Backend::Store(store) => Ok(store.withdraw(id, actor).await?),
            Backend::Server(server) => server.withdraw(id).await,
        }
    }

    pub(super) async fn promote(&self, promotion: &Promotion, actor: &Actor) -> Answer<Published> {
        match self {
            Backend::Store(store) => Ok(store.promote(promotion, actor, checker()).await?),
            Backend::Server(server) => server.promote(promotion).await,
        }
    }

    pub(super) async fn rollback(
        &self,
        channel: &ChannelName,
        to: u64,
        prompt: Option<&str>,
        message: &str,
        dry_run: bool,
        actor: &Actor,
    ) -> Answer<Published> {
        match self {
            Backend::Store(store) => {
                Ok(store.rollback(channel, to, prompt, message, dry_run, actor, checker()).await?)
            }
            Backend::Server(server) => server.rollback(channel, to, prompt, message, dry_run).await,
        }
    }
    pub(super) async fn rollouts(&self) -> Answer<Vec<RolloutReport>> {
        match self {
            Backend::Store(store) => Ok(store.rollouts().await?),
            Backend::Server(server) => server.rollouts().await,
        }
    }

    pub(super) async fn set_rollout(
        &self,
        channel: &ChannelName,
        target: Option<&ChannelName>,
        percent: u8,
        reason: &str,
        actor: &Actor,
    ) -> Answer<RolloutReport> {
        match self {
            Backend::Store(store) => Ok(store.set_rollout(channel, target, percent, reason, None, actor).await?),
            Backend::Server(server) => server.set_rollout(channel, target, percent, reason).await,
        }
    }

    pub(super) async fn stop_rollout(
        &self,
        channel: &ChannelName,
        target: Option<&ChannelName>,
        reason: &str,
        actor: &Actor,
    ) -> Answer<RolloutReport> {
        match self {
            Backend::Store(store) => Ok(store.stop_rollout(channel, target, reason, actor).await?),
            Backend::Server(server) => server.stop_rollout(channel, target, reason).await,
        }
    }
}
