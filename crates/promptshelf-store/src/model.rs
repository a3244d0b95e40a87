//! The values of the data model: revisions, proposals, reviews, policies.

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use crate::digest::Digest;
use crate::{
    address::ChannelName,
    check::CheckSummary,
    effect::Effect,
    input::same_name,
    policy::{Act, unmet},
    reason::Reason,
};

/// Identifies one life of a store: a restored backup gets a new epoch, and replicas then read everything again. A random
/// UUID as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct Epoch(pub(crate) String);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The newest revision of a channel, within an epoch. Equal heads have equal histories.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Head {
    /// The epoch of the store.
    pub epoch: Epoch,
    /// The number of the revision; 0 for an empty channel.
    pub revision: u64,
    /// The digest of the revision, which covers its files and its whole history. `None` for an empty channel, and for a
    /// revision by an earlier release.
    #[serde(default)]
    pub digest: Option<Digest>,
}

/// A channel and its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChannelInfo {
    /// The name of the channel.
    pub name: ChannelName,
    /// Its newest revision.
    pub head: Head,
    /// The conditions of a publish.
    pub policy: Policy,
}

/// Which findings of the check stop a publish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum CheckLevel {
    /// Errors stop it.
    #[default]
    Errors,
    /// Errors and warnings stop it.
    Warnings,
    /// Nothing stops it.
    Off,
}

/// The conditions for a publish to a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Policy {
    /// The number of approvals that a proposal needs, by different reviewers.
    pub approvals: u32,
    /// Whether authors cannot approve their own proposals. A proposal then needs at least one approval.
    pub four_eyes: bool,
    /// Which findings of the check stop a publish.
    pub checks: CheckLevel,
    /// Whether a failed prompt test stops a publish.
    pub tests: bool,
    /// The evaluations whose newest result each added or changed prompt has to pass.
    pub evaluations: Vec<String>,
    /// Whether these results also must not be worse than those of the versions that the channel serves.
    pub no_regression: bool,
    /// Whether changes that break calls need an approval that confirms each by name.
    pub no_breaking: bool,
    /// The roles of the callers that use the channel through a server.
    pub roles: PolicyRoles,
}

/// The roles that a caller of a server needs besides the scope of the operation: one of the list, any if it is empty.
/// Programs that use the database itself are not bound by them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRoles {
    /// For proposals.
    pub propose: Vec<String>,
    /// For reviews.
    pub review: Vec<String>,
    /// For publishing proposals that meet the policy.
    pub publish: Vec<String>,
    /// For the policy itself, and for emergencies.
    pub administer: Vec<String>,
}

/// A change of the policy of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyChange {
    /// Its number, unique in the store.
    pub number: u64,
    /// The channel.
    pub channel: ChannelName,
    /// The time.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// Who changed it.
    pub actor: String,
    /// The policy before; `None` if the change made the channel.
    pub before: Option<Policy>,
    /// The policy from then on.
    pub after: Policy,
    /// The description.
    pub message: String,
    /// The proposal that was approved; `None` for a change that needed none.
    pub proposal: Option<u64>,
    /// The reviewers who approved it.
    pub approved_by: Vec<String>,
    /// The reason for which approvals were passed over, if they were.
    pub emergency: Option<String>,
    /// Whether an account of the database itself made it, without a server.
    pub by_operator: bool,
}

/// The outcome of a change of a policy by a caller of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyOutcome {
    /// The policy is changed.
    Changed(Box<ChannelInfo>),
    /// The change loosens the policy and waits for the approvals that the present one demands.
    Proposed(Box<Proposal>),
}

/// A policy that a proposal asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProposedPolicy {
    /// The policy that it replaces.
    pub before: Policy,
    /// The new policy.
    pub after: Policy,
}

/// The state of a channel that a promotion copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProposalSource {
    /// The channel.
    pub channel: ChannelName,
    /// The revision.
    pub revision: u64,
    /// Whether everything is copied, and not only some prompts.
    pub is_whole: bool,
}

