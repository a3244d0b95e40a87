//! Imports prompt templates from responses of PromptLayer's API: a single one, or a list under `items`.
//!
//! Source: PromptLayer's API reference, *Get Prompt Template*. `prompt_name`, `version`, `tags` and
//! `prompt_template`, which has `type` (`chat` or `completion`), `messages` or `content` made of parts of `type:
//! text`, and a `template_format` of `f-string` or `jinja2`.

use promptshelf_core::{ArgumentDefinition, Code, Role};

use super::{Foreign, get, lose_others, slug, template, text_of};
use promptshelf_source::syntax::{Node, Notes, argument_name, parse_yaml};

const KNOWN_KEYS: &[&str] = &[
    "id",
    "prompt_id",
    "prompt_name",
    "prompt_template",
    "version",
    "tags",
    "workspace_id",
    "created_at",
    "updated_at",
];

pub(super) fn read(notes: &mut Notes<'_>) -> Vec<Foreign> {
    let Some(tree) = parse_yaml(0..notes.source.text.len(), notes) else { return Vec::new() };
    let listed = get(&tree, "items").unwrap_or(&tree);
    listed.items().iter().filter_map(|node| prompt(node, notes)).collect()
}

fn prompt(node: &Node, notes: &mut Notes<'_>) -> Option<Foreign> {
    lose_others(node, KNOWN_KEYS, notes);
    let start = node.span.start..node.span.start + 1;
    let (Some(name), Some(body)) = (text_of(node, "prompt_name"), get(node, "prompt_template")) else {
        notes.error(Code::MissingKey, &start, "a prompt needs `prompt_name` and `prompt_template`");
        return None;
    };
    lose_others(body, &["type", "messages", "content", "input_variables", "template_format"], notes);
    let mut made = Made { out: String::new(), arguments: Vec::new() };
    for variable in get(body, "input_variables").map(Node::items).unwrap_or_default() {
        made.declare(variable.text().unwrap_or_default());
    }
    let format = text_of(body, "template_format");
    match get(body, "messages") {
        Some(messages) => messages.items().iter().for_each(|message| made.message(message, format.as_deref(), notes)),
        None => made.content(body, format.as_deref(), notes),
    }
    let path = slug(&name);
    let tags = get(node, "tags").map(Node::items).unwrap_or_default();
    Some(Foreign {
        title: (path != name).then_some(name),
        path,
        version: text_of(node, "version"),
        tags: tags.iter().filter_map(|tag| tag.text().map(str::to_owned)).collect(),
        arguments: made.arguments,
        template: made.out,
        ..Foreign::default()
    })
}

struct Made {
    out: String,
    arguments: Vec<ArgumentDefinition>,
}

impl Made {
    fn declare(&mut self, variable: &str) {
        if let Some(name) = argument_name(variable)
            && !self.arguments.iter().any(|known| known.name == name)
        {
            self.arguments.push(ArgumentDefinition::new(name).required());
        }
    }

    fn message(&mut self, message: &Node, format: Option<&str>, notes: &mut Notes<'_>) {
        lose_others(message, &["role", "content", "input_variables", "template_format"], notes);
        let role = get(message, "role");
        let speaker = match role.and_then(Node::text) {
            Some("assistant") => Role::Assistant,
            Some("user") | None => Role::User,
            Some(other) => {
                if let Some(node) = role {
                    super::lose_role(other, &node.span, notes);
                }
                Role::User
            }
        };
        if !self.out.is_empty() || speaker == Role::Assistant {
            self.out.push_str(if self.out.is_empty() || self.out.ends_with('\n') { "" } else { "\n" });
            self.out.push_str(&template::role(speaker));
        }
        for variable in get(message, "input_variables").map(Node::items).unwrap_or_default() {
            self.declare(variable.text().unwrap_or_default());
        }
        let own = text_of(message, "template_format");
        self.content(message, own.as_deref().or(format), notes);
    }

    fn content(&mut self, node: &Node, format: Option<&str>, notes: &mut Notes<'_>) {
        for part in get(node, "content").map(Node::items).unwrap_or_default() {
            let kind = text_of(part, "type").unwrap_or_else(|| "text".to_owned());
            let text = part.text().map(str::to_owned).or_else(|| get(part, "text")?.text().map(str::to_owned));
            match text {
                Some(text) if kind == "text" => self.text(&text, format),
                _ => {
                    let message = format!("a part of type `{kind}` is omitted");
                    notes.warning(Code::NotSupported, &part.span, message).help =
                        Some("put the file into the library and attach it".to_owned());
                }
            }
        }
    }

    fn text(&mut self, text: &str, format: Option<&str>) {
        if format == Some("jinja2") {
            self.out.push_str(text);
            return;
        }
        // An f-string: `{name}` is a variable, and `{{` an escaped brace.
        let mut rest = text;
        let mut plain = String::new();
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
                continue;
            }
            let inside = rest.split_once('}').filter(|_| brace == "{");
            match inside.and_then(|(name, after)| Some((argument_name(name)?, after))) {
                Some((name, after)) => {
                    self.out.push_str(&template::literal(&std::mem::take(&mut plain)));
                    self.out.push_str(&format!("{{{{ {name} }}}}"));
                    self.declare(&name);
                    rest = after;
                }
                None => plain.push_str(brace),
            }
        }
        plain.push_str(rest);
        self.out.push_str(&template::literal(&plain));
    }
}
