//! The bodies of answers.

use promptshelf_core::{Argument, Body, BodyPiece, Prompt, Words};
use promptshelf_service::{DeprecationNotice, View};
use promptshelf_wire::{ArgumentFacts, DeprecationFacts, PromptFacts};

pub(super) fn facts_of(prompt: &Prompt, view: &View) -> PromptFacts {
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
        labels: prompt.labels().listed().map(|(label, values)| (label.key.to_owned(), values.to_vec())).collect(),
        deprecated: view.deprecation(prompt).map(deprecation),
        arguments: prompt.arguments().iter().map(argument).collect(),
    }
}

fn deprecation(notice: DeprecationNotice<'_>) -> DeprecationFacts {
    DeprecationFacts { message: notice.message.map(str::to_owned), replacement: notice.replacement }
}

fn argument(argument: &Argument) -> ArgumentFacts {
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
