//! Files of the server's state, in JSON.

use std::{fs, io, io::Write as _, path::Path};

use serde::{Serialize, de::DeserializeOwned};

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// Reads a file; `None` if it does not exist.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.len() > MAX_BYTES => return Err(io::Error::other("the file is too large")),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    Ok(Some(serde_json::from_slice(&fs::read(path)?)?))
}

/// Replaces a file atomically. Only the user can read it.
pub(crate) fn write(path: &Path, content: &impl Serialize) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer(&mut file, content)?;
    file.flush()?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
