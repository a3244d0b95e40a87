//! Relative links of the Markdown documents: their files and headings have to exist.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path},
};

/// Returns a line for each broken link, as `page:line: target`.
pub(super) fn broken(texts: &BTreeMap<String, String>) -> Vec<String> {
    let mut files: BTreeSet<String> = texts.keys().cloned().collect();
    let folders: BTreeSet<String> =
        files.iter().flat_map(|path| Path::new(path).ancestors().skip(1).map(shown).collect::<Vec<_>>()).collect();
    files.extend(folders);
    let mut found = Vec::new();
    for (page, text) in texts.iter().filter(|(path, _)| is_document(path)) {
        let mut in_code = false;
        for (number, line) in text.lines().enumerate() {
            if line.starts_with("```") {
                in_code = !in_code;
            }
            if in_code {
                continue;
            }
            for target in targets(line) {
                if let Some(problem) = problem(page, target, &files, texts) {
                    found.push(format!("{page}:{}: {target} ({problem})", number + 1));
                }
            }
        }
    }
    found
}

/// Documents for people: those at the root, in `docs`, in `deploy` and the crates' READMEs.
fn is_document(path: &str) -> bool {
    let is_readme = path.starts_with("crates/") && path.ends_with("/README.md") && path.split('/').count() == 3;
    path.ends_with(".md")
        && (!path.contains('/') || path.starts_with("docs/") || path.starts_with("deploy/") || is_readme)
}

/// The targets of inline links outside inline code.
fn targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("](") {
        let is_code = rest[..at].matches('`').count() % 2 == 1;
        rest = &rest[at + 2..];
        let Some(end) = rest.find(')') else { break };
        if !is_code {
            found.push(rest[..end].split_whitespace().next().unwrap_or_default());
        }
        rest = &rest[end..];
    }
    found
}

fn problem(
    page: &str,
    target: &str,
    files: &BTreeSet<String>,
    texts: &BTreeMap<String, String>,
) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let file = if path.is_empty() { page.to_owned() } else { resolved(page, path) };
    // Pictures are not text, so they are known by their folder's other files only.
    let is_picture = [".png", ".svg"].iter().any(|ending| file.ends_with(ending));
    if !files.contains(&file) && !is_picture {
        return Some("no such file");
    }
    let has_heading = heading.is_empty()
        || texts
            .get(&file)
            .is_none_or(|text| text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading));
    (!has_heading).then_some("no such heading")
}

fn resolved(page: &str, path: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::Normal(name) => parts.push(name.to_str().unwrap_or_default()),
            _ => {}
        }
    }
    parts.join("/")
}

/// The anchor of a heading: lower-cased, spaces as `-`, other punctuation removed.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(pages: &[(&str, &str)]) -> Vec<String> {
        let texts = pages.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        broken(&texts)
    }

    #[test]
    fn links_to_missing_files_and_headings_are_reported() {
        let found = documents(&[
            (
                "docs/a.md",
                "[b](b.md#part-one) [c](c.md) [b](b.md#part-two)\n`[d](d.md)` [up](../README.md) [web](https://x.y)",
            ),
            ("docs/b.md", "# Part one!"),
            ("README.md", "[docs](docs)\n```\n[x](missing.md)\n```"),
        ]);
        assert_eq!(found, ["docs/a.md:1: c.md (no such file)", "docs/a.md:1: b.md#part-two (no such heading)"]);
    }
}
