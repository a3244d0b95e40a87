//! The mark of files that `sync` and `export` write for other programs: a comment with a digest, the origin and the path.
//!
//! A marked file is a copy of a prompt, so it is never a prompt of a library, wherever it lies. The folder of a skill is
//! marked by a record instead, because its files are written as they are.

use std::ops::Range;

const DIGEST: &str = " sha256:";
const DIGITS: usize = 64;
const SYNC: &str = "promptshelf sync";
const EXPORT: &str = "promptshelf export";

/// The file that marks the folder of a skill. Clients ignore it: its name begins with a dot.
pub const SKILL_RECORD: &str = ".promptshelf-sync.json";

/// The mark of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mark {
    /// Whether `sync` wrote the file, or otherwise `export`.
    pub is_synced: bool,
    /// The library or server, without blanks.
    pub origin: String,
    /// The path below the project; `None` in a mark of an earlier release.
    pub path: Option<String>,
    /// The SHA-256 digest of the text without the line of the mark, as 64 hexadecimal digits.
    pub digest: String,
    /// The line of the mark, with its line break.
    pub line: Range<usize>,
}

impl Mark {
    /// Returns the words of a mark, to be put into a comment of the format.
    ///
    /// ```
    /// use promptshelf_source::Mark;
    ///
    /// let digest = "0".repeat(64);
    /// let text = format!("# {}\nprompt = \"Hi\"\n", Mark::words(true, &digest, "./prompts", ".gemini/commands/hi.toml"));
    /// let mark = Mark::find(&text).unwrap();
    /// assert_eq!(mark.path.as_deref(), Some(".gemini/commands/hi.toml"));
    /// assert_eq!(&text[mark.line.end..], "prompt = \"Hi\"\n");
    /// ```
    #[must_use]
    pub fn words(is_synced: bool, digest: &str, origin: &str, path: &str) -> String {
        let command = if is_synced { SYNC } else { EXPORT };
        format!("{command}{DIGEST}{digest} from {origin} as {path}")
    }

    /// Returns the mark of a file; `None` without one. It stands in the first line, in the front
    /// matter, or as a comment of HTML outside of code. A text that quotes a mark has none.
    #[must_use]
    pub fn find(text: &str) -> Option<Mark> {
        // Most files have none: the lines are not looked at.
        if !text.contains("promptshelf ") {
            return None;
        }
        let mut start = text.len() - text.trim_start_matches('\u{feff}').len();
        let mut lines = text[start..].split_inclusive('\n').map(|line| {
            let range = start..start + line.len();
            start = range.end;
            (line.trim_end(), range)
        });
        let of = |(line, range): (&str, Range<usize>)| comment(line).and_then(|words| Mark::read(words, range));
        let (first, range) = lines.next()?;
        if first == "---" {
            if let Some(mark) = lines.by_ref().take_while(|(line, _)| *line != "---").find_map(of) {
                return Some(mark);
            }
        } else if let Some(mark) = of((first, range)) {
            return Some(mark);
        }
        let mut is_code = ["```", "~~~"].iter().any(|fence| first.starts_with(fence));
        let outside = lines.filter(|(line, _)| {
            is_code ^= ["```", "~~~"].iter().any(|fence| line.trim_start().starts_with(fence));
            !is_code && line.starts_with("<!--")
        });
        outside.into_iter().find_map(of)
    }

    fn read(words: &str, line: Range<usize>) -> Option<Mark> {
        let after = |command: &str| words.strip_prefix(command)?.strip_prefix(DIGEST);
        let (is_synced, rest) = match after(SYNC) {
            Some(rest) => (true, rest),
            None => (false, after(EXPORT)?),
        };
        let (digest, rest) = rest.split_once(' ')?;
        if digest.len() != DIGITS || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let (origin, path) = match rest.strip_prefix("from ").and_then(|rest| rest.split_once(" as ")) {
            Some((origin, path)) => (origin, Some(path.to_owned())),
            None => (rest, None),
        };
        Some(Mark { is_synced, origin: origin.to_owned(), path, digest: digest.to_owned(), line })
    }
}

/// Returns the words of a comment of YAML, TOML or HTML that is alone in its line.
fn comment(line: &str) -> Option<&str> {
    let html = || line.strip_prefix("<!-- ")?.strip_suffix(" -->");
    line.strip_prefix("# ").or_else(html)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_mark_is_text() {
        let words = Mark::words(true, &"ab".repeat(32), "library:lib", "x.md");
        for text in [
            format!("# Marks\n\n```\n# {words}\n```\n"),
            format!("Hi\n\n```\n<!-- {words} -->\n```\n"),
            format!("---\ndescription: x\n---\n# {words}\nHi\n"),
            format!("Hi\n# {words}\n"),
        ] {
            assert_eq!(Mark::find(&text), None, "{text}");
        }
        let copies = [
            format!("---\r\ndescription: x\r\n# {words}\r\n---\r\nHi\r\n"),
            format!("\u{feff}# {words}\nprompt = \"Hi\"\n"),
            format!("Hi\n<!-- {words} -->\n\n"),
            format!("<!-- {words} -->\n"),
        ];
        for text in copies {
            let mark = Mark::find(&text).expect(&text);
            assert!(text[mark.line].contains(&words), "{text}");
        }
    }

    #[test]
    fn only_a_comment_with_a_digest_is_a_mark() {
        let digest = "0123456789abcdef".repeat(4);
        let new = Mark::words(true, &digest, "./prompts", ".claude/commands/a b.md");
        let found = Mark::find(&format!("---\n# {new}\ndescription: x\n---\n\nHi\n")).expect("a mark");
        assert_eq!((found.is_synced, &*found.origin, found.line), (true, "./prompts", 4..4 + new.len() + 3));
        assert_eq!(found.path.as_deref(), Some(".claude/commands/a b.md"));
        let exported = Mark::words(false, &digest, "team", "x/SKILL.md");
        assert!(Mark::find(&format!("Hi\n<!-- {exported} -->\r\n")).is_some_and(|mark| !mark.is_synced));
        let old = Mark::find(&format!("# promptshelf sync sha256:{digest} /srv/ada/prompts\nprompt = \"\"\n"));
        assert!(old.is_some_and(|mark| mark.path.is_none() && mark.origin == "/srv/ada/prompts"));
        for text in [
            format!("Files begin with `# {new}`.\n"),
            "# promptshelf sync sha256:abc from . as x.md\n".to_owned(),
            format!("  # {new}\n"),
            format!("# promptshelf render sha256:{digest} from . as x.md\n"),
        ] {
            assert_eq!(Mark::find(&text), None, "{text}");
        }
    }
}
