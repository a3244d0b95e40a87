//! Runs every `tests/cases/*.md`.
//!
//! A case is a Markdown file: prose, and blocks between lines of four tildes. The first line of a block is its kind:
//!
//! | block | contains |
//! |---|---|
//! | `prompt NAME` | a prompt: lines of `key: value`, a line `---`, and its template |
//! | `partial PATH` | a template to include |
//! | `file PATH [MIME]` | a file of the library; text, or Base64 for a type other than text |
//! | `resource URI` | lines of `key: value`; after `---` its text, in template syntax |
//! | `limits` | lines of `key: number` |
//! | `diagnostics` | the diagnostics of `check`; only the first such block counts for all |
//! | `get NAME` | arguments, as a JSON object |
//! | `complete NAME ARGUMENT` | the typed text and the known values, as `{"typed": "…", "known": {…}}` |
//! | `read URI` | nothing |
//! | `answer` | the expected answer to the block before it |
//!
//! `argument:` and `variable:` lines contain one argument each, as a JSON object with the keys of prompt files. An
//! object `{"repeat": "a", "times": 1000}` is a long value.
//!
//! `UPDATE_CASES=1 cargo test -p promptshelf-core --test it cases` writes the actual answers into the files; read the
//! difference before you commit it.

use std::{env, fs, path::Path};

mod library;
mod question;
mod show;

/// A part of a case.
pub(crate) enum Piece {
    /// Lines between blocks.
    Prose(String),
    Block(Block),
}

pub(crate) struct Block {
    kind: String,
    /// The rest of the line after the kind.
    subject: String,
    body: String,
}

const FENCE: &str = "~~~~";

fn parse(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut prose = String::new();
    let mut lines = text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        let Some(head) = line.strip_prefix(FENCE) else {
            prose.push_str(line);
            continue;
        };
        pieces.push(Piece::Prose(std::mem::take(&mut prose)));
        let (kind, subject) = head.trim().split_once(' ').unwrap_or((head.trim(), ""));
        let body = lines.by_ref().take_while(|line| line.trim_end() != FENCE).collect();
        pieces.push(Piece::Block(Block { kind: kind.to_owned(), subject: subject.to_owned(), body }));
    }
    pieces.push(Piece::Prose(prose));
    pieces
}

fn print(pieces: &[Piece]) -> String {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Prose(prose) => text.push_str(prose),
            Piece::Block(Block { kind, subject, body }) => {
                let head = format!("{FENCE} {kind} {subject}");
                text.push_str(&format!("{}\n{body}{FENCE}\n", head.trim_end()));
            }
        }
    }
    text
}

/// Returns the case with the actual answers.
fn run(text: &str) -> String {
    let mut pieces = parse(text);
    let blocks = pieces.iter().filter_map(|piece| match piece {
        Piece::Block(block) => Some(block),
        Piece::Prose(_) => None,
    });
    let checked = promptshelf_core::check(library::read(blocks), None);
    let mut answer = None;
    for piece in &mut pieces {
        let Piece::Block(block) = piece else { continue };
        match &*block.kind {
            "diagnostics" => block.body = show::diagnostics(&checked.diagnostics),
            "answer" => block.body = answer.take().expect("a question before the answer"),
            _ => answer = question::ask(&checked.catalog, block).or(answer),
        }
    }
    assert!(answer.is_none(), "the last question has no answer block");
    print(&pieces)
}

// req: C15, D10
#[test]
#[expect(clippy::disallowed_methods, reason = "the cases are files; only the crate itself reads none")]
fn every_case_has_its_expected_answer() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let update = env::var_os("UPDATE_CASES").is_some();
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 30, "the cases are not where they should be");
    let mut failures = String::new();
    for path in paths {
        let expected = fs::read_to_string(&path).unwrap();
        let found = run(&expected);
        if found == expected {
            continue;
        }
        if update {
            fs::write(&path, found).unwrap();
        } else {
            failures.push_str(&format!("{}:\n{}\n", path.display(), difference(&expected, &found)));
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// Returns the lines that differ, each with its number.
fn difference(expected: &str, found: &str) -> String {
    let same_end = expected.lines().rev().zip(found.lines().rev()).take_while(|(a, b)| a == b).count();
    let same_start = expected.lines().zip(found.lines()).take_while(|(a, b)| a == b).count();
    let changed = |text: &str, sign: &str| {
        let end = text.lines().count().saturating_sub(same_end).max(same_start);
        let lines = text.lines().enumerate().take(end).skip(same_start);
        lines.map(|(index, line)| format!("{sign} {:>4} {line}\n", index + 1)).collect::<String>()
    };
    format!("{}{}", changed(expected, "-"), changed(found, "+"))
}
