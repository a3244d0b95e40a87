//! Bodies of the operations on channels.

use std::{borrow::Cow, collections::BTreeMap};

use base64::{DecodeError, Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use promptshelf_store::{
    ChannelInfo, ChannelName, CheckLevel, CheckSummary, Digest, FileChange, FileEntry, Head, Policy, PolicyRoles,
    PromptChangeKind, PromptStanding, Proposal, ProposalState, Published, Reason, RevisionKind, RolloutPhase,
    RolloutReport, Standing, TokenInfo,
};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{
    IntoParams, PartialSchema, ToSchema,
    openapi::{
        ArrayBuilder, ObjectBuilder, Ref, RefOr, Schema,
        schema::{SchemaType, Type},
    },
};

use crate::RecentCalls;

/// Reads a member that may be null and must not be missing.
pub(crate) fn required<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

/// Changes to propose.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProposalBody {
    /// The revision that the changes start from; 0 for an empty channel.
    pub base: u64,
    /// The description, of at most 4,096 characters.
    pub message: String,
    /// The changed files.
    pub changes: Vec<ChangeBody>,
    /// The reason for a publish that passes over the policy. It needs the scopes `library:publish` and `library:admin`.
    #[serde(default)]
    pub emergency: Option<String>,
    /// Whether to stop after the check: nothing is stored, and the proposal of the answer has the number 0.
    #[serde(default)]
    pub dry_run: bool,
}

/// Changes to check, without storing them.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckBody {
    /// The channel that the changes are for.
    pub channel: ChannelName,
    /// The changed files.
    pub changes: Vec<ChangeBody>,
}

/// The conditions for a publish to a channel, complete and without unknown members: what a typing error leaves out would
/// loosen them. `Policy` also reads those of other releases, which have fewer members or more.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyBody {
    /// The number of approvals that a proposal needs, by different reviewers.
    pub approvals: u32,
    /// Whether authors cannot approve their own proposals.
    pub four_eyes: bool,
    /// Which findings of the check stop a publish.
    pub checks: CheckLevel,
    /// Whether a failed prompt test stops a publish.
    pub tests: bool,
    /// The evaluations whose newest result each added or changed prompt has to pass, at most 20.
    #[serde(default)]
    pub evaluations: Vec<String>,
    /// Whether these results also must not be worse than those of the versions that the channel serves.
    #[serde(default)]
    pub no_regression: bool,
    /// Whether changes that break calls need an approval that confirms each by name.
    #[serde(default)]
    pub no_breaking: bool,
    /// The roles that the channel is open to.
    pub roles: RolesBody,
    /// The description of the change, for the history of the policy; at most 4,096 characters.
    #[serde(default)]
    pub message: String,
}

/// The roles that a caller needs besides the scope of the operation: one of the list, any if it is empty.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RolesBody {
    /// For proposals.
    pub propose: Vec<String>,
    /// For reviews.
    pub review: Vec<String>,
    /// For publishing proposals that meet the policy.
    pub publish: Vec<String>,
    /// For the policy itself, and for emergencies.
    pub administer: Vec<String>,
}

/// How to publish a proposal.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PublishBody {
    /// The digest of the changes that the caller has seen.
    pub digest: Digest,
    /// The reason for a publish that passes over the policy. It needs the scope `library:admin`.
    #[serde(default)]
    pub emergency: Option<String>,
}

/// A return to an earlier state.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RollbackBody {
    /// The revision to return to.
    pub to: u64,
    /// Only this prompt, with all that it brings in.
    #[serde(default)]
    pub prompt: Option<String>,
    /// The description.
    pub message: String,
    /// Whether to stop after the check: nothing is stored, and the proposal of the answer has the number 0.
    #[serde(default)]
    pub dry_run: bool,
}

/// A promotion from another channel.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PromoteBody {
    /// The channel to copy from.
    pub from: ChannelName,
    /// Only these prompts, with all that they bring in; all files if it is empty.
    #[serde(default)]
    pub prompts: Vec<String>,
    /// Whether what only the target has or has changed is undone.
    #[serde(default)]
    pub all: bool,
    /// The description.
    pub message: String,
    /// Whether to stop after the check: nothing is stored, and the proposal of the answer has the number 0.
    #[serde(default)]
    pub dry_run: bool,
}

