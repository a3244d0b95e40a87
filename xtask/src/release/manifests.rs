//! The Homebrew formula and the Scoop manifest, with the archives that are in the folder and their checksums.

use std::fs;

use anyhow::Result;
use serde_json::json;

use super::Release;

/// The page of the releases, below which each version has a folder.
const DOWNLOADS: &str = "https://github.com/promptshelf/promptshelf/releases/download";
const HOMEPAGE: &str = "https://github.com/promptshelf/promptshelf";
const ABOUT: &str = "Model Context Protocol prompt server";

/// Targets of Homebrew: system, processor, triples by preference.
const BREWED: &[(&str, &str, &[&str])] = &[
    ("macos", "arm", &["aarch64-apple-darwin"]),
    ("macos", "intel", &["x86_64-apple-darwin"]),
    ("linux", "arm", &["aarch64-unknown-linux-musl", "aarch64-unknown-linux-gnu"]),
    ("linux", "intel", &["x86_64-unknown-linux-musl", "x86_64-unknown-linux-gnu"]),
];

/// Writes the manifests for which there are archives. `archives` are pairs of digest and file name.
pub(super) fn write(release: &Release<'_>, archives: &[(&str, &str)]) -> Result<()> {
    let version = &release.version;
    let url = |file: &str| format!("{DOWNLOADS}/v{version}/{file}");
    let of =
        |target: &str| archives.iter().find(|(_, file)| file.starts_with(&format!("promptshelf-{version}-{target}.")));
    let mut systems = String::new();
    for (system, processor, targets) in BREWED {
        if let Some((digest, file)) = targets.iter().find_map(|target| of(target)) {
            systems.push_str(&format!(
                "\n  on_{system} do\n    on_{processor} do\n      url \"{}\"\n      sha256 \"{digest}\"\n    end\n  end\n",
                url(file)
            ));
        }
    }
    if !systems.is_empty() {
        let formula = format!(
            "class Promptshelf < Formula\n  desc \"{ABOUT}\"\n  homepage \"{HOMEPAGE}\"\n  version \"{version}\"\n  \
             license any_of: [\"MIT\", \"Apache-2.0\"]\n{systems}\n  def install\n    bin.install \"promptshelf\"\n    \
             man1.install Dir[\"man/man1/*\"]\n    bash_completion.install \"completions/promptshelf.bash\" => \
             \"promptshelf\"\n    fish_completion.install \"completions/promptshelf.fish\"\n    \
             zsh_completion.install \"completions/_promptshelf\"\n  end\n\n  test do\n    assert_match version.to_s, \
             shell_output(\"#{{bin}}/promptshelf --version\")\n  end\nend\n"
        );
        fs::write(release.to.join("promptshelf.rb"), formula)?;
    }
    let windows = ["x86_64-pc-windows-msvc", "x86_64-pc-windows-gnu"].iter().find_map(|target| of(target));
    if let Some((digest, file)) = windows {
        let manifest = json!({
            "version": version,
            "description": ABOUT,
            "homepage": HOMEPAGE,
            "license": "MIT|Apache-2.0",
            "architecture": { "64bit": {
                "url": url(file),
                "hash": digest,
                "extract_dir": file.trim_end_matches(".zip"),
            } },
            "bin": "promptshelf.exe",
        });
        fs::write(release.to.join("promptshelf.json"), format!("{}\n", serde_json::to_string_pretty(&manifest)?))?;
    }
    Ok(())
}
