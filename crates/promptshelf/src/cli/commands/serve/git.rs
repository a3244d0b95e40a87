//! A library in a git repository.

use promptshelf_git::{GitAddress, GitOptions, GitSource};

use crate::{
    exit::{Exit, Failure},
    settings::Settings,
    state,
};

/// Reads the newest commit; that of the last run if the repository is away.
pub(super) async fn open(address: GitAddress, settings: &Settings) -> Result<GitSource, Failure> {
    let source = GitSource::new(GitOptions::new(address, folder()?))?;
    source.source().grant_roots(settings.granted_roots.iter().cloned());
    source.source().show_provenance(settings.shows_provenance);
    match source.refresh().await {
        Ok(()) => {}
        Err(error) if source.state().served.is_some() => {
            tracing::error!("the newest commit is not served: {error}");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(source)
}

fn folder() -> Result<std::path::PathBuf, Failure> {
    let state = state::folder().ok_or_else(|| {
        Failure::new(Exit::Failed, "there is no folder for copies of git repositories")
            .help("set XDG_STATE_HOME to a folder that this user can write to")
    })?;
    Ok(state.join("git"))
}
