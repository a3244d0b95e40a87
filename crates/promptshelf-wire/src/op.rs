//! Every operation of the API, declared once: its parameters, path, scopes, name in the audit, query, bodies and problems.
//! The parameters of a query stand above the first operation that takes them.

use jiff::Timestamp;
use promptshelf_store::*;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use crate::{
    channels::*,
    editing::*,
    operation::{
        Nothing, RawBody, content, empty, header, of_library, once, operation, page, problem, required_header, returns,
    },
    programs::*,
    usage::*,
};

operation! {
    /// Lists all channels with their newest revisions and policies
    ListChannels {} = GET "/channels", "channels", "api/channels", [[Read]] => Page<ChannelInfo>, [page()]
}

operation! {
    /// Returns a channel with its newest revision and its policy
    GetChannel { channel: ChannelName } = GET "/channels/{channel}", "channels", "api/channel", [[Read]] => ChannelInfo
}

operation! {
    /// Returns the policy of a channel
    GetPolicy { channel: ChannelName } = GET "/channels/{channel}/policy", "channels", "api/policy", [[Read]] => Policy
}

operation! {
    /// Lists the changes of a channel's policy, the newest first
    PolicyHistory { channel: ChannelName } = GET "/channels/{channel}/policy/history", "channels", "api/policy-history", [[Read]] => Page<PolicyChange>, [page()]
}

operation! {
    /// Replaces the policy of a channel (`If-Match`), or creates a channel (`If-None-Match: *`). If the present policy asks for
    /// approvals, one that loosens it becomes a proposal
    PutPolicy { channel: ChannelName } = PUT "/channels/{channel}/policy", "channels", "api/set-policy", [[Admin]], body PolicyBody => PolicyAnswer, [
        once(),
        header("If-Match", "The ETag of the policy that is replaced"),
        header("If-None-Match", "`*` creates the channel"),
        returns::<Policy>(200, ""),
        returns::<Policy>(201, "The channel was created"),
        returns::<Proposal>(202, "The new policy is looser, and waits for the approvals of the present one"),
        problem(412, "The policy has changed, or the channel exists"),
        problem(428, "Neither `If-Match` nor `If-None-Match: *`"),
    ]
}

operation! {
    /// Returns the permissions of the caller in a channel
    ChannelPermissions { channel: ChannelName } = GET "/channels/{channel}/permissions", "channels", "api/permissions", [[Read]] => crate::ChannelPermissions
}

operation! {
    /// Returns the permissions of the caller for a proposal, each with the reason against it
    ProposalPermissions { id: u64 } = GET "/proposals/{id}/permissions", "proposals", "api/proposal-permissions", [[Read]] => crate::ProposalPermissions
}

/// Which prompts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StandingsQuery {
    /// Only prompts whose name contains this text; letter case does not count.
    pub text: Option<String>,
}

operation! {
    /// Lists prompts with their newest versions in every channel
    ListStandings {} = GET "/standings", "channels", "api/standings", [[Read]], query StandingsQuery => PromptStandings, [page()]
}

/// Which proposals.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ProposalsQuery {
    /// Only those in this state.
    pub state: Option<ProposalState>,
}

operation! {
    /// Lists the proposals of all channels, the newest first, and whether a review of the caller is wanted
    ListReviews {} = GET "/reviews", "proposals", "api/reviews", [[Read]], query ProposalsQuery => Page<ListedProposal>, [page()]
}

/// Which revisions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RevisionsQuery {
    /// Only revisions that changed this prompt.
    pub prompt: Option<String>,
    /// Only the revision that was served at this time, such as 2026-11-23T14:05:00Z.
    #[param(value_type = Option<String>, format = DateTime)]
    pub at: Option<Timestamp>,
}

operation! {
    /// Lists revisions, the newest first
    ListRevisions { channel: ChannelName } = GET "/channels/{channel}/revisions", "history", "api/revisions", [[Read]], query RevisionsQuery => Page<Revision>, [page()]
}

operation! {
    /// Returns a revision
    GetRevision { channel: ChannelName, number: u64 } = GET "/channels/{channel}/revisions/{number}", "history", "api/revision", [[Read]] => Revision
}

