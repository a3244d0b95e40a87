//! Browsing a revision of a channel: folders, tags, owners, collections, search in texts, and the versions in all channels.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use promptshelf_core::{Catalog, Prompt};
use promptshelf_source::MemoryTree;
use promptshelf_wire::{Browsed, BrowsedFile, BrowsedLine, BrowsedPrompt, Digest, Group, RevisionSide, op};

use super::{
    ApiState,
    analysis::in_pool,
    call::{Answer, Call, Operations},
    problem::Problem,
    sides::opened,
};

const MAX_GROUPS: usize = 200;
const MAX_LINES: usize = 3;
const MAX_CHARS: usize = 200;
/// The longest text to search for, in bytes.
const MAX_SEARCH: usize = 200;

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(browse)
}

async fn browse(call: Call<op::Browse>) -> Answer {
    let channel = &call.path.channel;
    let (limit, after) = (call.paging.limit(), call.paging.after::<String>()?);
    if call.query.text.as_ref().is_some_and(|text| text.len() > MAX_SEARCH) {
        return Err(Problem::invalid(format!("The text is too long: at most {MAX_SEARCH} bytes are searched for")));
    }
    let side = opened(&call, &RevisionSide { channel: channel.clone(), revision: call.query.revision }).await?;
    let (revision, digest) = (side.name.revision.unwrap_or_default(), side.name.digest);
    let query = call.query.clone();
    let found = in_pool(call.caller(), move || {
        let catalog = side.opened.preview.as_ref().map(super::super::preview::TreePreview::catalog);
        search(&side.opened.tree, catalog.as_deref(), &query, (limit, after.as_deref()), (revision, digest))
    });
    let mut found = found.await?;
    found.next = found.next.map(|last| call.paging.next(last));
    let prompts = || found.items.iter().flat_map(|file| &file.prompts);
    let names: Vec<String> = prompts().map(|prompt| prompt.name.clone()).collect();
    let standings = call.store().await?.standings_of(&names, |channel| call.sees(channel)).await?;
    let mut standings: HashMap<_, _> = standings.into_iter().map(|found| (found.name, found.channels)).collect();
    for prompt in found.items.iter_mut().flat_map(|file| &mut file.prompts) {
        prompt.channels = standings.remove(&prompt.name).unwrap_or_default();
    }
    call.answer(&found)
}

/// The words by which prompts are grouped: tags, owners and collections.
const FACETS: [fn(&Prompt) -> &[String]; 3] =
    [Prompt::tags, |prompt| prompt.labels().get("owners"), |prompt| prompt.labels().get("collections")];

fn search(
    tree: &MemoryTree,
    catalog: Option<&Catalog>,
    query: &op::BrowseQuery,
    (limit, after): (usize, Option<&str>),
    (revision, digest): (u64, Option<Digest>),
) -> Browsed {
    let mut prompts: BTreeMap<&str, Vec<&Prompt>> = BTreeMap::new();
    for prompt in catalog.iter().flat_map(|catalog| catalog.prompts().iter()) {
        prompts.entry(prompt.source().path.as_str()).or_default().push(prompt);
    }
    let text = query.text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_lowercase);
    let folder = query.folder.as_deref().map(|folder| folder.trim_matches('/')).filter(|folder| !folder.is_empty());
    let prefix = folder.map(|folder| format!("{folder}/")).unwrap_or_default();
    let mut folders = BTreeMap::<&str, usize>::new();
    let mut facets = FACETS.map(|_| BTreeMap::<&str, usize>::new());
    let wanted = [&query.tag, &query.owner, &query.collection];
    let (mut total, mut items, mut has_more) = (0, Vec::new(), false);
    for (path, file) in tree.iter() {
        let Some(rest) = path.strip_prefix(prefix.as_str()) else { continue };
        let own = prompts.get(path).map_or(&[][..], Vec::as_slice);
        let is_wanted = |prompt: &&Prompt| {
            FACETS.iter().zip(wanted).all(|(of, wanted)| wanted.as_ref().is_none_or(|one| of(prompt).contains(one)))
        };
        if wanted.iter().any(|wanted| wanted.is_some()) && !own.iter().any(is_wanted) {
            continue;
        }
        let lines = match &text {
            None => Vec::new(),
            Some(text) => {
                let lines = matching(file.bytes(), text);
                if lines.is_empty() && !path.to_lowercase().contains(text) && !own.iter().any(|one| names(one, text)) {
                    continue;
                }
                lines
            }
        };
        total += 1;
        if let Some((name, _)) = rest.split_once('/') {
            *folders.entry(&path[..prefix.len() + name.len()]).or_default() += 1;
        }
        for (of, counts) in FACETS.iter().zip(&mut facets) {
            let names: BTreeSet<&str> = own.iter().flat_map(|prompt| of(prompt)).map(String::as_str).collect();
            names.into_iter().for_each(|name| *counts.entry(name).or_default() += 1);
        }
        if after.is_some_and(|after| path <= after) {
            continue;
        }
        if items.len() == limit {
            has_more = true;
            continue;
        }
        let prompts = own.iter().map(|prompt| BrowsedPrompt {
            name: prompt.name().to_string(),
            title: prompt.title().map(cut),
            description: prompt.description().map(cut),
            tags: prompt.tags().to_vec(),
            owners: prompt.labels().get("owners").to_vec(),
            collections: prompt.labels().get("collections").to_vec(),
            channels: Vec::new(),
        });
        items.push(BrowsedFile { path: path.to_owned(), prompts: prompts.collect(), lines });
    }
    let next = items.last().filter(|_| has_more).map(|last| last.path.clone());
    let groups = |groups: BTreeMap<&str, usize>| -> Vec<Group> {
        groups.into_iter().map(|(name, files)| Group { name: name.to_owned(), files }).collect()
    };
    let mut folders = groups(folders);
    folders.truncate(MAX_GROUPS);
    let [tags, owners, collections] = facets.map(|counts| {
        let mut found = groups(counts);
        found.sort_by_key(|group| std::cmp::Reverse(group.files));
        found.truncate(MAX_GROUPS);
        found
    });
    Browsed { revision, digest, total, items, next, folders, tags, owners, collections }
}

fn names(prompt: &Prompt, text: &str) -> bool {
    let texts = [Some(prompt.name().as_str()), prompt.title(), prompt.description()];
    texts.into_iter().flatten().any(|name| name.to_lowercase().contains(text))
}

/// Returns the first lines of a text file that contain a text in lower case.
fn matching(bytes: &[u8], text: &str) -> Vec<BrowsedLine> {
    let Ok(content) = std::str::from_utf8(bytes) else { return Vec::new() };
    let lines = content.lines().enumerate().filter(|(_, line)| line.to_lowercase().contains(text));
    lines.take(MAX_LINES).map(|(index, line)| BrowsedLine { number: index + 1, text: cut(line) }).collect()
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}
