//! Bodies of comparisons.

use std::collections::BTreeMap;

use promptshelf_store::{ChannelName, CheckSummary, Digest, FileChange, PromptChangeKind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    content::ChangeBody,
    model::{DifferenceInWords, Rendering},
};

/// Two states of a channel to compare.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CompareBody {
    /// The state on the left; by default the one that the right one would replace, or has replaced.
    #[serde(default)]
    pub(super) before: Option<RevisionSide>,
    /// The state on the right.
    pub(super) after: SideBody,
}

/// A prompt to render from two states of a channel.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CompareRenderingsBody {
    /// The state on the left; by default the one that the right one would replace, or has replaced.
    #[serde(default)]
    pub(super) before: Option<RevisionSide>,
    /// The state on the right.
    pub(super) after: SideBody,
    /// The name of the prompt.
    pub(super) prompt: String,
    /// The values of its arguments. Sample values are added for required arguments without one.
    #[serde(default)]
    pub(super) arguments: BTreeMap<String, String>,
}

/// A state of a channel.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) enum SideBody {
    /// A revision.
    Revision(RevisionSide),
    /// A proposal, on top of the newest revision while it is open.
    Proposal {
        /// Its number.
        id: u64,
    },
    /// Changes that are not stored. They need the scope `library:propose`.
    Changes {
        /// The channel that the changes are for.
        channel: ChannelName,
        /// The changed files.
        changes: Vec<ChangeBody>,
    },
    /// A return to an earlier revision. It needs the scope `library:propose`.
    Rollback {
        /// The channel.
        channel: ChannelName,
        /// The revision to return to.
        to: u64,
        /// Only this prompt, with all that it brings in.
        #[serde(default)]
        prompt: Option<String>,
    },
    /// A promotion. It needs the scope `library:propose`.
    Promote {
        /// The channel to copy from.
        from: ChannelName,
        /// The channel to copy to.
        to: ChannelName,
        /// Only these prompts, with all that they bring in; all files if it is empty.
        #[serde(default)]
        prompts: Vec<String>,
        /// Whether what only the target has or has changed is undone.
        #[serde(default)]
        all: bool,
    },
}

/// A revision of a channel.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RevisionSide {
    /// The channel.
    pub(super) channel: ChannelName,
    /// The revision; 0 for an empty channel, the newest one if it is missing.
    #[serde(default)]
    pub(super) revision: Option<u64>,
}

/// The difference between two states of a channel. Each list has at most 500 entries.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Comparison {
    /// The state on the left.
    pub(super) before: SideName,
    /// The state on the right.
    pub(super) after: SideName,
    /// The files that differ, by path.
    pub(super) files: Vec<FileChange>,
    /// The number of all files that differ.
    pub(super) files_total: usize,
    /// The differences that callers will notice, in words, the breaking ones first.
    pub(super) differences: Vec<DifferenceInWords>,
    /// The prompts that differ, by name.
    pub(super) prompts: Vec<ComparedPrompt>,
    /// The number of all prompts that differ.
    pub(super) prompts_total: usize,
    /// The tests of these prompts whose result differs, or that fail.
    pub(super) tests: Vec<ComparedTest>,
    /// The number of tests that ran; those of the first 200 prompts that differ.
    pub(super) tests_run: usize,
    /// The clients that will have trouble with a prompt, and had none before.
    pub(super) clients: Vec<ComparedClient>,
    /// Counts of the check of the state on the right, without tests.
    pub(super) summary: CheckSummary,
    /// The findings on the right, with file and line, errors first; at most 100.
    pub(super) findings: Vec<String>,
}

/// A side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SideName {
    /// The channel.
    pub(super) channel: ChannelName,
    /// The revision; null for changes that are not published.
    pub(super) revision: Option<u64>,
    /// The digest of the revision: two revisions with one number differ in it.
    pub(super) digest: Option<Digest>,
    /// The channel whose files the new contents are read from; null if they are in no revision.
    pub(super) source: Option<ChannelName>,
    /// The revision of that channel.
    pub(super) source_revision: Option<u64>,
}

/// A prompt that differs.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ComparedPrompt {
    /// The name of the prompt.
    pub(super) name: String,
    /// The kind of the difference.
    pub(super) change: PromptChangeKind,
    /// The file that defines it.
    pub(super) path: String,
    /// The changed files that it brings in, such as partials; at most 20.
    pub(super) through: Vec<String>,
}

/// A test before and after.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ComparedTest {
    /// The name of the prompt.
    pub(super) prompt: String,
    /// The name of the test, or its number counted from one.
    pub(super) test: String,
    /// Whether it passes on the left; null if it does not exist there.
    pub(super) before: Option<bool>,
    /// Whether it passes on the right; null if it does not exist there.
    pub(super) after: Option<bool>,
    /// The reason for the failure on the right.
    pub(super) reason: Option<String>,
}

/// A client that will have trouble with prompts.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ComparedClient {
    /// The name of the client.
    pub(super) client: String,
    /// The identifier of its behaviour.
    pub(super) quirk: String,
    /// Its behaviour, in English.
    pub(super) text: String,
    /// The affected prompts that differ; at most 50.
    pub(super) prompts: Vec<String>,
}

/// A prompt rendered from two states of a channel.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ComparedRenderings {
    /// The names of its arguments on either side; at most 200.
    pub(super) arguments: Vec<String>,
    /// Values that are known to work: those of the tests.
    pub(super) samples: Vec<Sample>,
    /// The rendering on the left; null if the prompt does not exist there.
    pub(super) before: Option<Rendering>,
    /// The rendering on the right; null if the prompt does not exist there.
    pub(super) after: Option<Rendering>,
    /// The values that were rendered, with the sample values that were added.
    pub(super) values: BTreeMap<String, String>,
}

/// The values of a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sample {
    /// The name of the test, or its number counted from one.
    pub(super) test: String,
    /// The values.
    pub(super) values: BTreeMap<String, String>,
}
