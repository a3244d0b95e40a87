//! `promptshelf import`: converts prompts of other programs to files of a library.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use promptshelf_author::{ImportFormat, ImportedFile, import};
use promptshelf_core::{Diagnostic, SourceText};
use promptshelf_server::Library;

use super::diagnostics::DiagnosticFormat;
use crate::{
    args::exchange::ImportArguments,
    command_line,
    exit::{Exit, Failure},
    output::{Output, count},
};

/// The maximum depth of folders, and the maximum number of files in all of them.
const MAX_DEPTH: usize = 16;
const MAX_FILES: usize = 100_000;

/// The maximum size of a file, in bytes.
const MAX_BYTES: u64 = 16 << 20;

pub(crate) fn run(arguments: &ImportArguments) -> Result<(), Failure> {
    let is_file = arguments.path.is_file();
    let files = files(&arguments.path)?;
    let (mut losses, mut imports, mut skipped) = (Vec::new(), BTreeMap::<String, ImportedFile>::new(), 0);
    let mut problems = Vec::new();
    for path in files {
        let shown = path.display().to_string().replace('\\', "/");
        let text = match read(&path) {
            Ok(Some(text)) => text,
            Ok(None) if !is_file => {
                skipped += 1;
                continue;
            }
            Ok(None) => return Err(Failure::new(Exit::Failed, format!("{shown} is not UTF-8, or larger than 16 MiB"))),
            Err(error) => {
                problems.push(format!("{shown} cannot be read: {error}"));
                continue;
            }
        };
        let detected = ImportFormat::of(&shown, &text);
        let format = match arguments.from {
            // `--from` decides for a single file; in a folder it selects the files of that format.
            Some(format) if is_file => format,
            Some(format) if detected == Some(format) => format,
            None if detected.is_some() => detected.unwrap_or(ImportFormat::Claude),
            _ => {
                skipped += 1;
                continue;
            }
        };
        let imported = import(&SourceText::new(shown.clone(), text), format);
        losses.extend(imported.losses);
        for file in imported.files {
            if imports.contains_key(&file.path) {
                problems.push(format!("{shown}: skipped, because another file was converted to {}", file.path));
            } else {
                imports.insert(file.path.clone(), file);
            }
        }
    }
    finish(arguments, &losses, imports.into_values().collect(), problems, skipped)
}

fn finish(
    arguments: &ImportArguments,
    losses: &[Diagnostic],
    imports: Vec<ImportedFile>,
    mut problems: Vec<String>,
    skipped: usize,
) -> Result<(), Failure> {
    let mut output = Output::stdout();
    let format = DiagnosticFormat { folder: Path::new("."), colours: output.colours, width: output.width };
    for loss in losses {
        writeln!(output.out, "{}\n", format.format(loss))?;
    }
    let mut written = Vec::new();
    for file in imports {
        let path = arguments.to.join(&file.path);
        if !arguments.dry_run
            && let Err(error) = write(&path, file.text.as_bytes())
        {
            problems.push(match error.kind() {
                io::ErrorKind::AlreadyExists => format!("{} already exists and was not changed", path.display()),
                _ => format!("{} cannot be written: {error}", path.display()),
            });
            continue;
        }
        let line = output.line(&path.display().to_string()).into_owned();
        writeln!(output.out, "{line}")?;
        written.push(file.path);
    }
    output.out.flush()?;
    let verb = if arguments.dry_run { "would be written" } else { "written" };
    let lost = losses.iter().filter(|loss| !loss.is_error()).count();
    let mut summary = format!("{} {verb}, {} to review", count(written.len(), "file"), count(lost, "change"));
    if skipped > 0 {
        summary.push_str(&format!("; {} of unknown format skipped", count(skipped, "file")));
    }
    let mut stderr = Output::stderr();
    for problem in &problems {
        let problem = stderr.line(problem).into_owned();
        writeln!(stderr.out, "warning: {problem}")?;
    }
    writeln!(stderr.out, "{summary}")?;
    if !arguments.dry_run {
        note_errors(&arguments.to, &written, &mut stderr)?;
    }
    if written.is_empty() || !problems.is_empty() || losses.iter().any(Diagnostic::is_error) {
        return Err(Failure::reported(Exit::Failed));
    }
    Ok(())
}

/// Notes how many of the new files have errors.
fn note_errors<W: Write>(folder: &Path, written: &[String], output: &mut Output<W>) -> Result<(), Failure> {
    let Ok(library) = Library::builder().folder(folder).build() else { return Ok(()) };
    let is_new =
        |found: &&Diagnostic| found.is_error() && written.iter().any(|path| *path == found.location.source.path);
    let errors = library.diagnostics().iter().filter(is_new).count();
    if errors > 0 {
        let folder = output.line(&command_line::path(folder)).into_owned();
        writeln!(output.out, "note: {} in the new files; see `promptshelf check {folder}`", count(errors, "error"))?;
    }
    Ok(())
}

/// Returns the file, or all files below the folder, sorted by path.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    walk(path, 0, &mut found)
        .map_err(|error| Failure::new(Exit::Failed, format!("{} cannot be read: {error}", path.display())))?;
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (kind, name) = (entry.file_type()?, entry.file_name());
        if kind.is_dir() && depth < MAX_DEPTH && name != ".git" && name != "node_modules" {
            // Unreadable folders are skipped.
            walk(&entry.path(), depth + 1, found).ok();
        } else if kind.is_file() && found.len() < MAX_FILES {
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

/// Writes a new file. An existing file is an error of the kind `AlreadyExists`.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::File::options().write(true).create_new(true).open(path)?.write_all(bytes)
}