operation! {
    /// Lists the prompts that a revision serves, with their versions
    GetServed { channel: ChannelName, number: u64 } = GET "/channels/{channel}/revisions/{number}/prompts", "history", "api/served", [[Read]] => Page<Served>, [page()]
}

/// Which files of a tree, and of which revision.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TreeQuery {
    /// The revision; the newest one by default.
    pub revision: Option<u64>,
}

operation! {
    /// Lists the files of a revision
    GetTree { channel: ChannelName } = GET "/channels/{channel}/tree", "files", "api/tree", [[Read]], query TreeQuery => Tree, [page()]
}

/// The revision of a file.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FileQuery {
    /// The revision; the newest one by default.
    pub revision: Option<u64>,
}

operation! {
    /// Returns the content of a file; its ETag is the digest
    GetFile { channel: ChannelName, path: String = "The path of the file. It may contain `/`" } = GET "/channels/{channel}/files/{*path}", "files", "api/file", [[Read]], query FileQuery => String, [
        content::<String>(200, "text/plain", "The bytes of the file, as text/plain in UTF-8 if they are text"),
        empty(304, ""),
    ]
}

/// The two sides of a comparison.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DiffQuery {
    /// The revision on the left; 0 for an empty channel.
    pub from: u64,
    /// The revision on the right; the newest one by default.
    pub to: Option<u64>,
    /// The channel on the right; that of the path by default.
    pub to_channel: Option<ChannelName>,
}

operation! {
    /// Compares two revisions, of one channel or of two
    GetDiff { channel: ChannelName } = GET "/channels/{channel}/diff", "files", "api/diff", [[Read]], query DiffQuery => Diff, [page()]
}

operation! {
    /// Returns the contents of several files; fewer than requested if they are large
    ReadContents { channel: ChannelName } = POST "/channels/{channel}/contents", "files", "api/read-contents", [[Read]], body FilesBody => FileContents, [
        problem(404, "The channel, the revision or a file does not exist"),
    ]
}

operation! {
    /// Stores contents for the changes of later proposals, which refer to them by digest; those that no proposal refers to
    /// are removed after a day
    Upload { channel: ChannelName } = POST "/channels/{channel}/uploads", "files", "api/upload", [[Propose]], body UploadBody => Uploaded, [
        problem(429, "`quota`: the caller has stored too much in a day that is not published"),
        problem(507, "`store-full`: the disk of the store is full"),
    ]
}

/// Which part of a content.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PartQuery {
    /// The number of bytes before the part: `received` of the last answer, 0 at first.
    pub offset: u64,
    /// The number of bytes of the whole content.
    pub size: u64,
}

operation! {
    /// Stores a part of a content for the changes of later proposals: at most 768 KiB of its bytes, from an offset on. A part
    /// that the server has is not stored again. The last one completes the content, if all of it has the digest
    UploadPart { channel: ChannelName, digest: Digest = "The SHA-256 of the whole content" } = PUT "/channels/{channel}/uploads/{digest}", "files", "api/upload-part", [[Propose]], query PartQuery, body RawBody => UploadProgress, [
        problem(409, "The server has other parts: go on at `received` of the state"),
        problem(413, "The part is larger than 768 KiB"),
        problem(422, "`digest-mismatch`: the parts together have another digest, and are removed"),
        problem(429, "`quota`: the caller has stored too much in a day that is not published"),
        problem(507, "`store-full`: the disk of the store is full"),
    ]
}

operation! {
    /// Returns how much of a content the caller has uploaded in parts. They are removed after a day
    GetUpload { channel: ChannelName, digest: Digest = "The SHA-256 of the whole content" } = GET "/channels/{channel}/uploads/{digest}", "files", "api/upload-state", [[Propose]] => UploadProgress
}

operation! {
    /// Lists the proposals of a channel, the newest first
    ListProposals { channel: ChannelName } = GET "/channels/{channel}/proposals", "proposals", "api/proposals", [[Read]], query ProposalsQuery => Page<ProposalSummary>, [page()]
}