/// The policy that a channel must have for a change of the policy to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyGuard {
    /// Any, or the channel does not exist.
    Any,
    /// The channel does not exist.
    Absent,
    /// Exactly this one.
    Is(Policy),
}

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FileEntry {
    /// Relative to the tree, with `/` between its parts.
    pub path: String,
    /// The digest of its bytes.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// The change of one file in a proposal. `None` stands for a file that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// Relative to the tree, with `/` between its parts.
    pub path: String,
    /// The content that the author started from.
    pub before: Option<Digest>,
    /// The new content.
    pub after: Option<Digest>,
}

/// A change with the bytes of the new content, as it is sent to a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Relative to the tree, with `/` between its parts.
    pub path: String,
    /// The content that the author started from; `None` if the file did not exist.
    pub before: Option<Digest>,
    /// The new content; `None` deletes the file.
    pub after: Option<Arc<[u8]>>,
}

/// The kind of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum RevisionKind {
    /// Published from a folder, an editor or the API.
    Publish,
    /// Copied from another channel.
    Promote,
    /// A return to an earlier state.
    Rollback,
    /// Another policy. It makes no revision.
    Policy,
}

impl RevisionKind {
    /// Returns the name that JSON and the database use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            RevisionKind::Publish => "publish",
            RevisionKind::Promote => "promote",
            RevisionKind::Rollback => "rollback",
            RevisionKind::Policy => "policy",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<RevisionKind> {
        match name {
            "publish" => Some(RevisionKind::Publish),
            "promote" => Some(RevisionKind::Promote),
            "rollback" => Some(RevisionKind::Rollback),
            "policy" => Some(RevisionKind::Policy),
            _ => None,
        }
    }
}

/// A revision of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// Its number; 1 is the first one.
    pub number: u64,
    /// Its digest, which covers its files and its whole history; `None` for a revision by an earlier release.
    #[serde(default)]
    pub digest: Option<Digest>,
    /// How it came to be.
    pub kind: RevisionKind,
    /// The author of the proposal.
    pub author: String,
    /// The author's description of the change.
    pub message: String,
    /// The time of the commit, by the clock of the database.
    pub at: Timestamp,
    /// The proposal that was published.
    pub proposal: u64,
    /// The reviewers who approved it.
    pub approved_by: Vec<String>,
    /// The reason for which the policy was passed over, if it was.
    pub emergency: Option<String>,
    /// The counts of the check.
    pub checks: CheckSummary,
    /// The policy that it met, or passed over in an emergency; `None` for revisions of earlier releases.
    #[serde(default)]
    pub policy: Option<Policy>,
    /// The seconds by which the time of the revision before is later than this one, because the clock of the database was
    /// wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead: Option<u64>,
    /// The prompts that it added, changed and removed.
    pub prompts: Vec<PromptChange>,
}

/// The change of a prompt in a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PromptChange {
    /// The name of the prompt.
    pub name: String,
    /// The version number from this revision on; of the removed version for a removed prompt. Each channel counts its
    /// versions, and equal digests have equal numbers there. 0 for a version that gets its number when it is published.
    pub version: u64,
    /// The version number before; `None` for an added prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<u64>,
    /// The effect.
    pub change: PromptChangeKind,
}

/// The effect of a revision on a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum PromptChangeKind {
    /// The prompt is new in the channel.
    Added,
    /// The prompt, or a file that it brings in, has changed.
    Changed,
    /// The prompt is gone from the channel.
    Removed,
}

/// A span of time in which a version of a prompt was served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Served {
    /// The name of the prompt.
    pub name: String,
    /// The version number.
    pub version: u64,
    /// The digest of the prompt's file and all files that it brings in.
    pub digest: Digest,
    /// The first revision with it.
    pub since: u64,
    /// The first revision without it; `None` while it is served.
    pub until: Option<u64>,
}

/// The state of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum ProposalState {
    /// It waits for reviews.
    Open,
    /// It is a revision now.
    Published,
    /// A reviewer rejected it.
    Rejected,
    /// Its author withdrew it.
    Withdrawn,
}

impl ProposalState {
    /// Returns the name that JSON and the database use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ProposalState::Open => "open",
            ProposalState::Published => "published",
            ProposalState::Rejected => "rejected",
            ProposalState::Withdrawn => "withdrawn",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<ProposalState> {
        match name {
            "open" => Some(ProposalState::Open),
            "published" => Some(ProposalState::Published),
            "rejected" => Some(ProposalState::Rejected),
            "withdrawn" => Some(ProposalState::Withdrawn),
            _ => None,
        }
    }
}

