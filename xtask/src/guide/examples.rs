//! Examples of the guide: code blocks whose info string names a file, such as ```` ```markdown,file=review.md ````.
//!
//! The files of one page form a library, which has to pass `promptshelf check --deny warnings` and `promptshelf test`.
//! Blocks marked `toml,server` are settings, which have to pass `promptshelf check --config`.

use std::{
    fs,
    path::{Component, Path},
};

use anyhow::{Context, Result, bail};

use super::PAGES;
use crate::{repository::Repository, terminal::Program};

/// One code block: its info string and its text.
struct Block<'t> {
    info: &'t str,
    text: String,
}

pub(super) fn check(repository: &Repository) -> Result<()> {
    let folder = repository.target().join("guide-examples");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    let texts = repository.texts()?;
    let mut libraries = 0;
    for (path, text) in texts.iter().filter(|(path, _)| path.starts_with(PAGES)) {
        let page = folder.join(path.replace('/', "-"));
        let (files, settings) = sorted(&blocks(text));
        for (name, text) in &files {
            if Path::new(name).components().any(|part| !matches!(part, Component::Normal(_))) {
                bail!("{path}: `file={name}` is not a path inside the example");
            }
            let file = page.join(name);
            fs::create_dir_all(file.parent().unwrap_or(&page))?;
            fs::write(file, text)?;
        }
        if !files.is_empty() {
            libraries += 1;
            let library = page.to_string_lossy().into_owned();
            let program = || Program::new(repository.binary(), &repository.root);
            program().args(&["check", &library, "--deny", "warnings"]).run().with_context(|| path.clone())?;
            program().args(&["test", &library]).run().with_context(|| path.clone())?;
        }
        for (number, text) in settings.iter().enumerate() {
            let file = folder.join(format!("{}-{number}.toml", path.replace('/', "-")));
            fs::create_dir_all(&folder)?;
            fs::write(&file, text)?;
            let empty = folder.join("empty");
            fs::create_dir_all(&empty)?;
            Program::new(repository.binary(), &repository.root)
                .args(&["check", "--config"])
                .arg(&file)
                .arg(&empty)
                .run()
                .with_context(|| path.clone())?;
        }
    }
    if libraries == 0 {
        bail!("{PAGES} has no example");
    }
    Ok(())
}

type Files = Vec<(String, String)>;

/// Splits blocks into files of the page's library, and settings.
fn sorted(blocks: &[Block<'_>]) -> (Files, Vec<String>) {
    let (mut files, mut settings) = (Vec::new(), Vec::new());
    for block in blocks {
        if let Some((_, name)) = block.info.split_once(",file=") {
            files.push((name.trim().to_owned(), block.text.clone()));
        } else if block.info == "toml,server" {
            settings.push(block.text.clone());
        }
    }
    (files, settings)
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found: Vec<Block<'_>> = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        match fence {
            None if line.starts_with("```") => {
                let ticks = line.len() - line.trim_start_matches('`').len();
                fence = Some(&line[..ticks]);
                found.push(Block { info: line[ticks..].trim(), text: String::new() });
            }
            Some(ticks) if line.trim_end() == ticks => fence = None,
            Some(_) => {
                if let Some(block) = found.last_mut() {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
            }
            None => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_settings_are_told_apart() {
        let text = "text\n```markdown,file=a/b.md\n---\n````\n```\n```toml,server\n[http]\n```\n```sh\nls\n```\n";
        let (files, settings) = sorted(&blocks(text));
        assert_eq!(files, [("a/b.md".to_owned(), "---\n````\n".to_owned())]);
        assert_eq!(settings, ["[http]\n".to_owned()]);
    }
}