/// Which proposals, of any channel.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AllProposalsQuery {
    /// Only those of this channel.
    pub channel: Option<ChannelName>,
    /// Only those in this state.
    pub state: Option<ProposalState>,
}

operation! {
    /// Lists the proposals of all channels with their changes and reviews, the newest first
    ListAllProposals {} = GET "/proposals", "proposals", "api/all-proposals", [[Read]], query AllProposalsQuery => Page<Proposal>, [page()]
}

operation! {
    /// Proposes changes; with the scope `library:publish` they are published at once if the policy is met, and with
    /// `library:admin` the channel is made if it does not exist
    CreateProposal { channel: ChannelName } = POST "/channels/{channel}/proposals", "proposals", "api/propose", [[Propose]], body ProposalBody => Published, [
        once(),
        returns::<Published>(200, "The result of a dry run"),
        returns::<Published>(201, ""),
        problem(409, "Someone else changed these files since the base"),
    ]
}

operation! {
    /// Returns a proposal
    GetProposal { id: u64 } = GET "/proposals/{id}", "proposals", "api/proposal", [[Read]] => Proposal
}

/// Which files of a proposal.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ContentsQuery {
    /// Only the file with this path.
    pub path: Option<String>,
}

operation! {
    /// Returns the contents of a proposal's changes, before and after
    GetContents { id: u64 } = GET "/proposals/{id}/contents", "proposals", "api/contents", [[Read]], query ContentsQuery => Contents, [page()]
}

operation! {
    /// Replaces the changes of an open proposal of the caller; its approvals no longer count
    ReplaceProposal { id: u64 } = PUT "/proposals/{id}", "proposals", "api/replace-proposal", [[Propose]], body ProposalBody => Published, [
        once(),
        required_header("If-Match", "The ETag of the proposal"),
        problem(409, "The proposal is not open, or someone else changed these files"),
        problem(412, "The proposal has changed"),
        problem(428, "`If-Match` is missing"),
    ]
}

operation! {
    /// Withdraws an open proposal of the caller
    WithdrawProposal { id: u64 } = DELETE "/proposals/{id}", "proposals", "api/withdraw", [[Propose]] => Proposal, [
        once(),
        required_header("If-Match", "The ETag of the proposal"),
        problem(412, "The proposal has changed"),
        problem(428, "`If-Match` is missing"),
    ]
}

operation! {
    /// Reviews exactly the changes with this digest; with the scope `library:publish` an approval that meets the policy
    /// publishes them
    ReviewProposal { id: u64 } = POST "/proposals/{id}/reviews", "proposals", "api/review", [[Review]], body NewReview => Published, [
        once(),
        header("If-Match", "The ETag of the proposal"),
        problem(409, "The proposal has other changes by now, or is not open, or the policy refuses this reviewer"),
    ]
}

operation! {
    /// Publishes exactly the changes with this digest, if they meet the policy, or with a reason in any case
    PublishProposal { id: u64 } = POST "/proposals/{id}/publish", "proposals", "api/publish", [[Publish]], body PublishBody => Published, [
        once(),
        header("If-Match", "The ETag of the proposal"),
        problem(409, "The policy is not met, the proposal is not open, or someone else changed these files"),
    ]
}

/// Which files of a revision.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct BrowseQuery {
    /// The revision; the newest one by default.
    pub revision: Option<u64>,
    /// Only files with this text in their path, their content, or the name, title or description of their prompt. Letter
    /// case does not count.
    pub text: Option<String>,
    /// Only files in this folder and below it.
    pub folder: Option<String>,
    /// Only prompts with this tag.
    pub tag: Option<String>,
    /// Only prompts of this owner.
    pub owner: Option<String>,
    /// Only prompts of this collection.
    pub collection: Option<String>,
}

operation! {
    /// Searches the files of a revision, and counts them by folder, tag, owner and collection
    Browse { channel: ChannelName } = GET "/channels/{channel}/browse", "files", "api/browse", [[Read]], query BrowseQuery => Browsed, [page()]
}

operation! {
    /// Lists the comments on a proposal, the oldest first
    ListComments { id: u64 } = GET "/proposals/{id}/comments", "proposals", "api/comments", [[Read]] => Page<Comment>, [page()]
}

