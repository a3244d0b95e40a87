//! The paths of configuration files on this machine.

use std::{
    env,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use promptshelf_author::clients::Configuration;

/// The owner of a configuration file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// The file of the user, for all projects
    #[default]
    User,
    /// The file of the project in the current folder
    Project,
}

impl Scope {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Project => "project",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) home: PathBuf,
    config: PathBuf,
    appdata: PathBuf,
    pub(crate) project: PathBuf,
}

impl Places {
    /// Takes the folders from the environment; `None` without a home folder or a current folder.
    pub(crate) fn of_environment() -> Option<Places> {
        let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = env::home_dir().filter(|home| home.is_absolute())?;
        Some(Places {
            config: absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
            appdata: absolute("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming")),
            project: env::current_dir().ok()?,
            home,
        })
    }

    fn resolve(&self, path: &str) -> PathBuf {
        let (base, rest) = path.split_once('/').unwrap_or((path, ""));
        match base {
            "~" => self.home.join(rest),
            "$CONFIG" => self.config.join(rest),
            "$APPDATA" => self.appdata.join(rest),
            _ => self.project.join(path),
        }
    }

    fn user_files(&self, configuration: &Configuration) -> impl Iterator<Item = PathBuf> {
        let files = match () {
            () if cfg!(windows) => configuration.user.windows,
            () if cfg!(target_os = "macos") => configuration.user.macos,
            () => configuration.user.unix,
        };
        files.iter().map(|path| self.resolve(path))
    }
}

/// Returns the file of a client: of the user's files the first existing one. `None` if it has none for the scope.
pub(crate) fn configuration_file(configuration: &Configuration, scope: Scope, places: &Places) -> Option<PathBuf> {
    match scope {
        Scope::Project => configuration.project.map(|path| places.project.join(path)),
        Scope::User => {
            let mut files = places.user_files(configuration);
            let first = files.next()?;
            let exists = |path: &PathBuf| path.symlink_metadata().is_ok();
            Some(if exists(&first) { first } else { files.find(exists).unwrap_or(first) })
        }
    }
}

/// Returns whether a client was used on this machine, or in the project: its file is there, or a folder of its own for
/// it.
pub(crate) fn is_present(configuration: &Configuration, places: &Places) -> bool {
    let shared = [&places.home, &places.config, &places.appdata, &places.project].map(PathBuf::as_path);
    let is_used =
        |path: &Path| path.exists() || path.parent().is_some_and(|folder| !shared.contains(&folder) && folder.is_dir());
    let project = configuration.project.map(|path| places.project.join(path));
    // GitHub's and the common folder for agents are not of one client.
    let project = project.filter(|path| {
        path.exists()
            || !(path.starts_with(places.project.join(".github")) || path.starts_with(places.project.join(".agents")))
    });
    places.user_files(configuration).any(|path| is_used(&path)) || project.is_some_and(|path| is_used(&path))
}
