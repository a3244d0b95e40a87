//! Renames of a file in the served folder, with every reference to it. The old file goes last: after an interruption at any
//! moment each reference has a file, and the same rename completes it.

use std::collections::BTreeMap;

use promptshelf_author::Analyzer;
use promptshelf_source::{EditError, EditableFolder, ListedFile};
use promptshelf_store::Digest;
use promptshelf_wire::RenamedFile;

use super::{
    folder::{Access, is_for_administrators},
    rename::Renaming,
};

/// Stands in for the text of the old file, so that its names are those of the new one only.
const NO_NAMES: &str = "-\n";

#[derive(Debug)]
enum Step {
    /// The whole rename of a file that nothing refers to. Its name may be in its text: two files cannot have it for long.
    Move,
    Link,
    Edit {
        path: String,
        before: String,
        after: String,
    },
    Remove,
}

pub(super) fn renamed(
    folder: &EditableFolder,
    analyzer: &mut Analyzer,
    paths: (&str, &str),
    digest: Digest,
    is_administrator: bool,
) -> Result<RenamedFile, EditError> {
    let mut renamed = RenamedFile { changed: Vec::new(), left: Vec::new() };
    for step in steps(folder, analyzer, paths, digest)? {
        take(step, folder, paths, digest, is_administrator, &mut renamed)?;
    }
    Ok(renamed)
}

fn steps(
    folder: &EditableFolder,
    analyzer: &mut Analyzer,
    (from, to): (&str, &str),
    digest: Digest,
) -> Result<Vec<Step>, EditError> {
    // A move says why a file that is not as expected cannot be renamed.
    let Some(bytes) = folder.read(from).ok().filter(|now| Digest::of(now) == digest) else {
        return Ok(vec![Step::Move]);
    };
    let text = String::from_utf8(bytes).unwrap_or_default();
    let renaming = Renaming::new(from, to, names(analyzer, (from, to), &text));
    let edit = |path: &str, before: String| {
        let after = renaming.edited(path, &before)?;
        Some(Step::Edit { path: path.to_owned(), before, after })
    };
    let mut edits = Vec::new();
    for ListedFile { path, .. } in folder.list()?.into_iter().filter(|file| file.path != from && file.path != to) {
        let text = folder.read(&path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        edits.extend(text.and_then(|text| edit(&path, text)));
    }
    // As long as both files are the same, the rename can be repeated.
    edits.extend(edit(to, text));
    Ok(match edits.is_empty() {
        true => vec![Step::Move],
        false => std::iter::once(Step::Link).chain(edits).chain([Step::Remove]).collect(),
    })
}

/// Returns the names of the file's prompt before and after. A library that cannot be analysed has no prompts to refer to.
fn names(analyzer: &mut Analyzer, (from, to): (&str, &str), text: &str) -> (Option<String>, Option<String>) {
    let mut name_of = |path: &str, texts: &[(&str, &str)]| {
        let texts: BTreeMap<String, String> =
            texts.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let analysis = analyzer.analyze(&texts).ok()?;
        analysis.prompt(path).map(|prompt| prompt.name().to_string())
    };
    // The new file is there if the rename was interrupted.
    let old = name_of(from, &[]).or_else(|| name_of(from, &[(to, NO_NAMES)]));
    (old, name_of(to, &[(from, NO_NAMES), (to, text)]))
}

fn take(
    step: Step,
    folder: &EditableFolder,
    (from, to): (&str, &str),
    digest: Digest,
    is_administrator: bool,
    renamed: &mut RenamedFile,
) -> Result<(), EditError> {
    let is_same = |now: &[u8]| Digest::of(now) == digest;
    let (path, is_done) = match step {
        Step::Move => return folder.rename(from, to, is_same),
        Step::Link => return folder.link(from, to, is_same),
        Step::Edit { path, before, after } => {
            let is_permitted = is_administrator || !is_for_administrators(folder, &path, Access::Change);
            let is_done =
                is_permitted && folder.replace(&path, after.as_bytes(), |now| now == before.as_bytes()).is_ok();
            (path, is_done)
        }
        Step::Remove if folder.delete(from, is_same).is_ok() => return Ok(()),
        // Changed by another program meanwhile.
        Step::Remove => (from.to_owned(), false),
    };
    let files = if is_done { &mut renamed.changed } else { &mut renamed.left };
    files.push(path);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::library::Library;

    use super::*;

    const CALLER: &str = "---\ndescription: Calls\n---\n{{ prompt(\"NAME\") }}\n{% include \"_p/old.md\" %}\n";

    fn folder(name: &str) -> (tempfile::TempDir, EditableFolder) {
        let folder = tempfile::tempdir().expect("a folder");
        let files = EditableFolder::open(folder.path()).expect("a folder");
        files.create("_p/old.md", b"Be kind.\n").expect("created");
        files.create("hello.md", b"---\ndescription: Greets\naliases: [hi]\n---\nHello\n").expect("created");
        files.create("named.md", b"---\nname: known\ndescription: Greets\n---\nHello\n").expect("created");
        for number in 0..4 {
            files.create(&format!("c{number}.md"), CALLER.replace("NAME", name).as_bytes()).expect("created");
        }
        (folder, files)
    }

    fn texts(files: &EditableFolder) -> BTreeMap<String, Vec<u8>> {
        let listed = files.list().expect("a list").into_iter();
        listed.map(|file| (file.path.clone(), files.read(&file.path).expect("a file"))).collect()
    }

    /// Returns the errors of the files that refer to the renamed one.
    fn broken(files: &EditableFolder, name: &str, to: &str) -> Vec<String> {
        let library = Library::builder().folder(files.path()).build().expect("a library");
        let found = library.diagnostics();
        let errors = found.iter().filter(|found| found.is_error() && found.location.source.path.starts_with('c'));
        let mut broken: Vec<String> = errors.map(ToString::to_string).collect();
        let is_there = |path: &str| fs::exists(files.path().join(path)).unwrap_or_default();
        if !is_there(name) && !is_there(to) {
            broken.push(format!("neither {name} nor {to}"));
        }
        broken
    }

    #[test]
    fn rename_that_ends_at_any_step_leaves_no_broken_reference_and_can_be_repeated() {
        for (name, from, to) in [
            ("hello", "_p/old.md", "_p/new.md"),
            ("hello", "hello.md", "greet/person.md"),
            ("hello", "hello.md", "hey.md"),
            ("known", "named.md", "moved/named.md"),
        ] {
            let (_whole, files) = folder(name);
            let digest = Digest::of(&files.read(from).expect("a file"));
            let analyzer = |files: &EditableFolder| Analyzer::of_folder(files.path(), []);
            let count = steps(&files, &mut analyzer(&files), (from, to), digest).expect("steps").len();
            renamed(&files, &mut analyzer(&files), (from, to), digest, true).expect("renamed");
            let expected = texts(&files);
            assert_eq!(broken(&files, from, to), [""; 0], "{from}");
            for taken in 0..count {
                let (_part, files) = folder(name);
                let all = steps(&files, &mut analyzer(&files), (from, to), digest).expect("steps");
                let mut ignored = RenamedFile { changed: Vec::new(), left: Vec::new() };
                for step in all.into_iter().take(taken) {
                    take(step, &files, (from, to), digest, true, &mut ignored).expect("a step");
                }
                assert_eq!(broken(&files, from, to), [""; 0], "{from} after {taken} of {count} steps");
                if cfg!(unix) {
                    renamed(&files, &mut analyzer(&files), (from, to), digest, true).expect("repeated");
                    assert_eq!(texts(&files), expected, "{from} after {taken} of {count} steps");
                }
            }
        }
    }
}
