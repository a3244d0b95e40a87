//! `promptshelf.toml`: what a library says about itself.
//!
//! Unlike a prompt file, the manifest is understood wholly or not at all: a
//! bound or a root that is spelled wrongly must not be passed over.

mod resources;

use std::{collections::BTreeMap, ops::Range, path::PathBuf, sync::Arc, time::Duration};

use promptshelf_core::{About, AccessRule, Budget, Code, Diagnostic, Icon, Policy, Severity, SourceText, Spans};

pub(crate) use self::resources::{ContentDraft, ResourceDraft};
use crate::format::{
    ICON, Node, Notes, Table, access, arguments, icons,
    keys::{Holds, Keys, key, keys},
    toml,
};

/// A manifest that has been understood.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) source: Arc<SourceText>,
    pub(crate) about: About,
    pub(crate) policy: Policy,
    pub(crate) limits: Limits,
    pub(crate) roots: BTreeMap<String, DeclaredRoot>,
    pub(crate) resources: Vec<ResourceDraft>,
    pub(crate) access: Vec<AccessRule>,
    /// Where the server's icons stand.
    pub(crate) icon_spans: Spans,
    /// What is wrong with it.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Bounds on reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The most bytes of one file of the library.
    pub(crate) file_bytes: u64,
    /// The most bytes of all files together.
    pub(crate) library_bytes: u64,
    /// The most files.
    pub(crate) files: usize,
    /// The most bytes of a resource that is read when it is asked for.
    pub(crate) resource_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { file_bytes: 4 << 20, library_bytes: 256 << 20, files: 200_000, resource_bytes: 16 << 20 }
    }
}

/// A folder that resources and completion may read from.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredRoot {
    /// As it is written: relative to the library, or absolute.
    pub(crate) path: PathBuf,
    pub(crate) span: Range<usize>,
}

/// The whole file.
pub(crate) const SECTIONS: Keys = keys(&[
    key("server", Holds::Table(&SERVER), "What the server says of itself."),
    key("list", Holds::Table(&LIST), "How prompts and resources are listed."),
    key("limits", Holds::Table(&LIMITS), "Bounds of reading and rendering."),
    key("arguments", Holds::Table(&ARGUMENTS), "What holds for the arguments of every prompt."),
    key("roots", Holds::Pairs, "Folders that resources and completion may read from, by name."),
    key("access", Holds::Tables(&access::RULE), "Who may see and use what."),
    key("resources", Holds::Tables(&resources::KEYS), "What clients can read and prompts can attach."),
]);

const SERVER: Keys = keys(&[
    key("name", Holds::Text, "The programmatic name."),
    key("title", Holds::Text, "The name for people."),
    key("version", Holds::Text, "The library's version."),
    key("description", Holds::Text, "What the library is."),
    key("website-url", Holds::Text, "Where to read about it."),
    key("instructions", Holds::Text, "How a client should use the server, for the model to read."),
    key("icons", Holds::TextsOrTables(&ICON), "Pictures for it."),
]);

const LIST: Keys = keys(&[
    key("page-size", Holds::Count(1), "Prompts or resources a page; many clients read the first page only."),
    key("ttl", Holds::Count(0), "For how many seconds clients may reuse a list."),
]);

const ARGUMENTS: Keys = keys(&[arguments::INVISIBLE]);

const LIMITS: Keys = keys(&[
    key("file-bytes", Holds::Count(1), "The most bytes of one file of the library."),
    key("library-bytes", Holds::Count(1), "The most bytes of all files together."),
    key("files", Holds::Count(1), "The most files."),
    key("resource-bytes", Holds::Count(1), "The most bytes of a resource that is read when it is asked for."),
    key("value-bytes", Holds::Count(1), "The most bytes of one value."),
    key("output-bytes", Holds::Count(1), "The most bytes of text that a prompt comes out as."),
    key("attachment-bytes", Holds::Count(1), "The most bytes of attachments of a prompt."),
    key("messages", Holds::Count(1), "The most messages of a prompt."),
    key("fuel", Holds::Count(1), "The most steps of the template engine."),
    key("include-depth", Holds::Count(1), "How deep partials may include each other."),
]);

impl Manifest {
    /// What holds for a library without a manifest.
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

    /// Understands a manifest.
    ///
    /// # Errors
    ///
    /// Every mistake in it, and what is only worth a warning besides.
    pub(crate) fn parse(source: Arc<SourceText>) -> Result<Manifest, Vec<Diagnostic>> {
        let manifest = Manifest::understood(source);
        if manifest.diagnostics.iter().any(Diagnostic::is_error) {
            return Err(manifest.diagnostics);
        }
        Ok(manifest)
    }

    /// As much of a manifest as can be understood: enough to look at the rest
    /// of the library with, and never enough to serve it.
    pub(crate) fn understood(source: Arc<SourceText>) -> Manifest {
        let mut notes = Notes::new(&source);
        let mut root = toml::parse(&mut notes);
        refuse_operator_settings(&mut root, &mut notes);
        let mut manifest = Manifest::none();
        if let Some(table) = Table::of(&root, "", "the file", &mut notes) {
            table.expect(&SECTIONS, Severity::Error, "at the top of promptshelf.toml", &mut notes);
            manifest.read(&table, &mut notes);
        }
        let Notes { mut diagnostics, .. } = notes;
        diagnostics.sort_by_key(|found| found.location.span().start);
        Manifest { source, diagnostics, ..manifest }
    }

