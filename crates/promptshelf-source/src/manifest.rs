//! The manifest of a library, `promptshelf.toml`.
//!
//! Unlike a prompt file, a manifest with mistakes is rejected as a whole: a misspelled limit or root must not be ignored.
//! Its sections are serde types ([`sections`]), read by [`SettingsFile`] as the operator's `server.toml` is.

mod resources;
mod root;
mod sections;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use promptshelf_core::{About, AccessRule, Budget, Code, Diagnostic, Icon, Policy, SourceText, Spans};

use self::sections::{Arguments, LimitsSection, List, Server};
pub(crate) use self::{
    resources::{ContentDraft, ResourceDraft},
    root::DeclaredRoot,
    sections::Sections,
};
use crate::{
    format::{Node, Notes, Table, icons},
    settings::{AsWritten, Bounded, RemovedKey, SettingsFile},
};

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
        let resources = resources::read(resources.0, root, &roots, removed, notes);
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
