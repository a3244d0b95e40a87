//! Files of a library, and their URIs.

use std::sync::Arc;

use crate::{
    content::{Blob, MimeType, ResourceBody, ResourceContents},
    timestamp::Timestamp,
};

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
