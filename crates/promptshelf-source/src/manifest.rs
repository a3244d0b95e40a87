//! The manifest of a library, `promptshelf.toml`.
//!
//! Unlike a prompt file, a manifest with mistakes is rejected as a whole: a misspelled limit or root must not be ignored.
//! Its sections are serde types ([`sections`]), read by [`SettingsFile`] as the operator's `server.toml` is.

mod sections;

use std::{collections::BTreeMap, ops::Range, path::PathBuf, sync::Arc, time::Duration};

use promptshelf_core::{
    About, Access, AccessRule, Annotations, ArgumentDefinition, Budget, Code, Diagnostic, Glob, Icon, MimeType, Policy,
    Role, SourceText, Spans, nearest,
};
use sections::{Audience, Resource};

use self::sections::{Arguments, LimitsSection, List, Server};
use crate::{
    format::{GlobCompletion, Node, Notes, Table, access::access, arguments, icons, list},
    resource::PathTemplate,
    settings::{AsWritten, Bounded, RemovedKey, SettingsFile},
};

pub(crate) use self::sections::Sections;

#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) source: Arc<SourceText>,
    pub(crate) about: About,
    pub(crate) policy: Policy,
    pub(crate) limits: Limits,
    pub(crate) roots: BTreeMap<String, DeclaredRoot>,
    pub(crate) resources: Vec<ResourceDraft>,
    pub(crate) access: Vec<AccessRule>,
    pub(crate) icon_spans: Spans,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The largest library file, in bytes.
    pub(crate) file_bytes: u64,
    /// The largest total size of all files, in bytes.
    pub(crate) library_bytes: u64,
    pub(crate) files: usize,
    /// The largest resource that is read on request, in bytes.
    pub(crate) resource_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { file_bytes: 4 << 20, library_bytes: 256 << 20, files: 200_000, resource_bytes: 16 << 20 }
    }
}

impl Manifest {
    /// Returns the defaults for a library without a manifest.
    pub(crate) fn none() -> Manifest {
        Manifest {
            source: SourceText::new(crate::file_role::MANIFEST, ""),
            about: About::default(),
            policy: Policy::default(),
            limits: Limits::default(),
            roots: BTreeMap::new(),
            resources: Vec::new(),
            access: Vec::new(),
            icon_spans: Spans::default(),
            diagnostics: Vec::new(),
        }
    }

    pub(crate) fn parse(source: Arc<SourceText>) -> Result<Manifest, Vec<Diagnostic>> {
        let manifest = Manifest::understood(source);
        if manifest.diagnostics.iter().any(Diagnostic::is_error) {
            return Err(manifest.diagnostics);
        }
        Ok(manifest)
    }

    /// Parses the valid parts of a manifest: enough to check the rest of the library, but not to serve it.
    pub(crate) fn understood(source: Arc<SourceText>) -> Manifest {
        let mut file = SettingsFile::parse(Arc::clone(&source));
        refuse_operator_settings(&mut file);
        let sections: Sections = file.read();
        let mut manifest = file.read_tree(|root, removed, notes| Manifest::resolve(sections, root, removed, notes));
        manifest.access = file.access_rules();
        Manifest { source, diagnostics: file.diagnostics(), ..manifest }
    }

    /// Applies defaults, checks rules across keys, and reads the parts that prompt files have too.
    fn resolve(sections: Sections, root: &Node, removed: &[RemovedKey], notes: &mut Notes<'_>) -> Manifest {
        let Sections { server, list, limits, arguments, roots, resources, .. } = sections;
        let (icons, icon_spans) = server_icons(root, notes);
        let roots = declared_roots(roots, root);
        let resources = read_resources(resources.0, root, &roots, removed, notes);
        Manifest {
            about: about(server, icons),
            policy: policy(&list, &limits, &arguments),
            limits: read_limits(&limits),
            roots,
            resources,
            icon_spans,
            ..Manifest::none()
        }
    }
}

/// Sections of the operator's `server.toml`.
const OPERATOR_SECTIONS: [&str; 12] =
    ["http", "auth", "tls", "proxy", "audit", "metrics", "traces", "grants", "store", "channels", "api", "provenance"];

/// Keys of `[limits]` that bound callers, and belong in `server.toml` too.
const OPERATOR_LIMITS: [&str; 5] = [
    "requests-per-minute",
    "completions-per-minute",
    "requests-per-minute-per-address",
    "concurrent-requests",
    "subscriptions",
];

/// Reports settings that authors must not make, and removes them.
fn refuse_operator_settings(file: &mut SettingsFile) {
    const HELP: &str =
        "move it to server.toml, the operator's file: `serve --config FILE` or ~/.config/promptshelf/server.toml";
    for section in OPERATOR_SECTIONS {
        file.refuse(&[section], Code::OperatorSetting, format!("[{section}] belongs in server.toml"), HELP);
    }
    for key in OPERATOR_LIMITS {
        let message = format!("`{key}` in [limits] belongs in server.toml");
        file.refuse(&["limits", key], Code::OperatorSetting, message, HELP);
    }
}

