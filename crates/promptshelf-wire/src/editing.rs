//! Bodies of comparisons, and of the operations of editors.

use std::collections::BTreeMap;

use promptshelf_store::{ChannelName, CheckSummary, Digest, FileChange, PromptChangeKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use utoipa::ToSchema;

use crate::{ChangeBody, DifferenceInWords, FileContent, Rendering};

/// Two states of a channel to compare.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompareBody {
    /// The state on the left; by default the one that the right one would replace, or has replaced.
    #[serde(default)]
    pub before: Option<RevisionSide>,
    /// The state on the right.
    pub after: SideBody,
}

/// A prompt to render from two states of a channel.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompareRenderingsBody {
    /// The state on the left; by default the one that the right one would replace, or has replaced.
    #[serde(default)]
    pub before: Option<RevisionSide>,
    /// The state on the right.
    pub after: SideBody,
    /// The name of the prompt.
    pub prompt: String,
    /// The values of its arguments. Sample values are added for required arguments without one.
    #[serde(default)]
    pub arguments: BTreeMap<String, String>,
}

/// A state of a channel.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum SideBody {
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
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevisionSide {
    /// The channel.
    pub channel: ChannelName,
    /// The revision; 0 for an empty channel, the newest one if it is missing.
    #[serde(default)]
    pub revision: Option<u64>,
}

/// The difference between two states of a channel. Each list has at most 500 entries.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// The state on the left.
    pub before: SideName,
    /// The state on the right.
    pub after: SideName,
    /// The files that differ, by path.
    pub files: Vec<FileChange>,
    /// The number of all files that differ.
    pub files_total: usize,
    /// The differences that callers will notice, in words, the breaking ones first.
    pub differences: Vec<DifferenceInWords>,
    /// The prompts that differ, by name.
    pub prompts: Vec<ComparedPrompt>,
    /// The number of all prompts that differ.
    pub prompts_total: usize,
    /// The tests of these prompts whose result differs, or that fail.
    pub tests: Vec<ComparedTest>,
    /// The number of tests that ran; those of the first 200 prompts that differ.
    pub tests_run: usize,
    /// The clients that will have trouble with a prompt, and had none before.
    pub clients: Vec<ComparedClient>,
    /// Counts of the check of the state on the right, without tests.
    pub summary: CheckSummary,
    /// The findings on the right, with file and line, errors first; at most 100.
    pub findings: Vec<String>,
}

/// A side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SideName {
    /// The channel.
    pub channel: ChannelName,
    /// The revision; null for changes that are not published.
    pub revision: Option<u64>,
    /// The digest of the revision: two revisions with one number differ in it.
    pub digest: Option<Digest>,
    /// The channel whose files the new contents are read from; null if they are in no revision.
    pub source: Option<ChannelName>,
    /// The revision of that channel.
    pub source_revision: Option<u64>,
}

/// A prompt that differs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComparedPrompt {
    /// The name of the prompt.
    pub name: String,
    /// The kind of the difference.
    pub change: PromptChangeKind,
    /// The file that defines it.
    pub path: String,
    /// The changed files that it brings in, such as partials; at most 20.
    pub through: Vec<String>,
}

/// A test before and after.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComparedTest {
    /// The name of the prompt.
    pub prompt: String,
    /// The name of the test, or its number counted from one.
    pub test: String,
    /// Whether it passes on the left; null if it does not exist there.
    pub before: Option<bool>,
    /// Whether it passes on the right; null if it does not exist there.
    pub after: Option<bool>,
    /// The reason for the failure on the right.
    pub reason: Option<String>,
}

/// A client that will have trouble with prompts.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComparedClient {
    /// The name of the client.
    pub client: String,
    /// The identifier of its behaviour.
    pub quirk: String,
    /// Its behaviour, in English.
    pub text: String,
    /// The affected prompts that differ; at most 50.
    pub prompts: Vec<String>,
}

/// A prompt rendered from two states of a channel.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComparedRenderings {
    /// The names of its arguments on either side; at most 200.
    pub arguments: Vec<String>,
    /// Values that are known to work: those of the tests.
    pub samples: Vec<Sample>,
    /// The rendering on the left; null if the prompt does not exist there.
    pub before: Option<Rendering>,
    /// The rendering on the right; null if the prompt does not exist there.
    pub after: Option<Rendering>,
    /// The values that were rendered, with the sample values that were added.
    pub values: BTreeMap<String, String>,
}

