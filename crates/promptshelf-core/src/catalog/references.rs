//! The library files that prompts refer to, and the prompts that refer to each.
//!
//! A file of the library is served only if a resource declares it or a prompt refers to it: by a literal name, by a
//! computed name whose folder is fixed or whose values are listed, or by the suggestions for an argument of a prompt
//! that computes a name. Everything else in the folder is not served: keys, drafts, backups.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
};

use globset::GlobBuilder;

use super::list::PromptList;
use crate::{
    definition::{CompletionSource, LibraryFile, PromptDefinition},
    library_files::{LibraryFiles, References},
    prompt::{Prompt, Uses},
    template::lint::NamePart,
};

/// Collects the prompts that refer to each file.
pub(crate) fn references(prompts: &PromptList, files: &LibraryFiles) -> References {
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
    /// Adds the files of a prompt and of those that it calls.
    fn add(&mut self, prompt: &'a Prompt, paths: &mut BTreeSet<String>) {
        let Uses { attachments, globs, computes_names, prompts, .. } = prompt.uses();
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
        for called in prompts.values() {
            self.add(called, paths);
        }
    }
}

fn matching<'f>(glob: &str, files: &'f BTreeMap<String, std::sync::Arc<LibraryFile>>) -> Vec<&'f str> {
    let Ok(glob) = GlobBuilder::new(glob).literal_separator(true).build() else { return Vec::new() };
    let glob = glob.compile_matcher();
    files.keys().map(String::as_str).filter(|path| glob.is_match(path)).collect()
}

/// Returns the glob of a computed name; `None` if its text does not limit it to one folder and no values are listed.
pub(crate) fn glob_of(name: &[NamePart], definition: &PromptDefinition) -> Option<String> {
    let mut glob = String::new();
    let mut is_in_folder = false;
    for part in name {
        match part {
            NamePart::Literal(text) => {
                is_in_folder |= text.contains('/');
                glob.push_str(&globset::escape(text));
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

/// Escapes a value inside an alternation.
fn escaped(value: &str) -> String {
    globset::escape(value).replace(',', "[,]")
}
