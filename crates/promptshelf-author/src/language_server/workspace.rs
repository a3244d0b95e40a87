//! One library in an editor: its files, replaced by their unsaved versions, checked after every change.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use gen_lsp_types as lsp;
use promptshelf_core::{
    Catalog, Code, Definitions, Diagnostic, Location, PromptDefinition, Severity, SourceText, check,
};
use promptshelf_source::{Files, ForeignSyntax, Source as _, SourceError, syntax::LIBRARY_FILE};

use super::{position, schema_query};
use crate::review::Reviewer;

/// Settings of every workspace, among them the JSON WorkspaceOptions by which keys and values are completed.
#[derive(Clone, Debug)]
pub(super) struct WorkspaceOptions {
    pub(super) prompt: serde_json::Value,
    pub(super) library: serde_json::Value,
    pub(super) granted_roots: Vec<PathBuf>,
}

pub(super) struct Workspace {
    folder: PathBuf,
    files: Files,
    prompts: Vec<Arc<PromptDefinition>>,
    partials: BTreeMap<String, Arc<SourceText>>,
    catalog: Catalog,
    published: BTreeSet<String>,
    /// The schemas of prompt files and of `promptshelf.toml`.
    schemas: WorkspaceOptions,
    reviewer: Reviewer,
}

impl Workspace {
    pub(super) fn open(folder: PathBuf, schemas: WorkspaceOptions) -> Workspace {
        let files = Files::folder(&folder).lenient();
        files.grant_roots(schemas.granted_roots.iter().cloned());
        Workspace::with(folder, files, schemas)
    }