/// Changes that are proposed for a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// Its number, unique in the store.
    pub id: u64,
    /// The channel that it changes.
    pub channel: ChannelName,
    /// The revision that the author started from.
    pub base: u64,
    /// The kind of the revision that it would become.
    pub kind: RevisionKind,
    /// The author's description.
    pub message: String,
    /// Its author.
    pub author: String,
    /// Who created the token of its author, if that is one of the store. They count as the author: they have the token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub creators: Vec<String>,
    /// Its state.
    pub state: ProposalState,
    /// The digest of the changes, with kind and message. A review is of exactly these.
    pub digest: Digest,
    /// The time of the last change.
    pub at: Timestamp,
    /// The files that it changes, by path.
    pub changes: Vec<FileChange>,
    /// All reviews, the oldest first. Those of earlier changes have another digest and do not count.
    pub reviews: Vec<Review>,
    /// The counts of the check for these changes.
    pub checks: CheckSummary,
    /// The findings of this check with file and line, errors first, at most 100. Absent in lists, and for changes by an
    /// earlier release.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// What the changes break and open for callers, the openings first.
    #[serde(default)]
    pub effects: Vec<Effect>,
    /// The policy that it asks for; `None` for a proposal of files.
    #[serde(default)]
    pub policy: Option<ProposedPolicy>,
    /// What it promotes; `None` for other kinds, and for callers of a server who may not see that channel.
    #[serde(default)]
    pub source: Option<ProposalSource>,
    /// What a reviewer should know about the names of the author and the reviewers.
    #[serde(default)]
    pub warnings: Vec<Reason>,
    /// The revision that it became.
    pub revision: Option<u64>,
    /// The missing conditions, one sentence each. Empty if it can be published.
    pub lacks: Vec<String>,
    /// The same conditions with stable codes, in the same order.
    #[serde(default)]
    pub reasons: Vec<Reason>,
}

impl Proposal {
    /// Returns whether a name is that of the author, or of a creator of the author's token: case and Unicode's compatible
    /// forms do not count.
    #[must_use]
    pub fn is_by(&self, name: &str) -> bool {
        std::iter::once(&self.author).chain(&self.creators).any(|own| same_name(own, name))
    }

    /// Returns the missing conditions that an actor cannot do without: one who may administer needs no confirmation of
    /// openings, where the policy demands no approvals.
    #[must_use]
    pub fn reasons_against(&self, policy: &Policy, actor: &Actor) -> Vec<Reason> {
        let Actor { may_publish, may_administer, .. } = *actor;
        let act = Act { may_publish, may_administer, emergency: None };
        unmet(policy, &self.reasons, &act).cloned().collect()
    }

    pub(crate) fn set_reasons(&mut self, reasons: Vec<Reason>) {
        self.lacks = Reason::texts(&reasons);
        self.reasons = reasons;
    }
}

/// The judgement of a reviewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The changes may be published.
    Approve,
    /// The changes must not be published.
    Reject,
}

impl Verdict {
    /// Returns the name that JSON and the database use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Approve => "approve",
            Verdict::Reject => "reject",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Verdict> {
        match name {
            "approve" => Some(Verdict::Approve),
            "reject" => Some(Verdict::Reject),
            _ => None,
        }
    }
}

/// A review of a proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// Who reviewed.
    pub reviewer: String,
    /// The judgement.
    pub verdict: Verdict,
    /// The digest of the reviewed changes.
    pub digest: Digest,
    /// The reviewer's words.
    pub note: String,
    /// The names of the effects that an approval confirms, without those that have changed since: they have to be confirmed
    /// again.
    #[serde(default)]
    pub confirmed: Vec<String>,
    /// Whether it is an approval that no longer counts: the policy has taken the review from some of those who had it then.
    #[serde(default)]
    pub lapsed: bool,
    /// The time of the review.
    pub at: Timestamp,
}

/// Who does something: the name that history shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// A name of at most 200 characters, not empty, without control characters.
    pub name: String,
    /// Whether a proposal is published as soon as it meets the policy. Otherwise it stays open, until an actor with the
    /// permission publishes it.
    pub may_publish: bool,
    /// Whether changes that open something need no confirmation, where the policy demands no approvals.
    pub may_administer: bool,
    /// The roles that reviewed under the policy when it was seen that the actor has one of them: approvals under a policy with
    /// others are refused. `None` for an operator.
    pub review_roles: Option<Vec<String>>,
}

