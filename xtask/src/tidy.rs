//! Rules for texts of the repository that neither the compiler, clippy nor cargo-deny can check.

use anyhow::{Result, bail};

use crate::repository::{Repository, Texts};

/// Checks every rule, and prints the places that break one.
pub(crate) fn run(repository: &Repository) -> Result<()> {
    let texts = repository.texts()?;
    let broken: Vec<String> =
        named_machines(&texts).into_iter().chain(closed_changelog(&texts)).chain(other_versions(&texts)).collect();
    for place in &broken {
        println!("{place}");
    }
    if !broken.is_empty() {
        bail!("{} places break a rule of the project", broken.len());
    }
    println!("the rules hold in {} files", texts.len());
    Ok(())
}

/// A path of one machine is of no use on another one, and a file that a registry's client writes or reads must not
/// name the registry's host.
fn named_machines(texts: &Texts) -> Vec<String> {
    // Joined here, so that this file does not break the rule itself.
    let hosts = [("npmjs", "org"), ("npmjs", "com"), ("pypi", "org"), ("pythonhosted", "org"), ("crates", "io")];
    let hosts = hosts.map(|(name, end)| format!("{name}.{end}"));
    let folders = ["tmp", "work", "root", "home"].map(|folder| format!("/{folder}/"));
    // Cargo writes the name of its index into each entry of its lock file.
    let files = texts.iter().filter(|(path, _)| !path.ends_with("Cargo.lock") && !path.contains("/vendor/"));
    let mut broken = Vec::new();
    for (path, text) in files {
        for (at, line) in text.lines().enumerate() {
            let host = hosts.iter().find(|host| line.contains(host.as_str()));
            let folder = folders.iter().find(|folder| begins_a_path(line, folder));
            for name in host.into_iter().chain(folder) {
                broken.push(format!("{path}:{}: names a registry or a path of one machine: {name}", at + 1));
            }
        }
    }
    broken
}

/// Whether `folder` begins an absolute path in the line, as in `"/x/y"` but not in `a/x/y`.
fn begins_a_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| c.is_whitespace() || "\"'`(=[<,:".contains(c)) && !line[..at].ends_with('{')
    })
}

/// Files outside of cargo's manifests name the version of the workspace.
fn other_versions(texts: &Texts) -> Vec<String> {
    let manifest = texts.get("Cargo.toml").map_or("", String::as_str);
    let version =
        manifest.lines().find_map(|line| line.strip_prefix("version = ")).unwrap_or_default().trim_matches('"');
    let named = [
        ("pyproject.toml", format!("\"promptshelf=={version}\"")),
        ("docs/guide/src/writing/ci.md", format!("promptshelf/promptshelf@v{version}")),
        ("docs/guide/src/writing/ci.md", format!("rev: v{version}")),
        ("deploy/compose.yaml", format!("promptshelf:{version}")),
        ("deploy/kubernetes/promptshelf.yaml", format!("promptshelf:{version}")),
    ];
    let lacks = |path: &str, words: &str| !texts.get(path).is_some_and(|text| text.contains(words));
    named
        .iter()
        .filter(|(path, words)| lacks(path, words))
        .map(|(path, words)| format!("{path}: does not name {words}"))
        .collect()
}

/// The changelog has a section for the next release, or for the current version.
fn closed_changelog(texts: &Texts) -> Option<String> {
    let manifest = texts.get("Cargo.toml").map_or("", String::as_str);
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = ")).map(|it| it.trim_matches('"'));
    let changelog = texts.get("CHANGELOG.md").map_or("", String::as_str);
    let mut headings = changelog.lines().filter_map(|line| line.strip_prefix("## "));
    let is_open = headings.any(|heading| {
        let heading = heading.trim_start_matches('[').to_lowercase();
        heading.starts_with("unreleased") || version.is_some_and(|version| heading.starts_with(version))
    });
    (!is_open).then(|| "CHANGELOG.md: has no section `## Unreleased`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(files: &[(&str, &str)]) -> Texts {
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn hosts_and_absolute_paths_are_found() {
        let host = format!("https://registry.npmjs{}", ".org/x");
        let path = format!("see {}home/x", "/");
        let tree = texts(&[("a.md", &host), ("b.md", &path), ("c.md", "a relative/home/x and https://example.com")]);
        let broken = named_machines(&tree);
        assert!(
            matches!(broken.as_slice(), [a, b] if a.starts_with("a.md:1") && b.starts_with("b.md:1")),
            "{broken:?}"
        );
    }

    #[test]
    fn changelog_needs_an_open_section_or_this_version() {
        let manifest = "[workspace.package]\nversion = \"0.3.0\"\n";
        let closed = |changelog| closed_changelog(&texts(&[("Cargo.toml", manifest), ("CHANGELOG.md", changelog)]));
        assert_eq!(closed("## [Unreleased]\n"), None);
        assert_eq!(closed("## 0.3.0, 2026-01-01\n"), None);
        assert!(closed("## 0.2.0\n").is_some());
    }
}
