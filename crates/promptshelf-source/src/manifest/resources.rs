//! The resource declarations of the manifest, `[[resources]]`.

use std::{collections::BTreeMap, ops::Range};

use promptshelf_core::{Access, Annotations, ArgumentDefinition, Code, Icon, MimeType, Role, Severity, Spans, nearest};

use super::root::DeclaredRoot;
use crate::{
    format::{
        ARGUMENT, GlobCompletion, ICON, Node, Notes, Table, Value,
        access::{self, access},
        arguments, icons,
        keys::{Holds, Keys, key, keys},
        list, mime_type,
    },
    resource::PathTemplate,
};

/// A declared resource, before its files are resolved.
#[derive(Debug)]
pub(crate) struct ResourceDraft {
    /// A URI, or a URI template. With `files`, a template of each file's URI.
    pub(crate) uri: String,
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) mime_type: Option<MimeType>,
    pub(crate) icons: Vec<Icon>,
    pub(crate) annotations: Annotations,
    pub(crate) variables: Vec<ArgumentDefinition>,
    pub(crate) globs: Vec<GlobCompletion>,
    pub(crate) content: ContentDraft,
    pub(crate) access: Option<Access>,
    pub(crate) spans: Spans,
}

#[derive(Debug)]
pub(crate) enum ContentDraft {
    /// One file; with a URI template, one for each value of its variables.
    File { path: PathTemplate, root: Option<String> },
    /// Every file that matches.
    Files { glob: String, root: Option<String> },
    /// Text in template syntax.
    Text(String),
}

pub(super) const KEYS: Keys = keys(&[
    key("uri", Holds::Text, "A URI; with `files`, a template for the URI of each file, with `{+path}`."),
    key("uri-template", Holds::Text, "A URI template (RFC 6570) with variables."),
    key(
        "file",
        Holds::Text,
        "A file; with a URI template, the path may contain its variables as `{name}` or `{+path}`.",
    ),
    key("files", Holds::Text, "A pattern for files; each of them becomes a resource."),
    key("text", Holds::Text, "A template over the variables of the URI."),
    key("root", Holds::Text, "The declared root that contains `file` or `files`."),
    key("name", Holds::Text, "The identifier."),
    key("title", Holds::Text, "The display name."),
    key("description", Holds::Text, "A description of the resource."),
    key("mime-type", Holds::Text, "The MIME type; derived from the file by default."),
    key("icons", Holds::TextsOrTables(&ICON), "Icons."),
    key("access", Holds::Table(&access::REQUIREMENTS), "The callers that may use it; all by default."),
    key("audience", Holds::Words(&["user", "assistant"]), "The intended audience."),
    key("priority", Holds::Number(Some((0.0, 1.0))), "The importance, from 0 (least) to 1 (required)."),
    key(
        "variables",
        Holds::ListOfTextsOrTables(&ARGUMENT),
        "The variables of the URI template with constraints or completion.",
    ),
]);

pub(super) fn read(node: &Node, roots: &BTreeMap<String, DeclaredRoot>, notes: &mut Notes<'_>) -> Vec<ResourceDraft> {
    let Value::List(items) = &node.value else {
        notes.error(Code::WrongType, &node.span, "expected a section for each resource").help =
            Some("write `[[resources]]`, with two brackets".to_owned());
        return Vec::new();
    };
    let around = std::mem::take(&mut notes.spans);
    let mut drafts = Vec::new();
    for item in items {
        notes.spans.clear();
        drafts.extend(resource(item, roots, notes));
    }
    notes.spans = around;
    drafts
}

fn resource(node: &Node, roots: &BTreeMap<String, DeclaredRoot>, notes: &mut Notes<'_>) -> Option<ResourceDraft> {
    let table = Table::of(node, "", "a resource", notes)?;
    table.expect(&KEYS, Severity::Error, "in [[resources]]", notes);
    let head = table.entries().first().map_or(node.span.clone(), |entry| entry.key_span.clone());
    let address = one_of(&table, &["uri", "uri-template"], &head, notes);
    let origin = one_of(&table, &["file", "files", "text"], &head, notes);
    let root = root(&table, roots, notes);
    let (variables, globs) = arguments(&table, "variables", notes);
    let annotations =
        Annotations { audience: audience(&table, notes), priority: priority(&table, notes), last_modified: None };
    let name = table.text("name", notes);
    let title = table.text("title", notes);
    let description = table.text("description", notes);
    let mime_type = mime_type(&table, "mime-type", notes);
    let icons = icons(&table, notes);
    let access = access(&table, notes);

    let is_template = address? == "uri-template";
    let uri = table.text(address?, notes)?;
    // Both keys store their span under `uri`.
    if let Some(span) = notes.spans.get(address?).cloned() {
        notes.spans.insert("uri".to_owned(), span);
    }
    let has_variables = uri.contains('{');
    let content = content(&table, origin?, root, notes)?;
    if !check(&table, is_template, has_variables, &uri, &content, notes) {
        return None;
    }
    let spans = std::mem::take(&mut notes.spans).into();
    Some(ResourceDraft {
        uri,
        name,
        title,
        description,
        mime_type,
        icons,
        annotations,
        variables,
        globs,
        content,
        access,
        spans,
    })
}

