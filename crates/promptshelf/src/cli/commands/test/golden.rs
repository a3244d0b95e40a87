//! Golden files: what a prompt said once, kept beside it and compared with.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
};

use promptshelf_core::{ContentBlock, Message, ResourceBody};
use similar::TextDiff;

use super::expect::Fault;
use crate::exit::{Exit, Failure};

/// One golden file.
pub(super) struct Golden {
    pub(super) path: PathBuf,
}

impl Golden {
    /// The file of this name beside a prompt of the library.
    pub(super) fn beside(folder: &Path, prompt: &str, name: &str) -> Golden {
        let beside = Path::new(prompt).parent().unwrap_or(Path::new(""));
        Golden { path: folder.join(beside).join(name) }
    }

    /// What is not as it was.
    pub(super) fn compare(&self, now: &str) -> Option<Fault> {
        let path = self.path.display();
        match fs::read_to_string(&self.path) {
            // Version control may have given the file other ends of lines.
            Ok(before) if before.replace("\r\n", "\n") == now => None,
            Ok(before) => Some(Fault::new(format!("the messages are not those of {path}:"), difference(&before, now))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Some(Fault::new(format!("there is no {path} yet; `--update` writes it"), ""))
            }
            Err(error) => Some(Fault::new(format!("{path} cannot be read: {error}"), "")),
        }
    }

    /// Writes the file where it would change; whether it did.
    pub(super) fn write(&self, now: &str) -> Result<bool, Failure> {
        if fs::read_to_string(&self.path).is_ok_and(|before| before.replace("\r\n", "\n") == now) {
            return Ok(false);
        }
        fs::write(&self.path, now).map_err(|error| {
            Failure::new(Exit::Failed, format!("{} cannot be written: {error}", self.path.display()))
        })?;
        Ok(true)
    }
}

/// Golden files of a folder that no test names: nothing is compared with them.
pub(super) fn strays(folder: &Path, named: &HashSet<PathBuf>) -> Vec<PathBuf> {
    let mut strays = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().ok();
            if kind.is_some_and(|kind| kind.is_dir()) && !name.starts_with('.') && name != "node_modules" {
                folders.push(entry.path());
            } else if name.ends_with(".golden.md") && !named.contains(&entry.path()) {
                strays.push(entry.path());
            }
        }
    }
    strays.sort();
    strays
}

/// Messages as a golden file holds them: each with who speaks and what it is.
pub(super) fn transcript(messages: &[Message]) -> String {
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

/// What was expected and what is there, as a diff: `-` was expected, `+` is there.
pub(super) fn difference(expected: &str, found: &str) -> String {
    let difference = TextDiff::from_lines(expected, found);
    let mut unified = difference.unified_diff();
    unified.context_radius(2).missing_newline_hint(false);
    // The hunks' own headings count lines of no file.
    let lines = unified.to_string();
    lines.lines().map(|line| if line.starts_with("@@") { "…" } else { line }).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_says_who_speaks_and_what_it_is() {
        let given = [Message::user("Hello\n"), Message::assistant("Hi")];
        assert_eq!(transcript(&given), "[user] text\nHello\n\n[assistant] text\nHi\n");
    }

    #[test]
    fn a_difference_shows_the_lines_around_it() {
        assert_eq!(difference("a\nb\nc\nd\n", "a\nb\nx\nd\n"), "…\n a\n b\n-c\n+x\n d");
    }

    #[test]
    fn a_golden_file_is_written_once_and_compared_after() {
        let folder = tempfile::tempdir().expect("there is room");
        fs::create_dir(folder.path().join("git")).expect("there is room");
        let golden = Golden::beside(folder.path(), "git/commit.md", "commit.golden.md");
        assert!(golden.compare("x\n").is_some_and(|fault| fault.sentence.contains("--update")));
        assert_eq!(golden.write("x\n"), Ok(true));
        assert_eq!(golden.write("x\n"), Ok(false));
        assert_eq!(golden.compare("x\n"), None);
        fs::write(&golden.path, "x\r\n").expect("there is room");
        assert_eq!(golden.compare("x\n"), None);
        assert_eq!(strays(folder.path(), &HashSet::from([golden.path.clone()])), Vec::<PathBuf>::new());
        assert_eq!(strays(folder.path(), &HashSet::new()), std::slice::from_ref(&golden.path));
        assert_eq!(golden.compare("y\n").map(|fault| fault.details), Some("…\n-x\n+y".to_owned()));
    }
}
