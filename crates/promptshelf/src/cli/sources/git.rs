//! Sources in git repositories.

use std::sync::Arc;

use promptshelf_git::{Credentials, GitOptions, GitSource};
use promptshelf_source::{Health, OpenSource, OpenedSource, SourceError, wait_for};

use super::{needed, openers::Grants, state_folder::StateFolder};
use crate::{
    exit::{Exit, Failure},
    settings::{ConfiguredSource, SourcePlace},
};

/// Returns the handle of a git source. Nothing is read.
///
/// # Errors
///
/// For a source of another kind, and without a folder for copies of repositories.
pub(crate) fn git_source(source: &ConfiguredSource, state: Option<&StateFolder>) -> Result<GitSource, Failure> {
    let SourcePlace::Git(place) = &source.place else {
        let message = format!("the source {} is not a git repository", source.name);
        return Err(Failure::new(Exit::Usage, message));
    };
    let mut options = GitOptions::new(place.address.clone(), needed(source, state)?.path("git"));
    options.name = Some(source.name.clone());
    options.credentials = place.credentials.clone().map_or(Credentials::None, Credentials::File);
    options.signers.clone_from(&place.signers);
    options.interval = place.interval;
    options.timeout = place.timeout.unwrap_or(options.timeout);
    GitSource::new(options).map_err(|error| Failure::new(Exit::Settings, format!("source {}: {error}", source.name)))
}

pub(super) struct GitOpener {
    git: GitSource,
    grants: Arc<Grants>,
}

impl GitOpener {
    pub(super) fn new(git: GitSource, grants: &Arc<Grants>) -> GitOpener {
        GitOpener { git, grants: Arc::clone(grants) }
    }
}

impl OpenSource for GitOpener {
    fn kind(&self) -> &'static str {
        "git"
    }

    fn open(&self) -> Result<OpenedSource, SourceError> {
        let git = self.git.clone();
        // Attempts repeat until one succeeds: a commit that is too large must not be fetched each time.
        let refreshed = wait_for(async move { git.poll().await })?;
        // A commit of an earlier run may be served instead.
        if let (Err(error), None) = (refreshed, self.git.state().served) {
            return Err(SourceError::new(error.to_string()).with_source(error));
        }
        let source = self.git.source().clone();
        self.grants.add_tree(&source);
        let git = self.git.clone();
        Ok(OpenedSource::new(source).following(Box::new(move |_| Box::pin(git.run()))))
    }

    fn health(&self) -> Health {
        let state = self.git.state();
        Health {
            commit: state.served.map(|served| served.id),
            problem: state.problem,
            behind_since: state.behind_since,
            ..Health::default()
        }
    }

    fn refresh(&self) {
        self.git.nudge();
    }
}
