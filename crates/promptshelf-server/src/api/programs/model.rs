//! The bodies of answers.

use promptshelf_core::{Argument, Body, BodyPiece, Prompt, Words};
use promptshelf_service::{DeprecationNotice, View};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// A page of prompts.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PromptPage {
    /// The channel; null if the server serves a folder.
    pub(super) channel: Option<String>,
    /// The prompts, by name.
    pub(super) prompts: Vec<PromptFacts>,
    /// The cursor of the next page; null on the last one.
    pub(super) next: Option<String>,
}

/// A prompt without its text.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFacts {
    /// The name, unique on this server.
    name: String,
    /// The name for people.
    title: Option<String>,
    /// The purpose.
    description: Option<String>,
    /// The channel; null if the server serves a folder.
    channel: Option<String>,
    /// The number of the version in its store; null if the server serves a folder.
    version: Option<u64>,
    /// The digest of all files that this version is made from; null if the server serves a folder.
    digest: Option<String>,
    /// The name of its source, in a server with several; null otherwise.
    source: Option<String>,
    /// The id of the commit that it comes from; null if its source is not a git repository.
    commit: Option<String>,
    /// The verified signer of the commit; null if signatures are not required.
    signer: Option<String>,
    /// The version that the author wrote into the file.
    author_version: Option<String>,
    /// The tags.
    tags: Vec<String>,
    /// Why it should no longer be used; null if it is not deprecated.
    deprecated: Option<DeprecationFacts>,
    /// The arguments, in order.
    arguments: Vec<ArgumentFacts>,
}

/// The deprecation of a prompt.
#[derive(Debug, Serialize, ToSchema)]
struct DeprecationFacts {
    /// The author's message.
    message: Option<String>,
    /// The name of the prompt to use instead; null unless the caller can see one.
    replacement: Option<String>,
}

/// An argument of a prompt.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ArgumentFacts {
    /// The name.
    name: String,
    /// The purpose.
    description: Option<String>,
    /// The type: `string`, `text`, `integer`, `number`, `boolean`, `date`, `list` or `json`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Whether a call must have it.
    required: bool,
    /// The value of calls without it.
    default: Option<String>,
    /// The permitted values; empty if others are permitted too.
    choices: Vec<String>,
    /// Whether its values are confidential. They cannot be sent in a URL.
    sensitive: bool,
}

/// A prompt with its template, or with the messages that it renders to.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PromptText {
    #[serde(flatten)]
    pub(super) facts: PromptFacts,
    /// The template, in the language of prompt files, without the files that it includes. Absent in a rendered answer,
    /// and for a prompt written in code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) template: Option<String>,
    /// The messages, as in the result of `prompts/get` of MCP revision 2026-07-28. Absent unless `rendered=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub(super) messages: Option<Box<RawValue>>,
}

impl PromptFacts {
    pub(super) fn of(prompt: &Prompt, view: &View) -> PromptFacts {
        let catalog = view.catalog();
        let part = catalog.part_of(prompt);
        let (found, own) = match &part {
            Some((part, own)) => (part.catalog.provenance(), &**own),
            None => (catalog.provenance(), prompt),
        };
        let found = found.filter(|found| found.covers(own));
        let version = found.and_then(|found| found.prompt(own));
        let commit = found.and_then(|found| found.provenance.commit());
        PromptFacts {
            name: prompt.name().to_string(),
            title: prompt.title().map(str::to_owned),
            description: prompt.description().map(str::to_owned),
            channel: found.and_then(|found| found.provenance.channel()).map(str::to_owned),
            version: version.map(promptshelf_core::PromptProvenance::version),
            digest: version.map(promptshelf_core::PromptProvenance::digest),
            source: part.as_ref().map(|(part, _)| part.source.to_string()).filter(|source| !source.is_empty()),
            commit: commit.map(|commit| commit.id().to_owned()),
            signer: commit.and_then(|commit| commit.signer()).map(str::to_owned),
            author_version: prompt.version().map(str::to_owned),
            tags: prompt.tags().to_vec(),
            deprecated: view.deprecation(prompt).map(DeprecationFacts::from),
            arguments: prompt.arguments().iter().map(ArgumentFacts::of).collect(),
        }
    }
}

impl From<DeprecationNotice<'_>> for DeprecationFacts {
    fn from(notice: DeprecationNotice<'_>) -> DeprecationFacts {
        DeprecationFacts { message: notice.message.map(str::to_owned), replacement: notice.replacement }
    }
}

impl ArgumentFacts {
    fn of(argument: &Argument) -> ArgumentFacts {
        ArgumentFacts {
            name: argument.name().to_owned(),
            description: argument.description().map(str::to_owned),
            kind: argument.kind().as_str(),
            required: argument.required(),
            default: argument.default_value().map(str::to_owned),
            choices: argument.choices().iter().map(|choice| choice.value.clone()).collect(),
            sensitive: argument.is_sensitive(),
        }
    }
}

/// Returns the template of a prompt; `None` for one written in code.
pub(super) fn template(prompt: &Prompt) -> Option<String> {
    match &prompt.definition().body {
        Body::Template { range } => prompt.source().text.get(range.clone()).map(str::to_owned),
        Body::Pieces(pieces) => Some(pieces.iter().map(piece).collect()),
        Body::Function(_) => None,
    }
}

fn piece(piece: &BodyPiece) -> String {
    match piece {
        BodyPiece::Text(text) if text.contains("{{") || text.contains("{%") || text.contains("{#") => {
            format!("{{{{ {} }}}}", serde_json::Value::from(text.as_str()))
        }
        BodyPiece::Text(text) => text.clone(),
        BodyPiece::Argument(name) | BodyPiece::Words(Words { argument: name, .. }) => format!("{{{{ {name} }}}}"),
        BodyPiece::Role(role) => format!("{{{{ role({:?}) }}}}", role.as_str()),
        BodyPiece::Attach { path, .. } => format!("{{{{ attach({}) }}}}", serde_json::Value::from(path.as_str())),
    }
}
