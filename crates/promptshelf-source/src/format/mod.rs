//! File formats: how the text of one file becomes a prompt's definition.
//!
//! One file a format. A format is told by the file's path; it gets the whole
//! text and gives a draft, and notes what is wrong. Only our own format has a
//! template language: what other formats say is text with places for arguments. Where the text comes from,
//! and what it refers to, is not a format's business.

pub(crate) mod access;
pub(crate) mod arguments;
mod claude;
pub(crate) mod command;
mod demands;
mod expected;
mod front_matter;
mod gemini;
mod github;
pub(crate) mod homes;
mod icons;
pub(crate) mod keys;
pub(crate) mod layout;
mod markdown;
mod opencode;
pub(crate) mod pieces;
mod skill;
mod steps;
mod table;
pub(crate) mod toml;
pub(crate) mod tree;
mod vscode;
pub(crate) mod yaml;

use std::{ops::Range, sync::Arc};

use promptshelf_core::{
    ArgumentDefinition, Body, BodyPiece, Code, Diagnostic, Origin, PromptDefinition, Seldom, SourceText,
};

pub(crate) use self::{
    arguments::{KEYS as ARGUMENT, arguments},
    demands::demands,
    expected::GOLDEN,
    front_matter::KEYS as PROMPT,
    github::placeholders,
    icons::{KEYS as ICON, icons, mime_type},
    pieces::{Pieces, argument_name},
    skill::FILE as SKILL,
    table::{Table, items, list},
    tree::{Node, Notes, Value},
};

/// The most mistakes that are named of one file. Nobody reads more at once.
const MAX_MISTAKES: usize = 100;

/// What a file's text becomes.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// `None` when the text cannot be understood.
    pub(crate) draft: Option<Draft>,
    /// What could be understood of it nevertheless, so that more mistakes can be found.
    pub(crate) broken: Option<BrokenDraft>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// A prompt whose references to other files have not been followed yet: icons
/// still hold paths, and globs have not been expanded.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) definition: PromptDefinition,
    pub(crate) globs: Seldom<Vec<GlobCompletion>>,
}

/// An argument that completes from paths.
#[derive(Clone, Debug)]
pub(crate) struct GlobCompletion {
    /// The argument's place in its list.
    pub(crate) argument: usize,
    pub(crate) glob: String,
    /// The declared root; the library itself without one.
    pub(crate) root: Option<String>,
    pub(crate) span: Range<usize>,
}

/// A prompt that cannot be served as it stands.
#[derive(Clone, Debug)]
pub(crate) struct BrokenDraft {
    pub(crate) draft: Draft,
    /// Whether it has every argument that its author declared.
    pub(crate) has_all_arguments: bool,
}

impl Draft {
    /// A prompt that is no template.
    fn plain(name: &str, notes: &mut Notes<'_>) -> Draft {
        let definition =
            PromptDefinition::from_source(name, Body::Pieces(Vec::new()), Origin::new(Arc::clone(notes.source)));
        Draft { definition, globs: Seldom::default() }
    }

    /// Says it, and files where its parts stand.
    fn saying(mut self, pieces: Vec<BodyPiece>, notes: &mut Notes<'_>) -> Draft {
        self.definition.body = Body::Pieces(pieces);
        self.definition.origin.spans = std::mem::take(&mut notes.spans).into();
        self
    }
}

impl BrokenDraft {
    fn of(draft: Draft, notes: &Notes<'_>) -> Option<BrokenDraft> {
        let Body::Template { range } = &draft.definition.body else { return None };
        // Without an end of the keys, nobody knows where the text begins.
        if range.end == 0 {
            return None;
        }
        let text = &notes.source.text;
        let is_about_arguments = |left_out: &Range<usize>| {
            let is_key = |line: &&str| line.starts_with(|c: char| !c.is_whitespace() && c != '-' && c != '#');
            let line = text[..left_out.end].lines().rev().find(is_key).unwrap_or_default();
            line.starts_with("arg") || !line.contains(':')
        };
        let is_named = |argument: &ArgumentDefinition| !argument.name.is_empty();
        let is_list = |found: &Diagnostic| {
            Some(&found.location.span()) != draft.definition.origin.spans.get("arguments").as_ref()
        };
        let has_all_arguments = !notes.left_out.iter().any(is_about_arguments)
            && draft.definition.arguments.iter().all(is_named)
            && notes.diagnostics.iter().filter(|found| found.is_error()).all(is_list);
        Some(BrokenDraft { draft, has_all_arguments })
    }
}

