//! Settings files in TOML, read into plain serde types with every mistake at its line.
//!
//! serde stops at the first mistake. [`SettingsFile::read`] records it with its place, removes the offending key from
//! the parsed tree and reads again, until the rest is valid. Types therefore use `#[serde(default)]` and
//! `deny_unknown_fields`, and need no code of their own for diagnostics. [`schema`] derives the JSON Schema from the same
//! types.
//!
//! The meaning of a setting is deliberately elsewhere: in the manifest of a library, and in the program that serves it.

mod deserialize;
#[cfg(feature = "schema")]
mod schema;
mod value;

use std::{ops::Range, path::PathBuf, sync::Arc};

use promptshelf_core::{AccessRule, Code, Diagnostic, Location, SourceText};
#[cfg(feature = "schema")]
use schemars::{Schema, SchemaGenerator};
use serde::de::DeserializeOwned;

use self::deserialize::NodeDeserializer;
pub(crate) use self::deserialize::RemovedKey;
#[cfg(feature = "schema")]
pub use self::schema::schema;
pub use self::value::{AsWritten, Bounded, FilePath, OneOrList, Tables};
#[cfg(feature = "schema")]
use crate::format::keys::Holds;
use crate::format::{
    Node, Notes, Value, access, toml,
    tree::{Entry, Scalar, ScalarKind},
};

/// The largest number of mistakes that are reported for one file. Bounds the time that a hostile file can take.
const MAX_MISTAKES: usize = 100;

/// A parsed settings file and the mistakes found in it.
///
/// ```
/// use promptshelf_core::SourceText;
/// use promptshelf_source::settings::{Bounded, SettingsFile};
///
/// #[derive(Default, serde::Deserialize)]
/// #[serde(default, deny_unknown_fields)]
/// struct Settings {
///     port: Option<Bounded<1, 65_535>>,
///     host: Option<String>,
/// }
///
/// let mut file = SettingsFile::parse(SourceText::new("server.toml", "prot = 80\nport = 0\nhost = \"localhost\"\n"));
/// let settings: Settings = file.read();
/// assert_eq!(settings.host.as_deref(), Some("localhost"));
/// let found: Vec<String> = file.diagnostics().iter().map(ToString::to_string).collect();
/// assert_eq!(
///     found,
///     [
///         "server.toml:1:1: error[unknown-key]: unknown key `prot` (did you mean `port`?)",
///         "server.toml:2:8: error[invalid-value]: `port`: expected a whole number from 1 to 65535, got 0",
///     ]
/// );
/// ```
#[derive(Debug)]
pub struct SettingsFile {
    source: Arc<SourceText>,
    folder: PathBuf,
    root: Node,
    removed: Vec<RemovedKey>,
    diagnostics: Vec<Diagnostic>,
}

impl SettingsFile {
    /// Parses a file. Syntax errors become diagnostics; the rest of the file is still read.
    #[must_use]
    pub fn parse(source: Arc<SourceText>) -> SettingsFile {
        let mut notes = Notes::new(&source);
        let root = toml::parse(&mut notes);
        let diagnostics = notes.diagnostics;
        SettingsFile { source, folder: PathBuf::new(), root, removed: Vec::new(), diagnostics }
    }

    /// Sets the folder that paths in the file are relative to.
    #[must_use]
    pub fn in_folder(self, folder: impl Into<PathBuf>) -> SettingsFile {
        SettingsFile { folder: folder.into(), ..self }
    }

    /// Reads the whole file as `T`. Each invalid key is reported, and removed from the tree as if it were absent.
    pub fn read<T: DeserializeOwned + Default>(&mut self) -> T {
        for _ in 0..MAX_MISTAKES {
            match T::deserialize(NodeDeserializer::new(&self.root, &self.folder)) {
                Ok(settings) => return settings,
                Err(mistake) => {
                    if !mistake.follows_from(&self.removed) {
                        self.diagnostics.push(mistake.to_diagnostic(&self.source));
                    }
                    if !mistake.remove_from(&mut self.root, &mut self.removed) {
                        break;
                    }
                }
            }
        }
        T::default()
    }

    /// Reads the file after [`read`](SettingsFile::read), with other values in the place of its own.
    ///
    /// # Errors
    ///
    /// The first of these values that is invalid, with its name.
    pub fn read_with<T: DeserializeOwned>(&self, given: &[Given]) -> Result<T, String> {
        let mut root = self.root.clone();
        given.iter().for_each(|given| root.set(given.path, given.to_node()));
        T::deserialize(NodeDeserializer::new(&root, &self.folder)).map_err(|mistake| {
            match given.iter().find(|given| mistake.is_at(given.path)) {
                Some(given) => format!("{}: {mistake}", given.name),
                None => mistake.to_string(),
            }
        })
    }

    /// Reports a key that does not belong in this file, and removes it so that [`read`](SettingsFile::read) does not
    /// report it again. Does nothing if the key is absent.
    pub fn refuse(&mut self, path: &[&str], code: Code, message: impl Into<String>, help: impl Into<String>) {
        let Some(span) = self.root.take(path) else { return };
        let location = Location::new(&self.source, span);
        self.diagnostics.push(Diagnostic::error(code, location, message).help(help));
    }

    /// Reports a mistake in the value at a path of keys and of indexes in lists; at the beginning of the file if the key is absent.
    pub fn error(&mut self, path: &[&str], code: Code, message: impl Into<String>) -> &mut Diagnostic {
        let node = path.iter().try_fold(&self.root, |node, key| node.child(key));
        let location = Location::new(&self.source, node.map_or(0..0, |node| node.span.clone()));
        let index = self.diagnostics.len();
        self.diagnostics.push(Diagnostic::error(code, location, message));
        &mut self.diagnostics[index]
    }

