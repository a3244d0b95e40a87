//! `promptshelf import`: converts prompts of other programs to files of a library.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use promptshelf_author::{ImportFormat, ImportedFile, import_all};
use promptshelf_core::{Diagnostic, SourceText};
use promptshelf_server::Library;
use promptshelf_source::{EditError, EditableFolder, Files, MemoryFile, check_file_path, read_served_tree};
use serde_json::json;

use super::{
    diagnostics::{DiagnosticFormat, to_json},
    private_files::private,
};
use crate::{
    command_line,
    exit::{Exit, Failure},
    output::{Output, count, list_json, pretty_json},
};

const IMPORT_EXAMPLES: &str = "\
Losses and changes are reported with their lines. Existing files are not
overwritten.

Examples:
  promptshelf import project/prompts --to library    files of known formats
  promptshelf import greet.prompt --dry-run            shows losses
  promptshelf import export.json --from langfuse --to library";

#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(crate) struct ImportArguments {
    /// A file, or a folder that contains such files
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,

    /// The format of the files [default: detected from names and keys]
    #[arg(long, value_name = "FORMAT", value_parser = import_format())]
    pub(crate) from: Option<ImportFormat>,

    /// The library to write to
    #[arg(long, value_name = "LIBRARY", default_value = ".")]
    pub(crate) to: PathBuf,

    /// List the files and losses without writing anything
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn import_format() -> impl TypedValueParser<Value = ImportFormat> {
    let words = ImportFormat::ALL.iter().map(|format| PossibleValue::new(format.as_str()).help(format.about()));
    PossibleValuesParser::new(words).try_map(|word| {
        ImportFormat::ALL.iter().copied().find(|format| format.as_str() == word).ok_or("unknown format")
    })
}

const SKILL_FILE: &str = "SKILL.md";

/// The maximum depth of folders, and the maximum number of files in all of them.
const MAX_DEPTH: usize = 16;

const MAX_FILES: usize = 100_000;

/// The maximum size of a file, in bytes.
const MAX_BYTES: u64 = 16 << 20;

const MAX_SKIPPED: usize = 200;

pub(crate) fn run(arguments: &ImportArguments) -> Result<(), Failure> {
    let mut import = Import { format: arguments.from, is_file: arguments.path.is_file(), ..Import::default() };
    let files = files(&arguments.path)?;
    let skills = match arguments.from {
        None | Some(ImportFormat::Skill) => skills(&arguments.path, &files),
        Some(_) => Vec::new(),
    };
    for path in files.iter().filter(|path| !skills.iter().any(|skill| path.starts_with(&skill.folder))) {
        import.read(path)?;
    }
    import.convert();
    for skill in &skills {
        import.copy(skill)?;
    }
    import.skip_links(&arguments.path);
    import.finish(arguments)
}

struct SkillFolder {
    folder: PathBuf,
    files: Vec<PathBuf>,
}

/// Returns the folders of skills that have more files than `SKILL.md`. That of a single file is listed here.
fn skills(path: &Path, files: &[PathBuf]) -> Vec<SkillFolder> {
    let skill = |file: &PathBuf| {
        let folder = file.parent().filter(|_| file.ends_with(SKILL_FILE))?;
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let mut inside = Vec::new();
        if path.is_file() {
            walk(folder, 0, &mut inside, fs::FileType::is_file).ok()?;
        } else {
            inside.extend(files.iter().filter(|file| file.starts_with(folder)).cloned());
        }
        inside.sort();
        (inside.len() > 1).then(|| SkillFolder { folder: folder.to_owned(), files: inside })
    };
    files.iter().filter_map(skill).collect()
}

#[derive(Default)]
struct Import {
    format: Option<ImportFormat>,
    is_file: bool,
    sources: Vec<(Arc<SourceText>, ImportFormat)>,
    files: BTreeMap<String, Vec<u8>>,
    /// The files that programs execute, such as the scripts of skills.
    executables: BTreeSet<String>,
    losses: Vec<Diagnostic>,
    /// The files that were not imported, with the reasons.
    skipped: Vec<(String, String)>,
    /// The files that have another name because theirs was taken.
    renamed: Vec<String>,
    problems: Vec<String>,
}

impl Import {
    fn read(&mut self, path: &Path) -> Result<(), Failure> {
        let shown = shown(path);
        let text = match read(path) {
            Ok(Some(text)) => text,
            Ok(None) if self.is_file => {
                return Err(Failure::new(Exit::Failed, format!("{shown} {NO_TEXT}")));
            }
            Ok(None) => {
                self.skipped.push((shown, NO_TEXT.replacen("is", "it is", 1)));
                return Ok(());
            }
            Err(error) => {
                self.problems.push(format!("{shown} cannot be read: {error}"));
                return Ok(());
            }
        };
        let format = match self.format {
            // `--from` decides for a single file; in a folder it selects the files that can have the format.
            Some(format) if self.is_file => Ok(format),
            Some(format) => format.can_have(&shown, &text).map(|()| format),
            None => {
                ImportFormat::of(&shown, &text).ok_or_else(|| "its format is not known; `--from` names it".to_owned())
            }
        };
        match format {
            Ok(format) => self.sources.push((SourceText::new(shown, text), format)),
            Err(reason) => self.skipped.push((shown, reason)),
        }
        Ok(())
    }

