//! Opening a library for a command that prints a result and ends.
//!
//! `serve` builds its library itself: it adds settings, reloads and shutdown.

use std::{
    fs,
    path::{Path, PathBuf},
};

use promptshelf_author::add_samples;
use promptshelf_core::{Code, Diagnostic, Prompt, Variables, nearest};
use promptshelf_git::{GitAddress, GitOptions, GitSource, OnErrors};
use promptshelf_server::Library;
use promptshelf_service::Rejection;
use promptshelf_source::{Files, syntax::LIBRARY_FILE};
use promptshelf_store::StoreUrl;

use crate::{
    args::value_words,
    command_line,
    exit::{Exit, Failure},
    output::{count, note},
    settings::ServerFileLocation,
    source::{HERE, Source, is_url, own_prompt, unknown_scheme},
    state,
};

/// Opens the library in `folder`.
pub(crate) fn open(folder: &Path) -> Result<Library, Failure> {
    Ok(Library::builder().source(source(folder, granted_roots(None))?).build()?)
}

/// Whether a word is no folder, but a git repository or a store.
pub(crate) fn is_address(folder: &Path) -> bool {
    folder.to_str().is_some_and(|word| GitAddress::is_meant(word) || StoreUrl::is_meant(word))
}

/// Refuses what is neither a folder nor a file, such as a pipe, whose reader would wait.
pub(crate) fn refuse_device(path: &Path) -> Result<(), Failure> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let message = format!("{} is neither a folder nor a file with text", path.display());
        return Err(Failure::new(Exit::Library, message));
    }
    Ok(())
}

/// Refuses an address where `what` changes files.
pub(crate) fn require_files(folder: &Path, what: &str) -> Result<(), Failure> {
    if !is_address(folder) || folder.is_dir() {
        return Ok(());
    }
    Err(Failure::new(Exit::Usage, format!("`{what}` changes files, and a repository or a store is only read"))
        .help("clone or pull it, and name the folder"))
}

/// Returns the source of the library in a folder, or in a git repository or a channel as it is now.
pub(crate) fn source(folder: &Path, roots: Vec<PathBuf>) -> Result<Files, Failure> {
    if let Some(word) = folder.to_str().filter(|word| StoreUrl::is_meant(word)) {
        return Ok(Files::tree(apart(|| crate::commands::channel_tree(word))?));
    }
    let Some(word) = folder.to_str().filter(|word| GitAddress::is_meant(word)) else {
        let directory = Files::folder(folder);
        directory.grant_roots(roots);
        return Ok(directory);
    };
    let state = state::folder().ok_or_else(|| Failure::new(Exit::Failed, "there is no folder for copies of files"))?;
    // Apart from that of servers: a commit with errors is not one that a server may return to.
    let mut options = GitOptions::new(word.parse()?, state.join("git").join("commands"));
    options.on_errors = OnErrors::LeaveOut;
    let git = GitSource::new(options)?;
    git.source().grant_roots(roots);
    apart(|| refresh(&git))?;
    Ok(git.source().clone())
}

/// Waits on a thread of its own: the runtime of the caller may have one thread, which must not wait.
fn apart<T: Send, F: Future<Output = Result<T, Failure>>>(work: impl FnOnce() -> F + Send) -> Result<T, Failure> {
    let done = std::thread::scope(|scope| {
        let run = || tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work());
        scope.spawn(run).join()
    });
    done.unwrap_or_else(|_| Err(Failure::new(Exit::Failed, "the prompts were not read")))
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
        let (found, folder) = (count(errors, "error"), command_line::path(folder));
        note(&[format!("{found} in the library, invalid prompts are left out; see `promptshelf check {folder}`")]);
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
            let values = samples.iter().flat_map(|(name, value)| value_words(name, value));
            let words: Vec<String> = std::iter::once(name.to_owned()).chain(values).collect();
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

/// A library, and the files of it that a command is about.
#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) folder: PathBuf,
    /// Paths inside the library; all if there are none.
    files: Vec<String>,
}

