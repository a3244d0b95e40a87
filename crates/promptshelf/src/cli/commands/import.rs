//! `promptshelf import`: prompts of other programs become files of a library.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use promptshelf_author::{ImportFormat, ImportedFile, import};
use promptshelf_core::{Diagnostic, SourceText};
use promptshelf_server::Library;

use super::diagnostics::Drawing;
use crate::{
    args::exchange::ImportArguments,
    exit::{Exit, Failure},
    output::{Output, count},
};

/// How far a folder is looked through.
const MAX_DEPTH: usize = 16;
const MAX_FILES: usize = 100_000;

/// The largest file that is read.
const MAX_BYTES: u64 = 16 << 20;

pub(crate) fn run(arguments: &ImportArguments) -> Result<(), Failure> {
    let is_file = arguments.path.is_file();
    let files = files(&arguments.path)?;
    let (mut losses, mut wanted, mut passed) = (Vec::new(), BTreeMap::<String, ImportedFile>::new(), 0);
    let mut problems = Vec::new();
    for path in files {
        let shown = path.display().to_string().replace('\\', "/");
        let text = match read(&path) {
            Ok(Some(text)) => text,
            Ok(None) if !is_file => {
                passed += 1;
                continue;
            }
            Ok(None) => return Err(Failure::new(Exit::Failed, format!("{shown} is no text, or too large"))),
            Err(error) => {
                problems.push(format!("{shown} cannot be read: {error}"));
                continue;
            }
        };
        let told = ImportFormat::of(&shown, &text);
        let format = match arguments.from {
            // One file is what it is said to be; of a folder those are taken that are.
            Some(format) if is_file => format,
            Some(format) if told == Some(format) => format,
            None if told.is_some() => told.unwrap_or(ImportFormat::Claude),
            _ => {
                passed += 1;
                continue;
            }
        };
        let imported = import(&SourceText::new(shown.clone(), text), format);
        losses.extend(imported.losses);
        for file in imported.files {
            if wanted.contains_key(&file.path) {
                problems.push(format!("{shown}: another file became {} already, and this one is left out", file.path));
            } else {
                wanted.insert(file.path.clone(), file);
            }
        }
    }
    finish(arguments, &losses, wanted.into_values().collect(), problems, passed)
}

fn finish(
    arguments: &ImportArguments,
    losses: &[Diagnostic],
    wanted: Vec<ImportedFile>,
    mut problems: Vec<String>,
    passed: usize,
) -> Result<(), Failure> {
    let mut paper = Output::stdout();
    let drawing = Drawing { folder: Path::new("."), colours: paper.colours, width: paper.width };
    for loss in losses {
        writeln!(paper.out, "{}\n", drawing.draw(loss))?;
    }
    let mut written = Vec::new();
    for file in wanted {
        let path = arguments.to.join(&file.path);
        if !arguments.dry_run
            && let Err(error) = write(&path, &file.text)
        {
            problems.push(match error.kind() {
                io::ErrorKind::AlreadyExists => format!("{} is there already, and stays as it is", path.display()),
                _ => format!("{} cannot be written: {error}", path.display()),
            });
            continue;
        }
        let line = paper.line(&path.display().to_string()).into_owned();
        writeln!(paper.out, "{line}")?;
        written.push(file.path);
    }
    paper.out.flush()?;
    let verb = if arguments.dry_run { "would be written" } else { "written" };
    let lost = losses.iter().filter(|loss| !loss.is_error()).count();
    let mut said = format!("{} {verb}, {} to look at", count(written.len(), "file"), count(lost, "change"));
    if passed > 0 {
        said.push_str(&format!("; {} of no known format left alone", count(passed, "file")));
    }
    let mut stderr = Output::stderr();
    for problem in &problems {
        let problem = stderr.line(problem).into_owned();
        writeln!(stderr.out, "warning: {problem}")?;
    }
    writeln!(stderr.out, "{said}")?;
    if !arguments.dry_run {
        check(&arguments.to, &written, &mut stderr)?;
    }
    if written.is_empty() || !problems.is_empty() || losses.iter().any(Diagnostic::is_error) {
        return Err(Failure::said(Exit::Failed));
    }
    Ok(())
}

/// Says whether what was written can be served.
fn check<W: Write>(folder: &Path, written: &[String], paper: &mut Output<W>) -> Result<(), Failure> {
    let Ok(library) = Library::builder().folder(folder).build() else { return Ok(()) };
    let is_new =
        |found: &&Diagnostic| found.is_error() && written.iter().any(|path| *path == found.location.source.path);
    let errors = library.diagnostics().iter().filter(is_new).count();
    if errors > 0 {
        let folder = paper.line(&folder.display().to_string()).into_owned();
        writeln!(
            paper.out,
            "note: {} in what was written; `promptshelf check {folder}` shows them",
            count(errors, "error")
        )?;
    }
    Ok(())
}

/// The file, or every file below the folder, in order.
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
            // A folder that may not be read is none of ours.
            walk(&entry.path(), depth + 1, found).ok();
        } else if kind.is_file() && found.len() < MAX_FILES {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// The text of a file; `None` for one that is no text.
fn read(path: &Path) -> io::Result<Option<String>> {
    if fs::metadata(path)?.len() > MAX_BYTES {
        return Ok(None);
    }
    Ok(String::from_utf8(fs::read(path)?).ok())
}

/// Writes a file that is not there yet.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::File::options().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}
