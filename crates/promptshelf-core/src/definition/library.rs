//! The definitions of a library, as one or several sources provide them.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    access::AccessRule, broken::BrokenFile, file::LibraryFile, links::Links, policy::Policy, prompt::PromptDefinition,
    remote::RemoteResources, resource::ResourceDefinition,
};
use crate::{
    content::Icon,
    diagnostic::{Diagnostic, SourceText},
};

/// All definitions of one source, or of several.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// The description of the server.
    pub about: About,
    /// Limits and list options.
    pub policy: Policy,
    /// Prompts, in any order.
    pub prompts: Vec<Arc<PromptDefinition>>,
    /// Templates to include, by their path inside the library.
    pub partials: BTreeMap<String, Arc<SourceText>>,
    /// Files to attach, link and complete from, by their path inside the library.
    pub files: BTreeMap<String, Arc<LibraryFile>>,
    /// Resources, in any order.
    pub resources: Vec<ResourceDefinition>,
    /// Access rules, by patterns.
    pub access: Vec<AccessRule>,
    /// Symbolic links of the library and its roots.
    pub links: Links,
    /// Folders that the library declares by a name, each with its place. Rules for folders can use the name.
    pub roots: BTreeMap<String, String>,
    /// Places of the files below these folders, as far as they are known.
    pub root_files: Vec<String>,
    /// Prompt files that could not be read completely.
    pub broken: Vec<BrokenFile>,
    /// Mistakes that the source found while reading.
    pub diagnostics: Vec<Diagnostic>,
    /// The name that distinguishes the library's files from those of other libraries in one server: the authority of their
    /// URIs, as in `library://NAME/notes.md`.
    pub namespace: Option<Arc<str>>,
    /// The resources of another server, for the definitions of its prompts.
    pub remote: Option<Arc<dyn RemoteResources>>,
    /// Whether these are one revision of a library, complete as it is. Broken prompts are then left out, and do not keep
    /// their version in the catalog before, so that every server of the revision serves the same.
    pub is_revision: bool,
}

impl<P: Into<Arc<PromptDefinition>>> FromIterator<P> for Definitions {
    fn from_iter<I: IntoIterator<Item = P>>(prompts: I) -> Definitions {
        Definitions { prompts: prompts.into_iter().map(Into::into).collect(), ..Definitions::default() }
    }
}

impl Definitions {
    /// Adds a prompt.
    ///
    /// ```
    /// use promptshelf_core::{Definitions, PromptDefinition};
    ///
    /// let definitions = Definitions::default().prompt(PromptDefinition::template("hello", "Say hello."));
    /// # assert_eq!(definitions.prompts.len(), 1);
    /// ```
    #[must_use]
    pub fn prompt(mut self, prompt: impl Into<Arc<PromptDefinition>>) -> Definitions {
        self.prompts.push(prompt.into());
        self
    }

    /// Adds the definitions of another source. Its `about` and `policy` are left out: the first source describes the
    /// server.
    pub fn merge(&mut self, other: Definitions) {
        self.prompts.extend(other.prompts);
        self.partials.extend(other.partials);
        self.files.extend(other.files);
        self.resources.extend(other.resources);
        self.access.extend(other.access);
        self.links.extend(other.links);
        self.roots.extend(other.roots);
        self.root_files.extend(other.root_files);
        self.broken.extend(other.broken);
        self.diagnostics.extend(other.diagnostics);
        self.namespace = self.namespace.take().or(other.namespace);
        self.remote = self.remote.take().or(other.remote);
        self.is_revision |= other.is_revision;
    }

    /// Sets the source number of all definitions: files of two sources can have the same path and are different
    /// files.
    #[must_use]
    pub fn of_source(mut self, number: usize) -> Definitions {
        // A definition is copied only if its number changes.
        for prompt in self.prompts.iter_mut().filter(|prompt| prompt.origin.from != number) {
            Arc::make_mut(prompt).origin.from = number;
        }
        self.broken.iter_mut().for_each(|broken| broken.from = number);
        self
    }
}

/// The description of the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The programmatic name; empty means the server's default.
    pub name: Option<String>,
    /// The display name.
    pub title: Option<String>,
    /// The library's version.
    pub version: Option<String>,
    /// The purpose of the library.
    pub description: Option<String>,
    /// The URL of a page about the library.
    pub website_url: Option<String>,
    /// The icons.
    pub icons: Vec<Icon>,
    /// Instructions for the use of the server, written for the model.
    pub instructions: Option<String>,
}
