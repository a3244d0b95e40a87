//! Resources that are read from a file on each request.
//!
//! Values from the caller's URI become parts of a path here. Anything other than a regular file below the folder is
//! therefore answered with "not found", and the answer deliberately does not include the reason.

mod path_template;

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::PathBuf,
};

use promptshelf_core::{BoxFuture, MimeType, ReadBody, ReadError, ReadResource, Variables};

pub(crate) use self::path_template::PathTemplate;
use crate::{
    confined_dir::{ConfinedDir, FileError},
    media_type,
    root_grants::RootGrants,
};

/// Reads files below one folder.
#[derive(Clone, Debug)]
pub(crate) struct FileReader {
    /// Opens the folder anew for each read, because another one may have taken its place, or a grant been revoked.
    pub(crate) grants: RootGrants,
    /// The declared root; the library itself without one.
    pub(crate) root: Option<PathBuf>,
    pub(crate) path: PathTemplate,
    /// The largest accepted file, in bytes.
    pub(crate) limit: u64,
    /// The declared type; `None` to derive it from the file.
    pub(crate) mime_type: Option<MimeType>,
}

impl FileReader {
    fn open(&self) -> Option<ConfinedDir> {
        match &self.root {
            Some(root) => self.grants.open(root).ok(),
            None => self.grants.open_library().ok(),
        }
    }

    fn read_now(&self, variables: &Variables) -> Result<ReadBody, ReadError> {
        let path = self.path.expand(variables).ok_or(ReadError::NotFound)?;
        let root = self.open().ok_or(ReadError::NotFound)?;
        let file = root.read(&path, self.limit).map_err(|refusal| match refusal {
            FileError::TooLarge(_) => ReadError::TooLarge { limit: self.limit },
            _ => ReadError::NotFound,
        })?;
        let modified = file.state.modified();
        let mime_type = match &self.mime_type {
            Some(mime_type) => mime_type.clone(),
            None => media_type::of(&path, &file.bytes),
        };
        Ok(ReadBody { body: media_type::body(&mime_type, file.bytes), mime_type: Some(mime_type), modified })
    }

    fn version_now(&self, variables: &Variables) -> Option<u64> {
        let path = self.path.expand(variables)?;
        let state = self.open()?.state(&path).ok()?;
        let mut hasher = DefaultHasher::new();
        state.hash(&mut hasher);
        Some(hasher.finish())
    }
}

impl ReadResource for FileReader {
    fn library_path(&self, variables: &Variables) -> Option<String> {
        if self.root.is_none() { self.path.expand(variables) } else { None }
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
