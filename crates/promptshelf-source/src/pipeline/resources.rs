//! Resource declarations of the manifest, resolved to resource definitions.

use std::{
    collections::{BTreeMap, HashSet},
    io,
    sync::Arc,
};

use promptshelf_core::{
    Access, AccessRule, Code, Diagnostic, LibraryFile, Location, Origin, ResourceContent, ResourceDefinition,
    Variables, expand_uri_template, is_interrupted,
};

use super::{
    assemble::{IconResolver, LibraryContext},
    globs::GlobIndex,
};
use crate::{
    format::access::rule_for,
    manifest::{ContentDraft, Manifest, ResourceDraft},
    media_type,
    resource::{FileReader, PathTemplate},
    root_grants::RootError,
    tree::FileState,
};

/// The largest number of resources of `files`, which are one for each file of each declaration: a file may have a few.
fn most_from_globs(files: &BTreeMap<String, Arc<LibraryFile>>) -> usize {
    20_000.max(2 * files.len())
}

/// The most comparisons of a resource template with a file: access rules look for each file among the URIs of all templates.
const MAX_READINGS: usize = 1_000_000;

/// The number of resource templates that a library may have however many files it has.
const FEW_TEMPLATES: usize = 50;

fn most_templates(files: &BTreeMap<String, Arc<LibraryFile>>) -> usize {
    FEW_TEMPLATES.max(MAX_READINGS / files.len().max(1))
}

/// Returns the library files that the manifest declares as resources. A Markdown file that is declared as a resource
/// is not a prompt.
pub(super) fn declared<'m>(manifest: &'m Manifest, globs: &'m GlobIndex) -> HashSet<String> {
    let mut paths = HashSet::new();
    for draft in &manifest.resources {
        match &draft.content {
            ContentDraft::File { path, root: None } => paths.extend(path.as_fixed().map(str::to_owned)),
            ContentDraft::Files { glob, root: None } => {
                if let Ok(matches) = globs.matches(None, glob) {
                    paths.extend(matches.paths.iter().cloned());
                }
            }
            _ => {}
        }
    }
    paths
}

pub(super) fn definitions(
    library: &LibraryContext<'_>,
    files: &BTreeMap<String, Arc<LibraryFile>>,
    icons: &IconResolver<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Vec<ResourceDefinition>, Vec<AccessRule>) {
    let manifest = library.manifest;
    for (name, root) in &manifest.roots {
        let location = Location::new(&manifest.source, root.span.clone());
        match library.roots.open(&root.path) {
            Ok(_) => {}
            Err(RootError::Unreadable(error)) => {
                let message = match error.kind() {
                    io::ErrorKind::NotFound => format!("cannot read the root `{name}`: the folder does not exist"),
                    _ => format!("cannot read the root `{name}`: {error}"),
                };
                diagnostics.push(Diagnostic::error(Code::Unreadable, location, message));
            }
            Err(RootError::OutsideMemory) => {
                let message = format!("the root `{name}` leads out of the library, and no folder is around it");
                let help = "move it into the library, or use an absolute path and have the operator write it in `roots` under [grants] in server.toml";
                diagnostics.push(Diagnostic::error(Code::UngrantedRoot, location, message).help(help));
            }
            Err(RootError::NotGranted(path)) => {
                let path = path.display();
                let message =
                    format!("the root `{name}` is outside of the library, and the operator has not granted it");
                let help = format!(
                    "move it into the library, or have the operator write `roots = [\"{path}\"]` under [grants] in server.toml"
                );
                diagnostics.push(Diagnostic::error(Code::UngrantedRoot, location, message).help(help));
            }
        }
    }
    let (mut all, mut rules) = (Vec::new(), manifest.access.clone());
    let mut left = most_from_globs(files);
    let (mut templates, mut has_too_many) = (0, false);
    for draft in &manifest.resources {
        let first = all.len();
        templates += usize::from(draft.uri.contains('{') && !matches!(draft.content, ContentDraft::Files { .. }));
        if templates > most_templates(files) {
            rules.extend(draft.access.iter().map(|access| closed(access, manifest)));
            if has_too_many {
                continue;
            }
            has_too_many = true;
            let (most, count) = (most_templates(files), files.len());
            let message = format!(
                "there are more than {most} resources with a `uri-template`, the most for {count} files; the others are left out"
            );
            let help = "let one template with `{+path}` serve a folder, or keep fewer files in the library";
            let location = Location::new(&manifest.source, draft.spans.get("uri").unwrap_or_default());
            diagnostics.push(Diagnostic::error(Code::TooMany, location, message).help(help));
            continue;
        }
        let mut origin = Origin::new(Arc::clone(&manifest.source));
        origin.spans.clone_from(&draft.spans);
        let mut shape = ResourceDefinition {
            name: draft.name.clone().unwrap_or_default(),
            title: draft.title.clone(),
            description: draft.description.clone(),
            mime_type: draft.mime_type.clone(),
            icons: draft.icons.clone(),
            annotations: draft.annotations.clone(),
            variables: draft.variables.clone(),
            ..ResourceDefinition::from_source(&draft.uri, ResourceContent::Template(String::new()), origin)
        };
        let origin = shape.origin.clone();
        icons.resolve(&mut shape.icons, |part| origin.locate(part), diagnostics);
        if library.complete(&mut shape.variables, &draft.globs, &origin, diagnostics) {
            let is_whole = expand(library, draft, shape, files, (&mut all, &mut left), diagnostics);
            rules.extend(draft.access.iter().filter(|_| !is_whole).map(|access| closed(access, manifest)));
        }
        if let Some(access) = &draft.access {
            let uris = all[first..].iter().map(|each| each.uri.as_str());
            rules.extend((first < all.len()).then(|| rule_for(uris, access.clone(), origin.clone())));
        }
    }
    (all, rules)
}

