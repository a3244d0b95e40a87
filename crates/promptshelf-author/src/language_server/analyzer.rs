//! The language server's engine without its protocol: for editors that are not on the machine of the library.

use std::{collections::BTreeMap, path::PathBuf};

use gen_lsp_types::Position;
use promptshelf_core::{Catalog, Diagnostic, Location, Prompt, check};
use promptshelf_source::{Files, Fingerprint, MemoryTree, Source as _, SourceError};
use serde_json::{Value, json};

use super::{
    completion, hover,
    locate::cursor_at,
    position,
    workspace::{Workspace, WorkspaceOptions},
};
use crate::schema;

/// Analyses a library with the unsaved texts of an editor: diagnostics, completion and hover, as values of the Language
/// Server Protocol 3.17. URIs are `file:///` with the path in the library.
///
/// Each analysis begins with the saved library: nothing of the texts of an earlier one remains.
///
/// ```
/// use promptshelf_author::Analyzer;
/// use promptshelf_source::MemoryTree;
///
/// let tree: MemoryTree = [("hello.md", "Say {{ greting }}.\n")].into_iter().collect();
/// let mut analyzer = Analyzer::of_tree(tree);
/// let text = "---\ndescription: Greets\narguments:\n  - name: greeting\n---\nSay {{ gr }}.\n".to_owned();
/// let analysis = analyzer.analyze(&[("hello.md".to_owned(), text.clone())].into()).unwrap();
/// let found = &analysis.diagnostics()["hello.md"];
/// assert!(found.as_array().unwrap().iter().any(|found| found["code"] == "undeclared-argument"));
/// assert_eq!(analysis.completions("hello.md", &text, 5, 9)[0]["label"], "greeting");
/// ```
pub struct Analyzer {
    workspace: Workspace,
    /// The catalog of the saved files, and their fingerprint.
    saved: (Catalog, Option<Fingerprint>),
}

impl std::fmt::Debug for Analyzer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Analyzer")
    }
}

impl Analyzer {
    /// Creates an analyzer of the library in a folder, which is read again at each analysis. Files that have not changed
    /// are not parsed again. `granted_roots` are the folders outside of the library that its `[roots]` may point to.
    pub fn of_folder(folder: impl Into<PathBuf>, granted_roots: impl IntoIterator<Item = PathBuf>) -> Analyzer {
        let analyzer = Analyzer::with(Files::folder(folder));
        analyzer.grant_roots(granted_roots);
        analyzer
    }

    /// Creates an analyzer of files in memory.
    #[must_use]
    pub fn of_tree(tree: MemoryTree) -> Analyzer {
        Analyzer::with(Files::tree(tree))
    }

    fn with(files: Files) -> Analyzer {
        let (prompt, manifest) = (schema::prompt(), schema::library());
        let options = WorkspaceOptions { prompt, library: manifest, granted_roots: Vec::new() };
        // The server's folder is in no URI.
        let workspace = Workspace::with(PathBuf::from("/"), files.lenient(), options);
        Analyzer { workspace, saved: (Catalog::default(), None) }
    }

    /// Grants folders outside of the library, instead of those granted before: its `[roots]` may point to them or below
    /// them.
    pub fn grant_roots(&self, folders: impl IntoIterator<Item = PathBuf>) {
        self.workspace.files().grant_roots(folders);
    }

    /// Reads and checks the library with unsaved texts in place of its files, by path. Blocks while files are read.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if the library cannot be read at all.
    pub fn analyze(&mut self, texts: &BTreeMap<String, String>) -> Result<Analysis<'_>, SourceError> {
        self.read_saved()?;
        self.workspace.set_catalog(self.saved.0.clone());
        let files = self.workspace.files().clone();
        texts.iter().for_each(|(path, text)| files.set_unsaved(path, Some(text)));
        let found = self.workspace.diagnose();
        texts.keys().for_each(|path| files.set_unsaved(path, None));
        Ok(Analysis { found: found?, workspace: &self.workspace })
    }

    /// Replaces the saved files of a library in memory. Those that are the same as before are not parsed again.
    pub fn replace_tree(&mut self, tree: MemoryTree) {
        self.workspace.files().replace(tree);
        self.saved.1 = None;
    }

    /// Checks the saved files if they have changed: in a folder, their valid versions replace broken unsaved ones.
    fn read_saved(&mut self) -> Result<(), SourceError> {
        let files = self.workspace.files();
        if self.saved.1.is_some() && files.in_memory().is_some() {
            return Ok(());
        }
        let snapshot = files.read()?;
        let fingerprint = Some(snapshot.fingerprint());
        if self.saved.1 != fingerprint {
            self.saved = (check(snapshot.into_definitions(), Some(&self.saved.0)).catalog, fingerprint);
        }
        Ok(())
    }
}

