//! Tags at the evidence: `// req: C6, R-3` above a test names the requirements that it proves.
//!
//! Three kinds of files carry tags:
//!
//! - a Rust test (`#[test]`, `#[tokio::test]`): the tag is a line above its attributes;
//! - a transcript: `<!-- req: X1 -->` on a line of the Markdown file;
//! - a test of the official clients or of the page (`.mjs`): the tag is a line above the call, such as `test('…'`.
//!
//! The scanner reads lines and relies on the layout of rustfmt. Whether a test passes is shown elsewhere.

use std::collections::BTreeMap;

/// The folder whose Markdown files are played as tests.
pub(super) const TRANSCRIPTS: &str = "crates/promptshelf/tests/it/transcripts/";

/// How many lines below a tag the call of a JavaScript test and its title may extend.
const REACH: usize = 4;

/// The evidence found in the tree.
#[derive(Debug, Default)]
pub(super) struct Tags {
    /// Requirement to the names of its tests, in the order of their files.
    pub(super) evidence: BTreeMap<String, Vec<String>>,
    /// Tags that are not followed by a test that runs.
    pub(super) problems: Vec<String>,
}

impl Tags {
    /// Collects the tags of all `.rs`, `.mjs` and `.md` files.
    pub(super) fn collect(texts: &BTreeMap<String, String>) -> Tags {
        let mut tags = Tags::default();
        for (path, text) in texts {
            let lines: Vec<&str> = text.lines().collect();
            for (at, line) in lines.iter().enumerate() {
                let Some(ids) = tag(path, line) else { continue };
                match test_below(path, &lines, at) {
                    Ok(name) => tags.add(ids, &name),
                    Err(problem) => tags.problems.push(format!("{path}:{}: {problem}", at + 1)),
                }
            }
        }
        tags
    }

    fn add(&mut self, ids: &str, name: &str) {
        for id in ids.split(',').map(str::trim) {
            let names = self.evidence.entry(id.to_owned()).or_default();
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
    }

    /// The names of the tests that prove a requirement.
    pub(super) fn of(&self, id: &str) -> &[String] {
        self.evidence.get(id).map_or(&[], Vec::as_slice)
    }
}

/// Returns the ids of a tag, if the line is one.
fn tag<'a>(path: &str, line: &'a str) -> Option<&'a str> {
    if path.ends_with(".md") {
        return line.strip_prefix("<!-- req: ")?.strip_suffix(" -->");
    }
    if path.ends_with(".rs") || path.ends_with(".mjs") {
        return line.trim_start().strip_prefix("// req: ");
    }
    None
}

/// Returns the name of the test that a tag stands above.
fn test_below(path: &str, lines: &[&str], tag: usize) -> Result<String, &'static str> {
    if path.ends_with(".md") {
        let name = path.strip_prefix(TRANSCRIPTS).and_then(|name| name.strip_suffix(".md"));
        return name
            .map(|name| format!("transcript {name}"))
            .ok_or("a tag in Markdown belongs into a transcript; move it to the test");
    }
    if path.ends_with(".mjs") {
        return javascript_test(&lines[tag + 1..])
            .map(|title| format!("{path}: {title}"))
            .ok_or("expected a call such as `test('…'` below the tag");
    }
    rust_test(path, lines, tag)
}

fn rust_test(path: &str, lines: &[&str], tag: usize) -> Result<String, &'static str> {
    let mut attributes = Vec::new();
    for line in &lines[tag + 1..] {
        let line = line.trim();
        let code = line.strip_prefix("async ").unwrap_or(line);
        if let Some((name, _)) = code.strip_prefix("fn ").and_then(|code| code.split_once(['(', '<'])) {
            return match attributes.as_slice() {
                found if found.iter().any(|line: &&str| line.starts_with("#[ignore")) => {
                    Err("the test below the tag is ignored, so it proves nothing")
                }
                found if found.iter().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test")) => {
                    Ok(modules(path, &lines[..=tag]) + name)
                }
                _ => Err("the function below the tag has no `#[test]`"),
            };
        }
        if line.is_empty() || line == "}" {
            break;
        }
        attributes.push(line);
    }
    Err("expected a test directly below the tag")
}