operation! {
    /// Comments on exactly the changes with this digest; reviewers and authors may
    AddComment { id: u64 } = POST "/proposals/{id}/comments", "proposals", "api/comment", [[Read, Review], [Read, Propose]], body NewComment => Comment, [
        once(),
        returns::<Comment>(201, ""),
        problem(409, "The proposal has other changes by now, or is not open"),
    ]
}

/// Which results.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EvaluationsQuery {
    /// Only those of this prompt.
    pub prompt: Option<String>,
    /// Only those of this evaluation.
    pub evaluation: Option<String>,
    /// Only those of the version with this digest.
    #[param(value_type = Option<String>)]
    pub digest: Option<Digest>,
}

operation! {
    /// Lists results of evaluations of a channel's prompts, the newest first
    ListEvaluations { channel: ChannelName } = GET "/channels/{channel}/evaluations", "evaluations", "api/evaluations", [[Read]], query EvaluationsQuery => Page<Evaluation>, [page()]
}

operation! {
    /// Stores the result of an evaluation for a version that the channel serves, has served or has proposed
    AddEvaluation { channel: ChannelName } = POST "/channels/{channel}/evaluations", "evaluations", "api/evaluate", [[Evaluate]], body NewEvaluation => Evaluation, [
        once(),
        returns::<Evaluation>(201, ""),
        problem(409, "The prompt has another version by now, or the proposal is not open"),
    ]
}

operation! {
    /// Compares the newest results for a proposal with those of the versions that it replaces
    ProposalEvaluations { id: u64 } = GET "/proposals/{id}/evaluations", "evaluations", "api/proposal-evaluations", [[Read]] => promptshelf_store::ProposalEvaluations
}

operation! {
    /// Proposes the state of an earlier revision; with the scope `library:publish` it is published at once if the policy is
    /// met
    Rollback { channel: ChannelName } = POST "/channels/{channel}/rollback", "transfer", "api/rollback", [[Propose]], body RollbackBody => Published, [
        once(),
        header("If-Match", "The ETag of the channel that the caller has seen"),
        returns::<Published>(200, "The result of a dry run"),
        returns::<Published>(201, ""),
        problem(412, "The channel has changed"),
    ]
}

operation! {
    /// Proposes what another channel has changed since its last promotion; with the scope `library:publish` it is published at once if the policy is met,
    /// and with `library:admin` the channel is made if it does not exist
    Promote { channel: ChannelName = "The channel to copy to" } = POST "/channels/{channel}/promote", "transfer", "api/promote", [[Read, Propose]], body PromoteBody => Published, [
        once(),
        header("If-Match", "The ETag of the channel that the caller has seen"),
        returns::<Published>(200, "The result of a dry run"),
        returns::<Published>(201, ""),
        problem(412, "The channel has changed"),
    ]
}

operation! {
    /// Lists all rollouts with their counts and histories
    ListAllRollouts {} = GET "/rollouts", "rollouts", "api/rollouts", [[Read]] => Page<RolloutReport>, [page()]
}

operation! {
    /// Lists the rollouts that divide the callers of a channel
    ListRollouts { channel: ChannelName } = GET "/channels/{channel}/rollouts", "rollouts", "api/rollouts", [[Read]] => Page<RolloutReport>, [page()]
}

operation! {
    /// Begins to serve a share of the callers of a channel another one. The settings of the server have the defaults
    StartRollout { channel: ChannelName } = POST "/channels/{channel}/rollouts", "rollouts", "api/start-rollout", [[Read, Publish]], body RolloutStartBody => RolloutReport, [
        once(),
        returns::<RolloutReport>(201, ""),
        problem(409, "The channel has a rollout that is not over"),
    ]
}

operation! {
    /// Sets the share of a rollout, pauses, resumes or stops it. With another share, a stopped one goes on, and the comparison
    /// starts again
    ChangeRollout { channel: ChannelName } = PATCH "/channels/{channel}/rollouts", "rollouts", "api/change-rollout", [[Read, Publish]], body RolloutChangeBody => RolloutReport, [
        once(),
        problem(409, "The state of the rollout does not permit it"),
        problem(412, "The rollout has changed since `seen`"),
    ]
}

