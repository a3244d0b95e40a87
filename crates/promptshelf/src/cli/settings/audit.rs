//! The `[audit]` section of `promptshelf.toml`, its flag and its variable.

use std::path::{Path, PathBuf};

use promptshelf_core::Diagnostic;
use promptshelf_service::AuditFileOptions;

use super::{
    given::Given,
    manifest::{Manifest, Others},
};
use crate::exit::{Exit, Failure};

const SETTINGS: &[&str] = &["file", "max-bytes", "keep"];

/// The largest file that anybody can ask for.
const MOST_BYTES: u64 = 1 << 40;
const MOST_FILES: u64 = 10_000;

#[derive(Debug, Default)]
pub(super) struct Written {
    file: Option<PathBuf>,
    max_bytes: Option<u64>,
    keep: Option<u32>,
}

/// Where questions are recorded, if they are.
///
/// # Errors
///
/// What cannot be, and where it stands.
pub(crate) fn read(
    manifest: &Manifest<'_>,
    flag: Option<&Path>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<AuditFileOptions>, Failure> {
    let folder = manifest.folder();
    let written = check_manifest(manifest).map_err(|found| manifest.failure(&found))?;
    let variable = || environment("PROMPTSHELF_AUDIT").filter(|text| !text.is_empty()).map(PathBuf::from);
    // A path in the manifest begins at the manifest.
    let below = || written.file.as_ref().map(|file| folder.join(file));
    let Some(path) = flag.map(Path::to_path_buf).or_else(variable).or_else(below) else { return Ok(None) };
    if is_below(&path, folder) {
        let sentence = format!("the audit cannot be written to {}, inside the library", path.display());
        return Err(Failure::new(Exit::Usage, sentence)
            .help("files of the library can be read by callers: name a file outside of it"));
    }
    let usual = AuditFileOptions::new(path);
    Ok(Some(AuditFileOptions {
        max_bytes: written.max_bytes.unwrap_or(usual.max_bytes),
        keep: written.keep.unwrap_or(usual.keep),
        ..usual
    }))
}

/// Reads the section by itself.
pub(super) fn check_manifest(manifest: &Manifest<'_>) -> Result<Written, Box<Diagnostic>> {
    let mut written = Written::default();
    manifest.section("audit", SETTINGS, Others::Refused, |name, value| {
        let given = Given::Toml(value);
        match name {
            "file" => written.file = Some(given.text()?.into()),
            "max-bytes" => written.max_bytes = Some(given.number(MOST_BYTES)?),
            _ => written.keep = u32::try_from(given.number(MOST_FILES)?).ok(),
        }
        Ok(())
    })?;
    Ok(written)
}

/// Whether a file is, or would be, below a folder.
fn is_below(path: &Path, folder: &Path) -> bool {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (parent.canonicalize(), folder.canonicalize()) {
        (Ok(parent), Ok(folder)) => parent.starts_with(folder),
        // Opening the file says what is wrong.
        _ => false,
    }
}
