//! Differences of files: unified diffs of texts, digests and sizes of everything else.

use std::{io::Write, time::Duration};

use anstyle::{AnsiColor, Style};
use promptshelf_source::MemoryTree;
use promptshelf_store::Digest;
use serde_json::{Value, json};
use similar::TextDiff;

use crate::{exit::Failure, output::Output};

/// The time after which a diff of two large texts is no longer minimal.
const PATIENCE: Duration = Duration::from_secs(2);

/// Two contents at one path; `None` stands for a file that does not exist.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileDifference<'t> {
    pub(super) path: &'t str,
    pub(super) before: Option<&'t [u8]>,
    pub(super) after: Option<&'t [u8]>,
}

impl<'t> FileDifference<'t> {
    pub(super) fn between(before: &'t MemoryTree, after: &'t MemoryTree) -> Vec<FileDifference<'t>> {
        let bytes = |tree: &'t MemoryTree, path: &str| tree.get(path).map(promptshelf_source::MemoryFile::bytes);
        let mut paths: Vec<&str> = before.iter().chain(after.iter()).map(|(path, _)| path).collect();
        paths.sort_unstable();
        paths.dedup();
        let both = paths.into_iter().map(|path| FileDifference {
            path,
            before: bytes(before, path),
            after: bytes(after, path),
        });
        both.filter(|difference| difference.before != difference.after).collect()
    }

    /// Returns a unified diff; `None` if one of the contents is not text.
    pub(super) fn unified(&self) -> Option<String> {
        let text = |bytes: Option<&'t [u8]>| match bytes {
            None => Some(""),
            Some(bytes) if bytes.contains(&0) => None,
            Some(bytes) => std::str::from_utf8(bytes).ok(),
        };
        let (before, after) = (text(self.before)?, text(self.after)?);
        let name = |side: &str, bytes: Option<_>| match bytes {
            Some(_) => format!("{side}/{}", self.path),
            None => "/dev/null".to_owned(),
        };
        Some(unified(before, after, &name("a", self.before), &name("b", self.after)))
    }

    fn word(&self) -> &'static str {
        match (self.before, self.after) {
            (None, _) => "added",
            (_, None) => "removed",
            _ => "changed",
        }
    }

    pub(super) fn to_json(self) -> Value {
        let side =
            |bytes: Option<&[u8]>| bytes.map(|bytes| json!({ "digest": Digest::of(bytes), "size": bytes.len() }));
        json!({
            "path": self.path,
            "change": self.word(),
            "before": side(self.before),
            "after": side(self.after),
            "diff": self.unified(),
        })
    }

    pub(super) fn print<W: Write>(&self, output: &mut Output<W>) -> Result<(), Failure> {
        if let Some(text) = self.unified() {
            return print_unified(output, &text);
        }
        let side = |bytes: Option<&[u8]>| match bytes {
            Some(bytes) => format!("sha256 {} ({} bytes)", Digest::of(bytes), bytes.len()),
            None => "none".to_owned(),
        };
        let path = output.line(self.path).into_owned();
        writeln!(output.out, "binary {path} {}", self.word())?;
        writeln!(output.out, "- {}\n+ {}", side(self.before), side(self.after))?;
        Ok(())
    }
}

pub(super) fn unified(before: &str, after: &str, name_before: &str, name_after: &str) -> String {
    let difference = TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
    let text = difference.unified_diff().header(name_before, name_after).to_string();
    // A new empty file has no lines to show.
    if text.is_empty() { format!("--- {name_before}\n+++ {name_after}\n") } else { text }
}

pub(super) fn print_unified<W: Write>(output: &mut Output<W>, text: &str) -> Result<(), Failure> {
    const REMOVED: Style = AnsiColor::Red.on_default();
    const ADDED: Style = AnsiColor::Green.on_default();
    const PLACE: Style = AnsiColor::Cyan.on_default();
    for line in text.split_inclusive('\n') {
        let style = match line.as_bytes() {
            [b'-', b'-', b'-', ..] | [b'+', b'+', b'+', ..] => Style::new().bold(),
            [b'-', ..] => REMOVED,
            [b'+', ..] => ADDED,
            [b'@', ..] => PLACE,
            _ => Style::new(),
        };
        let line = output.text(line).into_owned();
        let line = line.strip_suffix('\n').unwrap_or(&line);
        let line = output.styled(style, line);
        writeln!(output.out, "{line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_unified_diffs() {
        let difference = FileDifference { path: "a.md", before: Some(b"one\ntwo\n"), after: Some(b"one\n2\n") };
        assert_eq!(difference.unified().as_deref(), Some("--- a/a.md\n+++ b/a.md\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"));
        let added = FileDifference { path: "b.md", before: None, after: Some(b"") };
        assert_eq!(added.unified().as_deref(), Some("--- /dev/null\n+++ b/b.md\n"));
    }

    #[test]
    fn contents_that_are_not_text_have_digests() {
        for bytes in [&b"\xff\xfe"[..], b"a\0b"] {
            let difference = FileDifference { path: "a.png", before: Some(b"text"), after: Some(bytes) };
            assert_eq!(difference.unified(), None);
            let json = difference.to_json();
            assert_eq!((&json["diff"], &json["after"]["size"]), (&Value::Null, &json!(bytes.len())));
            assert_eq!(json["after"]["digest"], json!(Digest::of(bytes)));
        }
    }
}