impl Parsed {
    /// What is left of a draft when everything has been noted.
    pub(super) fn of(draft: Draft, mut notes: Notes<'_>) -> Parsed {
        let (draft, broken) = match notes.has_errors() {
            true => (None, BrokenDraft::of(draft, &notes)),
            false => (Some(draft), None),
        };
        notes.diagnostics.sort_by_key(|found| found.location.span().start);
        if notes.diagnostics.len() > MAX_MISTAKES {
            let more = notes.diagnostics.split_off(MAX_MISTAKES);
            if let Some(first) = more.first() {
                let span = first.location.span();
                notes.error(Code::TooMany, &span, format!("from here on, {} more mistakes are not named", more.len()));
            }
        }
        Parsed { draft, broken, diagnostics: notes.diagnostics }
    }
}

/// The keys and the text of a Markdown file.
pub(crate) fn parts(notes: &mut Notes<'_>) -> (Option<Node>, Range<usize>) {
    markdown::parts(notes, |_| None)
}

/// The keys of a file, whatever they mean; `None` where there are none.
pub(crate) fn keys(source: &Arc<SourceText>) -> Option<Node> {
    let mut notes = Notes::new(source);
    match source.path.rsplit('.').next() {
        Some("toml") => Some(toml::parse(&mut notes)),
        Some("yml" | "yaml") => yaml::parse(0..source.text.len(), &mut notes),
        _ => markdown::parts(&mut notes, |keys| command::hint_line(&source.text, keys)).0,
    }
}

/// One format of prompt files.
#[derive(Debug)]
pub(crate) struct Format {
    /// Whether the file at a path is written in it.
    holds: fn(&str) -> bool,
    /// The name that a prompt has when its file gives none.
    name: fn(&str) -> String,
    read: fn(&Arc<SourceText>, &str) -> Parsed,
    /// What can be written in it; nothing is said of our own format, which has a schema.
    words: ForeignWords,
}

/// What can be written in a file of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignWords {
    /// Keys at its top.
    pub keys: &'static [&'static str],
    /// What its text can hold in the place of values, and what that is.
    pub places: &'static [(&'static str, &'static str)],
}

impl ForeignWords {
    const NONE: ForeignWords = ForeignWords { keys: &[], places: &[] };

    /// Those of the file at a path; `None` where it is no prompt file of another program.
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

/// The first one that holds a path is taken.
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
    /// The format of the file at a path, if its name is one of a prompt file.
    pub(crate) fn of(path: &str) -> Option<&'static Format> {
        FORMATS.iter().find(|format| (format.holds)(path))
    }

    /// Whether a file is written in our own format.
    pub(crate) fn is_ours(path: &str) -> bool {
        FORMATS.iter().position(|format| (format.holds)(path)) == Some(FORMATS.len() - 1)
    }

    /// Understands a file's text.
    pub(crate) fn read(&self, source: &Arc<SourceText>) -> Parsed {
        (self.read)(source, &(self.name)(&source.path))
    }
}

/// The front matter of the notes' file, where it has one.
#[cfg(test)]
pub(crate) fn front_matter(notes: &mut Notes<'_>) -> Option<Node> {
    match markdown::split(&notes.source.text) {
        markdown::Split::Both { keys, .. } => yaml::parse(keys, notes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Words that mean something somewhere, in any order.
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

    /// A file of each format.
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
