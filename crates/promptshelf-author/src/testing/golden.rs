//! Golden files: the messages of a prompt, stored next to it for comparison.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
};

use promptshelf_core::{ContentBlock, Message, ResourceBody, is_interrupted};
use promptshelf_source::{EditError, EditableFolder, MemoryTree, syntax::GOLDEN_ENDING};
use similar::TextDiff;

use super::Mismatch;

#[derive(Debug)]
pub(super) enum GoldenFiles {
    Folder(PathBuf),
    /// The library's files, which cannot be written.
    Tree(MemoryTree),
}

pub(super) struct GoldenFile {
    /// Relative to the tree, if it is in memory.
    pub(super) path: PathBuf,
}

impl GoldenFile {
    pub(super) fn beside(files: &GoldenFiles, prompt: &str, name: &str) -> GoldenFile {
        let beside = Path::new(prompt).parent().unwrap_or(Path::new("")).join(name);
        match files {
            GoldenFiles::Folder(folder) => GoldenFile { path: folder.join(beside) },
            GoldenFiles::Tree(_) => GoldenFile { path: beside },
        }
    }

    /// Reads the file. Links lead nowhere: a library can come from anyone.
    fn read(&self, files: &GoldenFiles) -> io::Result<String> {
        let bytes = match files {
            GoldenFiles::Folder(folder) => EditableFolder::open(folder)?.read(self.within(folder)).map_err(io_error)?,
            GoldenFiles::Tree(tree) => {
                let file = self.path.to_str().and_then(|path| tree.get(path));
                file.ok_or(io::ErrorKind::NotFound)?.bytes().to_vec()
            }
        };
        String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn within(&self, folder: &Path) -> &str {
        self.path.strip_prefix(folder).ok().and_then(Path::to_str).unwrap_or_default()
    }

    pub(super) fn compare(&self, files: &GoldenFiles, now: &str) -> Option<Mismatch> {
        let path = self.path.display();
        match self.read(files) {
            Ok(before) if is_same(&before, now) => None,
            Ok(before) => Some(Mismatch::new(format!("the messages differ from {path}:"), difference(&before, now))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Some(Mismatch::new(format!("missing golden file {path}; `--update` writes it"), ""))
            }
            Err(error) => Some(Mismatch::new(format!("cannot read {path}: {error}"), "")),
        }
    }

    /// Writes the file if its content changes, and returns whether it did.
    pub(super) fn write(&self, files: &GoldenFiles, now: &str) -> io::Result<bool> {
        let GoldenFiles::Folder(folder) = files else { return Ok(false) };
        let (editable, path) = (EditableFolder::open(folder)?, self.within(folder));
        let written = match editable.read(path) {
            Ok(before) if str::from_utf8(&before).is_ok_and(|before| is_same(before, now)) => return Ok(false),
            Ok(before) => editable.replace(path, now.as_bytes(), |present| present == before),
            Err(EditError::NotFound) => editable.create(path, now.as_bytes()),
            Err(error) => Err(error),
        };
        written.map_err(io_error)?;
        Ok(true)
    }
}

/// Version control may have changed the line endings.
fn is_same(before: &str, now: &str) -> bool {
    before.replace("\r\n", "\n") == now.replace("\r\n", "\n")
}

fn io_error(error: EditError) -> io::Error {
    match error {
        EditError::NotFound => io::ErrorKind::NotFound.into(),
        EditError::Io(error) => error,
        error => io::Error::other(error.to_string()),
    }
}

/// Returns the golden files below a folder that no test uses, sorted.
pub(super) fn unused(folder: &Path, used: &HashSet<PathBuf>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().ok();
            if kind.is_some_and(|kind| kind.is_dir()) && !name.starts_with('.') && name != "node_modules" {
                folders.push(entry.path());
            } else if name.ends_with(GOLDEN_ENDING) && !used.contains(&entry.path()) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// Returns the golden files of a tree that no test uses, sorted.
pub(super) fn unused_in_tree(tree: &MemoryTree, used: &HashSet<PathBuf>) -> Vec<PathBuf> {
    let golden = tree.iter().map(|(path, _)| path).filter(|path| path.ends_with(GOLDEN_ENDING));
    golden.map(PathBuf::from).filter(|path| !used.contains(path)).collect()
}

/// Returns messages as a golden file stores them: each with its role and type.
#[must_use]
pub fn transcript(messages: &[Message]) -> String {
    let mut transcript = String::new();
    for message in messages {
        let (what, text) = match &message.content {
            ContentBlock::Text(text) => (String::new(), Some(text.text.as_str())),
            ContentBlock::Image(media) | ContentBlock::Audio(media) => {
                (format!(" {}, {} bytes", media.mime_type.as_str(), media.data.len()), None)
            }
            ContentBlock::Resource(resource) => {
                let contents = &resource.contents;
                let what = format!(" {} {}", contents.uri, contents.mime_type.as_str());
                match &contents.body {
                    ResourceBody::Text(text) => (what, Some(&**text)),
                    ResourceBody::Blob(blob) => (format!("{what}, {} bytes", blob.len()), None),
                }
            }
            ContentBlock::Link(link) => (format!(" {} {}", link.uri, link.name), None),
        };
        if !transcript.is_empty() {
            transcript.push('\n');
        }
        transcript.push_str(&format!("[{}] {}{what}\n", message.role.as_str(), message.content.kind()));
        if let Some(text) = text {
            transcript.push_str(text);
            if !text.ends_with('\n') {
                transcript.push('\n');
            }
        }
    }
    transcript
}

/// The work of a comparison is the product of the lines that differ.
const MAX_COMPARED_LINES: usize = 1_000;

/// Returns a diff: `-` was expected, `+` was found.
pub(super) fn difference(expected: &str, found: &str) -> String {
    if is_interrupted() {
        return String::new();
    }
    let (before, after): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    let first = before.iter().zip(&after).take_while(|(before, after)| before == after).count();
    let (old, new) = (&before[first..], &after[first..]);
    let same = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[..old.len() - same], &new[..new.len() - same]);
    if old.len() + new.len() > MAX_COMPARED_LINES {
        let context = |lines: &[&str]| lines.iter().map(|line| format!(" {line}")).collect::<Vec<_>>();
        let mut lines = vec!["…".to_owned()];
        lines.extend(context(&before[first.saturating_sub(2)..first]));
        lines.extend(old.iter().map(|line| format!("-{line}")));
        lines.extend(new.iter().map(|line| format!("+{line}")));
        lines.extend(context(&before[before.len() - same..][..same.min(2)]));
        return lines.join("\n");
    }
    let difference = TextDiff::from_lines(expected, found);
    let mut unified = difference.unified_diff();
    unified.context_radius(2).missing_newline_hint(false);
    // The line numbers of the hunks refer to no file.
    let lines = unified.to_string();
    lines.lines().map(|line| if line.starts_with("@@") { "…" } else { line }).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transcript_has_roles_and_types() {
        let messages = [Message::user("Hello\n"), Message::assistant("Hi")];
        assert_eq!(transcript(&messages), "[user] text\nHello\n\n[assistant] text\nHi\n");
    }

    #[test]
    fn difference_has_context_lines() {
        assert_eq!(difference("a\nb\nc\nd\n", "a\nb\nx\nd\n"), "…\n a\n b\n-c\n+x\n d");
    }

    // req: S-471
    #[test]
    fn difference_of_many_lines_is_not_searched_for_the_smallest() {
        let lines = |from: usize, to: usize| (from..to).map(|line| format!("{line}\n")).collect::<String>();
        // Within the bound a common line is found; beyond it, all lines between the first and the last change are replaced.
        for (count, is_searched) in [(100, true), (100_000, false)] {
            let between = |name: &str| (0..count).map(|line| format!("{name}{line}\n")).collect::<String>();
            let (old, new) = (between("old"), between("new"));
            let (head, tail) = (lines(0, 9), lines(10, 19));
            let found = difference(&format!("{head}{old}same\n{old}{tail}"), &format!("{head}{new}same\n{new}{tail}"));
            assert!(found.starts_with("…\n 7\n 8\n-old0\n"), "{count}");
            assert!(found.ends_with("\n 10\n 11"), "{count}");
            assert_eq!(found.contains("\n same\n"), is_searched, "{count}");
            assert_eq!(found.contains("\n-same\n"), !is_searched, "{count}");
        }
        let interrupt = promptshelf_core::Interrupt::new();
        interrupt.set();
        assert_eq!(interrupt.scope(|| difference("a\n", "b\n")), "");
    }

    #[test]
    fn golden_file_is_written_once_then_compared() {
        let folder = tempfile::tempdir().expect("there is room");
        fs::create_dir(folder.path().join("git")).expect("there is room");
        let files = GoldenFiles::Folder(folder.path().to_owned());
        let golden = GoldenFile::beside(&files, "git/commit.md", "commit.golden.md");
        assert!(golden.compare(&files, "x\n").is_some_and(|mismatch| mismatch.message.contains("--update")));
        assert!(golden.write(&files, "x\n").expect("it is written"));
        assert!(!golden.write(&files, "x\n").expect("it is written"));
        assert_eq!(golden.compare(&files, "x\n"), None);
        fs::write(&golden.path, "x\r\n").expect("there is room");
        assert_eq!(golden.compare(&files, "x\n"), None);
        assert!(golden.write(&files, "x\r\ny\rz\n").expect("it is written"));
        assert_eq!(golden.compare(&files, "x\r\ny\rz\n"), None);
        assert!(golden.write(&files, "x\n").expect("it is written"));
        assert_eq!(unused(folder.path(), &HashSet::from([golden.path.clone()])), Vec::<PathBuf>::new());
        assert_eq!(unused(folder.path(), &HashSet::new()), std::slice::from_ref(&golden.path));
        assert_eq!(golden.compare(&files, "y\n").map(|mismatch| mismatch.details), Some("…\n-x\n+y".to_owned()));
    }

    /// A library can come from anyone, with links to the files of whoever tests it.
    // req: S-611
    #[cfg(unix)]
    #[test]
    fn golden_files_are_neither_read_nor_written_through_links() {
        let folder = tempfile::tempdir().expect("there is room");
        let (library, precious) = (folder.path().join("library"), folder.path().join("precious.md"));
        fs::create_dir(&library).expect("there is room");
        fs::write(&precious, "mine\n").expect("there is room");
        std::os::unix::fs::symlink(&precious, library.join("a.golden.md")).expect("a link");
        std::os::unix::fs::symlink("../new.md", library.join("b.golden.md")).expect("a link");
        std::os::unix::fs::symlink(folder.path(), library.join("out")).expect("a link");
        let files = GoldenFiles::Folder(library);
        for (prompt, name) in [("a.md", "a.golden.md"), ("b.md", "b.golden.md"), ("out/c.md", "c.golden.md")] {
            let golden = GoldenFile::beside(&files, prompt, name);
            assert!(golden.write(&files, "x\n").is_err(), "{name}");
            let mismatch = golden.compare(&files, "mine\n").expect("it is not compared");
            assert!(!mismatch.details.contains("mine"), "{mismatch:?}");
        }
        assert_eq!(fs::read_to_string(&precious).expect("it is there"), "mine\n");
        assert!(!folder.path().join("new.md").exists() && !folder.path().join("c.golden.md").exists());
    }

    #[test]
    fn golden_file_of_a_tree_is_compared() {
        let tree: MemoryTree = [("git/commit.golden.md", "x\r\n"), ("secret", "x\n")].into_iter().collect();
        let files = GoldenFiles::Tree(tree);
        let compare = |name: &str, now: &str| {
            let golden = GoldenFile::beside(&files, "git/commit.md", name);
            golden.compare(&files, now).map(|mismatch| mismatch.message)
        };
        assert_eq!(compare("commit.golden.md", "x\n"), None);
        assert!(compare("commit.golden.md", "y\n").is_some_and(|message| message.contains("differ from git/commit")));
        assert!(compare("../secret", "x\n").is_some_and(|message| message.contains("missing golden file")));
    }
}