/// Returns the path of the module that the last of these lines is in, as cargo names tests: `crate::it::http::`.
fn modules(path: &str, lines: &[&str]) -> String {
    let mut parts: Vec<&str> = path.strip_suffix(".rs").unwrap_or(path).split('/').collect();
    parts.retain(|part| !["crates", "src", "tests", "lib", "main", "mod"].contains(part));
    // A file `tests.rs` is a module of that name, a folder `tests` holds a crate's integration tests.
    if path.ends_with("/tests.rs") {
        parts.push("tests");
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut inner = Vec::new();
    let mut depth = lines.last().map_or(0, |line| indent(line));
    for line in lines.iter().rev().filter(|line| !line.trim().is_empty()) {
        if indent(line) < depth {
            depth = indent(line);
            inner.extend(line.trim().strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")));
        }
    }
    parts.extend(inner.into_iter().rev());
    parts.join("::") + "::"
}

/// Returns the first string literal of the call below a tag; an interpolation becomes `…`.
fn javascript_test(below: &[&str]) -> Option<String> {
    let call = below.first()?.trim_start();
    let (function, _) = call.split_once('(')?;
    if !(function.starts_with("test") || function.starts_with("check")) {
        return None;
    }
    let call = below.iter().take(REACH).copied().collect::<Vec<_>>().join("\n");
    let start = call.find(['\'', '"', '`'])?;
    let quote = call[start..].chars().next()?;
    let literal = call[start + 1..].split(quote).next()?;
    let mut title = String::new();
    for (at, piece) in literal.split("${").enumerate() {
        let rest = if at == 0 { piece } else { piece.split_once('}')?.1 };
        title += if at == 0 { "" } else { "…" };
        title += rest;
    }
    Some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(path: &str, text: &str) -> Tags {
        Tags::collect(&[(path.to_owned(), text.to_owned())].into())
    }

    fn evidence(path: &str, text: &str) -> Vec<(String, String)> {
        let tags = collect(path, text);
        assert_eq!(tags.problems, [""; 0]);
        tags.evidence
            .into_iter()
            .flat_map(|(id, names)| names.into_iter().map(move |name| (id.clone(), name)))
            .collect()
    }

    fn pair(id: &str, name: &str) -> (String, String) {
        (id.to_owned(), name.to_owned())
    }

    #[test]
    fn rust_tests_are_named_by_crate_file_and_module() {
        let text = "// req: A1, R-2\n#[cfg(unix)]\n#[tokio::test(flavor = \"x\")]\nasync fn holds() {}\n";
        let name = "one::it::http::modern::holds";
        let found = evidence("crates/one/tests/it/http/modern.rs", text);
        assert_eq!(found, [pair("A1", name), pair("R-2", name)]);

        let text =
            "mod tests {\n    proptest! {\n        // req: F8\n        #[test]\n        fn holds(cut in 1..8) {\n";
        assert_eq!(evidence("crates/one/src/cursor.rs", text), [pair("F8", "one::cursor::tests::holds")]);

        let text = "fn a() {\n    b();\n}\n\n/// Why.\n// req: A1\n#[test]\n// more\nfn holds() {}\n";
        assert_eq!(evidence("crates/one/src/a/tests.rs", text), [pair("A1", "one::a::tests::holds")]);
        assert_eq!(evidence("crates/one/tests/memory.rs", text), [pair("A1", "one::memory::holds")]);
    }

    #[test]
    fn transcripts_and_javascript_tests_are_evidence() {
        let path = format!("{TRANSCRIPTS}x01-names.md");
        assert_eq!(evidence(&path, "# Names\n\n<!-- req: X1 -->\n"), [pair("X1", "transcript x01-names")]);

        let text = "// req: M9\n  checkPeer(\n    {\n      title: `client, ${revision}, pipe`,\n// req: P1\ntest('a \"b\"', () => {\n";
        let found = evidence("tests/peers/a.mjs", text);
        assert_eq!(found, [pair("M9", "tests/peers/a.mjs: client, …, pipe"), pair("P1", "tests/peers/a.mjs: a \"b\"")]);
    }

    #[test]
    fn tag_without_running_test_is_a_problem() {
        let rust = "crates/one/tests/it/a.rs";
        for (path, text) in [
            (rust, "// req: A1\n#[test]\n#[ignore = \"slow\"]\nfn holds() {}\n"),
            (rust, "// req: A1\nfn helps() {}\n"),
            (rust, "// req: A1\n\n#[test]\nfn holds() {}\n"),
            (rust, "// req: A1\n"),
            ("tests/web/a.test.mjs", "// req: A1\nconst a = 'b';\n"),
            ("docs/guide.md", "<!-- req: A1 -->\n"),
        ] {
            let tags = collect(path, text);
            assert_eq!((tags.problems.len(), tags.evidence.len()), (1, 0), "{text}");
        }
    }

    #[test]
    fn other_comments_are_not_tags() {
        assert!(tag("a.rs", "//! `// req: A1` names").is_none());
        assert!(tag("a.toml", "// req: A1").is_none());
        assert!(tag("a.md", "Write `<!-- req: A1 -->`.").is_none());
    }
}
