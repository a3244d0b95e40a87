//! The folders of a library whose formats are those of another program: the library itself if it is such a folder, and
//! plugins.

use std::{borrow::Cow, collections::BTreeSet};

use crate::{format::foreign_folders, pipeline::found_files::FoundFile, tree::Tree};

/// The hidden folders of other programs in which folders of the library would be, by their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Homes {
    /// The place of the library itself, such as `.claude/commands`; empty for a library of prompt files.
    library: &'static str,
    plugins: Vec<(String, &'static str)>,
}

impl Homes {
    /// Looks for plugins in the folders around `commands` and `skills`.
    pub(super) fn new(library: &'static str, root: &Tree, files: &[FoundFile]) -> Homes {
        let around = |found: &FoundFile| foreign_folders::around_plugin(&found.path).map(str::to_owned);
        let mut folders: BTreeSet<String> = files.iter().filter_map(around).collect();
        if library.is_empty() {
            folders.insert(String::new());
        }
        let home =
            |folder: &str| foreign_folders::plugin_home(|manifest| root.state(&format!("{folder}{manifest}")).is_ok());
        let plugins = folders.into_iter().map(|folder| (home(&folder), folder));
        Homes {
            library,
            plugins: plugins.filter(|(home, _)| !home.is_empty()).map(|(home, folder)| (folder, home)).collect(),
        }
    }

    pub(super) fn path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        let plugin = self.plugins.iter().filter_map(|(folder, home)| Some((path.strip_prefix(&**folder)?, home)));
        match plugin.min_by_key(|(rest, _)| rest.len()) {
            Some((rest, home)) => Cow::Owned(format!("{home}/{rest}")),
            None if self.library.is_empty() => Cow::Borrowed(path),
            None => Cow::Owned(format!("{}/{path}", self.library)),
        }
    }
}
