//! A repository with the sources on it.

use std::ops::Deref;

use promptshelf_git::{GitOptions, GitSource};
use promptshelf_source::{FileFault, Loader, MemoryFile};
use promptshelf_testkit::git::Repository;

/// A repository, and a folder for copies.
pub(crate) struct Sample(pub(crate) Repository);

impl Deref for Sample {
    type Target = Repository;

    fn deref(&self) -> &Repository {
        &self.0
    }
}

impl Sample {
    pub(crate) fn new(files: &[(&str, &str)]) -> Sample {
        Sample(Repository::new(files))
    }

    pub(crate) fn options(&self, fragment: &str) -> GitOptions {
        GitOptions::new(self.address(fragment).parse().unwrap(), self.path().join("cache"))
    }

    pub(crate) fn source(&self, fragment: &str) -> GitSource {
        GitSource::new(self.options(fragment)).unwrap()
    }
}

/// The paths of the served files, with their texts or faults.
pub(crate) fn files(source: &GitSource) -> Vec<(String, String)> {
    let shown = |file: &MemoryFile| match file.fault() {
        Some(FileFault::Unreadable(reason)) => format!("! {reason}"),
        Some(fault) => format!("! {fault:?}"),
        None => String::from_utf8_lossy(file.bytes()).into_owned(),
    };
    source.source().in_memory().expect("a tree").iter().map(|(path, file)| (path.to_owned(), shown(file))).collect()
}

/// The names of the prompts, and the messages of the errors.
pub(crate) fn loaded(source: &GitSource) -> (Vec<String>, Vec<String>) {
    let loader = Loader::open(vec![Box::new(source.source().clone())]).unwrap();
    let names = loader.handle().current().prompts().iter().map(|prompt| prompt.name().to_string()).collect();
    let errors = loader.diagnostics().iter().filter(|found| found.is_error()).map(ToString::to_string).collect();
    (names, errors)
}

pub(crate) fn served(source: &GitSource) -> String {
    source.state().served.unwrap().id
}