fn server_icons(root: &Node, notes: &mut Notes<'_>) -> (Vec<Icon>, Spans) {
    let Some(table) = root.child("server").and_then(|node| Table::of(node, "", "[server]", notes)) else {
        return Default::default();
    };
    let icons = icons(&table, notes);
    (icons, std::mem::take(&mut notes.spans).into())
}

fn about(server: Server, icons: Vec<Icon>) -> About {
    let text = |written: Option<AsWritten>| written.map(|AsWritten(text)| text);
    About {
        name: text(server.name),
        title: text(server.title),
        version: text(server.version),
        description: text(server.description),
        website_url: server.website_url.map(|url| url.0),
        icons,
        instructions: text(server.instructions),
    }
}

fn declared_roots(roots: BTreeMap<String, AsWritten>, root: &Node) -> BTreeMap<String, DeclaredRoot> {
    let table = root.child("roots");
    let span = |name: &str| table.and_then(|table| table.child(name)).map_or(0..0, |node| node.span.clone());
    let declared = |(name, AsWritten(path)): (String, AsWritten)| {
        let root = DeclaredRoot { path: path.into(), span: span(&name) };
        (name, root)
    };
    roots.into_iter().map(declared).collect()
}

fn policy(list: &List, limits: &LimitsSection, arguments: &Arguments) -> Policy {
    let default = Policy::default();
    Policy {
        page_size: size(list.page_size, default.page_size),
        ttl: list.ttl.map_or(default.ttl, |seconds| Duration::from_secs(seconds.0)),
        value_bytes: size(limits.value_bytes, default.value_bytes),
        invisible: arguments.invisible.unwrap_or(default.invisible),
        budget: Budget {
            fuel: count(limits.fuel, default.budget.fuel),
            output_bytes: size(limits.output_bytes, default.budget.output_bytes),
            attachment_bytes: size(limits.attachment_bytes, default.budget.attachment_bytes),
            messages: size(limits.messages, default.budget.messages),
            include_depth: size(limits.include_depth, default.budget.include_depth),
        },
    }
}

fn read_limits(limits: &LimitsSection) -> Limits {
    let default = Limits::default();
    Limits {
        file_bytes: count(limits.file_bytes, default.file_bytes),
        library_bytes: count(limits.library_bytes, default.library_bytes),
        files: size(limits.files, default.files),
        resource_bytes: count(limits.resource_bytes, default.resource_bytes),
    }
}

fn count(written: Option<Bounded<1>>, default: u64) -> u64 {
    written.map_or(default, |number| number.0)
}

/// Converts a limit; one beyond the address space is unlimited.
fn size(written: Option<Bounded<1>>, default: usize) -> usize {
    written.map_or(default, Bounded::to_usize)
}

#[derive(Clone, Debug)]
pub(crate) struct DeclaredRoot {
    pub(crate) path: PathBuf,
    pub(crate) span: Range<usize>,
}

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
    File {
        path: PathTemplate,
        root: Option<String>,
    },
    Files {
        glob: String,
        root: Option<String>,
    },
    Text(String),
}

fn read_resources(
    resources: Vec<Resource>,
    root: &Node,
    roots: &BTreeMap<String, DeclaredRoot>,
    removed: &[RemovedKey],
    notes: &mut Notes<'_>,
) -> Vec<ResourceDraft> {
    let nodes = root.child("resources").map(Node::items).unwrap_or_default();
    let mut drafts = Vec::new();
    for (resource, node) in resources.into_iter().zip(nodes) {
        notes.spans.clear();
        drafts.extend(draft(resource, node, roots, removed, notes));
    }
    notes.spans.clear();
    drafts
}