/// The result of an analysis.
pub struct Analysis<'a> {
    workspace: &'a Workspace,
    found: Vec<Diagnostic>,
}

impl std::fmt::Debug for Analysis<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Analysis({} diagnostics)", self.found.len())
    }
}

impl Analysis<'_> {
    /// Returns the diagnostics (`Diagnostic[]`) of each file that has some, by path.
    #[must_use]
    pub fn diagnostics(&self) -> BTreeMap<String, Value> {
        self.diagnostics_around("", usize::MAX, usize::MAX)
    }

    /// Returns the diagnostics like [`diagnostics`](Analysis::diagnostics): of the file at `path` and of the first `files`
    /// files, at most `of_each` of each.
    #[must_use]
    pub fn diagnostics_around(&self, path: &str, files: usize, of_each: usize) -> BTreeMap<String, Value> {
        let found = self.workspace.by_path(&self.found, path, (files, of_each));
        found.into_iter().map(|(path, found)| (path, json!(found))).collect()
    }

    /// Returns the completions (`CompletionItem[]`) at a position of a text: its line, and UTF-16 units in the line.
    #[must_use]
    pub fn completions(&self, path: &str, text: &str, line: u32, character: u32) -> Value {
        let cursor = cursor_at(path, text, position::offset(text, Position { line, character }));
        json!(completion::items(self.workspace, path, text, &cursor))
    }

    /// Returns the explanation (`Hover`) of the word at a position of a text, `null` without one.
    #[must_use]
    pub fn hover(&self, path: &str, text: &str, line: u32, character: u32) -> Value {
        let cursor = cursor_at(path, text, position::offset(text, Position { line, character }));
        json!(hover::hover(self.workspace, path, text, &cursor))
    }

    /// Returns the prompt of a file; `None` if the file has errors, or none.
    #[must_use]
    pub fn prompt(&self, path: &str) -> Option<&Prompt> {
        let is_of = |location: &Location| location.source.path == path;
        // An error of a partial names the prompts that it breaks.
        let is_broken = self.found.iter().any(|found| {
            found.is_error() && (is_of(&found.location) || found.related.iter().any(|(location, _)| is_of(location)))
        });
        let prompts = self.catalog().prompts();
        prompts.iter().find(|prompt| !is_broken && prompt.source().path == path).map(|prompt| &**prompt)
    }

    /// Returns the valid prompts of the library.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        self.workspace.catalog()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_a_partial_stands_in_the_prompts_that_it_breaks() {
        let names: Vec<String> = (1..=8).map(|number| format!("p{number}.md")).collect();
        let mut files: Vec<(&str, &str)> = names
            .iter()
            .map(|name| (name.as_str(), "---\ndescription: x\n---\nHi.\n{% include \"_tone.md\" %}\n"))
            .collect();
        files.extend([("_tone.md", "Write kindly.\n"), ("other.md", "---\ndescription: y\n---\nAlone.\n")]);
        let mut analyzer = Analyzer::of_tree(files.into_iter().collect());
        for broken in ["Write about {{ topic }}.\n", "Write {% if %}.\n", "{{ attach(\"none.png\") }}\n"] {
            let analysis = analyzer.analyze(&[("_tone.md".to_owned(), broken.to_owned())].into()).expect("it is read");
            let diagnostics = analysis.diagnostics();
            for name in &names {
                let own = &diagnostics[name][0];
                assert!(own["message"].as_str().is_some_and(|it| it.starts_with("in _tone.md, line 1: ")), "{own}");
                assert_eq!((&own["severity"], &own["range"]["start"]["line"]), (&json!(1), &json!(4)), "{own}");
                assert_eq!(own["relatedInformation"][0]["location"]["uri"], "file:///_tone.md");
                assert!(analysis.prompt(name).is_none(), "{name} is broken by {broken}");
            }
            assert!(!diagnostics.contains_key("other.md") && analysis.prompt("other.md").is_some());
        }
        assert!(analyzer.analyze(&BTreeMap::new()).expect("it is read").prompt("p8.md").is_some());
    }
}