/// A review of a proposal, to store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ReviewBody))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewReview {
    /// The judgement.
    pub verdict: Verdict,
    /// The digest of the changes that the reviewer has read.
    pub digest: Digest,
    /// The reviewer's words.
    #[serde(default)]
    pub note: String,
    /// The names of the effects that an approval confirms.
    #[serde(default)]
    pub confirmed: Vec<String>,
}

/// A promotion of files from one channel to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promotion {
    /// The channel to copy from.
    pub from: ChannelName,
    /// The channel to copy to. It is created if it does not exist.
    pub to: ChannelName,
    /// Only these prompts, with all that they bring in; everything if it is empty.
    pub prompts: Vec<String>,
    /// Whether the changes of the target itself are undone.
    pub all: bool,
    /// The description; an empty one is replaced by one that names the channel.
    pub message: String,
    /// Whether to stop after the check: nothing is stored.
    pub dry_run: bool,
    /// Whether it ends the rollout from the target to the source: it is refused if that is over.
    pub ends_rollout: bool,
}

/// A return of a channel to an earlier revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollback {
    /// The channel.
    pub channel: ChannelName,
    /// The revision whose files come back.
    pub to: u64,
    /// Only this prompt, with all that it brings in; everything without one.
    pub prompt: Option<String>,
    /// The description; an empty one is replaced by one that names the revision.
    pub message: String,
    /// Whether to stop after the check: nothing is stored.
    pub dry_run: bool,
}

/// Changes to propose, and to publish at once if the policy is met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publish {
    /// The channel. It is created if it does not exist.
    pub channel: ChannelName,
    /// The revision that the changes start from.
    pub base: u64,
    /// The kind of the revision.
    pub kind: RevisionKind,
    /// The description, of at most 4,096 characters.
    pub message: String,
    /// An open proposal to replace; its approvals no longer count.
    pub proposal: Option<u64>,
    /// The digest of the changes that the replaced proposal must still have; `None` replaces any.
    pub expected: Option<Digest>,
    /// The reason for a publish that passes over the policy.
    pub emergency: Option<String>,
    /// The changed files.
    pub changes: Vec<Change>,
    /// Whether to stop after the check: nothing is stored.
    pub dry_run: bool,
}

/// The outcome of a publish, an approval, a promotion or a rollback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Outcome))]
#[serde(rename_all = "camelCase")]
pub struct Published {
    /// The proposal as it is now. Its `id` is 0 after a dry run.
    pub proposal: Proposal,
    /// The prompts that the revision changed, or would change.
    pub prompts: Vec<PromptChange>,
    /// The findings of the check with file and line, errors first, at most 100. Empty where the check did not run.
    pub findings: Vec<String>,
    /// After a promotion: the prompts that stay different from those of the source, or that it does not have.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub kept: Vec<String>,
}

/// Selects proposals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProposalQuery {
    /// Only those of this channel.
    pub channel: Option<ChannelName>,
    /// Only those in this state.
    pub state: Option<ProposalState>,
    /// Only those with a smaller number.
    pub before: Option<u64>,
    /// The largest number of proposals; 0 stands for 100, and at most 1,000 are returned.
    pub limit: usize,
}

/// Selects revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Only revisions that changed this prompt.
    pub prompt: Option<String>,
    /// Only the revision that was served at this time; with `prompt`, the one that the prompt came from.
    pub at: Option<Timestamp>,
    /// Only revisions with a smaller number.
    pub before: Option<u64>,
    /// The largest number of revisions; 0 stands for 100, and at most 1,000 are returned.
    pub limit: usize,
}

/// The changes of a channel since a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// The head that the changes lead to.
    pub head: Head,
    /// The digest of all files at the head ([`Digest::of_tree`]); `None` if the head has none.
    pub tree: Option<Digest>,
    /// Whether `files` are all files, because the channel never had the revision that the changes were asked for.
    pub is_complete: bool,
    /// The files that were added or changed, or all of them, by path.
    pub files: Vec<FileEntry>,
    /// The paths of removed files. Empty if the delta is complete.
    pub removed: Vec<String>,
}