    fn read(&mut self, table: &Table<'_, '_>, notes: &mut Notes<'_>) {
        if let Some(node) = table.node("server", notes) {
            (self.about, self.icon_spans) = server(node, notes);
        }
        if let Some(table) = section(table, "list", &LIST, notes) {
            if let Some(size) = table.count("page-size", 1, notes) {
                self.policy.page_size = size_of(size);
            }
            if let Some(seconds) = table.count("ttl", 0, notes) {
                self.policy.ttl = Duration::from_secs(seconds);
            }
        }
        if let Some(table) = section(table, "limits", &LIMITS, notes) {
            self.limits = limits(&table, notes);
            self.policy.budget = budget(&table, notes);
            if let Some(bytes) = table.count("value-bytes", 1, notes) {
                self.policy.value_bytes = size_of(bytes);
            }
        }
        if let Some(table) = section(table, "arguments", &ARGUMENTS, notes)
            && let Some(policy) = arguments::invisible(&table, notes)
        {
            self.policy.invisible = policy;
        }
        if let Some(node) = table.node("roots", notes)
            && let Some(table) = Table::of(node, "", "[roots]", notes)
        {
            for entry in table.entries() {
                if let Some(path) = table.text(&entry.key, notes) {
                    let root = DeclaredRoot { path: path.into(), span: entry.node.span.clone() };
                    self.roots.insert(entry.key.clone(), root);
                }
            }
        }
        if let Some(node) = table.node("resources", notes) {
            self.resources = resources::read(node, &self.roots, notes);
        }
        if let Some(node) = table.node("access", notes) {
            self.access = access::rules(node, notes);
        }
    }
}

/// Sections of the operator's `server.toml`.
const OPERATOR_SECTIONS: [&str; 8] = ["http", "auth", "tls", "proxy", "audit", "metrics", "traces", "grants"];

/// Keys of `[limits]` that bound callers, and belong in `server.toml` too.
const OPERATOR_LIMITS: [&str; 5] = [
    "requests-per-minute",
    "completions-per-minute",
    "requests-per-minute-per-address",
    "concurrent-requests",
    "subscriptions",
];

/// Reports settings that authors must not make, and removes them.
fn refuse_operator_settings(root: &mut Node, notes: &mut Notes<'_>) {
    const HELP: &str =
        "move it to server.toml, the operator's file: `serve --config FILE` or ~/.config/promptshelf/server.toml";
    for section in OPERATOR_SECTIONS {
        if let Some(span) = root.take(&[section]) {
            let message = format!("[{section}] belongs in server.toml");
            notes.error(Code::OperatorSetting, &span, message).help = Some(HELP.to_owned());
        }
    }
    for key in OPERATOR_LIMITS {
        if let Some(span) = root.take(&["limits", key]) {
            let message = format!("`{key}` in [limits] belongs in server.toml");
            notes.error(Code::OperatorSetting, &span, message).help = Some(HELP.to_owned());
        }
    }
}

/// A section with its keys checked. What is filed about it is of no use later.
fn section<'n>(table: &Table<'n, '_>, name: &str, known: &Keys, notes: &mut Notes<'_>) -> Option<Table<'n, 'static>> {
    let node = table.node(name, notes)?;
    let place = format!("in [{name}]");
    let table = Table::of(node, "", format_args!("[{name}]"), notes)?;
    table.expect(known, Severity::Error, &place, notes);
    Some(table)
}

fn server(node: &Node, notes: &mut Notes<'_>) -> (About, Spans) {
    let Some(table) = Table::of(node, "", "[server]", notes) else { return Default::default() };
    table.expect(&SERVER, Severity::Error, "in [server]", notes);
    let around = std::mem::take(&mut notes.spans);
    let icons: Vec<Icon> = icons(&table, notes);
    let spans = std::mem::replace(&mut notes.spans, around).into();
    let website_url = table.text("website-url", notes).filter(|url| {
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        if !is_web && let Some(node) = table.node("website-url", notes) {
            notes.error(Code::InvalidValue, &node.span, format!("`{url}` is no web address")).help =
                Some("begin it with `https://`".to_owned());
        }
        is_web
    });
    let about = About {
        name: table.text("name", notes),
        title: table.text("title", notes),
        version: table.text("version", notes),
        description: table.text("description", notes),
        website_url,
        icons,
        instructions: table.text("instructions", notes),
    };
    (about, spans)
}

fn limits(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> Limits {
    let default = Limits::default();
    let mut count = |key| table.count(key, 1, notes);
    Limits {
        file_bytes: count("file-bytes").unwrap_or(default.file_bytes),
        library_bytes: count("library-bytes").unwrap_or(default.library_bytes),
        files: count("files").map_or(default.files, size_of),
        resource_bytes: count("resource-bytes").unwrap_or(default.resource_bytes),
    }
}

fn budget(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> Budget {
    let default = Budget::default();
    let mut count = |key| table.count(key, 1, notes);
    Budget {
        fuel: count("fuel").unwrap_or(default.fuel),
        output_bytes: count("output-bytes").map_or(default.output_bytes, size_of),
        attachment_bytes: count("attachment-bytes").map_or(default.attachment_bytes, size_of),
        messages: count("messages").map_or(default.messages, size_of),
        include_depth: count("include-depth").map_or(default.include_depth, size_of),
    }
}

/// What is larger than the machine can count is no bound at all.
fn size_of(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
