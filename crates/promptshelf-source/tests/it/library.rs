//! A library in a temporary folder, and a loader that watches it.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use promptshelf_core::{Catalog, Definitions, Diagnostic};
use promptshelf_source::{Files, LoadReport, Loader, ReloadTask, Source, SourceError};
use tempfile::TempDir;
use tokio::sync::watch;

/// Longer than any operation takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A library inside a folder with files that must stay unreachable.
pub(crate) struct Library {
    around: TempDir,
}

impl Library {
    pub(crate) fn new() -> Library {
        let around = TempDir::new().expect("a folder");
        fs::create_dir(around.path().join("library")).expect("a library");
        Library { around }
    }

    /// Creates a library with these files.
    pub(crate) fn of(files: &[(&str, &str)]) -> Library {
        let library = Library::new();
        for (path, text) in files {
            library.write(path, text);
        }
        library
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.around.path().join("library")
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// Returns the folder that contains the library.
    pub(crate) fn outside(&self) -> &Path {
        self.around.path()
    }

    pub(crate) fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder around it")).expect("folders");
        fs::write(path, contents).expect("a file");
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).expect("removed");
    }

    pub(crate) fn source(&self) -> Files {
        let source = Files::folder(self.root());
        source.grant_roots([self.outside().to_path_buf()]);
        source
    }

    pub(crate) fn read(&self) -> Definitions {
        self.try_read().expect("it can be read")
    }

    pub(crate) fn try_read(&self) -> Result<Definitions, SourceError> {
        Ok(self.source().read()?.into_definitions())
    }

    /// Returns the diagnostics of the library, one line each.
    pub(crate) fn mistakes(&self) -> Vec<String> {
        lines(&self.read().diagnostics)
    }

    /// Watches the library by file system events alone.
    pub(crate) async fn watch(&self) -> WatchedLibrary {
        WatchedLibrary::of(self.source().poll_interval(None)).await
    }
}

pub(crate) fn lines(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(ToString::to_string).collect()
}

/// Returns the names of all defined prompts.
pub(crate) fn names(definitions: &Definitions) -> Vec<&str> {
    definitions.prompts.iter().map(|prompt| &*prompt.name).collect()
}

/// Returns the paths of all broken files.
pub(crate) fn broken(definitions: &Definitions) -> Vec<&str> {
    definitions.broken.iter().map(|file| &*file.path).collect()
}

/// A loader that watches its sources.
pub(crate) struct WatchedLibrary {
    pub(crate) loader: Loader,
    reports: watch::Receiver<LoadReport>,
    _task: ReloadTask,
}

impl WatchedLibrary {
    pub(crate) async fn of(source: impl Source + 'static) -> WatchedLibrary {
        WatchedLibrary::all(vec![Box::new(source)]).await
    }

    pub(crate) async fn all(sources: Vec<Box<dyn Source>>) -> WatchedLibrary {
        let loader = Loader::open(sources).expect("they can be read");
        let mut follower = loader.spawn();
        follower.ready().await;
        let reports = loader.reports();
        WatchedLibrary { loader, reports, _task: follower }
    }

    /// Waits for a load after which the condition holds.
    pub(crate) async fn until(&mut self, what: &str, condition: impl Fn(&Catalog, &LoadReport) -> bool) {
        let loader = self.loader.clone();
        let waiting = self.reports.wait_for(|report| condition(&loader.handle().current(), report));
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            let report = self.loader.reports().borrow().clone();
            panic!("never seen: {what}; the last report is {report:#?}");
        }
    }

    /// Waits until a prompt's body contains a text.
    pub(crate) async fn until_text(&mut self, name: &str, text: &str) {
        let what = format!("{name} contains {text:?}");
        self.until(&what, |catalog, _| text_of(catalog, name).is_some_and(|messages_of| messages_of.contains(text)))
            .await;
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.loader.handle().current().prompts().iter().map(|prompt| prompt.name().to_string()).collect()
    }

    pub(crate) fn loads(&self) -> u64 {
        self.loader.reports().borrow().loads
    }

    pub(crate) fn mistakes(&self) -> Vec<String> {
        lines(&self.loader.diagnostics())
    }
}

/// Returns the text of a prompt without arguments.
pub(crate) fn text_of(catalog: &Catalog, name: &str) -> Option<String> {
    let prompt = catalog.find(name)?;
    let bound = prompt.bind(&promptshelf_core::RawArguments::from_iter(Vec::<(&str, &str)>::new()), 1_000).ok()?;
    let parts = prompt.render(catalog.render_context(), &bound).ok()?;
    Some(format!("{parts:?}"))
}
