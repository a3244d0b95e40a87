//! Rules for files: text that a repository must not contain, and pages that it must.

use super::{Finding, Tree};

/// A path of one machine is of no use on another one, and a file that a registry's client writes or reads must not
/// name the registry's host.
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

/// The changelog has a section for the next release, or for the current version.
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

/// Both licence texts of `license = "MIT OR Apache-2.0"` are complete.
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
    fn hosts_and_absolute_paths_are_found() {
        let host = format!("https://registry.npmjs{}", ".org/x");
        let path = format!("see {}home/x", "/");
        let tree = Tree::of(&[("a.md", &host), ("b.md", &path), ("c.md", "a relative/home/x and https://example.com")]);
        let paths: Vec<String> = no_machine_is_named(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(paths, ["a.md", "b.md"]);
    }

    #[test]
    fn changelog_needs_an_open_section_or_this_version() {
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
    fn licence_that_is_cut_short_is_found() {
        let tree = Tree::of(&[("LICENSE-MIT", "MIT"), ("LICENSE-APACHE", "END OF TERMS AND CONDITIONS")]);
        assert_eq!(licences_are_there(&tree).len(), 1);
    }
}
