//! Writes images, audio and other binary contents to files. Their names are derived from the content, never from names of a
//! server: no file is outside of the folder, none is overwritten, and the same content has the same name.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use promptshelf_client::{ContentBlock, Message, ResourceBody};
use sha2::{Digest, Sha256};

use crate::{
    exit::{Exit, Failure},
    whole_file,
};

#[derive(Debug, Default)]
pub(crate) struct Saved(Vec<(usize, PathBuf)>);

impl Saved {
    /// Writes the binary content of all messages to files in a folder, if there is one.
    pub(crate) fn write_all(folder: Option<&Path>, messages: &[Message]) -> Result<Saved, Failure> {
        let Some(folder) = folder else { return Ok(Saved::default()) };
        let failed = |error: io::Error| {
            Failure::new(Exit::Failed, format!("cannot write to the folder {}: {error}", folder.display()))
        };
        fs::create_dir_all(folder).map_err(failed)?;
        let mut saved = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            if let Some((bytes, mime_type)) = binary(&message.content) {
                saved.push((index, write(folder, bytes, mime_type).map_err(failed)?));
            }
        }
        Ok(Saved(saved))
    }

    pub(crate) fn file(&self, index: usize) -> Option<&Path> {
        self.0.iter().find(|(known, _)| *known == index).map(|(_, path)| path.as_path())
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.0.iter().map(|(_, path)| format!("written to {}", path.display())).collect()
    }
}

pub(crate) fn binary(content: &ContentBlock) -> Option<(&[u8], &str)> {
    match content {
        ContentBlock::Image(media) | ContentBlock::Audio(media) => Some((&media.data, &media.mime_type)),
        ContentBlock::Resource(resource) => match &resource.contents.body {
            ResourceBody::Blob(bytes) => Some((bytes, &resource.contents.mime_type)),
            ResourceBody::Text(_) => None,
        },
        _ => None,
    }
}

/// Writes bytes to a file that is named after their digest.
fn write(folder: &Path, bytes: &[u8], mime_type: &str) -> io::Result<PathBuf> {
    let digest: String = Sha256::digest(bytes).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let path = folder.join(format!("{digest}.{}", extension(mime_type)));
    match whole_file::create(&path, bytes) {
        Ok(()) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && contains(&path, bytes) => Ok(path),
        Err(error) => Err(error),
    }
}

fn contains(path: &Path, bytes: &[u8]) -> bool {
    fs::read(path).is_ok_and(|existing| existing == bytes)
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
    fn equal_content_shares_a_name_and_other_content_is_not_overwritten() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let bytes = [1, 2, 3];
        let path = write(folder.path(), &bytes, "image/png; x=../../evil").expect("the folder is writable");
        assert_eq!(path.extension().and_then(|extension| extension.to_str()), Some("png"));
        assert_eq!(write(folder.path(), &bytes, "image/png").expect("the file exists"), path);
        fs::write(&path, "something else").expect("the folder is writable");
        assert!(write(folder.path(), &bytes, "image/png").is_err());
    }
}