/// The values of a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// The name of the test, or its number counted from one.
    pub test: String,
    /// The values.
    pub values: BTreeMap<String, String>,
}

/// A position in a text, as the Language Server Protocol counts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TextPosition {
    /// The line, from 0.
    pub line: u32,
    /// UTF-16 code units before the position in its line.
    pub character: u32,
}

/// A file that is not saved.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UnsavedFile {
    /// Relative to the library.
    pub path: String,
    /// The content; null for a file that is to be deleted.
    #[serde(deserialize_with = "crate::channels::required")]
    #[schema(required = true)]
    pub content: Option<FileContent>,
}

/// Unsaved files, and the questions about one of them.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnalysisBody {
    /// The file in question.
    pub path: String,
    /// The unsaved files, which replace those of the library.
    pub changes: Vec<UnsavedFile>,
    /// Asks for completions at a position of the file.
    #[serde(default)]
    pub complete: Option<TextPosition>,
    /// Asks for an explanation of the word at a position of the file.
    #[serde(default)]
    pub hover: Option<TextPosition>,
    /// Asks for the messages of the file's prompt with these values. Required arguments without a value get a sample.
    #[serde(default)]
    pub arguments: Option<BTreeMap<String, String>>,
    /// Asks to run the tests of the file's prompt.
    #[serde(default)]
    pub tests: bool,
}

/// The result of a prompt test.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestResult {
    /// The name of the test, or its number from 1.
    pub name: String,
    /// Everything that differs from the expectation; empty if the test passed.
    pub mismatches: Vec<String>,
}

/// The answers to the questions of a request; each is missing if it was not asked.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnalysisResult {
    /// The diagnostics of each file that has some: `Diagnostic[]` of the Language Server Protocol 3.17, by path.
    #[schema(value_type = HashMap<String, Vec<Object>>)]
    pub diagnostics: BTreeMap<String, Value>,
    /// The problem because of which nothing could be analysed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// `CompletionItem[]` of the Language Server Protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub completions: Option<Value>,
    /// `Hover` of the Language Server Protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub hover: Option<Value>,
    /// The file's prompt: its name, title, description and arguments. Missing while the file has errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub prompt: Option<Value>,
    /// The messages, as `prompts/get` returns them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub messages: Option<Box<RawValue>>,
    /// The reason for missing messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The required arguments that were rendered with a sample.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<String>,
    /// The results of the file's tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<Vec<TestResult>>,
}

/// A rename, and the files that are not saved.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChannelRenameBody {
    /// The path of the file.
    pub from: String,
    /// Its new path, which must be free.
    pub to: String,
    /// The unsaved files, which replace those of the channel.
    #[serde(default)]
    pub changes: Vec<UnsavedFile>,
}

/// The files whose references to a renamed file change.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangedReferences {
    /// Sorted by path.
    pub references: Vec<ChangedReference>,
}

/// A file that refers to a renamed one.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangedReference {
    /// Relative to the library.
    pub path: String,
    /// Its text with the new references.
    pub text: String,
}

/// The files of the folder.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FolderFiles {
    /// By path.
    pub items: Vec<FolderFile>,
    /// The value of `cursor` for the next page; null on the last one.
    pub next: Option<String>,
    /// Whether the caller may change files.
    pub may_write: bool,
}

/// A file of the folder.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FolderFile {
    /// Relative to the library, with `/` between its parts.
    pub path: String,
    /// The size in bytes.
    pub bytes: u64,
}

/// The new content of a file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteBody {
    /// All of it.
    pub content: FileContent,
}

/// A written file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WrittenFile {
    /// The digest of its content.
    pub digest: Digest,
}

/// A rename of a file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameBody {
    /// The path of the file.
    pub from: String,
    /// Its new path, which must be free.
    pub to: String,
    /// The digest of its content.
    pub digest: Digest,
}

/// A renamed file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RenamedFile {
    /// The files whose references were changed.
    pub changed: Vec<String>,
    /// The files with references that the caller has to change.
    pub left: Vec<String>,
}
