//! `promptshelf init FOLDER`: makes a library with example prompts.

use std::{collections::BTreeMap, io::Write as _, path::Path};

use promptshelf_author::STARTER_LIBRARY;
use promptshelf_source::{EditError, EditableFolder, Files, Source as _, syntax::LIBRARY_FILE};
use serde_json::json;

use super::serve::is_too_wide;
use crate::{
    command_line,
    exit::{Exit, Failure},
    launcher,
    output::{Output, agrees, count, pretty_json},
    source::HERE,
    terminal::{asked, is_interactive},
};

/// Returns the folders with prompts of other programs, and the number of their files.
fn foreign_prompts(folder: &Path) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    // Those with a mistake, and those that have the name of another, count, too.
    let Ok(read) = Files::folder(folder).lenient().read() else { return found };
    for prompt in &read.into_definitions().prompts {
        let mut parts = prompt.origin.source.path.split('/');
        if let (Some(program), Some(kind)) = (parts.next().filter(|part| part.starts_with('.')), parts.next()) {
            *found.entry(format!("{program}/{kind}")).or_default() += 1;
        }
    }
    found
}

/// Says what the project has already, and how it is served or imported. Returns whether examples are to be written too.
fn offer(folder: &Path, present: &BTreeMap<String, usize>, json: bool) -> Result<bool, Failure> {
    let mut output = Output::stdout();
    if json {
        let result = json!({ "folder": folder, "present": present, "written": [], "kept": [] });
        writeln!(output.out, "{}", pretty_json(&result))?;
        return Ok(output.out.flush().map(|()| false)?);
    }
    let is_here = folder == Path::new(HERE);
    let place = if is_here { String::new() } else { format!(" {}", command_line::path(folder)) };
    writeln!(output.out, "prompts of other programs are here:")?;
    for (path, files) in present {
        let path = output.line(path).into_owned();
        writeln!(output.out, "  {path}: {}", count(*files, "file"))?;
    }
    let program = launcher::command();
    let from = if is_here { " .".to_owned() } else { place.clone() };
    writeln!(
        output.out,
        "\nserve them as they are:\n  {program} serve{place} --open\n\
         convert them to a library:\n  {program} import{from} --to prompts\n\
         write examples next to them:\n  {program} init{place} --yes"
    )?;
    output.out.flush()?;
    if !is_interactive() {
        return Ok(false);
    }
    asked("Write examples next to them? [y/N] ").ok_or_else(|| Failure::new(Exit::Declined, "nothing was written"))
}

/// Writes the files of a new library that are not there yet.
pub(crate) fn run(folder: &Path, json: bool) -> Result<(), Failure> {
    let shown = folder.display();
    let failed = |path: &Path, error: &EditError| {
        Failure::new(Exit::Failed, format!("{} cannot be written: {error}", path.display()))
            .help("name a folder that you may write to")
    };
    if is_too_wide(folder, std::env::home_dir().as_deref()) {
        let message = format!("{shown} is the root of a disk, or has home folders: a library is a folder of its own");
        return Err(Failure::new(Exit::Usage, message).help("name a new folder, such as `promptshelf init my-prompts`"));
    }
    if folder.exists() && !folder.is_dir() {
        return Err(Failure::new(Exit::Usage, format!("{shown} is a file")).help("name a folder"));
    }
    if folder.join(LIBRARY_FILE).exists() {
        let message = format!("{shown} is a library already, and was not changed: it has a {LIBRARY_FILE}");
        return Err(Failure::new(Exit::Conflict, message).help("`promptshelf new NAME` adds a prompt to it"));
    }
    let present = foreign_prompts(folder);
    if !present.is_empty() && !agrees() && !offer(folder, &present, json)? {
        return Ok(());
    }
    let (mut written, mut kept) = (Vec::new(), Vec::new());
    let files = EditableFolder::local(folder).map_err(|error| failed(folder, &error.into()))?;
    // The file that makes it a library comes last, so that an interrupted `init` can be repeated.
    for (name, text) in STARTER_LIBRARY.iter().rev() {
        match files.create(name, text.as_bytes()) {
            Ok(()) => written.push(*name),
            Err(EditError::Exists) => kept.push(*name),
            Err(error) => return Err(failed(&folder.join(name), &error)),
        }
    }
    written.reverse();
    kept.reverse();
    let mut output = Output::stdout();
    if json {
        let result = json!({ "folder": folder, "written": written, "kept": kept });
        writeln!(output.out, "{}", pretty_json(&result))?;
        return Ok(output.out.flush()?);
    }
    let is_here = folder == Path::new(HERE);
    let place = if is_here { "this folder".to_owned() } else { output.line(&shown.to_string()).into_owned() };
    writeln!(output.out, "{place} is a library now: {}", written.join(", "))?;
    if !kept.is_empty() {
        writeln!(output.out, "there already, and not changed: {}", kept.join(", "))?;
    }
    let (program, folder) =
        (launcher::command(), if is_here { String::new() } else { format!(" {}", command_line::path(folder)) });
    writeln!(
        output.out,
        "\nnext:\n  {program} serve --edit --open{folder}\n  {program} test{folder}\n  {program} install{folder}"
    )?;
    Ok(output.out.flush()?)
}