/// A page of a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Page<T> {
    /// Its items.
    pub items: Vec<T>,
    /// The value of `cursor` for the next page; null on the last one.
    pub next: Option<String>,
}

impl<T: ToSchema> PartialSchema for Page<T> {
    fn schema() -> RefOr<Schema> {
        let cursor = SchemaType::from_iter([Type::String, Type::Null]);
        let next = ObjectBuilder::new().schema_type(cursor).description(Some("The `cursor` of the next page"));
        ObjectBuilder::new()
            .description(Some("A page of a list"))
            .property("items", ArrayBuilder::new().items(Ref::from_schema_name(T::name())))
            .property("next", next)
            .required("items")
            .required("next")
            .into()
    }
}

impl<T: ToSchema> ToSchema for Page<T> {
    fn name() -> Cow<'static, str> {
        format!("PageOf{}", T::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}

/// Which page of a list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// `next` of the page before. It is of use for the same list only.
    pub cursor: Option<String>,
    /// The number of items from 1 to 10,000, 100 by default. A page may have fewer: the last one is that whose `next` is null.
    pub limit: Option<usize>,
}

/// Files of a revision.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tree {
    /// The revision.
    pub head: Head,
    /// By path.
    pub items: Vec<FileEntry>,
    /// The value of `cursor` for the next page; null on the last one.
    pub next: Option<String>,
}

/// The difference between two revisions.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// The revision on the left.
    pub from: u64,
    /// Its digest, by which a client notices that two pages are not of the same revisions.
    pub from_digest: Option<Digest>,
    /// The revision on the right.
    pub to: u64,
    /// Its digest.
    pub to_digest: Option<Digest>,
    /// The files that differ, by path.
    pub items: Vec<FileChange>,
    /// The value of `cursor` for the next page; null on the last one.
    pub next: Option<String>,
    /// The prompts that differ, by name.
    pub prompts: Vec<PromptDiff>,
}

/// The difference of a prompt.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptDiff {
    /// The name of the prompt.
    pub name: String,
    /// The version on the left; null if it does not exist there.
    pub from: Option<u64>,
    /// The version on the right; null if it does not exist there.
    pub to: Option<u64>,
}

/// A proposal without its changes and reviews.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProposalSummary {
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
    /// Its state.
    pub state: ProposalState,
    /// The digest of the changes.
    pub digest: Digest,
    /// The time of the last change.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// The number of changed files.
    pub files: usize,
    /// Counts of the check of these changes.
    pub checks: CheckSummary,
    /// The revision that it became.
    pub revision: Option<u64>,
    /// The missing conditions, one sentence each. Empty if it can be published.
    pub lacks: Vec<String>,
    /// The same conditions with stable codes, in the same order.
    pub reasons: Vec<Reason>,
}

/// The contents of a proposal's changes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contents {
    /// The digest of the changes.
    pub digest: Digest,
    /// By path.
    pub items: Vec<ChangedContent>,
    /// The value of `cursor` for the next page; null on the last one.
    pub next: Option<String>,
}

/// A changed file with its contents.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedContent {
    /// Relative to the library.
    pub path: String,
    /// The content that the author started from; null for a new file.
    pub before: Option<FileContent>,
    /// The new content; null for a deleted file.
    pub after: Option<FileContent>,
}

/// The result of a check.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckResult {
    /// The revision of the channel that the changes were applied to.
    pub revision: u64,
    /// Counts.
    pub summary: CheckSummary,
    /// The findings, with file and line, errors first; at most 100.
    pub findings: Vec<String>,
    /// The prompts that the changes affect, by name; at most 100.
    pub prompts: Vec<AffectedPrompt>,
    /// The number of all affected prompts.
    pub affected: usize,
    /// The differences that callers will notice, in words, the breaking ones first; at most 500.
    pub differences: Vec<DifferenceInWords>,
}

