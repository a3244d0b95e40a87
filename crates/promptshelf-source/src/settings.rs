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

use std::sync::Arc;

use promptshelf_core::{AccessRule, Code, Diagnostic, Location, SourceText};
#[cfg(feature = "schema")]
use schemars::{Schema, SchemaGenerator};
use serde::de::DeserializeOwned;

use self::deserialize::NodeDeserializer;
pub(crate) use self::deserialize::RemovedKey;
#[cfg(feature = "schema")]
pub use self::schema::schema;
pub use self::value::{AsWritten, Bounded, OneOrList, Tables};
#[cfg(feature = "schema")]
use crate::format::keys::Holds;
use crate::format::{Node, Notes, access, toml};

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
        SettingsFile { source, root, removed: Vec::new(), diagnostics }
    }

    /// Reads the whole file as `T`. Each invalid key is reported, and removed from the tree as if it were absent.
    pub fn read<T: DeserializeOwned + Default>(&mut self) -> T {
        for _ in 0..MAX_MISTAKES {
            match T::deserialize(NodeDeserializer::new(&self.root)) {
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

    /// Returns whether a key is in the file, also if [`read`](SettingsFile::read) has removed it because it is invalid.
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
