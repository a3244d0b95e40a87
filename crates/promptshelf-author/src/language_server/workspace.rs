//! One library as an editor sees it: the files, with what is not saved in them,
//! checked anew after every change.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use gen_lsp_types as lsp;
use promptshelf_core::{Catalog, Definitions, Diagnostic, PromptDefinition, Severity, SourceText, check};
use promptshelf_source::{Directory, ForeignWords, Snapshot, Source, syntax::LIBRARY_FILE};

use super::{position, schema_query};
use crate::review;

/// The JSON Schemas by which keys and values are completed.
#[derive(Clone, Debug)]
pub(super) struct Schemas {
    pub(super) prompt: serde_json::Value,
    pub(super) library: serde_json::Value,
}

pub(super) struct Workspace {
    folder: PathBuf,
    source: Directory,
    /// Prompts as they are written now.
    prompts: Vec<Arc<PromptDefinition>>,
    /// Texts to include, by path.
    partials: BTreeMap<String, Arc<SourceText>>,
    /// Prompts as they were last good.
    catalog: Catalog,
    /// Files whose mistakes the editor has been told of.
    told: BTreeSet<String>,
    /// What prompt files and the manifest can hold.
    schemas: Schemas,
}

impl Workspace {
    pub(super) fn open(folder: PathBuf, schemas: Schemas) -> Workspace {
        let source = Directory::lenient(&folder);
        Workspace {
            folder,
            source,
            prompts: Vec::new(),
            partials: BTreeMap::new(),
            catalog: Catalog::default(),
            told: BTreeSet::new(),
            schemas,
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn set_unsaved(&self, path: &str, text: Option<&str>) {
        self.source.set_unsaved(path, text);
    }

    pub(super) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The URI of a file.
    pub(super) fn uri(&self, path: &str) -> String {
        position::uri_of(&self.folder.join(path))
    }

    /// Paths of texts that can be included.
    pub(super) fn partials(&self) -> impl Iterator<Item = &Arc<SourceText>> {
        self.partials.values()
    }

    /// The prompt that a file defines; the last good one while it is broken.
    pub(super) fn definition(&self, path: &str) -> Option<&PromptDefinition> {
        let now = self.prompts.iter().find(|prompt| prompt.origin.source.path == path).map(|prompt| &**prompt);
        now.or_else(|| self.catalog.prompts().iter().find(|it| it.source().path == path).map(|it| it.definition()))
    }

    /// The prompts in whose templates a file's text stands: its own, or those
    /// that include it.
    pub(super) fn users(&self, path: &str) -> Vec<&PromptDefinition> {
        match self.definition(path) {
            Some(own) => vec![own],
            None => {
                let uses = |prompt: &&Arc<promptshelf_core::Prompt>| prompt.includes().any(|it| it.path == path);
                self.catalog.prompts().iter().filter(uses).map(|prompt| prompt.definition()).collect()
            }
        }
    }

    /// The keys that can stand under others in a file, with what each is for.
    pub(super) fn keys(&self, path: &str, within: &[&str]) -> Vec<(String, String)> {
        let owned = |(key, about): (&str, &str)| (key.to_owned(), about.to_owned());
        match ForeignWords::of(path) {
            Some(words) if within.is_empty() => words.keys.iter().map(|key| owned((*key, ""))).collect(),
            Some(_) => Vec::new(),
            None => schema_query::keys(self.schema(path), within).into_iter().map(owned).collect(),
        }
    }

    /// The words that can stand behind a key.
    pub(super) fn values(&self, path: &str, key: &[&str]) -> Vec<String> {
        match ForeignWords::of(path) {
            Some(_) => Vec::new(),
            None => schema_query::values(self.schema(path), key).into_iter().map(str::to_owned).collect(),
        }
    }

    fn schema(&self, path: &str) -> &serde_json::Value {
        if path == LIBRARY_FILE { &self.schemas.library } else { &self.schemas.prompt }
    }

    /// Reads and checks everything. Gives what is wrong, for each file of which
    /// there is something to tell, or was the last time.
    pub(super) fn check(&mut self) -> BTreeMap<String, Vec<lsp::Diagnostic>> {
        let read = self.source.read(None).and_then(|reading| reading.map(Snapshot::into_definitions).transpose());
        let diagnostics = match read {
            Ok(Some(definitions)) => self.take(definitions),
            Ok(None) => return BTreeMap::new(),
            Err(error) => {
                tracing::warn!("{error}");
                error.diagnostics().to_vec()
            }
        };
        let mut by_file: BTreeMap<String, Vec<lsp::Diagnostic>> =
            std::mem::take(&mut self.told).into_iter().map(|uri| (uri, Vec::new())).collect();
        for found in &diagnostics {
            let uri = self.uri(shown(&found.location.source.path));
            self.told.insert(uri.clone());
            by_file.entry(uri).or_default().push(self.to_lsp(found));
        }
        by_file
    }

    fn take(&mut self, definitions: Definitions) -> Vec<Diagnostic> {
        let drafts = definitions.broken.iter().filter_map(|broken| broken.draft.as_ref());
        self.prompts = definitions.prompts.iter().chain(drafts).cloned().collect();
        self.partials.clone_from(&definitions.partials);
        let checked = check(definitions, Some(&self.catalog));
        self.catalog = checked.catalog;
        let errors = checked.diagnostics.iter().filter(|found| found.is_error());
        let broken: BTreeSet<&str> = errors.map(|found| &*found.location.source.path).collect();
        let mut found = checked.diagnostics.clone();
        // Of a broken prompt the last good one is still there, and its places are no longer right.
        let review = review(&self.catalog, &checked.diagnostics).into_iter();
        found.extend(review.filter(|found| !broken.contains(&*found.location.source.path)));
        found
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
            related_information: (!found.related.is_empty()).then(|| related.collect()),
            ..lsp::Diagnostic::default()
        }
    }
}

/// What concerns the whole folder is told at the file that speaks for it.
fn shown(path: &str) -> &str {
    if path == "." { LIBRARY_FILE } else { path }
}