/// Returns a rule that applies to the whole library: what is left out is under other names open to nobody else.
fn closed(access: &Access, manifest: &Manifest) -> AccessRule {
    let mut rule = AccessRule::new(access.clone(), Origin::new(Arc::clone(&manifest.source)));
    rule.folders.push(String::new());
    rule
}

/// Returns whether all resources of the declaration are there.
fn expand(
    library: &LibraryContext<'_>,
    draft: &ResourceDraft,
    mut shape: ResourceDefinition,
    files: &BTreeMap<String, Arc<LibraryFile>>,
    (all, left): (&mut Vec<ResourceDefinition>, &mut usize),
    diagnostics: &mut Vec<Diagnostic>,
) -> bool {
    let mut is_whole = true;
    match &draft.content {
        ContentDraft::Text(text) => {
            shape.content = ResourceContent::Template(text.clone());
            name(&mut shape, &draft.uri);
            all.push(shape);
        }
        ContentDraft::File { path, root } => {
            let fixed = path.as_fixed().filter(|_| !draft.uri.contains('{'));
            name(&mut shape, fixed.map_or(&*draft.uri, last_part));
            match fixed {
                Some(path) => one_file(library, path, root.as_deref(), &mut shape, files, diagnostics),
                None => shape.content = reader(library, path.clone(), root.as_deref(), &shape),
            }
            all.push(shape);
        }
        ContentDraft::Files { glob, root } => {
            let matches = library.globs.matches(root.as_deref(), glob);
            let paths = matches.map(|matches| matches.paths).unwrap_or_default();
            if paths.is_empty() {
                let location = shape.origin.locate("files");
                diagnostics.push(Diagnostic::warning(Code::MissingFile, location, format!("no file matches `{glob}`")));
            }
            if paths.len() > *left {
                is_whole = false;
                let message = format!(
                    "the `files` of all resources make more than {} resources; the others are left out",
                    most_from_globs(files)
                );
                let help = "let each file match one `files`, or declare a folder with a `uri-template`";
                diagnostics.push(Diagnostic::error(Code::TooMany, shape.origin.locate("files"), message).help(help));
            }
            for path in &*paths {
                if *left == 0 || is_interrupted() {
                    break;
                }
                *left -= 1;
                let mut each = shape.clone();
                let variables = Variables::from([("path".to_owned(), path.clone())]);
                let Some(uri) = expand_uri_template(&draft.uri, &variables) else { continue };
                each.uri = uri;
                name(&mut each, path);
                one_file(library, path, root.as_deref(), &mut each, files, diagnostics);
                all.push(each);
            }
        }
    }
    is_whole
}

/// Sets the name of a resource if its author did not.
fn name(shape: &mut ResourceDefinition, otherwise: &str) {
    if shape.name.is_empty() {
        shape.name = otherwise.to_owned();
    }
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Sets the content to a file with a fixed path: from memory if the library contains it, otherwise read on each
/// request.
fn one_file(
    library: &LibraryContext<'_>,
    path: &str,
    root: Option<&str>,
    shape: &mut ResourceDefinition,
    files: &BTreeMap<String, Arc<LibraryFile>>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    if root.is_none()
        && let Some(file) = files.get(path)
    {
        shape.annotations.last_modified = file.modified;
        shape.content = ResourceContent::LibraryFile(path.to_owned());
        return;
    }
    let state = match root.and_then(|name| library.manifest.roots.get(name)) {
        Some(declared) => library.roots.open(&declared.path).ok().and_then(|root| root.state(path).ok()),
        None => library.root.state(path).ok(),
    };
    match state {
        Some(state) => describe(shape, &state, path),
        // Without a root the path can only mean a library file; the check reports the missing file.
        None if root.is_none() => {
            shape.content = ResourceContent::LibraryFile(path.to_owned());
            return;
        }
        None => {
            let location = shape.origin.locate("file");
            let message = format!("the root `{}` has no file `{path}` yet", root.unwrap_or_default());
            diagnostics.push(Diagnostic::warning(Code::MissingFile, location, message));
        }
    }
    shape.content = reader(library, PathTemplate::fixed(path), root, shape);
}

fn describe(shape: &mut ResourceDefinition, state: &FileState, path: &str) {
    shape.size = Some(state.len());
    shape.annotations.last_modified = state.modified();
    if shape.mime_type.is_none() {
        shape.mime_type = media_type::from_name(path);
    }
}

fn reader(
    library: &LibraryContext<'_>,
    path: PathTemplate,
    root: Option<&str>,
    shape: &ResourceDefinition,
) -> ResourceContent {
    let declared = root.and_then(|name| library.manifest.roots.get(name));
    let folder = match root {
        Some(name) => library.folders.get(name).cloned().unwrap_or_default(),
        None => library.places.absolute(""),
    };
    ResourceContent::Reader(Arc::new(FileReader {
        grants: library.roots.clone(),
        root: declared.map(|root| root.path.clone()),
        folder,
        places: Arc::clone(&library.places),
        path,
        limit: library.manifest.limits.resource_bytes,
        mime_type: shape.mime_type.clone(),
    }))
}
