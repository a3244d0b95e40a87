//! Phrases that plain technical English avoids, counted per 1,000 words of comments and of string literals.
//!
//! Tests are not counted. A low count does not prove that a text is plain, but a rising one shows that it is not.
//! The phrases are in `xtask/prose.toml`, the ceilings in `xtask/ceilings.toml`.

use std::{iter, sync::LazyLock};

use regex::Regex;
use serde::Deserialize;

use super::{
    Finding, Tree,
    code::{Kind, Language, split},
};

/// The phrases of `xtask/prose.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Phrases {
    avoided: Vec<String>,
    allowed: Vec<String>,
}

/// Matches an avoided phrase, or an allowed one in the group `allowed`.
static PHRASES: LazyLock<Regex> = LazyLock::new(|| {
    let Phrases { avoided, allowed } = toml::from_str(include_str!("../../prose.toml")).expect("phrases as expected");
    // Each space of an expression is one in the text, or a line break.
    let any = |phrases: &[String]| phrases.join("|").replace(' ', r"\s");
    Regex::new(&format!(r"(?i)\b(?:(?<allowed>{})|{})\b", any(&allowed), any(&avoided))).expect("a valid expression")
});

/// Words that make a module header a riddle when they begin it.
const RIDDLES: [&str; 4] = ["What", "Who", "Where", "How"];

/// The counts of one kind of text.
#[derive(Debug, Default)]
pub(super) struct Count {
    pub(super) words: usize,
    /// The avoided phrases, where they are.
    pub(super) places: Vec<Finding>,
}

impl Count {
    /// Returns the avoided phrases per 1,000 words, to one decimal.
    pub(super) fn rate(&self) -> f64 {
        (10_000.0 * self.places.len() as f64 / self.words.max(1) as f64).round() / 10.0
    }
}

/// Counts the comments and the strings of all source files outside tests.
pub(super) fn count(tree: &Tree) -> (Count, Count) {
    let (mut comments, mut strings) = (Count::default(), Count::default());
    for (path, text, language) in sources(tree) {
        for (kind, line, prose) in prose(text, language) {
            let count = if kind == Kind::Comment { &mut comments } else { &mut strings };
            count.words += words(&prose);
            for found in PHRASES.captures_iter(&prose).filter(|found| found.name("allowed").is_none()) {
                let (phrase, start) = (&found[0], found.get(0).map_or(0, |all| all.start()));
                let line = line + prose[..start].matches('\n').count();
                count.places.push(Finding::new(path, line, format!("avoid \"{}\"", phrase.replace('\n', " "))));
            }
        }
    }
    (comments, strings)
}

/// Finds module headers that begin with a question word instead of a noun phrase.
pub(super) fn headers(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text, _) in sources(tree) {
        let Some(header) = text.lines().next().and_then(|line| line.strip_prefix("//!")) else { continue };
        let first = header.split_whitespace().next().unwrap_or_default();
        if let Some(word) = RIDDLES.iter().find(|word| first == **word) {
            findings.push(Finding::new(path, 1, format!("begin the module header with a noun phrase, not `{word}`")));
        }
    }
    findings
}

fn sources(tree: &Tree) -> impl Iterator<Item = (&str, &str, Language)> {
    let counted =
        |path: &str| !path.contains("/tests/") && !path.starts_with("tests/") && !path.starts_with("bench/peers");
    tree.texts
        .iter()
        .filter(move |(path, _)| counted(path))
        .filter_map(|(path, text)| Some((path.as_str(), text.as_str(), Language::of(path)?)))
}

/// Returns the comments and the strings with a space, each with its first line. Line comments that follow one another
/// are one comment, with a line break for each line, so that a phrase is found across lines.
fn prose(text: &str, language: Language) -> Vec<(Kind, usize, String)> {
    let mut found: Vec<(Kind, usize, String)> = Vec::new();
    let (mut line, mut continues) = (1, false);
    for (kind, part) in split(text, language) {
        match kind {
            Kind::Comment => {
                let body = comment(part);
                match found.last_mut().filter(|_| continues) {
                    Some((_, _, block)) => *block = format!("{block}\n{body}"),
                    None => found.push((kind, line, body)),
                }
                continues = true;
            }
            Kind::Text => {
                // A line break within a string is usually escaped: the next line continues the sentence.
                let body = part.replace("\\\n", "\n");
                if body.contains(' ') {
                    found.push((kind, line, body));
                }
                continues = false;
            }
            Kind::Code => continues = continues && part.trim().is_empty() && part.matches('\n').count() == 1,
        }
        line += part.matches('\n').count();
    }
    for (_, _, prose) in &mut found {
        let trimmed: Vec<&str> = prose.lines().map(str::trim).collect();
        *prose = trimmed.join("\n");
    }
    found
}

/// Removes the marks of a comment.
fn comment(part: &str) -> String {
    let marks = |line: &str| {
        let line = line.trim_start();
        line.trim_start_matches(['/', '*', '!']).trim_end_matches("*/").trim_start().to_owned()
    };
    part.lines().map(marks).collect::<Vec<_>>().join("\n")
}

fn words(text: &str) -> usize {
    let letters = |c: char| c.is_ascii_alphabetic();
    let mut inside = false;
    iter::once(' ')
        .chain(text.chars())
        .filter(|c| {
            let starts = letters(*c) && !inside;
            inside = letters(*c) || inside && (*c == '\'' || *c == '-');
            starts
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(path: &str, text: &str) -> (Count, Count) {
        count(&Tree::of(&[(path, text)]))
    }

    #[test]
    fn phrases_are_counted_in_comments_and_strings_apart() {
        let text = "// Returns nobo\u{64}y's name,\n// and wha\u{74}\n// is there.\nlet a = \"it sai\u{64} so\"; f(\"tol\u{64}\");\n";
        let (comments, strings) = counted("a.rs", text);
        assert_eq!((comments.words, comments.places.len()), (7, 2), "{comments:?}");
        assert_eq!(comments.places[1].line, 2);
        assert_eq!((strings.words, strings.places.len()), (3, 1), "a string without a space is not prose");
        assert_eq!(strings.places[0].line, 4);
        assert!((comments.rate() - 285.7).abs() < 0.01);
    }

    #[test]
    fn strings_over_several_lines_are_counted() {
        let text = "bail!(\n    \"this is \\\n     no text\"\n);\n";
        let (_, strings) = counted("a.rs", text);
        assert_eq!((strings.words, strings.places.len()), (4, 1));
    }

    #[test]
    fn standard_phrases_are_not_avoided() {
        let text = "// There is no longer a limit, and this is not one. A standing offer; the stand-in. Essays.\n";
        assert_eq!(counted("a.rs", text).0.places, []);
    }

    #[test]
    fn script_is_counted_and_tests_are_not() {
        let text = "// sai\u{64}\n/** hear\u{64} */\nconst a = 'it tell\u{73} all';\n";
        let (comments, strings) = counted("crates/one/web/a.js", text);
        assert_eq!((comments.places.len(), strings.places.len()), (2, 1));
        for path in ["tests/web/a.mjs", "crates/one/tests/it/a.rs"] {
            let (comments, strings) = counted(path, text);
            assert_eq!((comments.words, strings.words), (0, 0));
        }
    }

    #[test]
    fn header_begins_with_a_noun_phrase() {
        let found = |text: &str| headers(&Tree::of(&[("a.rs", text)])).len();
        assert_eq!(found("//! What is read.\n"), 1);

        assert_eq!(found("//! Reader of files.\n\n//! What it reads.\n"), 0);
        assert_eq!(found("// What.\n"), 0);
    }
}
