//! The folder in which the program keeps state between runs, readable only by the user.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

/// Returns the folder and creates it; `None` if that is impossible.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    let absolute = |path: std::ffi::OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let state = env::var_os("XDG_STATE_HOME").and_then(absolute);
    let state = state.or_else(|| Some(env::home_dir()?.join(".local/state")));
    state.map(|state| state.join("promptshelf")).filter(|folder| create(folder).is_ok())
}

/// Writes a file that only the user can read, atomically.
///
/// # Errors
///
/// If the file or its folder cannot be written.
pub fn write(file: &Path, text: &str) -> io::Result<()> {
    write_bytes(file, text.as_bytes())
}

/// Writes a file that only the user can read, atomically.
///
/// # Errors
///
/// If the file or its folder cannot be written.
pub fn write_bytes(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    create(folder)?;
    // A temporary file is readable only by the user, and stays so under its final name.
    let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
    temporary.write_all(bytes)?;
    temporary.persist(file)?;
    Ok(())
}

/// Creates an empty file that only the user can read, unless it exists.
///
/// # Errors
///
/// If the file or its folder cannot be written.
pub fn write_new(file: &Path) -> io::Result<()> {
    if file.exists() { Ok(()) } else { write(file, "") }
}

/// Returns the SHA-256 digest of a text, as hexadecimal digits.
#[must_use]
pub fn digest(text: &str) -> String {
    digest_bytes(text.as_bytes())
}

/// Returns the SHA-256 digest of some bytes, as hexadecimal digits.
#[must_use]
pub fn digest_bytes(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn create(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
