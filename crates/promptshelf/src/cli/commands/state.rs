//! Where the program remembers things: one folder of the user's, which nobody
//! else can look into.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

/// The folder, where there can be one.
pub(crate) fn folder() -> Option<PathBuf> {
    let absolute = |path: std::ffi::OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let state = env::var_os("XDG_STATE_HOME").and_then(absolute);
    let state = state.or_else(|| Some(env::home_dir()?.join(".local/state")));
    state.map(|state| state.join("promptshelf")).filter(|folder| make(folder).is_ok())
}

/// Writes a file that only this user can read, whole or not at all.
pub(crate) fn write(file: &Path, text: &str) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    make(folder)?;
    // A new temporary file belongs to its user alone, and stays so under its last name.
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.persist(file)?;
    Ok(())
}

/// Makes an empty file that only this user can read, unless there is one.
pub(crate) fn write_new(file: &Path) -> io::Result<()> {
    if file.exists() { Ok(()) } else { write(file, "") }
}

/// A name for a file, out of any text.
pub(crate) fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn make(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