    fn convert(&mut self) {
        let sources = std::mem::take(&mut self.sources);
        let mut files = Vec::new();
        for ((source, _), imported) in sources.iter().zip(import_all(&sources)) {
            self.losses.extend(imported.losses);
            files.extend(imported.files.into_iter().map(|ImportedFile { path, text }| (&*source.path, path, text)));
        }
        // A file that has the name already keeps it.
        files.sort_by_key(|(from, path, _)| stem(from) != stem(path));
        for (from, path, text) in files {
            self.add(from, path, text.into_bytes());
        }
    }

    /// Copies a skill as it is: libraries read skills, and their texts refer to their files.
    fn copy(&mut self, skill: &SkillFolder) -> Result<(), Failure> {
        let absolute = std::path::absolute(&skill.folder)?;
        let name = absolute.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for path in &skill.files {
            let inside = shown(path.strip_prefix(&skill.folder).unwrap_or(path));
            match fs::metadata(path)
                .and_then(|found| if found.len() > MAX_BYTES { Ok(None) } else { fs::read(path).map(Some) })
            {
                Ok(Some(bytes)) => match private(&inside, &bytes) {
                    Some(what) => self
                        .skipped
                        .push((shown(path), format!("this looks like {what}: copy it by hand if it is none"))),
                    None => {
                        let to = format!("{name}/{inside}");
                        if is_executable(path) {
                            self.executables.insert(to.clone());
                        }
                        self.add(&shown(path), to, bytes);
                    }
                },
                Ok(None) => self.skipped.push((shown(path), "it is larger than 16 MiB".to_owned())),
                Err(error) => self.problems.push(format!("{} cannot be read: {error}", shown(path))),
            }
        }
        Ok(())
    }

    fn add(&mut self, from: &str, to: String, bytes: Vec<u8>) {
        if let Err(reason) = check_file_path(&to) {
            self.problems.push(format!("{from}: skipped, because {to} cannot be written: {reason}"));
            return;
        }
        // Files with one name in several folders keep theirs apart.
        let parent = from.rsplit('/').nth(1).filter(|_| self.files.contains_key(&to) && !to.contains('/'));
        let apart = parent.map(|parent| parent.trim_start_matches('.')).filter(|parent| !parent.is_empty());
        let named = apart.map(|parent| format!("{parent}-{to}").to_lowercase().replace(' ', "-"));
        match self.files.entry(named.clone().unwrap_or_else(|| to.clone())) {
            Entry::Vacant(entry) => {
                entry.insert(bytes);
                if let Some(named) = named {
                    self.renamed
                        .push(format!("{from}: converted to {named}, because another file was converted to {to}"));
                }
            }
            Entry::Occupied(entry) => {
                let to = entry.key();
                self.problems.push(format!("{from}: skipped, because another file was converted to {to}"));
            }
        }
    }

    /// Names the links, which are not followed: they can lead out of the folder.
    fn skip_links(&mut self, path: &Path) {
        let mut links = Vec::new();
        if !self.is_file {
            walk(path, 0, &mut links, fs::FileType::is_symlink).ok();
        }
        links.sort();
        self.skipped.extend(links.iter().map(|link| (shown(link), "it is a symbolic link".to_owned())));
    }

    fn errors(&self, library: &Path) -> Vec<Diagnostic> {
        let (present, _) = read_served_tree(library).unwrap_or_default();
        let is_new = |path: &str| !library.join(path).exists();
        let new = self.files.iter().filter(|(path, _)| is_new(path));
        let tree = present.with(new.map(|(path, bytes)| (path.as_str(), Some(MemoryFile::new(bytes.as_slice())))));
        let Ok(checked) = Library::builder().source(Files::tree(tree).lenient()).build() else { return Vec::new() };
        let is_ours = |path: &str| self.files.contains_key(path) && is_new(path);
        let diagnostics = checked.diagnostics();
        diagnostics.iter().filter(|found| found.is_error() && is_ours(&found.location.source.path)).cloned().collect()
    }

