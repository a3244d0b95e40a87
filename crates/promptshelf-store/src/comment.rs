//! Comments on proposals: on the whole, on a file, or on a line of a file before or after the change.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::Digest;

/// A comment on a proposal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Comment {
    /// Its number, unique in the store.
    pub id: u64,
    /// Its author.
    pub author: String,
    /// The text.
    pub text: String,
    /// The digest of the changes that it is about. It is outdated if the proposal has another digest by now.
    pub digest: Digest,
    /// The changed file; null for a comment on the whole proposal.
    pub path: Option<String>,
    /// The line of the file; null for a comment on the whole file.
    pub line: Option<CommentLine>,
    /// The time of the comment.
    pub at: Timestamp,
}

/// A line of a changed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommentLine {
    /// The content that has the line.
    pub side: CommentSide,
    /// The number of the line; 1 is the first one.
    pub number: u64,
}

/// A content of a changed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum CommentSide {
    /// The content that the author started from.
    Before,
    /// The new content.
    After,
}

impl CommentSide {
    /// Returns the name that JSON and the database use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            CommentSide::Before => "before",
            CommentSide::After => "after",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<CommentSide> {
        match name {
            "before" => Some(CommentSide::Before),
            "after" => Some(CommentSide::After),
            _ => None,
        }
    }
}

/// A comment to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = CommentBody))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewComment {
    /// The digest of the changes that the author of the comment saw.
    pub digest: Digest,
    /// The changed file; `None` for the whole proposal.
    #[serde(default)]
    pub path: Option<String>,
    /// The line of the file; `None` for the whole file.
    #[serde(default)]
    pub line: Option<CommentLine>,
    /// The text, of 1 to 4,096 characters.
    pub text: String,
}
