//! The definitions of a library, as one or several sources provide them: limits, files, links, and files that cannot be
//! read.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc, time::Duration};

use super::{Access, AccessRule, RemoteResources, ResourceDefinition, prompt::PromptDefinition};
use crate::{
    content::{Blob, Icon, MimeType, ResourceBody, ResourceContents},
    diagnostic::{Diagnostic, SourceText},
    invisible::InvisiblePolicy,
    timestamp::Timestamp,
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

/// Limits and list options of a library.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Prompts or resources per page. Common clients read one page only, so the default of 1,000 is large enough for
    /// the whole list of most libraries.
    pub page_size: usize,
    /// The time for which clients may reuse a list (`ttlMs` of revision 2026-07-28).
    pub ttl: Duration,
    /// The largest number of bytes of one argument value.
    pub value_bytes: usize,
    /// The treatment of invisible characters in values of arguments without a policy of their own.
    pub invisible: InvisiblePolicy,
    /// The limits of one rendering.
    pub budget: Budget,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            page_size: 1_000,
            ttl: Duration::from_secs(60),
            value_bytes: 1 << 20,
            invisible: InvisiblePolicy::default(),
            budget: Budget::default(),
        }
    }
}

/// The limits of one rendering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Steps of the template engine. Each step allows operations to walk or create 64 bytes of intermediate values,
    /// summed over the whole rendering; the first 16 MiB are always allowed.
    pub fuel: u64,
    /// Bytes of rendered text.
    pub output_bytes: usize,
    /// Bytes of rendered attachments, before encoding.
    pub attachment_bytes: usize,
    /// Rendered messages.
    pub messages: usize,
    /// The maximum depth of partials that include each other; at most 40.
    pub include_depth: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            fuel: 1_000_000,
            output_bytes: 8 << 20,
            attachment_bytes: 32 << 20,
            messages: 1_000,
            include_depth: 16,
        }
    }
}

/// The URI scheme of files that a library serves without declaring them.
pub const LIBRARY_SCHEME: &str = "library";

/// Returns the URI of a library file. The namespace is empty for a library without one.
pub(crate) fn library_uri(namespace: &str, path: &str) -> String {
    format!("{LIBRARY_SCHEME}://{namespace}/{}", encoded_path(path))
}

pub(crate) fn encoded_path(path: &str) -> percent_encoding::PercentEncode<'_> {
    percent_encoding::utf8_percent_encode(path, PATH)
}

/// The characters that RFC 3986 does not allow unescaped in a path.
const PATH: &percent_encoding::AsciiSet =
    &percent_encoding::NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A file of the library that prompts can attach, link and complete from.
#[derive(Clone, Debug)]
pub struct LibraryFile {
    /// The path inside the library, with `/` between its parts.
    pub path: String,
    /// Its MIME type.
    pub mime_type: MimeType,
    /// The content.
    pub body: ResourceBody,
    /// Whether the file begins with a byte order mark, which its text does not have.
    pub has_mark: bool,
    /// The time of the last change, if known.
    pub modified: Option<Timestamp>,
}

impl LibraryFile {
    /// Returns the URI under which the library itself names the file, unless it declares another one.
    #[must_use]
    pub fn uri(&self) -> String {
        library_uri("", &self.path)
    }

    /// Returns the bytes, for an image or audio block.
    #[must_use]
    pub fn blob(&self) -> Blob {
        match &self.body {
            ResourceBody::Blob(blob) => blob.clone(),
            ResourceBody::Text(text) => Blob::new(text.as_bytes().to_vec()),
        }
    }

    /// Returns the file as the contents of a resource with this URI.
    #[must_use]
    pub fn contents(&self, uri: impl Into<Arc<str>>) -> ResourceContents {
        ResourceContents { uri: uri.into(), mime_type: self.mime_type.clone(), body: self.body.clone() }
    }

    /// Returns whether clients can read it by its own URI: no part of its path begins with `_`.
    #[must_use]
    pub fn is_served(&self) -> bool {
        !self.path.split('/').any(|part| part.starts_with('_'))
    }
}

