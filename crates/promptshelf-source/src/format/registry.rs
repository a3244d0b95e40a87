//! The list of file formats, and the selection of one by a file's path.

use std::sync::Arc;

use promptshelf_core::{Code, Diagnostic, Location, SourceText};

use super::{
    claude, codex,
    draft::Parsed,
    file_format::{ForeignSyntax, Format},
    foreign_folders, gemini, github, markdown, opencode, skill, toml,
    tree::{Node, Notes},
    vscode, yaml,
};

/// In order of precedence: the first format that matches a path is used.
const FORMATS: &[Format] = &[
    skill::CLAUDE_FORMAT,
    skill::FORMAT,
    vscode::FORMAT,
    github::FORMAT,
    claude::FORMAT,
    opencode::FORMAT,
    gemini::FORMAT,
    codex::FORMAT,
    codex::CURSOR_FORMAT,
    markdown::FORMAT,
];

impl Format {
    /// Returns the format of the file at a path; `None` if it is not a prompt file.
    pub(crate) fn for_path(path: &str) -> Option<&'static Format> {
        let path = foreign_folders::with_small_ending(path);
        FORMATS.iter().find(|format| (format.matches)(&path))
    }

    pub(crate) fn is_native(path: &str) -> bool {
        let path = foreign_folders::with_small_ending(path);
        FORMATS.iter().position(|format| (format.matches)(&path)) == Some(FORMATS.len() - 1)
    }

    pub(crate) fn name_of(&self, path: &str) -> String {
        foreign_folders::valid_name(&(self.name)(path)).into_owned()
    }

    /// Returns the name of the prompt in the file at a path, if the file does not set one.
    pub(crate) fn name(&self, path: &str) -> String {
        (self.name)(path)
    }

    pub(crate) fn read(&self, source: &Arc<SourceText>) -> Parsed {
        self.read_at(&source.path, source)
    }

    pub(crate) fn read_at(&self, path: &str, source: &Arc<SourceText>) -> Parsed {
        let own = (self.name)(path);
        let name = foreign_folders::valid_name(&own);
        let mut parsed = (self.read)(source, &name);
        let Some(draft) = &mut parsed.draft else { return parsed };
        let rank = foreign_folders::rank(path);
        if draft.definition.origin.rank != rank {
            draft.edit().origin.rank = rank;
        }
        if name != own && *draft.definition.name == *name {
            let message = format!("the name of this file cannot be that of a prompt, which is called `{name}` instead");
            let found = Diagnostic::warning(Code::InvalidName, Location::file(source), message);
            parsed.diagnostics.push(found.help("rename the file without spaces, or write a `name`"));
        }
        parsed
    }
}

impl ForeignSyntax {
    /// Returns the syntax for the file at a path; `None` if it is not a prompt file of another program.
    ///
    /// ```
    /// use promptshelf_source::ForeignSyntax;
    ///
    /// assert!(ForeignSyntax::for_path("hello.prompt.yml").is_some_and(|syntax| syntax.keys.contains(&"messages")));
    /// assert_eq!(ForeignSyntax::for_path("hello.md"), None);
    /// ```
    #[must_use]
    pub fn for_path(path: &str) -> Option<ForeignSyntax> {
        Format::for_path(path).filter(|_| !Format::is_native(path)).map(|format| format.syntax)
    }
}

/// Parses the keys of a file without interpreting them; `None` if it has none.
pub(crate) fn keys(source: &Arc<SourceText>) -> Option<Node> {
    let mut notes = Notes::new(source);
    match source.path.rsplit('.').next() {
        Some("toml") => Some(toml::parse(&mut notes)),
        Some("yml" | "yaml") => yaml::parse(0..source.text.len(), &mut notes),
        _ if Format::for_path(&source.path).is_some() && !Format::is_native(&source.path) => {
            markdown::lenient_parts(&[], &mut notes).0
        }
        _ => markdown::parts(&mut notes).0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FRAGMENTS: &[&str] = &[
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

    const PATHS: &[&str] = &[
        "a.md",
        ".claude/commands/a.md",
        ".opencode/commands/a.md",
        ".gemini/commands/a.toml",
        "a.prompt.md",
        "a.prompt.yml",
        "a/SKILL.md",
        ".codex/prompts/a.md",
        ".cursor/commands/a.md",
        ".agents/skills/a/SKILL.md",
    ];

    proptest! {
        #[test]
        fn formats_never_panic(words in prop::collection::vec(prop::sample::select(FRAGMENTS), 0..60)) {
            let text = format!("---\n{}\n---\nbody", words.concat());
            for text in [&*words.concat(), &*text] {
                for path in PATHS {
                    let source = SourceText::new(*path, text);
                    let parsed = Format::for_path(path).expect("a format").read(&source);
                    prop_assert!(parsed.draft.is_some() || parsed.diagnostics.iter().any(Diagnostic::is_error));
                }
            }
        }

        #[test]
        fn manifest_never_panics(words in prop::collection::vec(prop::sample::select(FRAGMENTS), 0..60)) {
            let words = words.concat();
            for text in [words.clone(), format!("[[resources]]\n{}", words.replace(": ", " = "))] {
                crate::manifest::Manifest::parse(SourceText::new("promptshelf.toml", text)).ok();
            }
        }
    }
}
