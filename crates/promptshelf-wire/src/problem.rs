//! Problem details (RFC 9457): the body of every refusal and error.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{Digest, Reason};

/// The prefix of the `type` of a problem.
const TYPE: &str = "urn:promptshelf:problem:";

/// A refusal or an error (RFC 9457), sent as `application/problem+json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// The kind of the problem: `urn:promptshelf:problem:` and a stable name, such as `conflict`.
    #[serde(rename = "type", default)]
    #[schema(required = true)]
    pub kind: String,
    /// A description of the kind.
    #[serde(default)]
    #[schema(value_type = String, required = true)]
    pub title: Cow<'static, str>,
    /// The status of the response.
    #[serde(default)]
    #[schema(required = true)]
    pub status: u16,
    /// The description of this case: the mistake, and the expected input.
    #[serde(default)]
    #[schema(required = true)]
    pub detail: String,
    /// For `conflict`: the files that someone else has changed, at most 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// For `conflict`: the newest revision of the channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// For `policy`: the conditions that are not met, one sentence each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacks: Option<Vec<String>>,
    /// For `policy`, `insufficient-role` and the path of a file: the reasons with stable codes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// For `changed`: the present content of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub content: Option<Value>,
    /// For `changed`: the digest of the present content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

impl Problem {
    /// Creates a problem of a kind with a stable name.
    #[must_use]
    pub fn new(status: u16, name: &str, title: &'static str, detail: impl Into<String>) -> Problem {
        let (kind, title, detail) = (format!("{TYPE}{name}"), title.into(), detail.into());
        Problem { kind, title, status, detail, ..Problem::default() }
    }

    /// Returns the stable name of the kind; empty for a kind of another program.
    #[must_use]
    pub fn name(&self) -> &str {
        self.kind.strip_prefix(TYPE).unwrap_or_default()
    }
}