fn draft(
    resource: Resource,
    node: &Node,
    roots: &BTreeMap<String, DeclaredRoot>,
    removed: &[RemovedKey],
    notes: &mut Notes<'_>,
) -> Option<ResourceDraft> {
    let table = Table::of(node, "", "a resource", notes)?;
    for entry in table.entries() {
        notes.spans.insert(entry.key.clone(), entry.node.span.clone());
    }
    let text = |written: Option<AsWritten>| written.map(|AsWritten(text)| text);
    let root = text(resource.root);
    let address = [("uri", text(resource.uri)), ("uri-template", text(resource.uri_template))];
    let origin = [("file", text(resource.file)), ("files", text(resource.files)), ("text", text(resource.text))];
    let address = one_of(address, node, removed, notes);
    let origin = one_of(origin, node, removed, notes);
    check_root(root.as_deref(), roots, notes);
    let (variables, globs) = arguments(&table, "variables", notes);
    let icons = icons(&table, notes);
    let access = access(&table, notes);

    let (key, uri) = address?;
    let is_template = key == "uri-template";
    // Both keys store their span under `uri`.
    let uri_span = span(key, notes);
    notes.spans.insert("uri".to_owned(), uri_span);
    let content = content(origin?, root, notes)?;
    if !check(is_template, &uri, &content, notes) {
        return None;
    }
    let spans = std::mem::take(&mut notes.spans).into();
    Some(ResourceDraft {
        uri,
        name: text(resource.name),
        title: text(resource.title),
        description: text(resource.description),
        mime_type: resource.mime_type,
        icons,
        annotations: Annotations {
            audience: audience(&resource.audience.0),
            priority: resource.priority,
            last_modified: None,
        },
        variables,
        globs,
        content,
        access,
        spans,
    })
}

fn span(key: &str, notes: &Notes<'_>) -> Range<usize> {
    notes.spans.get(key).cloned().unwrap_or_default()
}

/// Returns the single key among several that is present, with its value; reports none or two. A key that was removed
/// because of a mistake counts as present.
fn one_of<const N: usize>(
    keys: [(&'static str, Option<String>); N],
    table: &Node,
    removed: &[RemovedKey],
    notes: &mut Notes<'_>,
) -> Option<(&'static str, String)> {
    let names = keys.each_ref().map(|(key, _)| *key);
    let mut present = keys.into_iter().filter_map(|(key, value)| Some((key, value?)));
    match (present.next(), present.next()) {
        (first, None) if is_removed(&names, table, removed) => first,
        (Some(first), None) => Some(first),
        (None, _) => {
            let message = format!("a resource must have one of {}", list(names));
            notes.error(Code::MissingKey, &table.start(), message);
            None
        }
        (Some((first, _)), Some((second, _))) => {
            let message = format!("a resource cannot have both `{first}` and `{second}`");
            let span = span(second, notes);
            notes.error(Code::InvalidValue, &span, message);
            None
        }
    }
}

fn is_removed(keys: &[&str], table: &Node, removed: &[RemovedKey]) -> bool {
    removed.iter().any(|(key, place)| *place == table.span && keys.contains(&&**key))
}

fn content((key, written): (&str, String), root: Option<String>, notes: &mut Notes<'_>) -> Option<ContentDraft> {
    if key == "text" {
        if root.is_some() {
            let root_span = span("root", notes);
            notes.warning(Code::NoEffect, &root_span, "`root` has no effect together with `text`");
        }
        return Some(ContentDraft::Text(written));
    }
    let span = span(key, notes);
    if written.starts_with('/') || written.split('/').any(|part| part == "..") {
        let message = format!("`{key}`: expected a path inside the library or its root");
        notes.error(Code::Outside, &span, message).help =
            Some("declare the folder under [roots], select it with `root`, and use a path relative to it".to_owned());
        return None;
    }
    if key == "files" {
        if let Err(error) = Glob::path(&written) {
            notes.error(Code::InvalidValue, &span, format!("invalid path pattern {error}"));
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
fn check(is_template: bool, uri: &str, content: &ContentDraft, notes: &mut Notes<'_>) -> bool {
    let (uri_span, file_span) = (span("uri", notes), span("file", notes));
    let fault = match content {
        ContentDraft::Files { .. } if is_template => {
            Some((uri_span, "with `files`, every file has a URI of its own", "use `uri` with `{+path}`"))
        }
        ContentDraft::Files { .. } if !uri.contains("{+path}") && !uri.contains("{path}") => {
            Some((uri_span, "with `files`, the URI must contain the file's path", "add `{+path}` to it"))
        }
        ContentDraft::Files { .. } => None,
        _ if !is_template && uri.contains('{') => {
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

fn uri_variables(uri: &str) -> impl Iterator<Item = &str> {
    let expressions = uri.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    expressions.flat_map(|expression| expression.trim_start_matches(['+', '/', '?', '&']).split(','))
}

/// Reports a root that is not declared.
fn check_root(name: Option<&str>, roots: &BTreeMap<String, DeclaredRoot>, notes: &mut Notes<'_>) {
    let Some(name) = name.filter(|name| !roots.contains_key(*name)) else { return };
    let root_span = span("root", notes);
    let near = nearest(name, roots.keys().map(String::as_str));
    notes.error(Code::InvalidValue, &root_span, format!("unknown root `{name}`")).help = Some(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("declare it under [roots], as in `{name} = \"../{name}\"`"),
    });
}

/// Returns each role once.
fn audience(written: &[Audience]) -> Vec<Role> {
    let mut audience = Vec::new();
    for Audience(role) in written {
        if !audience.contains(role) {
            audience.push(*role);
        }
    }
    audience
}