    /// The rules under `[[access]]`. Each mistake in one is an error, so that a typo never opens access.
    pub fn access_rules(&mut self) -> Vec<AccessRule> {
        self.read_tree(|root, _, notes| root.child("access").map(|node| access::rules(node, notes)).unwrap_or_default())
    }

    /// Reads a part of the tree by a reader that prompt files use too. After [`read`](SettingsFile::read), the tree
    /// has only the keys and items that were accepted; the removed keys are passed so that none of them is reported
    /// as missing.
    pub(crate) fn read_tree<R>(&mut self, read: impl FnOnce(&Node, &[RemovedKey], &mut Notes<'_>) -> R) -> R {
        let mut notes = Notes::new(&self.source);
        let result = read(&self.root, &self.removed, &mut notes);
        self.diagnostics.append(&mut notes.diagnostics);
        result
    }

    /// The location of the value at a path of keys.
    #[must_use]
    pub fn location(&self, path: &[&str]) -> Option<Location> {
        let node = path.iter().try_fold(&self.root, |node, key| node.child(key))?;
        Some(Location::new(&self.source, node.span.clone()))
    }

    /// Returns whether a key is in the file, even if [`read`](SettingsFile::read) has removed it because it is invalid.
    #[must_use]
    pub fn is_written(&self, path: &[&str]) -> bool {
        let mut node = &self.root;
        for key in path {
            match node.child(key) {
                Some(child) => node = child,
                None => return self.removed.iter().any(|(name, table)| name == key && *table == node.span),
            }
        }
        true
    }

    /// All mistakes found so far, in the order of the file.
    #[must_use]
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut diagnostics = self.diagnostics.clone();
        diagnostics.sort_by_key(|found| found.location.span().start);
        diagnostics
    }
}

/// A value from outside of a file, such as that of a flag, for a key of the file.
///
/// ```
/// use promptshelf_core::SourceText;
/// use promptshelf_source::settings::{Bounded, Given, SettingsFile};
///
/// #[derive(Default, serde::Deserialize)]
/// #[serde(default)]
/// struct Settings {
///     http: Http,
/// }
///
/// #[derive(Default, serde::Deserialize)]
/// #[serde(default)]
/// struct Http {
///     port: Option<Bounded<1, 65_535>>,
/// }
///
/// let mut file = SettingsFile::parse(SourceText::new("server.toml", "[http]\nport = 80\n"));
/// let _: Settings = file.read();
/// let given = |word: &str| Given {
///     path: ["http", "port"],
///     name: "--port".to_owned(),
///     words: vec![word.to_owned()],
///     is_list: false,
/// };
/// let settings: Settings = file.read_with(&[given("81")]).expect("a port");
/// assert_eq!(settings.http.port, Some(Bounded(81)));
/// let mistake = file.read_with::<Settings>(&[given("x")]).err();
/// assert_eq!(mistake.as_deref(), Some("--port: expected a whole number from 1 to 65535, got `x`"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The section and the key.
    pub path: [&'static str; 2],
    /// The name of the value in messages.
    pub name: String,
    /// The value as words, which are read as whatever the key expects.
    pub words: Vec<String>,
    /// Whether the words are a list.
    pub is_list: bool,
}

/// The place of nodes that are not in a file.
const OUTSIDE: Range<usize> = usize::MAX..usize::MAX;

impl Given {
    fn to_node(&self) -> Node {
        let word = |text: &String| {
            let scalar = Scalar { text: text.clone(), kind: ScalarKind::Text };
            Node { span: OUTSIDE, value: Value::Scalar(scalar) }
        };
        match self.words.last() {
            Some(last) if !self.is_list => word(last),
            _ => Node { span: OUTSIDE, value: Value::List(self.words.iter().map(word).collect()) },
        }
    }
}

impl Node {
    fn is_given(&self) -> bool {
        self.span == OUTSIDE
    }

    fn set(&mut self, [section, key]: [&str; 2], node: Node) {
        let table = self.entry(section, Node { span: OUTSIDE, value: Value::Mapping(Vec::new()) });
        if let Some(value) = table.and_then(|table| table.entry(key, node.clone())) {
            *value = node;
        }
    }

    /// Returns the value of a key of a mapping, which is inserted if it is absent.
    fn entry(&mut self, key: &str, default: Node) -> Option<&mut Node> {
        let Value::Mapping(entries) = &mut self.value else { return None };
        let index = entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
            entries.push(Entry { key: key.to_owned(), key_span: OUTSIDE, node: default });
            entries.len() - 1
        });
        Some(&mut entries[index].node)
    }
}

/// Returns the schema of `[[access]]`, for the field of a settings type that names the section and whose rules are read
/// by [`SettingsFile::access_rules`].
///
/// ```
/// #[derive(Default, serde::Deserialize, schemars::JsonSchema)]
/// #[serde(default, deny_unknown_fields)]
/// struct Settings {
///     /// Access rules.
///     #[schemars(schema_with = "promptshelf_source::settings::access_rules_schema")]
///     access: serde::de::IgnoredAny,
/// }
///
/// let schema = promptshelf_source::settings::schema::<Settings>("server.toml");
/// assert!(schema["properties"]["access"]["items"]["properties"]["roles"].is_object());
/// ```
#[cfg(feature = "schema")]
pub fn access_rules_schema(_: &mut SchemaGenerator) -> Schema {
    Holds::Tables(&access::RULE).to_schema()
}