/// Returns the single key among several that is present; reports none or two.
fn one_of<'k>(table: &Table<'_, '_>, keys: &[&'k str], head: &Range<usize>, notes: &mut Notes<'_>) -> Option<&'k str> {
    let mut there = keys.iter().copied().filter(|key| table.has(key));
    match (there.next(), there.next()) {
        (Some(key), None) => Some(key),
        (None, _) => {
            notes.error(Code::MissingKey, head, format!("a resource must have one of {}", list(keys.iter().copied())));
            None
        }
        (Some(first), Some(second)) => {
            let span = table.node(second, notes).map_or(head.clone(), |node| node.span.clone());
            notes.error(Code::InvalidValue, &span, format!("a resource cannot have both `{first}` and `{second}`"));
            None
        }
    }
}

fn content(table: &Table<'_, '_>, key: &str, root: Option<String>, notes: &mut Notes<'_>) -> Option<ContentDraft> {
    let written = table.text(key, notes)?;
    if key == "text" {
        if table.has("root")
            && let Some(node) = table.node("root", notes)
        {
            notes.warning(Code::NoEffect, &node.span, "`root` has no effect together with `text`");
        }
        return Some(ContentDraft::Text(written));
    }
    let span = table.node(key, notes)?.span.clone();
    if written.starts_with('/') || written.split('/').any(|part| part == "..") {
        let message = format!("`{key}`: expected a path inside the library or its root");
        notes.error(Code::Outside, &span, message).help =
            Some("declare the folder under [roots], select it with `root`, and use a path relative to it".to_owned());
        return None;
    }
    if key == "files" {
        if let Err(error) = globset::Glob::new(&written) {
            notes.error(Code::InvalidValue, &span, format!("invalid path pattern `{written}`: {}", error.kind()));
            return None;
        }
        return Some(ContentDraft::Files { glob: written, root });
    }
    match PathTemplate::parse(&written) {
        Ok(path) => Some(ContentDraft::File { path, root }),
        Err(reason) => {
            notes.error(Code::InvalidValue, &span, format!("`{written}`: {reason}"));
            None
        }
    }
}

/// Whether the URI and the content match; reports a mismatch.
fn check(
    table: &Table<'_, '_>,
    is_template: bool,
    has_variables: bool,
    uri: &str,
    content: &ContentDraft,
    notes: &mut Notes<'_>,
) -> bool {
    let mut node_span = |key: &str| table.node(key, notes).map(|node| node.span.clone()).unwrap_or_default();
    let (uri_span, file_span) = (node_span(if is_template { "uri-template" } else { "uri" }), node_span("file"));
    let fault = match content {
        ContentDraft::Files { .. } if is_template => {
            Some((uri_span, "with `files`, every file has a URI of its own", "use `uri` with `{+path}`"))
        }
        ContentDraft::Files { .. } if !uri.contains("{+path}") && !uri.contains("{path}") => {
            Some((uri_span, "with `files`, the URI must contain the file's path", "add `{+path}` to it"))
        }
        ContentDraft::Files { .. } => None,
        _ if !is_template && has_variables => {
            Some((uri_span, "a URI with variables is a URI template", "use `uri-template` instead of `uri`"))
        }
        ContentDraft::File { path, .. } => {
            let is_known = |name: &&str| !uri_variables(uri).any(|known| known == *name);
            match path.names().find(is_known) {
                Some(name) => {
                    let message = format!("the path uses `{{{name}}}`, but the URI has no such variable");
                    notes.error(Code::UndeclaredArgument, &file_span, message).help =
                        nearest(name, uri_variables(uri)).map(|near| format!("did you mean `{near}`?"));
                    return false;
                }
                None => None,
            }
        }
        ContentDraft::Text(_) => None,
    };
    if let Some((span, message, help)) = fault {
        notes.error(Code::InvalidValue, &span, message).help = Some(help.to_owned());
        return false;
    }
    true
}

/// Returns the variable names of a URI template, which is validated later.
fn uri_variables(uri: &str) -> impl Iterator<Item = &str> {
    let expressions = uri.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    expressions.flat_map(|expression| expression.trim_start_matches(['+', '/', '?', '&']).split(','))
}

fn root(table: &Table<'_, '_>, roots: &BTreeMap<String, DeclaredRoot>, notes: &mut Notes<'_>) -> Option<String> {
    let name = table.text("root", notes)?;
    if !roots.contains_key(&name) {
        let span = notes.spans.get("root").cloned().unwrap_or_default();
        let near = nearest(&name, roots.keys().map(String::as_str));
        notes.error(Code::InvalidValue, &span, format!("unknown root `{name}`")).help = Some(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("declare it under [roots], as in `{name} = \"../{name}\"`"),
        });
    }
    Some(name)
}

fn audience(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> Vec<Role> {
    let mut audience = Vec::new();
    for (index, word) in table.texts("audience", notes).iter().enumerate() {
        match Role::parse(word) {
            Some(role) if audience.contains(&role) => {}
            Some(role) => audience.push(role),
            None => {
                let span = notes.spans.get(&format!("audience.{index}")).or_else(|| notes.spans.get("audience"));
                let span = span.cloned().unwrap_or_default();
                notes.error(Code::InvalidValue, &span, format!("unknown audience `{word}`")).help =
                    Some("expected `user` or `assistant`".to_owned());
            }
        }
    }
    audience
}

fn priority(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> Option<f64> {
    let priority = table.number("priority", notes)?;
    if !(0.0..=1.0).contains(&priority) {
        let span = notes.spans.get("priority").cloned().unwrap_or_default();
        notes.error(Code::InvalidValue, &span, "`priority`: expected a number between 0 and 1");
        return None;
    }
    Some(priority)
}
