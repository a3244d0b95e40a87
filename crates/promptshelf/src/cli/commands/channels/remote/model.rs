//! Bodies of the API, beyond the values of the store.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use promptshelf_store::{
    ChannelInfo, Digest, FileEntry, Head, Policy, PolicyChange, PromptChange, Proposal, Reason, Revision, Served,
    StoreError,
};
use serde::{Deserialize, Serialize};

use crate::commands::channels::answer::Answer;

/// The bytes of a file.
pub(super) type Bytes = Arc<[u8]>;

/// The content of a file, or the digest of an uploaded one.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Content {
    Text(String),
    Base64(String),
    Digest(Digest),
}

impl Content {
    /// Encodes a content as text where that is not longer than Base64: most control characters take six bytes in JSON.
    pub(super) fn of(bytes: &[u8]) -> Content {
        let escaped = bytes.iter().filter(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace()).count();
        match std::str::from_utf8(bytes) {
            Ok(text) if escaped * 5 <= bytes.len() / 3 => Content::Text(text.to_owned()),
            _ => Content::Base64(STANDARD.encode(bytes)),
        }
    }

    pub(super) fn bytes(self) -> Answer<Bytes> {
        let malformed = || StoreError::Corrupt { what: "a content in the server's answer".to_owned() };
        match self {
            Content::Text(text) => Ok(text.into_bytes().into()),
            Content::Base64(encoded) => Ok(STANDARD.decode(encoded).map_err(|_| malformed())?.into()),
            Content::Digest(_) => Err(malformed().into()),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Channels {
    pub(super) channels: Vec<ChannelInfo>,
}

#[derive(Deserialize)]
pub(super) struct Tree {
    pub(super) head: Head,
    pub(super) files: Vec<FileEntry>,
    pub(super) next: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct FileContents {
    pub(super) files: Vec<FileWithContent>,
}

#[derive(Deserialize)]
pub(super) struct FileWithContent {
    pub(super) path: String,
    pub(super) content: Content,
}

#[derive(Deserialize)]
pub(super) struct Uploaded {
    pub(super) digests: Vec<Digest>,
}

#[derive(Deserialize)]
pub(super) struct Revisions {
    pub(super) revisions: Vec<Revision>,
    pub(super) next: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct ServedPrompts {
    pub(super) prompts: Vec<Served>,
}

#[derive(Deserialize)]
pub(super) struct Proposals {
    pub(super) proposals: Vec<Proposal>,
    pub(super) next: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Contents {
    pub(super) digest: Digest,
    pub(super) files: Vec<ChangedFile>,
    pub(super) next: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ChangedFile {
    pub(super) path: String,
    pub(super) before: Option<Content>,
    pub(super) after: Option<Content>,
}

#[derive(Deserialize)]
pub(super) struct Outcome {
    pub(super) proposal: Proposal,
    pub(super) prompts: Vec<PromptChange>,
    pub(super) findings: Vec<String>,
    #[serde(default)]
    pub(super) kept: Vec<String>,
}

/// The answer to a change of a policy.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum PolicyAnswer {
    Proposed(Box<Proposal>),
    Changed(#[expect(dead_code, reason = "the channel is read again")] Policy),
}

#[derive(Deserialize)]
pub(super) struct PolicyChanges {
    pub(super) changes: Vec<PolicyChange>,
    pub(super) next: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct ChangeBody<'c> {
    pub(super) path: &'c str,
    pub(super) before: Option<Digest>,
    pub(super) content: Option<Content>,
}

/// A problem (RFC 9457).
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Problem {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) detail: String,
    pub(super) paths: Vec<String>,
    pub(super) revision: u64,
    pub(super) lacks: Vec<String>,
    pub(super) reasons: Vec<Reason>,
}
