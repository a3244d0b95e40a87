//! The whole `server.toml`, with all mistakes that need no other file: for `serve` before it starts, and for `check`.

use std::path::{Path, PathBuf};

use promptshelf_core::{AccessRule, Diagnostic};

use super::{
    dependencies, evaluations,
    file::{ServerFile, ServerFileLocation},
    overrides::Overrides,
    private_files::{PrivateFile, PublicFolders},
    rollouts::{self, ConfiguredRollout},
    sections::ServerSettings,
    sources::{self, ConfiguredSource},
    webhooks::{self, ConfiguredWebhook},
};
use crate::{args::ServeArguments, exit::Failure};

/// The sections of `server.toml`, whose mistakes have been reported in the file.
pub(super) struct Checked {
    pub(super) written: ServerSettings,
    pub(super) access: Vec<AccessRule>,
    pub(super) sources: Vec<ConfiguredSource>,
    pub(super) webhooks: Vec<ConfiguredWebhook>,
    pub(super) rollouts: Vec<ConfiguredRollout>,
}

impl Checked {
    /// Reads all sections. The arguments and variables can supply settings that the file lacks.
    pub(super) fn read<E: Fn(&str) -> Option<String>>(
        file: &mut ServerFile,
        arguments: &ServeArguments,
        overrides: &Overrides<'_, E>,
    ) -> Checked {
        let written = file.read();
        file.check_channels(&written);
        file.check_profiles(&written);
        evaluations::resolve(file, &written.evaluation.0);
        dependencies::check(file, &written, arguments, overrides);
        Checked {
            access: file.access_rules(),
            sources: sources::resolve(file, &written),
            webhooks: webhooks::resolve(file, &written),
            rollouts: rollouts::resolve(file, &written.rollout.0),
            written,
        }
    }
}

/// The result of a check of `server.toml`.
#[derive(Debug)]
pub(crate) struct FileReport {
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) access: Vec<AccessRule>,
    /// Whether the file has `[[source]]`, valid or not.
    pub(crate) has_sources: bool,
    pub(crate) folders: Vec<PathBuf>,
}

/// Checks `server.toml` as `serve` does before it starts, without opening other files. Private files are compared with
/// the folder that the command line names, else with those of `[[source]]`.
///
/// # Errors
///
/// If the file cannot be read.
pub(crate) fn check_file(
    location: &ServerFileLocation,
    library: Option<&Path>,
    environment: &impl Fn(&str) -> Option<String>,
) -> Result<FileReport, Failure> {
    let overrides = Overrides::new(environment);
    let arguments = ServeArguments::default();
    let mut file = location.load()?;
    let Checked { written, access, sources, .. } = Checked::read(&mut file, &arguments, &overrides);
    let folders: Vec<PathBuf> = sources::folders(&sources).filter(|_| library.is_none()).collect();
    let folders = PublicFolders { library, sources: &folders, granted: &file.granted_roots() };
    let private = PrivateFile::all(&file, &written, library.is_none(), &arguments, &overrides);
    folders.refuse(&private, &mut file)?;
    let folders = sources::folders(&sources).collect();
    Ok(FileReport { diagnostics: file.found(), access, has_sources: file.is_written(&["source"]), folders })
}