    /// Creates a workspace of a lenient source. `folder` is that of its URIs.
    pub(super) fn with(folder: PathBuf, files: Files, schemas: WorkspaceOptions) -> Workspace {
        Workspace {
            folder,
            files,
            prompts: Vec::new(),
            partials: BTreeMap::new(),
            catalog: Catalog::default(),
            published: BTreeSet::new(),
            schemas,
            reviewer: Reviewer::default(),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn files(&self) -> &Files {
        &self.files
    }

    pub(super) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(super) fn uri(&self, path: &str) -> String {
        position::uri_of(&self.folder.join(path))
    }

    pub(super) fn partials(&self) -> impl Iterator<Item = &Arc<SourceText>> {
        self.partials.values()
    }

    /// Returns the prompt of a file; its last valid version while the file has errors.
    pub(super) fn definition(&self, path: &str) -> Option<&PromptDefinition> {
        let now = self.prompts.iter().find(|prompt| prompt.origin.source.path == path).map(|prompt| &**prompt);
        now.or_else(|| self.catalog.prompts().iter().find(|it| it.source().path == path).map(|it| it.definition()))
    }

    /// Returns the prompts whose templates contain a file's text: its own, or those that include it.
    pub(super) fn users(&self, path: &str) -> Vec<&PromptDefinition> {
        match self.definition(path) {
            Some(own) => vec![own],
            None => {
                let uses = |prompt: &&Arc<promptshelf_core::Prompt>| prompt.includes().any(|it| it.path == path);
                self.catalog.prompts().iter().filter(uses).map(|prompt| prompt.definition()).collect()
            }
        }
    }

    pub(super) fn keys(&self, path: &str, within: &[&str]) -> Vec<(String, String)> {
        let owned = |(key, about): (&str, &str)| (key.to_owned(), about.to_owned());
        match ForeignSyntax::for_path(path) {
            Some(words) if within.is_empty() => words.keys.iter().map(|key| owned((*key, ""))).collect(),
            Some(_) => Vec::new(),
            None => schema_query::keys(self.schema(path), within).into_iter().map(owned).collect(),
        }
    }

    pub(super) fn values(&self, path: &str, key: &[&str]) -> Vec<String> {
        match ForeignSyntax::for_path(path) {
            Some(_) => Vec::new(),
            None => schema_query::values(self.schema(path), key).into_iter().map(str::to_owned).collect(),
        }
    }

    fn schema(&self, path: &str) -> &serde_json::Value {
        if path == LIBRARY_FILE { &self.schemas.library } else { &self.schemas.prompt }
    }

    /// Reads and checks the library. Returns the diagnostics of each file that has some, or had some the last time.
    pub(super) fn check(&mut self) -> BTreeMap<String, Vec<lsp::Diagnostic>> {
        let diagnostics = self.diagnose().unwrap_or_else(|error| {
            tracing::warn!("{error}");
            error.diagnostics().to_vec()
        });
        let mut by_file: BTreeMap<String, Vec<lsp::Diagnostic>> =
            std::mem::take(&mut self.published).into_iter().map(|uri| (uri, Vec::new())).collect();
        for found in &diagnostics {
            let uri = self.uri(shown(&found.location.source.path));
            self.published.insert(uri.clone());
            by_file.entry(uri).or_default().push(self.to_lsp(found));
        }
        by_file
    }

    pub(super) fn diagnose(&mut self) -> Result<Vec<Diagnostic>, SourceError> {
        let definitions = self.files.read()?.into_definitions();
        Ok(self.take(definitions))
    }

    /// Returns the diagnostics of one file and of `files` others, by path, at most `of_each` of each.
    pub(super) fn by_path(
        &self,
        diagnostics: &[Diagnostic],
        path: &str,
        (files, of_each): (usize, usize),
    ) -> BTreeMap<String, Vec<lsp::Diagnostic>> {
        let mut by_path: BTreeMap<&str, Vec<Cow<'_, Diagnostic>>> = BTreeMap::new();
        for found in diagnostics {
            by_path.entry(shown(&found.location.source.path)).or_default().push(Cow::Borrowed(found));
            if found.is_error() && self.partials.contains_key(&found.location.source.path) {
                // The prompts that it breaks show it as well, at their include.
                for (include, _) in &found.related {
                    by_path.entry(shown(&include.source.path)).or_default().push(Cow::Owned(seen_from(found, include)));
                }
            }
        }
        let chosen = by_path.into_iter().enumerate().filter(|(number, (file, _))| *number < files || *file == path);
        let converted = |(_, (file, found)): (usize, (&str, Vec<Cow<'_, Diagnostic>>))| {
            (file.to_owned(), found.into_iter().take(of_each).map(|found| self.to_lsp(&found)).collect())
        };
        chosen.map(converted).collect()
    }

    pub(super) fn set_catalog(&mut self, catalog: Catalog) {
        self.catalog = catalog;
    }

    fn take(&mut self, definitions: Definitions) -> Vec<Diagnostic> {
        let drafts = definitions.broken.iter().filter_map(|broken| broken.draft.as_ref());
        self.prompts = definitions.prompts.iter().chain(drafts).cloned().collect();
        self.partials.clone_from(&definitions.partials);
        let checked = check(definitions, Some(&self.catalog));
        self.catalog = checked.catalog;
        self.reviewer.findings(&self.catalog, &checked.diagnostics)
    }

    fn to_lsp(&self, found: &Diagnostic) -> lsp::Diagnostic {
        let message = match &found.help {
            Some(help) => format!("{}\n{help}", found.message),
            None => found.message.clone(),
        };
        let related = found.related.iter().map(|(location, label)| lsp::DiagnosticRelatedInformation {
            location: lsp::Location {
                uri: self.uri(shown(&location.source.path)).into(),
                range: position::range(&location.source.text, &location.span()),
            },
            message: label.clone(),
        });
        lsp::Diagnostic {
            range: position::range(&found.location.source.text, &found.location.span()),
            severity: Some(match found.severity {
                Severity::Error => lsp::DiagnosticSeverity::Error,
                Severity::Warning => lsp::DiagnosticSeverity::Warning,
                Severity::Hint => lsp::DiagnosticSeverity::Hint,
            }),
            code: Some(lsp::Code::String(found.code.as_str().to_owned())),
            source: Some("promptshelf".to_owned()),
            message: message.into(),
            tags: (found.code == Code::DeprecatedPrompt).then(|| vec![lsp::DiagnosticTag::Deprecated]),
            related_information: (!found.related.is_empty()).then(|| related.collect()),
            ..lsp::Diagnostic::default()
        }
    }
}

fn seen_from(found: &Diagnostic, include: &Location) -> Diagnostic {
    let (path, (line, _)) = (&found.location.source.path, found.location.line_column());
    let message = format!("in {path}, line {line}: {}", found.message);
    let related = vec![(found.location.clone(), "the error".to_owned())];
    Diagnostic { message, location: include.clone(), related, ..found.clone() }
}

/// Diagnostics of the whole folder are published at `promptshelf.toml`.
fn shown(path: &str) -> &str {
    if path == "." { LIBRARY_FILE } else { path }
}
