//! The list of file formats, and the selection of one by a file's path.

use std::sync::Arc;

use promptshelf_core::SourceText;

use super::{
    claude, command,
    draft::Parsed,
    file_format::{ForeignWords, Format},
    gemini, github, markdown, opencode, skill, toml,
    tree::{Node, Notes},
    vscode, yaml,
};

/// In order of precedence: the first format that matches a path is used.
const FORMATS: &[Format] = &[
    skill::FORMAT,
    vscode::FORMAT,
    github::FORMAT,
    claude::FORMAT,
    opencode::FORMAT,
    gemini::FORMAT,
    markdown::FORMAT,
];

impl Format {
    /// Returns the format of the file at a path; `None` if it is not a prompt file.
    pub(crate) fn of(path: &str) -> Option<&'static Format> {
        FORMATS.iter().find(|format| (format.holds)(path))
    }

    /// Whether the file at a path has the native format.
    pub(crate) fn is_ours(path: &str) -> bool {
        FORMATS.iter().position(|format| (format.holds)(path)) == Some(FORMATS.len() - 1)
    }

    /// Parses the text of a file.
    pub(crate) fn read(&self, source: &Arc<SourceText>) -> Parsed {
        (self.read)(source, &(self.name)(&source.path))
    }
}

impl ForeignWords {
    /// Returns the syntax for the file at a path; `None` if it is not a prompt file of another program.
    ///
    /// ```
    /// use promptshelf_source::ForeignWords;
    ///
    /// assert!(ForeignWords::of("hello.prompt.yml").is_some_and(|words| words.keys.contains(&"messages")));
    /// assert_eq!(ForeignWords::of("hello.md"), None);
    /// ```
    #[must_use]
    pub fn of(path: &str) -> Option<ForeignWords> {
        Format::of(path).filter(|_| !Format::is_ours(path)).map(|format| format.words)
    }
}

/// Parses the keys of a file without interpreting them; `None` if it has none.
pub(crate) fn keys(source: &Arc<SourceText>) -> Option<Node> {
    let mut notes = Notes::new(source);
    match source.path.rsplit('.').next() {
        Some("toml") => Some(toml::parse(&mut notes)),
        Some("yml" | "yaml") => yaml::parse(0..source.text.len(), &mut notes),
        _ => markdown::parts(&mut notes, |keys| command::hint_line(&source.text, keys)).0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use promptshelf_core::Diagnostic;

    use super::*;

    /// Fragments with a meaning in some format, to be combined in any order.
    const WORDS: &[&str] = &[
        "---",
        "\n",
        "\r\n",
        "  ",
        "\t",
        ": ",
        "- ",
        "? ",
        "[",
        "]",
        "{",
        "}",
        "{{ ",
        " }}",
        "{% ",
        ",",
        "'",
        "\"",
        "|",
        ">",
        "#",
        "&a ",
        "*a",
        "!x ",
        "!!str ",
        "\\",
        "ü",
        "\u{feff}",
        "\u{2028}",
        "\0",
        "1",
        "-0x1f",
        "true",
        "~",
        "name",
        "title",
        "arguments",
        "icons",
        "enum",
        "complete",
        "by",
        "files",
        "x",
        "\n- ",
        "\n  - ",
        ":\n  ",
    ];

    /// A path for each format.
    const PATHS: &[&str] = &[
        "a.md",
        ".claude/commands/a.md",
        ".opencode/commands/a.md",
        ".gemini/commands/a.toml",
        "a.prompt.md",
        "a.prompt.yml",
        "a/SKILL.md",
    ];

    proptest! {
        #[test]
        fn no_text_makes_a_format_panic(words in prop::collection::vec(prop::sample::select(WORDS), 0..60)) {
            let text = format!("---\n{}\n---\nbody", words.concat());
            for text in [&*words.concat(), &*text] {
                for path in PATHS {
                    let source = SourceText::new(*path, text);
                    let parsed = Format::of(path).expect("a format").read(&source);
                    prop_assert!(parsed.draft.is_some() || parsed.diagnostics.iter().any(Diagnostic::is_error));
                }
            }
        }

        #[test]
        fn no_text_makes_a_manifest_panic(words in prop::collection::vec(prop::sample::select(WORDS), 0..60)) {
            let words = words.concat();
            for text in [words.clone(), format!("[[resources]]\n{}", words.replace(": ", " = "))] {
                crate::manifest::Manifest::parse(SourceText::new("promptshelf.toml", text)).ok();
            }
        }
    }
}