operation! {
    /// Promotes the new version of a rollout, which ends it: at once if the policy of the channel is met, otherwise when the
    /// proposal is published
    FinishRollout { channel: ChannelName } = POST "/channels/{channel}/rollouts/finish", "rollouts", "api/finish-rollout", [[Read, Propose, Publish]], body RolloutFinishBody => RolloutFinish, [
        once(),
        problem(409, "The rollout is over, or both channels have changed the same files"),
    ]
}

operation! {
    /// Lists the webhooks, with the numbers of events that wait or were given up
    ListWebhooks {} = GET "/webhooks", "webhooks", "api/webhooks", [[Admin]] => Page<WebhookQueue>, [page()]
}

operation! {
    /// Lists the events that were given up, the newest first
    ListDeadLetters {} = GET "/webhooks/dead-letters", "webhooks", "api/dead-letters", [[Admin]] => Page<DeadLetter>, [page()]
}

operation! {
    /// Queues an event that was given up again; it is sent with its old idempotency key
    Redeliver { id: u64 } = POST "/webhooks/dead-letters/{id}/redelivery", "webhooks", "api/redeliver", [[Admin]] => DeadLetter, [
        once(),
        returns::<DeadLetter>(200, "The event as it was given up"),
    ]
}

operation! {
    /// Lists the tokens of the store, without the tokens themselves
    ListTokens {} = GET "/tokens", "tokens", "api/tokens", [[Admin]] => Page<TokenInfo>, [page()]
}

operation! {
    /// Creates a token, which every server of the store accepts within a second; the answer shows it, once
    CreateToken {} = POST "/tokens", "tokens", "api/create-token", [[Admin]], body NewToken => CreatedToken, [
        returns::<CreatedToken>(201, ""),
        problem(403, "The token would have a scope or role that the caller cannot give"),
    ]
}

operation! {
    /// Revokes a token: every server of the store refuses it within a second, and ends its streams
    RevokeToken { id: u64 } = DELETE "/tokens/{id}", "tokens", "api/revoke-token", [[Admin]] => TokenInfo, [
        once(),
    ]
}

operation! {
    /// Checks changes without storing them
    Check {} = POST "/check", "check", "api/check", [[Read, Propose]], body CheckBody => CheckResult, [
        problem(409, "Someone else changed these files"),
    ]
}

operation! {
    /// Compares two states of a channel: files, words for callers, affected prompts, tests and clients
    Compare {} = POST "/compare", "compare", "api/compare", [[Read]], body CompareBody => Comparison, [
        problem(409, "There is nothing to roll back or promote, or someone else changed the files"),
    ]
}

operation! {
    /// Renders a prompt from two states of a channel with the same values
    CompareRenderings {} = POST "/compare/renderings", "compare", "api/compare-renderings", [[Read]], body CompareRenderingsBody => ComparedRenderings, [
        problem(409, "There is nothing to roll back or promote, or someone else changed the files"),
    ]
}

operation! {
    /// Analyses unsaved files of a channel without storing them
    AnalyzeChannel { channel: ChannelName } = POST "/channels/{channel}/analysis", "check", "api/analysis", [[Read, Propose]], body AnalysisBody => AnalysisResult
}

operation! {
    /// Returns the texts that a rename of a file changes, without storing them
    RenameInChannel { channel: ChannelName } = POST "/channels/{channel}/rename", "check", "api/rename", [[Read, Propose]], body ChannelRenameBody => ChangedReferences
}

/// The parameters of the list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// The channel; the server's default one without it.
    pub channel: Option<String>,
}

operation! {
    /// Lists the prompts that the caller may see
    ListPrompts {} = GET "/prompts", "programs", "api/prompts", [[]], query ListQuery => PromptPage, [page(), of_library()]
}

operation! {
    /// Returns a prompt: its template, or with `rendered=true` its messages
    GetPrompt { name: String } = GET "/prompts/{name}", "programs", "api/prompt", [[]], query PromptParameters => PromptText, [
        of_library(),
        returns::<PromptText>(200, ""),
        empty(304, ""),
        problem(404, "No such prompt, channel or version"),
        problem(422, "The arguments are invalid"),
    ]
}

