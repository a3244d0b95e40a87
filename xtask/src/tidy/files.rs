//! Files: how long they are, where they are listed, and what they must not say.

use super::{Finding, Tree};

/// A file that is longer has more than one reason to be read.
const MOST_LINES: usize = 499;

/// Code stays short enough to be read at once.
pub(super) fn files_are_short(tree: &Tree) -> Vec<Finding> {
    let code = |path: &str| [".rs", ".js", ".mjs", ".css"].iter().any(|ending| path.ends_with(ending));
    tree.texts
        .iter()
        .filter(|(path, text)| code(path) && text.lines().count() > MOST_LINES)
        .map(|(path, text)| {
            let lines = text.lines().count();
            Finding::new(path, 0, format!("{lines} lines; {MOST_LINES} are allowed, so give a part its own file"))
        })
        .collect()
}

/// The map has a part for each crate, which begins with a line that holds
/// `<crate>/src`, and there a word for each file: its path from `src` or, but
/// for `mod.rs`, its bare name.
pub(super) fn the_map_names_every_file(tree: &Tree) -> Vec<Finding> {
    const MAP: &str = "ARCHITECTURE.md";
    let Some(map) = tree.texts.get(MAP) else {
        return vec![Finding::new(MAP, 0, "is missing")];
    };
    let mut findings = Vec::new();
    for path in tree.texts.keys().filter(|path| path.ends_with(".rs")) {
        let Some((home, file)) = path.split_once("/src/") else { continue };
        let name = home.strip_prefix("crates/").unwrap_or(home);
        if home != "xtask" && !path.starts_with("crates/") || name.contains('/') {
            continue;
        }
        let part = part_of(map, name);
        let bare = file.rsplit('/').next().unwrap_or(file);
        if !names(&part, file) && (bare == "mod.rs" || !names(&part, bare)) {
            findings.push(Finding::new(MAP, 0, format!("does not name {file} in its part for {name}/src")));
        }
    }
    findings
}

/// The lines of the map from a crate's heading to the next crate's.
fn part_of(map: &str, name: &str) -> String {
    let heading = |line: &str| {
        line.split(|c: char| !(c.is_alphanumeric() || "-_/".contains(c)))
            .filter_map(|word| word.trim_end_matches('/').strip_suffix("/src"))
            .map(|home| home.rsplit('/').next().unwrap_or(home).to_owned())
            .next()
    };
    let mut inside = false;
    let mut part = String::new();
    for line in map.lines() {
        if let Some(home) = heading(line) {
            inside = home == name;
        }
        if inside {
            part.push_str(line);
            part.push('\n');
        }
    }
    part
}

fn names(part: &str, file: &str) -> bool {
    part.match_indices(file).any(|(at, _)| {
        let before = part[..at].chars().next_back();
        let after = part[at + file.len()..].chars().next();
        !before.is_some_and(|c| c.is_alphanumeric() || "-_".contains(c))
            && !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

/// A path of somebody's machine helps nobody else, and a registry's host has no
/// business in a file that the registry's client writes or reads.
pub(super) fn no_machine_is_named(tree: &Tree) -> Vec<Finding> {
    // Put together here, so that this file does not break the rule itself.
    let hosts = [("npmjs", "org"), ("npmjs", "com"), ("pypi", "org"), ("pythonhosted", "org"), ("crates", "io")];
    let hosts = hosts.map(|(name, end)| format!("{name}.{end}"));
    let folders = ["tmp", "work", "root", "home"].map(|folder| format!("/{folder}/"));
    let mut findings = Vec::new();
    for (path, text) in &tree.texts {
        // Cargo writes the name of its index into each entry.
        if path.ends_with("Cargo.lock") {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            if let Some(host) = hosts.iter().find(|host| line.contains(host.as_str())) {
                findings.push(Finding::new(path, at + 1, format!("names the registry host {host}")));
            }
            if let Some(folder) = folders.iter().find(|folder| starts_a_path(line, folder)) {
                findings.push(Finding::new(path, at + 1, format!("names a path of one machine: {folder}…")));
            }
        }
    }
    findings
}

/// Whether `folder` begins an absolute path in the line, as in `"/x/y"` but not in `a/x/y`.
fn starts_a_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| c.is_whitespace() || "\"'`(=[<,:".contains(c)) && !line[..at].ends_with("{")
    })
}