/// The symbolic links of a library and its roots, each with the place that it leads to.
///
/// A *place* identifies a file, whatever it is called: its path inside the library without symbolic links, or its
/// absolute path if it is outside of the library. Access rules apply to places.
///
/// ```
/// use promptshelf_core::Links;
///
/// let links = Links::from_iter([("public".to_owned(), "closed/pages".to_owned())]);
/// assert_eq!(links.place("public/a.md"), "closed/pages/a.md");
/// assert_eq!(links.names("closed/pages/a.md"), ["closed/pages/a.md", "public/a.md"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Links(BTreeMap<String, String>);

impl FromIterator<(String, String)> for Links {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(links: I) -> Links {
        Links(links.into_iter().collect())
    }
}

impl Extend<(String, String)> for Links {
    fn extend<I: IntoIterator<Item = (String, String)>>(&mut self, links: I) {
        self.0.extend(links);
    }
}

impl IntoIterator for Links {
    type Item = (String, String);
    type IntoIter = std::collections::btree_map::IntoIter<String, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Links {
    /// Returns the place of the file or folder with this path.
    #[must_use]
    pub fn place<'p>(&self, path: &'p str) -> Cow<'p, str> {
        if self.0.is_empty() {
            return Cow::Borrowed(path);
        }
        let ends = [path.len()].into_iter().chain(path.rmatch_indices('/').map(|(end, _)| end));
        // The longest prefix first: it is the link that the system follows last.
        let link = ends.into_iter().find_map(|end| Some((self.0.get(&path[..end])?, end)));
        link.map_or(Cow::Borrowed(path), |(place, end)| Cow::Owned(below(place, &path[end..])))
    }

    /// Returns all paths of the file at a place, the place itself first.
    #[must_use]
    pub fn names(&self, place: &str) -> Vec<String> {
        let mut names = vec![place.to_owned()];
        for (link, target) in &self.0 {
            let rest = match target.as_str() {
                "" => Some(place),
                target => place.strip_prefix(target).filter(|rest| rest.is_empty() || rest.starts_with('/')),
            };
            names.extend(rest.map(|rest| below(link, rest)));
        }
        names
    }
}

fn below(folder: &str, rest: &str) -> String {
    match (folder, rest.trim_start_matches('/')) {
        (folder, "") => folder.to_owned(),
        ("", rest) => rest.to_owned(),
        (folder, rest) => format!("{folder}/{rest}"),
    }
}

/// A prompt file that cannot be read completely. Its last valid version stays in service, unless the file may require
/// more of callers by now.
#[derive(Clone, Debug)]
pub struct BrokenFile {
    /// Its path inside the library.
    pub path: String,
    /// The name of the prompt, as far as it is known; empty otherwise.
    pub name: String,
    /// The precedence among definitions of this name; see [`Origin::rank`](crate::Origin::rank).
    pub rank: u8,
    /// The access requirements of the file.
    pub requirements: Requirements,
    /// The source of the file, if there are several; see [`Definitions::of_source`](crate::Definitions::of_source).
    pub from: usize,
    /// The readable part of the file. It is checked for more mistakes, and never served.
    pub draft: Option<Arc<PromptDefinition>>,
    /// Whether the draft has every argument that its author declared.
    pub has_all_arguments: bool,
}

/// The access requirements of a file, as far as they can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirements {
    /// The access rule of the file, if it has one.
    Known(Option<Access>),
    /// The requirements cannot be determined.
    Unknown,
}

impl BrokenFile {
    /// Creates a broken file of the only source.
    pub fn new(path: impl Into<String>, requirements: Requirements) -> BrokenFile {
        BrokenFile {
            path: path.into(),
            name: String::new(),
            rank: 0,
            requirements,
            from: 0,
            draft: None,
            has_all_arguments: false,
        }
    }
}

impl Requirements {
    /// Returns whether a prompt served under `before` may stay in service. If the file removes its rule, the prompt
    /// stays in service under the old one, so no access is opened.
    pub(crate) fn leave(&self, before: Option<&Access>) -> bool {
        match self {
            Requirements::Known(None) => true,
            Requirements::Known(demanded) => demanded.as_ref() == before,
            Requirements::Unknown => false,
        }
    }
}
