//! Bodies of requests and responses, beyond the values of the store.

use std::collections::BTreeMap;

use jiff::Timestamp;
use promptshelf_store::{
    ChannelInfo, ChannelName, CheckLevel, CheckSummary, Digest, FileChange, FileEntry, Head, Policy, PolicyChange,
    PolicyRoles, PromptChange, PromptChangeKind, Proposal, ProposalState, Published, Reason, Revision, RevisionKind,
    Served, Verdict,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::content::{ChangeBody, FileContent};
use crate::usage::RecentCalls;

/// Changes to propose.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ProposalBody {
    /// The revision that the changes start from; 0 for an empty channel.
    pub(super) base: u64,
    /// The description, of at most 4,096 characters.
    pub(super) message: String,
    /// The changed files.
    pub(super) changes: Vec<ChangeBody>,
    /// The reason for a publish that passes over the policy. It needs the scopes `library:publish` and `library:admin`.
    #[serde(default)]
    pub(super) emergency: Option<String>,
    /// Whether to stop after the check: nothing is stored, and the proposal of the answer has the number 0.
    #[serde(default)]
    pub(super) dry_run: bool,
}

/// Changes to check, without storing them.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CheckBody {
    /// The channel that the changes are for.
    pub(super) channel: ChannelName,
    /// The changed files.
    pub(super) changes: Vec<ChangeBody>,
}

/// The conditions for a publish to a channel.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PolicyBody {
    /// The number of approvals that a proposal needs, by different reviewers.
    approvals: u32,
    /// Whether authors cannot approve their own proposals.
    four_eyes: bool,
    /// Which findings of the check stop a publish.
    checks: CheckLevel,
    /// Whether a failed prompt test stops a publish.
    tests: bool,
    /// The evaluations whose newest result each added or changed prompt has to pass, at most 20.
    #[serde(default)]
    evaluations: Vec<String>,
    /// Whether these results also must not be worse than those of the versions that the channel serves.
    #[serde(default)]
    no_regression: bool,
    /// Whether changes that break calls need an approval that confirms each by name.
    #[serde(default)]
    no_breaking: bool,
    /// The roles that the channel is open to.
    roles: RolesBody,
    /// The description of the change, for the history of the policy; at most 4,096 characters.
    #[serde(default)]
    pub(super) message: String,
}

/// The roles that a caller needs besides the scope of the operation: one of the list, any if it is empty.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RolesBody {
    /// For proposals.
    propose: Vec<String>,
    /// For reviews.
    review: Vec<String>,
    /// For publishing proposals that meet the policy.
    publish: Vec<String>,
    /// For the policy itself, and for emergencies.
    administer: Vec<String>,
}

impl From<PolicyBody> for Policy {
    fn from(body: PolicyBody) -> Policy {
        let PolicyBody { approvals, four_eyes, checks, tests, evaluations, no_regression, no_breaking, roles, .. } =
            body;
        let RolesBody { propose, review, publish, administer } = roles;
        let roles = PolicyRoles { propose, review, publish, administer };
        Policy { approvals, four_eyes, checks, tests, evaluations, no_regression, no_breaking, roles }
    }
}

/// A review.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ReviewBody {
    /// The judgement.
    pub(super) verdict: Verdict,
    /// The digest of the changes that the reviewer has seen.
    pub(super) digest: Digest,
    /// The reviewer's words.
    #[serde(default)]
    pub(super) note: String,
    /// The names of the effects that an approval confirms.
    #[serde(default)]
    pub(super) confirmed: Vec<String>,
}

/// How to publish a proposal.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PublishBody {
    /// The digest of the changes that the caller has seen.
    pub(super) digest: Digest,
    /// The reason for a publish that passes over the policy. It needs the scope `library:admin`.
    #[serde(default)]
    pub(super) emergency: Option<String>,
}

/// A return to an earlier state.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RollbackBody {
    /// The revision to return to.
    pub(super) to: u64,
    /// Only this prompt, with all that it brings in.
    #[serde(default)]
    pub(super) prompt: Option<String>,
    /// The description.
    pub(super) message: String,
    /// Whether to stop after the check: nothing is stored, and the proposal of the answer has the number 0.
    #[serde(default)]
    pub(super) dry_run: bool,
}

/// A promotion from another channel.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PromoteBody {
    /// The channel to copy from.
    pub(super) from: ChannelName,
    /// Only these prompts, with all that they bring in; all files if it is empty.
    #[serde(default)]
    pub(super) prompts: Vec<String>,
    /// Whether what only the target has or has changed is undone.
    #[serde(default)]
    pub(super) all: bool,
    /// The description.
    pub(super) message: String,
    /// Whether to stop after the check: nothing is stored, and the proposal of the answer has the number 0.
    #[serde(default)]
    pub(super) dry_run: bool,
}