/// Users read what has changed for them.
pub(super) fn the_changelog_is_open(tree: &Tree) -> Vec<Finding> {
    const CHANGELOG: &str = "CHANGELOG.md";
    let version = tree.texts.get("Cargo.toml").and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("version = "))?;
        Some(line.trim_start_matches("version = ").trim_matches('"').to_owned())
    });
    let Some(changelog) = tree.texts.get(CHANGELOG) else {
        return vec![Finding::new(CHANGELOG, 0, "is missing")];
    };
    let open = changelog.lines().filter_map(|line| line.strip_prefix("## ")).any(|heading| {
        let heading = heading.trim_start_matches('[');
        heading.to_lowercase().starts_with("unreleased")
            || version.as_deref().is_some_and(|version| heading.starts_with(version))
    });
    if open { Vec::new() } else { vec![Finding::new(CHANGELOG, 0, "has no section `## Unreleased`")] }
}

/// The texts that `license = "MIT OR Apache-2.0"` promises.
pub(super) fn licences_are_there(tree: &Tree) -> Vec<Finding> {
    [("LICENSE-MIT", "Permission is hereby granted"), ("LICENSE-APACHE", "END OF TERMS AND CONDITIONS")]
        .iter()
        .filter(|(path, phrase)| !tree.texts.get(*path).is_some_and(|text| text.contains(phrase)))
        .map(|(path, _)| Finding::new(path, 0, "is missing or cut short"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_of_code_is_found_and_a_long_table_is_not() {
        let long = "x\n".repeat(MOST_LINES + 1);
        let fits = "x\n".repeat(MOST_LINES);
        let tree = Tree::of(&[("a.rs", &long), ("b.json", &long), ("c.mjs", &fits), ("d.css", &long)]);
        let paths: Vec<String> = files_are_short(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(paths, ["a.rs", "d.css"]);
    }

    #[test]
    fn a_file_counts_as_named_only_in_its_own_crates_part() {
        let map = "crates/one/src\n  lib.rs, a.rs; deep/c.rs and d.rs\n## `two/src`\n  other_a.rs\n";
        let tree = Tree::of(&[
            ("ARCHITECTURE.md", map),
            ("crates/one/src/a.rs", ""),
            ("crates/one/src/deep/c.rs", ""),
            ("crates/one/src/deep/d.rs", ""),
            ("crates/one/src/deep/mod.rs", ""),
            ("crates/two/src/a.rs", ""),
            ("crates/two/tests/it/main.rs", ""),
        ]);
        let messages: Vec<String> = the_map_names_every_file(&tree).into_iter().map(|it| it.message).collect();
        assert_eq!(
            messages,
            ["does not name deep/mod.rs in its part for one/src", "does not name a.rs in its part for two/src",]
        );
    }

    #[test]
    fn hosts_and_absolute_paths_are_found() {
        let host = format!("https://registry.npmjs{}", ".org/x");
        let path = format!("see {}home/x", "/");
        let tree = Tree::of(&[("a.md", &host), ("b.md", &path), ("c.md", "a relative/home/x and https://example.com")]);
        let paths: Vec<String> = no_machine_is_named(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(paths, ["a.md", "b.md"]);
    }

    #[test]
    fn a_changelog_needs_an_open_section_or_this_version() {
        let with = |changelog: &str| {
            let manifest = "[workspace.package]\nversion = \"0.3.0\"\n";
            the_changelog_is_open(&Tree::of(&[("Cargo.toml", manifest), ("CHANGELOG.md", changelog)])).len()
        };
        assert_eq!(with("## Unreleased\n"), 0);
        assert_eq!(with("## [Unreleased]\n"), 0);
        assert_eq!(with("## 0.3.0, 2026-01-01\n"), 0);
        assert_eq!(with("## 0.2.0\n"), 1);
    }

    #[test]
    fn a_licence_that_is_cut_short_is_found() {
        let tree = Tree::of(&[("LICENSE-MIT", "MIT"), ("LICENSE-APACHE", "END OF TERMS AND CONDITIONS")]);
        assert_eq!(licences_are_there(&tree).len(), 1);
    }
}