impl Selection {
    /// Returns the libraries of folders and files, each once. Without any, it is the current folder.
    pub(crate) fn of(paths: &[PathBuf]) -> Result<Vec<Selection>, Failure> {
        let mut selections: Vec<Selection> = Vec::new();
        for path in paths {
            let is_address = is_address(path);
            // A URL that is no repository gets an error of its own.
            if !is_address && !path.to_str().is_some_and(is_url) {
                match path.try_exists() {
                    Ok(false) if !path.is_symlink() => return Err(missing(path)),
                    Err(error) => {
                        return Err(Failure::new(Exit::Library, format!("{} cannot be read: {error}", path.display())));
                    }
                    Ok(_) => refuse_device(path)?,
                }
            }
            let (folder, file) = match path.is_file() && !is_address {
                true => library_of(path, None).map(|(folder, file)| (folder, Some(file)))?,
                false => (path.clone(), None),
            };
            match (selections.iter_mut().find(|selection| selection.folder == folder), file) {
                (Some(selection), Some(file)) if !selection.files.is_empty() => selection.files.push(file),
                (Some(selection), None) => selection.files.clear(),
                (Some(_), Some(_)) => {}
                (None, file) => selections.push(Selection { folder, files: file.into_iter().collect() }),
            }
        }
        if selections.is_empty() {
            selections.push(Selection { folder: PathBuf::from(HERE), files: Vec::new() });
        }
        Ok(selections)
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.files.is_empty() || self.files.iter().any(|file| file == path)
    }

    pub(crate) fn files(&self) -> &[String] {
        &self.files
    }

    /// Returns whether it is the whole library.
    pub(crate) fn is_whole(&self) -> bool {
        self.files.is_empty()
    }
}

fn missing(path: &Path) -> Failure {
    let shown = path.display();
    let failure = Failure::new(Exit::Library, format!("there is no folder or file {shown}"));
    let Some(word) = path.to_str() else { return failure };
    if let Some(failure) = unknown_scheme(word) {
        return failure;
    }
    if let Some(file) = own_prompt(word) {
        return failure.help(format!("`{word}` is a prompt of this folder; its file is {file}"));
    }
    let beside = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new(HERE));
    let entries = fs::read_dir(beside).into_iter().flatten().flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match nearest(name, names.iter().map(String::as_str)) {
        Some(known) => failure.help(format!("did you mean `{}`?", path.with_file_name(known).display())),
        None => failure,
    }
}

/// Returns the library of a file, the nearest one above unless it is given, and the file's path inside of it.
pub(crate) fn library_of(file: &Path, library: Option<&Path>) -> Result<(PathBuf, String), Failure> {
    let shown = file.display();
    let not_found = |error: std::io::Error| Failure::new(Exit::Library, format!("cannot open {shown}: {error}"));
    let path = fs::canonicalize(file).map_err(not_found)?;
    let folder = match library {
        Some(library) => fs::canonicalize(library).map_err(not_found)?,
        None => nearest_library(&path, path.parent().unwrap_or(&path)),
    };
    let relative = path
        .strip_prefix(&folder)
        .map_err(|_| Failure::new(Exit::Usage, format!("{shown} is not in the library {}", folder.display())))?;
    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
    let relative = parts.join("/");
    let here = std::env::current_dir().ok().and_then(|here| fs::canonicalize(here).ok());
    let folder = match here.as_deref().and_then(|here| folder.strip_prefix(here).ok()) {
        Some(inside) if inside.as_os_str().is_empty() => PathBuf::from(HERE),
        Some(inside) => inside.to_owned(),
        None => folder,
    };
    Ok((folder, relative))
}

/// Returns the library that a file belongs to: the nearest folder above it with a manifest; otherwise the nearest one in
/// which everything exists that the file refers to, of its own folder, those with a partial, and the root of its
/// repository.
fn nearest_library(file: &Path, own: &Path) -> PathBuf {
    if let Some(library) = own.ancestors().find(|folder| folder.join(LIBRARY_FILE).is_file()) {
        return library.to_owned();
    }
    let has_partial = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).any(|name| name.as_encoded_bytes().starts_with(b"_"))
    };
    let is_root = |folder: &Path| folder.join(".git").exists();
    let root = own.ancestors().find(|folder| is_root(folder));
    let ancestors = own.ancestors().take_while(|folder| root.is_none_or(|root| folder.starts_with(root)));
    let mut candidates = ancestors.filter(|folder| *folder == own || has_partial(folder) || is_root(folder));
    candidates.find(|folder| has_references(folder, file)).unwrap_or(own).to_owned()
}

fn has_references(library: &Path, file: &Path) -> bool {
    let (Ok(opened), Ok(path)) = (open(library), file.strip_prefix(library)) else { return false };
    let is_missing = |found: &Diagnostic| {
        matches!(found.code, Code::MissingPartial | Code::MissingFile)
            && Path::new(&*found.location.source.path) == path
    };
    !opened.diagnostics().iter().any(is_missing)
}