/// Which files of a tree, and of which revision.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TreeQuery {
    /// The revision; the newest one by default.
    pub(super) revision: Option<u64>,
    /// Only files whose path sorts after this one: `next` of the previous page.
    pub(super) after: Option<String>,
    /// The number of files, 100 by default and 10,000 at most.
    pub(super) limit: Option<usize>,
}

/// The revision of a file.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct FileQuery {
    /// The revision; the newest one by default.
    pub(super) revision: Option<u64>,
}

/// The two sides of a comparison.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DiffQuery {
    /// The revision on the left; 0 for an empty channel.
    pub(super) from: u64,
    /// The revision on the right; the newest one by default.
    pub(super) to: Option<u64>,
    /// The channel on the right; that of the path by default.
    pub(super) to_channel: Option<ChannelName>,
    /// Only files whose path sorts after this one: `next` of the previous page.
    pub(super) after: Option<String>,
    /// The number of files, 100 by default and 500 at most.
    pub(super) limit: Option<usize>,
}

/// Which revisions.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RevisionsQuery {
    /// Only revisions that changed this prompt.
    pub(super) prompt: Option<String>,
    /// Only the revision that was served at this time, such as 2026-11-23T14:05:00Z.
    #[param(value_type = Option<String>, format = DateTime)]
    pub(super) at: Option<Timestamp>,
    /// Only revisions with a smaller number: `next` of the previous page.
    pub(super) before: Option<u64>,
    /// The number of revisions, 100 by default and 500 at most.
    pub(super) limit: Option<usize>,
}

/// Which proposals.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ProposalsQuery {
    /// Only those in this state.
    pub(super) state: Option<ProposalState>,
    /// Only those with a smaller number: `next` of the previous page.
    pub(super) before: Option<u64>,
    /// The number of proposals, 100 by default and 500 at most.
    pub(super) limit: Option<usize>,
}

/// Which proposals, of any channel.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AllProposalsQuery {
    /// Only those of this channel.
    pub(super) channel: Option<ChannelName>,
    /// Only those in this state.
    pub(super) state: Option<ProposalState>,
    /// Only those with a smaller number: `next` of the previous page.
    pub(super) before: Option<u64>,
    /// The number of proposals, 100 by default and 500 at most. A page ends earlier after 20,000 changed files.
    pub(super) limit: Option<usize>,
}

/// Which files of a proposal.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ContentsQuery {
    /// Only files whose path sorts after this one: `next` of the previous page.
    pub(super) after: Option<String>,
    /// The number of files, 100 by default and 500 at most. A page ends earlier after 4 MiB.
    pub(super) limit: Option<usize>,
}

/// All channels.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Channels {
    /// By name.
    pub(super) channels: Vec<ChannelInfo>,
}

/// Files of a revision.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tree {
    /// The revision.
    pub(super) head: Head,
    /// By path.
    pub(super) files: Vec<FileEntry>,
    /// The value of `after` for the next page; null on the last one.
    pub(super) next: Option<String>,
}

/// The difference between two revisions.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Diff {
    /// The revision on the left.
    pub(super) from: u64,
    /// Its digest, by which a client notices that two pages are not of the same revisions.
    pub(super) from_digest: Option<Digest>,
    /// The revision on the right.
    pub(super) to: u64,
    /// Its digest.
    pub(super) to_digest: Option<Digest>,
    /// The files that differ, by path.
    pub(super) files: Vec<FileChange>,
    /// The value of `after` for the next page; null on the last one.
    pub(super) next: Option<String>,
    /// The prompts that differ, by name.
    pub(super) prompts: Vec<PromptDiff>,
}

/// The difference of a prompt.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptDiff {
    /// The name of the prompt.
    pub(super) name: String,
    /// The version on the left; null if it does not exist there.
    pub(super) from: Option<u64>,
    /// The version on the right; null if it does not exist there.
    pub(super) to: Option<u64>,
}

/// Revisions, the newest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Revisions {
    /// The revisions.
    pub(super) revisions: Vec<Revision>,
    /// The value of `before` for the next page; null on the last one.
    pub(super) next: Option<u64>,
}

/// The prompts of a revision.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServedPrompts {
    /// By name.
    pub(super) prompts: Vec<Served>,
}

/// Which changes of a policy.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PolicyHistoryQuery {
    /// Only changes with a smaller number: `next` of the previous page.
    pub(super) before: Option<u64>,
    /// The number of changes, 100 by default and 500 at most.
    pub(super) limit: Option<usize>,
}

/// Changes of a policy, the newest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicyChanges {
    /// The changes.
    pub(super) changes: Vec<PolicyChange>,
    /// The value of `before` for the next page; null on the last one.
    pub(super) next: Option<u64>,
}

/// Proposals, the newest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Proposals {
    /// The proposals, without their changes and reviews.
    pub(super) proposals: Vec<ProposalSummary>,
    /// The value of `before` for the next page; null on the last one.
    pub(super) next: Option<u64>,
}

