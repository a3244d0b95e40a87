//! What is no text, written to files.
//!
//! Names are made from what a file holds, and never from what a server calls
//! it: nothing leaves the folder, nothing is overwritten, and the same content
//! gets the same name again.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use promptshelf_core::{Blob, ContentBlock, Message, ResourceBody};
use sha2::{Digest, Sha256};

use crate::exit::{Exit, Failure};

/// The files that messages were written to, by the message's place.
#[derive(Debug, Default)]
pub(crate) struct Saved(Vec<(usize, PathBuf)>);

impl Saved {
    /// Writes everything that is no text into a folder, if there is one.
    ///
    /// # Errors
    ///
    /// When the folder cannot be made or written to.
    pub(crate) fn to(folder: Option<&Path>, messages: &[Message]) -> Result<Saved, Failure> {
        let Some(folder) = folder else { return Ok(Saved::default()) };
        let failed = |error: io::Error| {
            Failure::new(Exit::Failed, format!("nothing can be written to {}: {error}", folder.display()))
        };
        fs::create_dir_all(folder).map_err(failed)?;
        let mut saved = Vec::new();
        for (place, message) in messages.iter().enumerate() {
            if let Some((blob, mime_type)) = blob_of(&message.content) {
                saved.push((place, write(folder, blob, mime_type).map_err(failed)?));
            }
        }
        Ok(Saved(saved))
    }

    /// The file of a message.
    pub(crate) fn of(&self, place: usize) -> Option<&Path> {
        self.0.iter().find(|(known, _)| *known == place).map(|(_, path)| path.as_path())
    }

    /// A sentence for each file.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.0.iter().map(|(_, path)| format!("written to {}", path.display())).collect()
    }
}

/// What a block holds that is no text, with its MIME type.
pub(crate) fn blob_of(content: &ContentBlock) -> Option<(&Blob, &str)> {
    match content {
        ContentBlock::Image(media) | ContentBlock::Audio(media) => Some((&media.data, media.mime_type.as_str())),
        ContentBlock::Resource(resource) => match &resource.contents.body {
            ResourceBody::Blob(blob) => Some((blob, resource.contents.mime_type.as_str())),
            ResourceBody::Text(_) => None,
        },
        _ => None,
    }
}

/// Writes a blob under a name made from its contents.
pub(crate) fn write(folder: &Path, blob: &Blob, mime_type: &str) -> io::Result<PathBuf> {
    let digest: String = Sha256::digest(blob.bytes()).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let path = folder.join(format!("{digest}.{}", extension(mime_type)));
    match OpenOptions::new().write(true).create_new(true).open(&path) {
        Ok(mut file) => file.write_all(blob.bytes()).map(|()| path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && holds(&path, blob) => Ok(path),
        Err(error) => Err(error),
    }
}

fn holds(path: &Path, blob: &Blob) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes == blob.bytes())
}

fn extension(mime_type: &str) -> &'static str {
    match mime_type.split(';').next().unwrap_or_default().trim() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/ogg" => "ogg",
        "audio/flac" => "flac",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "application/gzip" => "gz",
        "application/zip" => "zip",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_content_gets_the_same_name_and_other_content_is_not_overwritten() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let blob = Blob::new(vec![1, 2, 3]);
        let path = write(folder.path(), &blob, "image/png; x=../../evil").expect("it can be written");
        assert_eq!(path.extension().and_then(|ending| ending.to_str()), Some("png"));
        assert_eq!(write(folder.path(), &blob, "image/png").expect("it is there"), path);
        fs::write(&path, "something else").expect("it can be written");
        assert!(write(folder.path(), &blob, "image/png").is_err());
    }
}