operation! {
    /// Renders a prompt. In contrast to `GET`, its arguments can be long and sensitive
    RenderPrompt { name: String } = POST "/prompts/{name}/render", "programs", "api/render", [[]], body RenderBody => PromptText, [
        of_library(),
        problem(404, "No such prompt, channel or version"),
        problem(422, "The arguments are invalid"),
    ]
}

operation! {
    /// Streams the revisions of a channel as server-sent events
    ///
    /// The stream begins with the served revision, or with those after `Last-Event-ID`.
    FollowChannel { channel: ChannelName } = GET "/channels/{channel}/events", "programs", "api/events", [[]] => RevisionEvent<'static>, [
        of_library(),
        header("Last-Event-ID", "The id of the last event that the client has received"),
        content::<RevisionEvent<'static>>(200, "text/event-stream", ""),
    ]
}

/// The parameters of the report.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UsageParameters {
    /// The age of the oldest figures, such as `30d` or `12h`. 30 days by default.
    pub since: Option<String>,
    /// Only the figures of this prompt.
    pub prompt: Option<String>,
    /// Whether versions of clients and protocols are separated.
    pub detail: Option<bool>,
}

operation! {
    /// Reports who uses which prompts how often
    GetUsage {} = GET "/usage", "usage", "api/usage", [[Read]], query UsageParameters => UsageReport
}

/// The parameters of the overview.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OverviewParameters {
    /// The period until now, such as `30d` or `12h`. Whole days are days in UTC, the last of them is the present one. 30
    /// days by default.
    pub since: Option<String>,
    /// Only the figures of this prompt.
    pub prompt: Option<String>,
}

operation! {
    /// Reports the use of prompts at a glance: by day, client, version and outcome, never used, and used but deprecated
    GetUsageOverview {} = GET "/usage/overview", "usage", "api/usage", [[Read]], query OverviewParameters => UsageOverview
}

operation! {
    /// Returns the sources and their states
    ListSources {} = GET "/sources", "sources", "api/sources", [[Read]] => Page<SourceInfo>, [page()]
}

operation! {
    /// Requests that a source is read again, and does not wait for it
    RefreshSource { source: String = "The name of the source" } = POST "/sources/{source}/refresh", "sources", "api/refresh-source", [[Admin]] => Nothing, [
        empty(202, "The source is read soon"),
    ]
}

operation! {
    /// Lists the files of the served folder
    ListFolder {} = GET "/folder/files", "folder", "api/folder/files", [[Read]] => FolderFiles, [page()]
}

operation! {
    /// Returns the content of a file of the folder; its ETag is the digest
    ReadInFolder { path: String = "The path of the file. It may contain `/`" } = GET "/folder/files/{*path}", "folder", "api/folder/file", [[Read]] => String, [
        content::<String>(200, "text/plain", "The bytes of the file, as text/plain in UTF-8 if they are text"),
        empty(304, ""),
    ]
}

operation! {
    /// Creates a file of the folder with `If-None-Match: *`, or replaces the content whose digest is in `If-Match`
    WriteInFolder { path: String = "The path of the file. It may contain `/`" } = PUT "/folder/files/{*path}", "folder", "api/folder/write", [[Publish]], body WriteBody => WrittenFile, [
        returns::<WrittenFile>(200, ""),
        returns::<WrittenFile>(201, ""),
    ]
}

operation! {
    /// Deletes the file of the folder whose digest is in `If-Match`
    DeleteInFolder { path: String = "The path of the file. It may contain `/`" } = DELETE "/folder/files/{*path}", "folder", "api/folder/delete", [[Publish]] => Nothing, [
        empty(204, ""),
    ]
}

operation! {
    /// Renames a file of the folder and every reference to it
    RenameInFolder {} = POST "/folder/rename", "folder", "api/folder/rename", [[Publish]], body RenameBody => RenamedFile
}

operation! {
    /// Analyses unsaved files of the folder without storing them
    AnalyzeFolder {} = POST "/folder/analysis", "folder", "api/folder/analysis", [[Read]], body AnalysisBody => AnalysisResult
}
