//! The files that each prompt of a tree is made from, and their digests.

use std::collections::{BTreeSet, HashMap};

use promptshelf_core::{Catalog, Prompt};
use promptshelf_source::MemoryTree;
use promptshelf_store::{Digest, PromptFile};

/// The name of the file that defines a skill. The files beside it belong to the skill.
const SKILL: &str = "SKILL.md";

/// Returns all prompts of a catalog with the files of the tree that each is made from.
pub(crate) fn prompt_files(catalog: &Catalog, tree: &MemoryTree) -> Vec<PromptFile> {
    let mut digests: HashMap<String, Digest> = HashMap::new();
    let mut digest_of = |path: &str| {
        if let Some(known) = digests.get(path) {
            return Some(*known);
        }
        let digest = Digest::of(tree.get(path)?.bytes());
        digests.insert(path.to_owned(), digest);
        Some(digest)
    };
    catalog
        .prompt_files()
        .map(|(prompt, mut paths)| {
            let own = prompt.source().path.to_string();
            let folder = own.rsplit_once('/').map_or("", |(folder, _)| folder);
            paths.extend(prompt.icons().iter().filter_map(|icon| icon.file.as_deref()).map(str::to_owned));
            paths.extend(golden_files(prompt, folder));
            if own.strip_prefix(folder) == Some(&format!("/{SKILL}")) {
                let beside = format!("{folder}/");
                paths.extend(
                    tree.iter().map(|(path, _)| path).filter(|path| path.starts_with(&beside)).map(str::to_owned),
                );
            }
            let mut all = Vec::new();
            paths.retain(|path| {
                let digest = digest_of(path);
                if let Some(digest) = digest {
                    // Prefixed with its length, so that no byte can move from one path to the next.
                    all.extend((path.len() as u64).to_be_bytes());
                    all.extend(path.as_bytes());
                    all.extend(digest.bytes());
                }
                digest.is_some()
            });
            paths.remove(&own);
            PromptFile {
                name: prompt.name().to_string(),
                path: own,
                brings: paths.into_iter().collect(),
                digest: Digest::of(&all),
            }
        })
        .collect()
}

fn golden_files(prompt: &Prompt, folder: &str) -> BTreeSet<String> {
    let names = prompt.definition().tests.iter().filter_map(|test| test.golden.as_deref());
    names.map(|name| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }).collect()
}
