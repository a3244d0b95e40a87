//! The examples on the pages of `explain`: each one causes its code, and its correction does not.

use promptshelf::{
    Code, Library,
    author::{explain, review},
};

use crate::program::library;

type Files = Vec<(String, String)>;

/// Returns the files of an example: `Wrong, in `a.md`:`, `and in `b.md`:`, each followed by an indented text.
fn files(page: &str, heading: &str) -> Files {
    let mut files = Files::new();
    let mut is_inside = false;
    for line in page.lines() {
        let is_heading = ["Wrong, ", "Right, "].iter().any(|word| line.starts_with(word));
        if is_heading {
            is_inside = line.starts_with(heading);
        }
        let name =
            line.split('`').nth(1).filter(|_| line.ends_with("`:") && (is_heading || line.starts_with("and in")));
        match (is_inside, name, files.last_mut()) {
            (true, Some(name), _) => files.push((name.to_owned(), String::new())),
            (true, None, Some((_, text))) if line.starts_with("    ") => {
                text.push_str(&line[4..]);
                text.push('\n');
            }
            (true, None, Some((_, text))) if line.is_empty() && !text.is_empty() => text.push('\n'),
            _ => {}
        }
    }
    files
}

fn codes(files: &Files) -> Vec<Code> {
    let written: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let folder = library(&written);
    let opened = Library::builder().folder(folder.path().join("prompts")).build().expect("the folder can be read");
    let found = opened.diagnostics();
    let review = review(&opened.catalog(), &found);
    found.iter().chain(&review).map(|found| found.code).collect()
}

#[test]
fn examples_cause_their_code_and_corrections_do_not() {
    let mut tried = 0;
    for code in Code::ALL {
        let mut example = files(explain::page(*code), "Wrong, ");
        if example.is_empty() {
            continue;
        }
        tried += 1;
        assert!(
            codes(&example).contains(code),
            "the wrong example of {code} shows {:?}: {example:#?}",
            codes(&example)
        );
        let right = files(explain::page(*code), "Right, ");
        if !right.iter().any(|(_, text)| !text.is_empty()) {
            continue;
        }
        if *code == Code::EmptyLibrary {
            example.clear();
        }
        for (path, text) in right {
            example.retain(|(known, _)| *known != path);
            example.push((path, text));
        }
        assert!(!codes(&example).contains(code), "the right example of {code} shows it too: {example:#?}");
    }
    assert!(tried > 25, "{tried}");
}