/// Proposals with their changes and reviews, the newest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AllProposals {
    /// The proposals.
    pub(super) proposals: Vec<Proposal>,
    /// The value of `before` for the next page; null on the last one.
    pub(super) next: Option<u64>,
}

/// A proposal without its changes and reviews.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProposalSummary {
    /// Its number, unique in the store.
    id: u64,
    /// The channel that it changes.
    channel: ChannelName,
    /// The revision that the author started from.
    base: u64,
    /// The kind of the revision that it would become.
    kind: RevisionKind,
    /// The author's description.
    message: String,
    /// Its author.
    author: String,
    /// Its state.
    state: ProposalState,
    /// The digest of the changes.
    digest: Digest,
    /// The time of the last change.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The number of changed files.
    files: usize,
    /// Counts of the check of these changes.
    checks: CheckSummary,
    /// The revision that it became.
    revision: Option<u64>,
    /// The missing conditions, one sentence each. Empty if it can be published.
    lacks: Vec<String>,
    /// The same conditions with stable codes, in the same order.
    reasons: Vec<Reason>,
}

impl From<Proposal> for ProposalSummary {
    fn from(proposal: Proposal) -> ProposalSummary {
        ProposalSummary {
            id: proposal.id,
            channel: proposal.channel,
            base: proposal.base,
            kind: proposal.kind,
            message: proposal.message,
            author: proposal.author,
            state: proposal.state,
            digest: proposal.digest,
            at: proposal.at,
            files: proposal.changes.len(),
            checks: proposal.checks,
            revision: proposal.revision,
            lacks: proposal.lacks,
            reasons: proposal.reasons,
        }
    }
}

/// The outcome of a change.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Outcome {
    /// The proposal as it is now. Its state is `published` or `open`.
    pub(super) proposal: Proposal,
    /// The prompts that the revision changed, or would change.
    pub(super) prompts: Vec<PromptChange>,
    /// The findings of the check, with file and line, errors first; at most 100.
    pub(super) findings: Vec<String>,
    /// After a promotion: the prompts that stay different from those of the source, or that it does not have.
    pub(super) kept: Vec<String>,
}

impl From<Published> for Outcome {
    fn from(published: Published) -> Outcome {
        let Published { proposal, prompts, findings, kept } = published;
        Outcome { proposal, prompts, findings, kept }
    }
}

/// The contents of a proposal's changes.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Contents {
    /// The digest of the changes.
    pub(super) digest: Digest,
    /// By path.
    pub(super) files: Vec<ChangedContent>,
    /// The value of `after` for the next page; null on the last one.
    pub(super) next: Option<String>,
}

/// A changed file with its contents.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChangedContent {
    /// Relative to the library.
    pub(super) path: String,
    /// The content that the author started from; null for a new file.
    pub(super) before: Option<FileContent>,
    /// The new content; null for a deleted file.
    pub(super) after: Option<FileContent>,
}

/// The result of a check.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CheckResult {
    /// The revision of the channel that the changes were applied to.
    pub(super) revision: u64,
    /// Counts.
    pub(super) summary: CheckSummary,
    /// The findings, with file and line, errors first; at most 100.
    pub(super) findings: Vec<String>,
    /// The prompts that the changes affect, by name; at most 100.
    pub(super) prompts: Vec<AffectedPrompt>,
    /// The number of all affected prompts.
    pub(super) affected: usize,
    /// The differences that callers will notice, in words, the breaking ones first; at most 500.
    pub(super) differences: Vec<DifferenceInWords>,
}

/// A prompt that changes affect.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AffectedPrompt {
    /// The name of the prompt.
    pub(super) name: String,
    /// What happens to it.
    pub(super) change: PromptChangeKind,
    /// The rendering before the changes, with sample arguments; null for a new prompt.
    pub(super) before: Option<Rendering>,
    /// The rendering after the changes, with sample arguments; null for a removed prompt.
    pub(super) after: Option<Rendering>,
}

/// A prompt rendered with sample arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum Rendering {
    /// The messages as text, cut to 64 KiB.
    Text(String),
    /// The reason why it cannot be rendered.
    Failure(String),
}

/// A difference that callers will notice.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DifferenceInWords {
    /// `breaking`: calls that succeeded will fail. `opening`: more callers get access, or values are no longer
    /// protected. `notice`: nothing fails.
    pub(super) impact: &'static str,
    /// `library`, `prompt` or `resource`.
    pub(super) subject: &'static str,
    /// The name of the prompt, or the URI of the resource; empty for the library.
    pub(super) name: String,
    /// The stable name of the sentence, such as `argument-required`.
    pub(super) code: &'static str,
    /// The values of the sentence, by name. Lists are quoted and separated by commas.
    pub(super) values: BTreeMap<&'static str, String>,
    /// The difference and its effect, in English, without the name.
    pub(super) text: String,
    /// The calls of the last 30 days that it affects; null if usage is not counted, or does not decide it.
    pub(super) recent: Option<RecentCalls>,
}
