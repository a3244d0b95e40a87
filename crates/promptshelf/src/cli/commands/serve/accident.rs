//! Servers that nobody meant to start: of the folder that happens to be the working directory, of a home folder, of a disk.

use std::path::{Path, PathBuf};

use crate::{
    args::ServeArguments,
    environment,
    exit::{Exit, Failure},
    settings::{ServedLibrary, Settings},
};

const MANIFEST: &str = "promptshelf.toml";

/// Refuses a folder that was named nowhere, over HTTP without a person at a terminal; and the file system's root and home
/// folders, unless they are libraries or a server over HTTP was given their path.
pub(super) fn refuse(
    arguments: &ServeArguments,
    settings: &Settings,
    over_http: bool,
    is_terminal: bool,
    home: Option<PathBuf>,
) -> Result<(), Failure> {
    let ServedLibrary::Folder(folder) = &settings.fixed.library else { return Ok(()) };
    let is_named = !arguments.library.is_omitted();
    if folder.join(MANIFEST).exists() || (is_named && over_http) {
        return Ok(());
    }
    let shown = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let shown = shown.display();
    let failure = match () {
        () if is_too_wide(folder, home.as_deref()) => {
            Failure::new(Exit::Usage, format!("{shown} is not served: it is the root of a disk, or has home folders"))
        }
        () if is_named || !over_http || is_terminal => return Ok(()),
        () => Failure::new(
            Exit::Usage,
            format!(
                "nothing says what to serve: there is no LIBRARY, no PROMPTSHELF_STORE, no [[source]] in server.toml, and no \
                 {MANIFEST} in {shown}"
            ),
        ),
    };
    let mistyped = environment::unknown().into_iter().find(|variable| variable.nearest.is_some());
    Err(match mistyped {
        Some(variable) => failure.help(variable.to_string()),
        None => failure.help("name the folder or the store: `promptshelf serve FOLDER`"),
    })
}

/// Whether a folder is the file system's root, a home folder, or contains the home folder.
pub(in crate::commands) fn is_too_wide(folder: &Path, home: Option<&Path>) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    let home = home.and_then(|home| home.canonicalize().ok());
    let homes = ["/home", "/Users", "/root"].map(Path::new);
    folder.parent().is_none()
        || home.is_some_and(|home| home.starts_with(&folder))
        || homes.contains(&folder.as_path())
        || folder.parent().is_some_and(|parent| homes[..2].contains(&parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-324
    #[test]
    fn root_and_home_folders_are_too_wide_and_folders_in_them_are_not() {
        let home = tempfile::tempdir().expect("a folder");
        let prompts = home.path().join("prompts");
        std::fs::create_dir(&prompts).expect("a folder");
        let wide = |folder: &Path| is_too_wide(folder, Some(home.path()));
        assert!(wide(Path::new("/")) && wide(home.path()) && wide(&prompts.join("..")));
        assert!(home.path().parent().is_none_or(wide), "it has the home folder");
        assert!(!wide(&prompts) && !wide(Path::new("no-such-folder")));
    }
}
