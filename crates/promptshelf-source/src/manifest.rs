//! The manifest of a library, `promptshelf.toml`.
//!
//! Unlike a prompt file, a manifest with mistakes is rejected as a whole: a misspelled limit or root must not be ignored.

mod resources;
mod root;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use promptshelf_core::{About, AccessRule, Budget, Code, Diagnostic, Icon, Policy, Severity, SourceText, Spans};

pub(crate) use self::{
    resources::{ContentDraft, ResourceDraft},
    root::DeclaredRoot,
};
use crate::format::{
    ICON, Node, Notes, Table, access, arguments, icons,
    keys::{Holds, Keys, key, keys},
    toml,
};

/// A parsed manifest.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) source: Arc<SourceText>,
    pub(crate) about: About,
    pub(crate) policy: Policy,
    pub(crate) limits: Limits,
    pub(crate) roots: BTreeMap<String, DeclaredRoot>,
    pub(crate) resources: Vec<ResourceDraft>,
    pub(crate) access: Vec<AccessRule>,
    /// The spans of the server's icons.
    pub(crate) icon_spans: Spans,
    /// The mistakes and warnings in it.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Limits on reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The largest library file, in bytes.
    pub(crate) file_bytes: u64,
    /// The largest total size of all files, in bytes.
    pub(crate) library_bytes: u64,
    /// The largest number of files.
    pub(crate) files: usize,
    /// The largest resource that is read on request, in bytes.
    pub(crate) resource_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { file_bytes: 4 << 20, library_bytes: 256 << 20, files: 200_000, resource_bytes: 16 << 20 }
    }
}

/// The sections of the file.
pub(crate) const SECTIONS: Keys = keys(&[
    key("server", Holds::Table(&SERVER), "The name and description of the server."),
    key("list", Holds::Table(&LIST), "The pages and lifetime of lists."),
    key("limits", Holds::Table(&LIMITS), "Limits on reading and rendering."),
    key("arguments", Holds::Table(&ARGUMENTS), "Defaults for the arguments of all prompts."),
    key("roots", Holds::Pairs, "Folders that resources and completion may read, by name."),
    key("access", Holds::Tables(&access::RULE), "Access rules."),
    key("resources", Holds::Tables(&resources::KEYS), "Resources that clients can read and prompts can attach."),
]);

const SERVER: Keys = keys(&[
    key("name", Holds::Text, "The identifier."),
    key("title", Holds::Text, "The display name."),
    key("version", Holds::Text, "The library's version."),
    key("description", Holds::Text, "A description of the library."),
    key("website-url", Holds::Text, "A web page about the library."),
    key("instructions", Holds::Text, "Instructions for the model about the use of this server."),
    key("icons", Holds::TextsOrTables(&ICON), "Icons."),
]);

const LIST: Keys = keys(&[
    key(
        "page-size",
        Holds::Count(1),
        "The number of prompts or resources on a page; many clients read only the first page.",
    ),
    key("ttl", Holds::Count(0), "The seconds for which clients may reuse a list."),
]);

const ARGUMENTS: Keys = keys(&[arguments::INVISIBLE]);

const LIMITS: Keys = keys(&[
    key("file-bytes", Holds::Count(1), "The largest library file, in bytes."),
    key("library-bytes", Holds::Count(1), "The largest total size of all files, in bytes."),
    key("files", Holds::Count(1), "The largest number of files."),
    key("resource-bytes", Holds::Count(1), "The largest resource that is read on request, in bytes."),
    key("value-bytes", Holds::Count(1), "The largest value of an argument, in bytes."),
    key("output-bytes", Holds::Count(1), "The largest rendered text of a prompt, in bytes."),
    key("attachment-bytes", Holds::Count(1), "The largest total size of a prompt's attachments, in bytes."),
    key("messages", Holds::Count(1), "The largest number of messages of a prompt."),
    key("fuel", Holds::Count(1), "The largest number of steps of the template engine."),
    key("include-depth", Holds::Count(1), "The largest depth of nested partials."),
]);

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

    /// Parses a manifest.
    ///
    /// # Errors
    ///
    /// All mistakes and warnings, if there is at least one mistake.
    pub(crate) fn parse(source: Arc<SourceText>) -> Result<Manifest, Vec<Diagnostic>> {
        let manifest = Manifest::understood(source);
        if manifest.diagnostics.iter().any(Diagnostic::is_error) {
            return Err(manifest.diagnostics);
        }
        Ok(manifest)
    }

    /// Parses the valid parts of a manifest: enough to check the rest of the library, but not to serve it.
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

/// Returns a section, and reports its unknown keys. Its spans are not stored.
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
            notes
                .error(Code::InvalidValue, &node.span, format!("`website-url`: expected a web address, found `{url}`"))
                .help = Some("start it with `https://`".to_owned());
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

/// Converts a limit; one beyond the address space is unlimited.
fn size_of(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