/// A prompt that changes affect.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AffectedPrompt {
    /// The name of the prompt.
    pub name: String,
    /// What happens to it.
    pub change: PromptChangeKind,
    /// The rendering before the changes, with sample arguments; null for a new prompt.
    pub before: Option<Rendering>,
    /// The rendering after the changes, with sample arguments; null for a removed prompt.
    pub after: Option<Rendering>,
}

/// A prompt rendered with sample arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum Rendering {
    /// The messages as text, cut to 64 KiB.
    Text(String),
    /// The reason why it cannot be rendered.
    Failure(String),
}

/// A difference that callers will notice.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DifferenceInWords {
    /// `breaking`: calls that succeeded will fail. `opening`: more callers get access, or values are no longer
    /// protected. `notice`: nothing fails.
    pub impact: &'static str,
    /// `library`, `prompt` or `resource`.
    pub subject: &'static str,
    /// The name of the prompt, or the URI of the resource; empty for the library.
    pub name: String,
    /// The stable name of the sentence, such as `argument-required`.
    pub code: &'static str,
    /// The values of the sentence, by name. Lists are quoted and separated by commas.
    pub values: BTreeMap<&'static str, String>,
    /// The difference and its effect, in English, without the name.
    pub text: String,
    /// The calls of the last 30 days that it affects; null if usage is not counted, or does not decide it.
    pub recent: Option<RecentCalls>,
}

/// The content of a file: text in UTF-8, or any bytes as Base64.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum FileContent {
    /// Text.
    Text(String),
    /// Bytes, in the standard alphabet of Base64 with padding.
    Base64(String),
}

/// The new content of a file: text in UTF-8, any bytes as Base64, or the digest of an uploaded content.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum NewContent {
    /// Text.
    Text(String),
    /// Bytes, in the standard alphabet of Base64 with padding.
    Base64(String),
    /// The digest of a content that the store has.
    Digest(Digest),
}

/// The change of one file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeBody {
    /// Relative to the library, with `/` between its parts.
    pub path: String,
    /// The digest of the content that the author started from; null for a new file.
    #[serde(deserialize_with = "crate::channels::required")]
    #[schema(required = true)]
    pub before: Option<Digest>,
    /// The new content; null deletes the file.
    #[serde(deserialize_with = "crate::channels::required")]
    #[schema(required = true)]
    pub content: Option<NewContent>,
}

/// Which files to read.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FilesBody {
    /// The revision; the newest one by default.
    #[serde(default)]
    pub revision: Option<u64>,
    /// The paths of the files, at most 5,000.
    pub paths: Vec<String>,
}

/// Files with their contents.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileContents {
    /// The revision.
    pub revision: u64,
    /// The first of the requested files, in their order: one at least, and the others up to 4 MiB.
    pub files: Vec<FileWithContent>,
}

/// A file with its content.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileWithContent {
    /// Relative to the library.
    pub path: String,
    /// The digest of the bytes.
    pub digest: Digest,
    /// The bytes.
    pub content: FileContent,
}

/// Contents to upload.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UploadBody {
    /// The contents.
    pub contents: Vec<FileContent>,
}

/// Uploaded contents.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Uploaded {
    /// The digest of each content, in their order.
    pub digests: Vec<Digest>,
}

/// An upload in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadProgress {
    /// The bytes that the server has: the offset of the next part.
    pub received: u64,
    /// Whether the content is complete and fits its digest, so that a proposal can name it.
    pub is_complete: bool,
}

/// A rollout to begin.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RolloutStartBody {
    /// The channel that the share is served.
    pub to: ChannelName,
    /// The first share, and the size of each step, in per cent.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 100)]
    pub percent: Option<u8>,
    /// The time between two steps, such as `1h`; `off` for steps by people only.
    #[serde(default)]
    pub steps: Option<String>,
    /// The bounds above which it is stopped, in place of those of the settings.
    #[serde(default)]
    pub stop: Option<RolloutStop>,
    /// The reason, of at most 4,096 characters.
    #[serde(default)]
    pub message: Option<String>,
}

