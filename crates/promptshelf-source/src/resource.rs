//! Resources that are read from a file on each request.
//!
//! Values from the caller's URI become parts of a path here. Anything other than a regular file below the folder is
//! therefore answered with "not found", and the answer deliberately does not include the reason.

mod path_template;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use promptshelf_core::{BoxFuture, MimeType, ReadBody, ReadError, ReadResource, Variables};

pub(crate) use self::path_template::PathTemplate;
use crate::{
    file_role::MANIFEST,
    media_type,
    places::{self, Places, join},
    root_grants::RootGrants,
    tree::{FileError, Tree},
};

#[derive(Clone, Debug)]
pub(crate) struct FileReader {
    /// Opens the folder again for each read, because another one may have taken its place, or a grant been revoked.
    pub(crate) grants: RootGrants,
    /// The declared root; the library itself without one.
    pub(crate) root: Option<PathBuf>,
    /// The absolute path of this folder without symbolic links, when the library was read.
    pub(crate) folder: String,
    pub(crate) places: Arc<Places>,
    pub(crate) path: PathTemplate,
    /// The largest accepted file, in bytes.
    pub(crate) limit: u64,
    /// The declared type; `None` to derive it from the file.
    pub(crate) mime_type: Option<MimeType>,
}

impl FileReader {
    /// Opens the folder, and returns the path without links that leads to a file in it. Access was decided for the place
    /// that the links led to when the library was read: a path that leads elsewhere by now has to wait for the next read.
    fn open(&self, path: &str) -> Option<(Tree, String)> {
        let root = self.root.as_deref().unwrap_or(Path::new(""));
        let (root, folder) = self.grants.open_with_path(root).ok()?;
        let inside = root.canonicalize(path).ok()?;
        let place = self.places.relative(&join(&places::text(&folder), &inside));
        let is_private = place == MANIFEST && self.path.as_fixed().is_none();
        (place == self.place_of(path) && !is_private).then_some((root, inside))
    }

    fn place_of(&self, path: &str) -> String {
        self.places.place(&join(&self.folder, path))
    }

    fn read_now(&self, variables: &Variables) -> Result<ReadBody, ReadError> {
        let path = self.path.expand(variables).ok_or(ReadError::NotFound)?;
        let (root, inside) = self.open(&path).ok_or(ReadError::NotFound)?;
        let file = root.read(&inside, self.limit).map_err(|refusal| match refusal {
            FileError::TooLarge(_) => ReadError::TooLarge { limit: self.limit },
            _ => ReadError::NotFound,
        })?;
        let modified = file.state.modified();
        let mime_type = match &self.mime_type {
            Some(mime_type) => mime_type.clone(),
            None => media_type::of(&path, &file.bytes),
        };
        Ok(ReadBody { body: media_type::body(&mime_type, file.bytes.into_vec()), mime_type: Some(mime_type), modified })
    }

    fn version_now(&self, variables: &Variables) -> Option<u64> {
        let path = self.path.expand(variables)?;
        let (root, inside) = self.open(&path)?;
        root.version(&inside).ok()
    }
}

impl ReadResource for FileReader {
    fn place(&self, variables: &Variables) -> Option<String> {
        Some(self.place_of(&self.path.expand(variables)?))
    }

    fn variables_of(&self, path: &str) -> Vec<Variables> {
        let absolute = self.places.absolute(path);
        let inside = absolute.strip_prefix(self.folder.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'));
        inside.map_or_else(Vec::new, |inside| self.path.solve(inside))
    }

    fn folder(&self) -> Option<String> {
        Some(self.places.place(&join(&self.folder, self.path.folder())))
    }

    fn read<'a>(&'a self, variables: &'a Variables) -> BoxFuture<'a, Result<ReadBody, ReadError>> {
        let (reader, variables) = (self.clone(), variables.clone());
        Box::pin(async move {
            let reading = tokio::task::spawn_blocking(move || reader.read_now(&variables));
            reading.await.unwrap_or_else(|error| Err(ReadError::Failed(format!("cannot read a file: {error}"))))
        })
    }

    fn version<'a>(&'a self, variables: &'a Variables) -> BoxFuture<'a, Option<u64>> {
        let (reader, variables) = (self.clone(), variables.clone());
        Box::pin(
            async move { tokio::task::spawn_blocking(move || reader.version_now(&variables)).await.ok().flatten() },
        )
    }
}
