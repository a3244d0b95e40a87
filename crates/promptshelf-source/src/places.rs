//! The places of files: paths without symbolic links, relative to the library or absolute.

use std::path::Path;

use promptshelf_core::Links;

/// The library's own place in the file system, and the symbolic links in it and in its roots at the time of a read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// The absolute path of the library, without symbolic links; a stand-in for a library in memory.
    library: String,
    pub(crate) links: Links,
}

impl Places {
    pub(crate) fn new(library: String) -> Places {
        Places { library, links: Links::default() }
    }

    /// Returns an absolute path without symbolic links as a place.
    pub(crate) fn relative(&self, absolute: &str) -> String {
        let inside = absolute.strip_prefix(&self.library).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        inside.map_or_else(|| absolute.to_owned(), |rest| rest.trim_start_matches('/').to_owned())
    }

    /// Returns the place of the file with an absolute path, with the links that were there at the time of the read.
    pub(crate) fn place(&self, absolute: &str) -> String {
        self.links.place(&self.relative(absolute)).into_owned()
    }

    pub(crate) fn absolute(&self, place: &str) -> String {
        if Path::new(place).is_absolute() { place.to_owned() } else { join(&self.library, place) }
    }
}

pub(crate) fn join(folder: &str, path: &str) -> String {
    match (folder, path) {
        ("", path) => path.to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, path) => format!("{}/{path}", folder.trim_end_matches('/')),
    }
}

pub(crate) fn text(path: &Path) -> String {
    let text = path.to_string_lossy();
    if cfg!(windows) { text.replace('\\', "/") } else { text.into_owned() }
}