    fn finish(mut self, arguments: &ImportArguments) -> Result<(), Failure> {
        let errors = self.errors(&arguments.to);
        let mut stderr = Output::stderr();
        if !errors.is_empty() {
            let broken: BTreeSet<&str> = errors.iter().map(|error| &*error.location.source.path).collect();
            let library = stderr.line(&command_line::path(&arguments.to)).into_owned();
            writeln!(
                stderr.out,
                "error: {} of {} {} and will not be served; see `promptshelf check {library}`",
                broken.len(),
                count(self.files.len(), "new file"),
                if broken.len() == 1 { "has errors" } else { "have errors" }
            )?;
        }
        let mut output = Output::stdout();
        let mut items = Vec::new();
        let (colours, width, is_broken) = (output.colours, output.width, output.terminal);
        let of = |folder| DiagnosticFormat { folder, colours, width, is_broken };
        let (losses, broken) = (of(Path::new(".")), of(&arguments.to));
        for loss in self.losses.iter().filter(|_| !arguments.json) {
            writeln!(output.out, "{}\n", losses.format(loss))?;
        }
        for error in errors.iter().filter(|_| !arguments.json) {
            writeln!(output.out, "{}\n", broken.format(error))?;
        }
        let mut written = 0;
        for (relative, bytes) in &self.files {
            let path = arguments.to.join(relative);
            if !arguments.dry_run
                && let Err(error) = write(&arguments.to, relative, bytes, self.executables.contains(relative))
            {
                self.problems.push(format!("{} {}", path.display(), reason(&error)));
                continue;
            }
            if !arguments.json {
                let line = output.line(&path.display().to_string()).into_owned();
                writeln!(output.out, "{line}")?;
            }
            items.push(json!({ "path": path }));
            written += 1;
        }
        if arguments.json {
            let mut list = list_json(items.into_iter());
            let reasons = self.skipped.iter().map(|(path, reason)| json!({ "path": path, "reason": reason }));
            list["skipped"] = reasons.collect();
            list["renamed"] = json!(self.renamed);
            list["losses"] = to_json(&self.losses, Path::new("."))["items"].take();
            list["errors"] = to_json(&errors, &arguments.to)["items"].take();
            writeln!(output.out, "{}", pretty_json(&list))?;
        }
        output.out.flush()?;
        for (path, reason) in self.skipped.iter().take(MAX_SKIPPED) {
            let line = stderr.line(&format!("skipped {path}: {reason}")).into_owned();
            writeln!(stderr.out, "{line}")?;
        }
        for renamed in &self.renamed {
            let renamed = stderr.line(renamed).into_owned();
            writeln!(stderr.out, "note: {renamed}")?;
        }
        for problem in &self.problems {
            let problem = stderr.line(problem).into_owned();
            writeln!(stderr.out, "warning: {problem}")?;
        }
        let verb = if arguments.dry_run { "would be written" } else { "written" };
        let lost = self.losses.iter().filter(|loss| !loss.is_error()).count();
        let mut summary = format!("{} {verb}, {} to review", count(written, "file"), count(lost, "change"));
        if !self.skipped.is_empty() {
            summary.push_str(&format!("; {} skipped", count(self.skipped.len(), "file")));
        }
        writeln!(stderr.out, "{summary}")?;
        let is_incomplete = !self.problems.is_empty() || self.losses.iter().any(Diagnostic::is_error);
        if written == 0 || is_incomplete || !errors.is_empty() {
            return Err(Failure::reported(Exit::Failed));
        }
        Ok(())
    }
}

/// The reason why a file is not read.
const NO_TEXT: &str = "is not UTF-8, or larger than 16 MiB";

/// Returns the name of a file up to its first dot.
fn stem(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path).split('.').next().unwrap_or_default()
}

fn shown(path: &Path) -> String {
    path.display().to_string().replace('\\', "/")
}

/// Returns the file, or all files below the folder, sorted by path.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    walk(path, 0, &mut found, fs::FileType::is_file)
        .map_err(|error| Failure::new(Exit::Library, format!("{} cannot be read: {error}", path.display())))?;
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>, is_wanted: fn(&fs::FileType) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (kind, name) = (entry.file_type()?, entry.file_name());
        if kind.is_dir() && depth < MAX_DEPTH && name != ".git" && name != "node_modules" {
            // Unreadable folders are skipped.
            walk(&entry.path(), depth + 1, found, is_wanted).ok();
        } else if is_wanted(&kind) && found.len() < MAX_FILES {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// Reads a file. `None` if it is too large or not UTF-8.
fn read(path: &Path) -> io::Result<Option<String>> {
    if fs::metadata(path)?.len() > MAX_BYTES {
        return Ok(None);
    }
    Ok(String::from_utf8(fs::read(path)?).ok())
}

/// Writes a new file below a folder.
pub(super) fn write(folder: &Path, path: &str, bytes: &[u8], is_executable: bool) -> Result<(), EditError> {
    let folder = EditableFolder::local(folder)?;
    folder.create(path, bytes)?;
    if is_executable { folder.set_executable(path) } else { Ok(()) }
}

/// Whether the owner of a file may execute it.
#[cfg(unix)]
pub(super) fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(file).is_ok_and(|found| found.permissions().mode() & 0o100 != 0)
}

#[cfg(not(unix))]
pub(super) fn is_executable(_: &Path) -> bool {
    false
}

/// Returns why a file was not written, for a sentence that begins with its path.
pub(super) fn reason(error: &EditError) -> String {
    match error {
        EditError::Exists => "already exists and was not changed".to_owned(),
        _ => format!("cannot be written: {error}"),
    }
}
