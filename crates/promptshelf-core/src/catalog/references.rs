//! The library files that prompts refer to, and the prompts that refer to each.
//!
//! A file of the library is served only if a resource declares it or a prompt refers to it: by a literal name, by a
//! computed name whose folder is fixed or whose values are listed, or by the suggestions for an argument of a prompt
//! that computes a name. Everything else in the folder is not served: keys, drafts, backups.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
    sync::Arc,
};

use super::{Catalog, Content};
use crate::{
    definition::{CompletionSource, LibraryFile, PromptDefinition},
    glob::{Glob, MAX_MADE_BYTES, escape_glob},
    library_files::{LibraryFiles, References},
    prompt::{Prompt, Uses},
    template::lint::NamePart,
};

pub(crate) fn references(prompts: &[Arc<Prompt>], files: &LibraryFiles) -> References {
    let mut found = Collector { files, matches: HashMap::new() };
    let mut references: HashMap<String, Vec<u32>> = HashMap::new();
    for (index, prompt) in (0..).zip(prompts.iter()) {
        let mut paths = BTreeSet::new();
        found.add(prompt, &mut paths);
        for path in paths {
            references.entry(path).or_default().push(index);
        }
    }
    References(references)
}

struct Collector<'a> {
    files: &'a LibraryFiles,
    /// The paths that match each glob so far: many prompts often use the same one.
    matches: HashMap<&'a str, Vec<&'a str>>,
}

impl<'a> Collector<'a> {
    fn add(&mut self, prompt: &'a Prompt, paths: &mut BTreeSet<String>) {
        self.add_own(prompt, paths);
        for called in prompt.uses().prompts.values() {
            self.add(called, paths);
        }
    }

    fn add_all(&mut self, prompt: &'a Prompt, catalog: &Catalog, paths: &mut BTreeSet<String>) {
        let Uses { partials, resources, prompts, .. } = prompt.uses();
        paths.insert(prompt.source().path.to_string());
        paths.extend(partials.iter().map(|partial| partial.path.to_string()));
        paths.extend(resources.iter().filter_map(|uri| catalog.file_of(uri)));
        let completions = prompt.arguments().iter().filter_map(|argument| match argument.completion() {
            Some(CompletionSource::File(path)) => Some(path.clone()),
            _ => None,
        });
        paths.extend(completions);
        self.add_own(prompt, paths);
        for called in prompts.values() {
            self.add_all(called, catalog, paths);
        }
    }

    fn add_own(&mut self, prompt: &'a Prompt, paths: &mut BTreeSet<String>) {
        let Uses { attachments, globs, computes_names, .. } = prompt.uses();
        paths.extend(attachments.keys().cloned());
        for glob in globs {
            let files = self.files;
            let matches = self.matches.entry(glob).or_insert_with(|| matching(glob, &files.by_path));
            paths.extend(matches.iter().map(|path| (*path).to_owned()));
        }
        if *computes_names {
            let suggested = prompt.arguments().iter().filter_map(|argument| match argument.completion() {
                Some(CompletionSource::Paths(suggested)) => Some(suggested),
                _ => None,
            });
            let suggested = suggested.flat_map(|suggested| suggested.iter());
            paths.extend(suggested.filter(|path| self.files.by_path.contains_key(*path)).cloned());
        }
    }
}

impl Catalog {
    /// Returns the files that each prompt is made from, by prompt: its own file, the texts that it includes, the files
    /// that it attaches, links or completes from, and the same of all prompts that it calls. A name that is computed
    /// while rendering counts for all files that it may be. The path of a prompt in code is its name in angle brackets.
    ///
    /// ```
    /// use promptshelf_core::{Definitions, PromptDefinition, check};
    ///
    /// let catalog = check(Definitions::from_iter([PromptDefinition::template("hello", "Say hello.")]), None).catalog;
    /// let (prompt, files) = catalog.prompt_files().next().unwrap();
    /// assert_eq!(prompt.name().as_str(), "hello");
    /// assert_eq!(files.into_iter().collect::<Vec<_>>(), ["<hello>"]);
    /// ```
    pub fn prompt_files(&self) -> impl Iterator<Item = (&Arc<Prompt>, BTreeSet<String>)> {
        let mut collector = Collector { files: &self.files, matches: HashMap::new() };
        self.prompts.iter().map(move |prompt| {
            let mut paths = BTreeSet::new();
            collector.add_all(prompt, self, &mut paths);
            (prompt, paths)
        })
    }

    /// Returns the files that one prompt is made from, as [`prompt_files`](Catalog::prompt_files) does, and the names of
    /// the prompts that it calls, directly or not.
    #[must_use]
    pub fn parts_of(&self, prompt: &Prompt) -> (BTreeSet<String>, BTreeSet<String>) {
        fn add_called(prompt: &Prompt, names: &mut BTreeSet<String>) {
            for called in prompt.uses().prompts.values() {
                names.insert(called.name().to_string());
                add_called(called, names);
            }
        }
        let (mut paths, mut names) = (BTreeSet::new(), BTreeSet::new());
        Collector { files: &self.files, matches: HashMap::new() }.add_all(prompt, self, &mut paths);
        add_called(prompt, &mut names);
        (paths, names)
    }

    /// Returns the path of the file that a URI is read from; `None` if it is not read from a file.
    #[must_use]
    pub fn path_of_uri(&self, uri: &str) -> Option<String> {
        match self.content(uri)? {
            Content::File(file) => Some(file.path.clone()),
            Content::Resource { resource, variables } => resource.path(&resource.bind(&variables).ok()?),
        }
    }

    fn file_of(&self, uri: &str) -> Option<String> {
        let (resource, variables) = self.find_resource(uri)?;
        resource.path(&resource.bind(&variables).ok()?)
    }
}

fn matching<'f>(glob: &str, files: &'f BTreeMap<String, Arc<LibraryFile>>) -> Vec<&'f str> {
    let Ok(glob) = Glob::made(glob, true, false) else { return Vec::new() };
    files.keys().map(String::as_str).filter(|path| glob.is_match(path)).collect()
}

/// Returns the glob of a computed name; `None` if its text does not limit it to one folder and no values are listed.
pub(crate) fn glob_of(name: &[NamePart], definition: &PromptDefinition) -> Option<String> {
    let mut glob = String::new();
    let mut is_in_folder = false;
    for part in name {
        if glob.len() > MAX_MADE_BYTES {
            return None;
        }
        match part {
            NamePart::Literal(text) => {
                is_in_folder |= text.contains('/');
                glob.push_str(&escape_glob(text));
            }
            NamePart::Variable(variable) => {
                let argument = definition.arguments.iter().find(|argument| argument.name == *variable);
                let choices = argument.map_or(&[][..], |argument| &argument.choices);
                match choices {
                    [] if is_in_folder => glob.push('*'),
                    [] => return None,
                    choices => {
                        let values: Vec<String> = choices.iter().map(|choice| escaped(&choice.value)).collect();
                        write!(glob, "{{{}}}", values.join(",")).ok()?;
                    }
                }
            }
            NamePart::Any if is_in_folder => glob.push('*'),
            NamePart::Any => return None,
        }
    }
    Some(glob)
}

fn escaped(value: &str) -> String {
    escape_glob(value).replace(',', "[,]")
}
