//! Imports prompts from responses of Langfuse's API: a single prompt, a list, or a page under `data`.
//!
//! Source: Langfuse's documentation, *Prompt data model* and *Composability*. `name`, `type` (`text` or `chat`),
//! `prompt`, `config`, `labels`, `tags`, `version`; variables are `{{name}}`, and
//! `@@@langfusePrompt:name=x|label=y@@@` includes another prompt. A chat can contain a placeholder for messages.

use std::collections::BTreeMap;

use promptshelf_core::{BodyPiece, Code, Role};

use super::{Foreign, get, lose_others, slug, template, text_of};
use promptshelf_source::syntax::{Node, Notes, Pieces, Value, parse_yaml, placeholders};

const KNOWN_KEYS: &[&str] =
    &["id", "name", "type", "prompt", "tags", "labels", "version", "createdAt", "updatedAt", "createdBy", "projectId"];

const REFERENCE: &str = "@@@langfusePrompt:";

pub(super) fn read(notes: &mut Notes<'_>) -> Vec<Foreign> {
    let Some(tree) = parse_yaml(0..notes.source.text.len(), notes) else { return Vec::new() };
    let listed = get(&tree, "data").unwrap_or(&tree);
    let mut newest: BTreeMap<String, &Node> = BTreeMap::new();
    for node in listed.items() {
        let Some(name) = text_of(node, "name") else {
            notes.error(Code::MissingKey, &(node.span.start..node.span.start + 1), "a prompt needs a `name`");
            continue;
        };
        if let Some(other) = newest.get(&name).copied() {
            let (stays, goes) = if rank(node) > rank(other) { (node, other) } else { (other, node) };
            let message = format!("another version of `{name}` is used; this one is omitted");
            notes.warning(Code::NotSupported, &(goes.span.start..goes.span.start + 1), message);
            newest.insert(name, stays);
        } else {
            newest.insert(name, node);
        }
    }
    newest.into_iter().filter_map(|(name, node)| prompt(&name, node, notes)).collect()
}

/// Ranks versions: those in production first, then by number.
fn rank(node: &Node) -> (bool, u64) {
    let labels = get(node, "labels").map(Node::items).unwrap_or_default();
    let is_live = labels.iter().any(|label| label.text() == Some("production"));
    (is_live, text_of(node, "version").and_then(|version| version.parse().ok()).unwrap_or(0))
}

fn prompt(name: &str, node: &Node, notes: &mut Notes<'_>) -> Option<Foreign> {
    lose_others(node, KNOWN_KEYS, notes);
    if let Some(labels) = get(node, "labels").filter(|labels| labels.items().iter().any(|label| !label.is_null())) {
        notes.warning(Code::NotSupported, &labels.span, "labels have no equivalent in a file and are omitted");
    }
    let Some(said) = get(node, "prompt") else {
        notes.error(Code::MissingKey, &(node.span.start..node.span.start + 1), "a prompt needs a `prompt`");
        return None;
    };
    let mut pieces = Pieces::default();
    match &said.value {
        Value::List(messages) => messages.iter().for_each(|message| add(message, &mut pieces, notes)),
        _ => placeholders(said.text().unwrap_or_default(), said.span.clone(), &mut pieces, notes),
    }
    let (pieces, arguments) = pieces.into_parts();
    let template = with_references(&pieces, &said.span, notes);
    let tags = get(node, "tags").map(Node::items).unwrap_or_default();
    let path = slug(name);
    Some(Foreign {
        title: (path != name).then(|| name.to_owned()),
        path,
        description: text_of(node, "commitMessage").map(|message| format!("{name}: {message}")),
        version: text_of(node, "version"),
        tags: tags.iter().filter_map(|tag| tag.text().map(str::to_owned)).collect(),
        arguments,
        template,
        ..Foreign::default()
    })
}

fn add(message: &Node, pieces: &mut Pieces, notes: &mut Notes<'_>) {
    if text_of(message, "type").as_deref() == Some("placeholder") {
        let name = text_of(message, "name").unwrap_or_default();
        let message_ = format!("the messages for `{name}` have no equivalent in a prompt and are omitted");
        notes.warning(Code::NotSupported, &message.span, message_);
        return;
    }
    let role = get(message, "role");
    match role.and_then(Node::text) {
        Some("assistant") => pieces.role(Role::Assistant),
        other => {
            if let (Some(other), Some(node)) = (other.filter(|other| *other != "user"), role) {
                super::lose_role(other, &node.span, notes);
            }
            pieces.role(Role::User);
        }
    }
    if let Some(content) = get(message, "content") {
        placeholders(content.text().unwrap_or_default(), content.span.clone(), pieces, notes);
    }
}

/// Returns a template in which references to other prompts are calls of `prompt`.
fn with_references(pieces: &[BodyPiece], span: &std::ops::Range<usize>, notes: &mut Notes<'_>) -> String {
    let mut out = String::new();
    let template = template::of(pieces);
    let mut rest = template.as_str();
    while let Some(start) = rest.find(REFERENCE) {
        let inside = &rest[start + REFERENCE.len()..];
        let Some(end) = inside.find("@@@") else { break };
        let mut parts = inside[..end].split('|').filter_map(|part| part.split_once('='));
        let name = parts.clone().find(|(key, _)| *key == "name").map_or("", |(_, name)| name);
        out.push_str(&rest[..start]);
        out.push_str(&format!("{{{{ prompt({}) }}}}", template::string(&slug(name))));
        if let Some((key, value)) = parts.find(|(key, _)| *key != "name") {
            let message = format!("the reference to `{name}` loses its {key} {value}");
            notes.warning(Code::NotSupported, span, message);
        }
        rest = &inside[end + 3..];
    }
    out.push_str(rest);
    out
}