/// The bounds of a rollout: factors of at least 1. What has none does not stop it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct RolloutStop {
    /// The factor by which the share of failed calls may be higher.
    pub errors: Option<f64>,
    /// The same for declined and cancelled forms.
    pub declined: Option<f64>,
    /// The factor by which calls may be slower.
    pub latency: Option<f64>,
}

/// A change of a rollout: a share, a state, or both.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct RolloutChangeBody {
    /// The channel that the share is served. By default that of the rollout that is not over, otherwise of the last one.
    pub to: Option<ChannelName>,
    /// The share in per cent, from 0 to 100.
    #[schema(maximum = 100)]
    pub percent: Option<u8>,
    /// `running`, `paused` or `stopped`.
    pub state: Option<RolloutPhase>,
    /// The reason, of at most 4,096 characters.
    pub message: Option<String>,
    /// `changedAt` of the state that the caller has seen: after another change nothing is set.
    pub seen: Option<Timestamp>,
}

/// A rollout to finish.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct RolloutFinishBody {
    /// The channel with the new version. By default that of the rollout that is not over.
    pub to: Option<ChannelName>,
    /// Whether the channel becomes equal to the new version, also where the channel has changed itself.
    pub all: bool,
    /// A description of the promotion.
    pub message: Option<String>,
}

/// A rollout that is finished, or that ends with a proposal.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutFinish {
    /// The rollout: finished, or as it was until the proposal is published.
    pub rollout: RolloutReport,
    /// The promotion; null if the channel had the new version already.
    pub promotion: Option<Published>,
}

/// A new token.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreatedToken {
    /// The token itself, which is stored nowhere and not shown again.
    pub token: String,
    /// What is stored about it.
    pub info: TokenInfo,
}

/// The newest versions of prompts in all channels.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptStandings {
    /// The channels, by name.
    pub channels: Vec<ChannelInfo>,
    /// The prompts, by name.
    pub items: Vec<PromptStanding>,
    /// The value of `cursor` for the next page; null on the last one.
    pub next: Option<String>,
}

/// A proposal, and the caller's part in it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedProposal {
    /// The proposal, without its changes and reviews.
    pub proposal: ProposalSummary,
    /// Whether a review of the caller is wanted.
    pub review_wanted: bool,
}

/// Whether the caller may use an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Permission {
    /// Whether it would be accepted now.
    pub allowed: bool,
    /// The reason against it, for people; null if it is allowed.
    pub reason: Option<String>,
    /// The reasons with stable codes; empty if it is allowed.
    pub reasons: Vec<Reason>,
    /// The scopes that the caller would have to sign in for; empty if they are not the reason.
    pub scopes: Vec<&'static str>,
}

/// The permissions of the caller in a channel.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChannelPermissions {
    /// The name under which the caller's changes are recorded.
    pub caller: String,
    /// Proposals, rollbacks and promotions to the channel.
    pub propose: Permission,
    /// Reviews.
    pub review: Permission,
    /// Publishing of proposals that meet the policy, and changes of rollouts.
    pub publish: Permission,
    /// The policy itself.
    pub administer: Permission,
}

/// The permissions of the caller for a proposal as it is now.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProposalPermissions {
    /// The name under which the caller's changes are recorded.
    pub caller: String,
    /// Comments.
    pub comment: Permission,
    /// Other changes in place of the present ones.
    pub change: Permission,
    /// Withdrawal.
    pub withdraw: Permission,
    /// An approval.
    pub approve: Permission,
    /// A rejection.
    pub reject: Permission,
    /// Publishing by the policy.
    pub publish: Permission,
    /// Publishing past the policy, with a reason.
    pub emergency: Permission,
}

