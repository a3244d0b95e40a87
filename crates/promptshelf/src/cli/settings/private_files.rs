//! Files that must not be where callers could read them: the operator's keys, tokens and records.

use std::path::{Path, PathBuf};

use crate::exit::{Exit, Failure};

/// The folders whose files a library can publish.
#[derive(Debug)]
pub(super) struct PublicFolders<'a> {
    /// `None` for a library that is not a folder.
    pub(super) library: Option<&'a Path>,
    /// Folders of `[[source]]`.
    pub(super) sources: &'a [PathBuf],
    /// Folders that the operator grants to `[roots]` of the library.
    pub(super) granted: &'a [PathBuf],
}

impl PublicFolders<'_> {
    /// Refuses a file that is inside one of the folders.
    pub(super) fn refuse(&self, name: &str, file: &Path) -> Result<(), Failure> {
        let place = match self.granted.iter().find(|folder| is_below(file, folder)) {
            _ if self.library.is_some_and(|folder| is_below(file, folder)) => "the library".to_owned(),
            _ if self.sources.iter().any(|folder| is_below(file, folder)) => "a folder of [[source]]".to_owned(),
            Some(folder) => format!("{}, which [grants] lets the library publish", folder.display()),
            None => return Ok(()),
        };
        let message = format!("the {name} {} is inside {place}", file.display());
        Err(Failure::new(Exit::Usage, message).help("a library can give its files to callers: move this one out of it"))
    }
}

/// Whether a file is below a folder, or would be if it existed: by its path, or by the target of a symbolic link.
fn is_below(file: &Path, folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Opening the file reports an error.
    [parent.canonicalize(), file.canonicalize()].into_iter().flatten().any(|path| path.starts_with(&folder))
}
