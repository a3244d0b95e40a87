//! Bodies of the operations for programs.

use std::{borrow::Cow, collections::BTreeMap};

use jiff::Timestamp;
use promptshelf_store::{PromptChange, RevisionKind};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{
    IntoParams, PartialSchema, ToSchema,
    openapi::{
        Required,
        path::{Parameter, ParameterBuilder, ParameterIn},
    },
};

/// A page of prompts.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PromptPage {
    /// The channel; null if the server serves a folder.
    pub channel: Option<String>,
    /// The prompts, by name.
    pub items: Vec<PromptFacts>,
    /// The value of `cursor` for the next page; null on the last one.
    pub next: Option<String>,
}

/// A prompt without its text.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptFacts {
    /// The name, unique on this server.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The purpose.
    pub description: Option<String>,
    /// The channel; null if the server serves a folder.
    pub channel: Option<String>,
    /// The number of the version in its store; null if the server serves a folder.
    pub version: Option<u64>,
    /// The digest of all files that this version is made from; null if the server serves a folder.
    pub digest: Option<String>,
    /// The name of its source, in a server with several; null otherwise.
    pub source: Option<String>,
    /// The id of the commit that it comes from; null if its source is not a git repository.
    pub commit: Option<String>,
    /// The verified signer of the commit; null if signatures are not required.
    pub signer: Option<String>,
    /// The version that the author wrote into the file.
    pub author_version: Option<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// What else the author tells people about it, by key of the prompt file.
    pub labels: BTreeMap<String, Vec<String>>,
    /// Why it should no longer be used; null if it is not deprecated.
    pub deprecated: Option<DeprecationFacts>,
    /// The arguments, in order.
    pub arguments: Vec<ArgumentFacts>,
}

/// The deprecation of a prompt.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DeprecationFacts {
    /// The author's message.
    pub message: Option<String>,
    /// The name of the prompt to use instead; null unless the caller can see one.
    pub replacement: Option<String>,
}

/// An argument of a prompt.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArgumentFacts {
    /// The name.
    pub name: String,
    /// The purpose.
    pub description: Option<String>,
    /// The type: `string`, `text`, `integer`, `number`, `boolean`, `date`, `list` or `json`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Whether a call must have it.
    pub required: bool,
    /// The value of calls without it.
    pub default: Option<String>,
    /// The permitted values; empty if others are permitted too.
    pub choices: Vec<String>,
    /// Whether its values are confidential. They cannot be sent in a URL.
    pub sensitive: bool,
}

/// A prompt with its template, or with the messages that it renders to.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PromptText {
    /// All but the text.
    #[serde(flatten)]
    pub facts: PromptFacts,
    /// The template, in the language of prompt files, without the files that it includes. Absent in a rendered answer,
    /// and for a prompt written in code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The messages, as in the result of `prompts/get` of MCP revision 2026-07-28. Absent unless `rendered=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub messages: Option<Box<RawValue>>,
}

/// The arguments of a rendering.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RenderBody {
    /// The values by name. A name that is not an argument of the prompt is refused.
    pub arguments: BTreeMap<String, String>,
    /// The channel; the server's default one without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The number of a version; the present one without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// The data of an event `revision`: a channel's revision that is served from now on.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RevisionEvent<'a> {
    /// The channel.
    pub channel: &'a str,
    /// The number of the revision.
    pub revision: u64,
    /// How it came to be. Absent if the store cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<RevisionKind>,
    /// The time of its commit. Absent if the store cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The prompts that it added, changed and removed, by the names under which they are served, as far as the caller may
    /// see them. Absent if revisions between
    /// the last event and this one were skipped: anything may have changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<Vec<PromptChange>>,
}

/// A source and its state.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceInfo {
    /// The configured name.
    pub name: String,
    /// `folder`, `git`, `store` or `mcp`.
    pub kind: Cow<'static, str>,
    /// `starting`, `current`, `behind` or `failed`.
    pub state: Cow<'static, str>,
    /// The served revision of a channel.
    pub revision: Option<u64>,
    /// The served commit.
    pub commit: Option<String>,
    /// The number of its prompts that are served.
    pub prompts: usize,
    /// The time since which its newest state is not served.
    pub behind_since: Option<String>,
    /// The reason, without secrets.
    pub problem: Option<String>,
    /// What is not served of its newest state, each with the reason.
    pub left_out: Vec<String>,
    /// What an operator should change although its newest state is served, such as a loop between servers.
    #[serde(default)]
    pub warning: Option<String>,
}

/// The parameters of a prompt, with those of its arguments.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PromptParameters(pub Vec<(String, String)>);

impl IntoParams for PromptParameters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let parameter = |name: &str, schema, description: &str| {
            ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Query)
                .required(Required::False)
                .schema(Some(schema))
                .description(Some(description))
                .build()
        };
        let channel = "The channel; the server's default one without it";
        let version = "The number of a version; the present one without it";
        let rendered = "Whether the answer has messages instead of the template";
        vec![
            parameter("channel", String::schema(), channel),
            parameter("version", u64::schema(), version),
            parameter("rendered", bool::schema(), rendered),
            parameter("arguments.NAME", String::schema(), "The value of the argument NAME"),
        ]
    }
}