/// Files of a revision, with their prompts.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Browsed {
    /// The revision.
    pub revision: u64,
    /// Its digest, by which a client notices that two pages are not of one revision.
    pub digest: Option<Digest>,
    /// The number of all files that match.
    pub total: usize,
    /// By path.
    pub items: Vec<BrowsedFile>,
    /// The value of `cursor` for the next page; null on the last one.
    pub next: Option<String>,
    /// The folders in the chosen one with the number of files that match; at most 200.
    pub folders: Vec<Group>,
    /// The tags of the prompts that match with the number of files, the most frequent first; at most 200.
    pub tags: Vec<Group>,
    /// The owners, like the tags.
    pub owners: Vec<Group>,
    /// The collections, like the tags.
    pub collections: Vec<Group>,
}

/// A file of a revision.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BrowsedFile {
    /// Relative to the library.
    pub path: String,
    /// The prompts that it defines, by name.
    pub prompts: Vec<BrowsedPrompt>,
    /// The first lines with the text; at most 3.
    pub lines: Vec<BrowsedLine>,
}

/// A prompt of a file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BrowsedPrompt {
    /// The name.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The start of the description.
    pub description: Option<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// The people or teams in charge.
    pub owners: Vec<String>,
    /// The collections.
    pub collections: Vec<String>,
    /// Its versions in all channels that the caller sees, by name of the channel.
    pub channels: Vec<Standing>,
}

/// A line of a file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BrowsedLine {
    /// Its number; 1 is the first one.
    pub number: usize,
    /// Its text, cut to 200 characters.
    pub text: String,
}

/// A folder, a tag, an owner or a collection.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// The path of the folder, or the name.
    pub name: String,
    /// The number of files.
    pub files: usize,
}

impl PolicyBody {
    /// Creates the request for a policy.
    #[must_use]
    pub fn new(policy: Policy, message: String) -> PolicyBody {
        let Policy { approvals, four_eyes, checks, tests, evaluations, no_regression, no_breaking, roles } = policy;
        let PolicyRoles { propose, review, publish, administer } = roles;
        let roles = RolesBody { propose, review, publish, administer };
        PolicyBody { approvals, four_eyes, checks, tests, evaluations, no_regression, no_breaking, roles, message }
    }
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

/// The answer to a change of a policy.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum PolicyAnswer {
    /// It has to be approved.
    Proposed(Box<Proposal>),
    /// It is in force.
    Changed(Policy),
}

impl FileContent {
    /// Encodes bytes: as text where that is not longer than Base64, because most control characters take six bytes in JSON.
    #[must_use]
    pub fn of(bytes: &[u8]) -> FileContent {
        let escaped = bytes.iter().filter(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace()).count();
        match std::str::from_utf8(bytes) {
            Ok(text) if escaped * 5 <= bytes.len() / 3 => FileContent::Text(text.to_owned()),
            _ => FileContent::Base64(STANDARD.encode(bytes)),
        }
    }

    /// Decodes the bytes.
    ///
    /// # Errors
    ///
    /// Those of Base64.
    pub fn into_bytes(self) -> Result<Vec<u8>, DecodeError> {
        match self {
            FileContent::Text(text) => Ok(text.into_bytes()),
            FileContent::Base64(encoded) => STANDARD.decode(encoded),
        }
    }
}

impl From<FileContent> for NewContent {
    fn from(content: FileContent) -> NewContent {
        match content {
            FileContent::Text(text) => NewContent::Text(text),
            FileContent::Base64(encoded) => NewContent::Base64(encoded),
        }
    }
}

impl Permission {
    /// The operation is allowed.
    #[must_use]
    pub fn allowed() -> Permission {
        Permission { allowed: true, reason: None, reasons: Vec::new(), scopes: Vec::new() }
    }

    /// The operation is refused for a reason.
    #[must_use]
    pub fn refused(reason: Reason) -> Permission {
        Permission::refused_for(vec![reason], Vec::new())
    }

    /// The operation is refused for reasons. `scopes` are those to sign in for, if they are missing.
    #[must_use]
    pub fn refused_for(reasons: Vec<Reason>, scopes: Vec<&'static str>) -> Permission {
        let texts: Vec<&str> = reasons.iter().map(|reason| reason.text.as_str()).collect();
        Permission { allowed: false, reason: Some(texts.join("; ")), reasons, scopes }
    }
}
