//! Opening a library for a command that prints a result and ends.
//!
//! `serve` builds its library itself: it adds settings, reloads and shutdown.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use promptshelf_author::add_samples;
use promptshelf_core::{Prompt, Variables, nearest};
use promptshelf_git::{GitAddress, GitOptions, GitSource, OnErrors};
use promptshelf_server::Library;
use promptshelf_service::Rejection;
use promptshelf_source::Files;

use crate::{
    command_line,
    exit::{Exit, Failure},
    output::{Output, count},
    settings::ServerFileLocation,
    source::Source,
    state,
};

/// Opens the library in `folder`.
pub(crate) fn open(folder: &Path) -> Result<Library, Failure> {
    Ok(Library::builder().source(source(folder, granted_roots(None))?).build()?)
}

/// Returns the source of the library in a folder, or in a git repository as it is now.
pub(crate) fn source(folder: &Path, roots: Vec<PathBuf>) -> Result<Arc<dyn promptshelf_source::Source>, Failure> {
    let Some(word) = folder.to_str().filter(|word| GitAddress::is_meant(word)) else {
        let directory = Files::folder(folder);
        directory.grant_roots(roots);
        return Ok(Arc::new(directory));
    };
    let state = state::folder().ok_or_else(|| Failure::new(Exit::Failed, "there is no folder for copies of files"))?;
    // Apart from that of servers: a commit with errors is not one that a server may return to.
    let mut options = GitOptions::new(word.parse()?, state.join("git").join("commands"));
    options.on_errors = OnErrors::LeaveOut;
    let git = GitSource::new(options)?;
    git.source().grant_roots(roots);
    // The runtime of the caller may have one thread, which must not wait.
    let reading = std::thread::scope(|scope| {
        let read = || tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(refresh(&git));
        scope.spawn(read).join()
    });
    reading.unwrap_or_else(|_| Err(Failure::new(Exit::Failed, "the repository was not read")))?;
    Ok(Arc::new(git.source().clone()))
}

async fn refresh(git: &GitSource) -> Result<(), Failure> {
    Ok(git.refresh().await?)
}

/// The folders that the operator's `server.toml` grants to libraries. Mistakes in that file are reported by `serve` and
/// `check --config`, not by commands that only use a library; the valid entries of such a file still apply.
pub(crate) fn granted_roots(config: Option<&Path>) -> Vec<PathBuf> {
    let environment = crate::environment::variable;
    let file = ServerFileLocation::find(config, &environment).load();
    file.map(|mut file| file.granted_roots()).unwrap_or_default()
}

pub(crate) fn name(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join(promptshelf_source::syntax::LIBRARY_FILE)).ok()?;
    let settings: toml::Table = text.parse().ok()?;
    Some(settings.get("server")?.get("name")?.as_str()?.to_owned())
}

/// Notes on stderr that the library has errors, because the result then lacks some of its prompts.
pub(crate) fn note_errors(library: &Library, folder: &Path) {
    let errors = library.diagnostics().iter().filter(|diagnostic| diagnostic.is_error()).count();
    if errors > 0 {
        let mut stderr = Output::stderr();
        let folder = stderr.line(&command_line::path(folder)).into_owned();
        let found = count(errors, "error");
        writeln!(
            stderr.out,
            "note: {found} in the library, invalid prompts are left out; see `promptshelf check {folder}`"
        )
        .ok();
    }
}

pub(crate) fn accepts(prompt: &Prompt, argument: &str, value: &str) -> bool {
    let mut arguments = prompt.arguments().iter();
    arguments.find(|known| known.name() == argument).is_some_and(|argument| argument.parsed(value).is_some())
}

/// Marks a command line as a template if the values of some arguments are only placeholders.
pub(crate) fn template<'a>(line: String, placeholders: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = placeholders.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { line } else { format!("{line}\nwith values of yours for {}", names.join(", ")) }
}

/// Returns the failure for a prompt that is not served because of an error in its file.
pub(crate) fn broken(library: &Library, folder: &Path, name: &str) -> Option<Failure> {
    let error = library.error_of(name)?;
    let (place, mistake) = (&error.location, &error.message);
    let message = format!("the prompt `{name}` is not served, because its file has an error: {place}: {mistake}");
    let check = command_line::path(folder);
    Some(Failure::new(Exit::NotFound, message).help(format!("`promptshelf check {check}` shows how to correct it")))
}

/// Converts a rejection of a prompt, with a hint that can name any prompt, because the user owns the library.
pub(crate) fn rejected(rejection: Rejection, library: &Library, folder: &Path, name: &str) -> Failure {
    let catalog = library.catalog();
    let names = || catalog.prompts().iter().map(|prompt| prompt.name().as_str());
    if matches!(rejection, Rejection::UnknownPrompt { .. })
        && let Some(failure) = broken(library, folder, name)
    {
        return failure;
    }
    let help = match &rejection {
        Rejection::UnknownPrompt { .. } => {
            note_errors(library, folder);
            Some(match nearest(name, names()) {
                Some(known) => format!("did you mean `{known}`?"),
                None => format!("`{}` lists the prompts", Source::Folder(folder.to_owned()).command_line("list", &[])),
            })
        }
        Rejection::InvalidArguments { .. } => catalog.find(name).map(|prompt| {
            let mut samples = Variables::new();
            add_samples(prompt, &mut samples);
            let flags = samples.iter().flat_map(|(name, value)| ["--arg".to_owned(), format!("{name}={value}")]);
            let words: Vec<String> = std::iter::once(name.to_owned()).chain(flags).collect();
            let line = Source::Folder(folder.to_owned()).command_line("get", &words);
            let refused = samples.iter().filter(|(name, value)| !accepts(prompt, name, value));
            template(line, refused.map(|(name, _)| name.as_str()))
        }),
        _ => None,
    };
    let failure = Failure::from(rejection);
    match help {
        Some(help) => failure.help(help),
        None => failure,
    }
}
