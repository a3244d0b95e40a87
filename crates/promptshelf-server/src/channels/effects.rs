//! What a tree breaks and opens for the callers of the one that it replaces.

use std::collections::{BTreeMap, HashMap, HashSet};

use promptshelf_author::{AffectedCalls, Difference, Impact, Subject, differences, opened_files, opened_texts};
use promptshelf_core::Catalog;
use promptshelf_source::{MemoryFile, MemoryTree};
use promptshelf_store::{BrokenCalls, Effect, EffectImpact};

/// The most effects; the last one stands for the rest.
const MAX_EFFECTS: usize = 500;

const MAX_NAMED: usize = 12;

const CHANGED: [&str; 2] = ["access-changed", "diagnostics-changed"];

pub(super) fn effects((before, old): (&MemoryTree, &Catalog), (after, new): (&MemoryTree, &Catalog)) -> Vec<Effect> {
    let (opening, breaking): (Vec<_>, Vec<_>) = differences(old, new)
        .into_iter()
        .filter(|found| found.impact != Impact::Notice)
        .partition(|found| found.impact == Impact::Opening || CHANGED.contains(&found.code));
    let mut effects = opened(opening);
    let files = opened_files(old, new, same_files((before, old), (after, new))).into_iter();
    effects.extend(files.map(|found| {
        let text = format!("{} {}: more callers may read than before", shown(&found.paths), found.text);
        opening_of("file-opened", &found.paths, text)
    }));
    effects.extend(opened_texts(old, new).into_iter().map(|found| {
        let subject = format!("{}:{}", found.prompt, found.content);
        opening_of("content-opened", &[subject], format!("`{}`: {}", found.prompt, found.text))
    }));
    effects.extend(breaking.iter().map(broken));
    let mut names = HashSet::new();
    for effect in &mut effects {
        let plain = effect.name.clone();
        let mut number = 2;
        while !names.insert(effect.name.clone()) {
            effect.name = format!("{plain}:{number}");
            number += 1;
        }
    }
    bounded(effects)
}

/// Returns the paths of each file before and now: under its name, or for a file that is gone the new one with its content.
/// Files of prompts that stay where they are are left out: the prompts themselves are compared.
fn same_files<'t>(
    (before, old): (&'t MemoryTree, &Catalog),
    (after, new): (&'t MemoryTree, &Catalog),
) -> Vec<(&'t str, &'t str)> {
    let prompts: HashSet<&str> =
        old.prompts().iter().chain(new.prompts().iter()).map(|prompt| prompt.source().path.as_str()).collect();
    let is_new = |path: &str| before.get(path).is_none();
    let moved: HashMap<&[u8], &str> =
        after.iter().filter(|(path, _)| is_new(path)).map(|(path, file)| (file.bytes(), path)).collect();
    let same = |(path, file): (&'t str, &'t MemoryFile)| match after.get(path) {
        Some(_) => Some((path, path)),
        None => moved.get(file.bytes()).map(|now| (path, *now)),
    };
    before.iter().filter_map(same).filter(|(known, now)| known != now || !prompts.contains(now)).collect()
}

/// Joins equal openings of several prompts and resources: one rule often has many of them.
fn opened(found: Vec<Difference>) -> Vec<Effect> {
    let mut groups: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
    for difference in found {
        let subject = difference.name.clone();
        groups.entry((difference.code, difference.text)).or_default().push(subject);
    }
    let group = |((code, text), subjects): ((&str, String), Vec<String>)| {
        let shown = if subjects[0].is_empty() { "the library".to_owned() } else { shown(&subjects) };
        opening_of(code, &subjects, format!("{shown}: {text}"))
    };
    groups.into_iter().map(group).collect()
}

fn opening_of(code: &str, subjects: &[String], text: String) -> Effect {
    let more = if subjects.len() > 1 { format!("+{}", subjects.len() - 1) } else { String::new() };
    let name = if subjects[0].is_empty() { code.to_owned() } else { format!("{code}:{}{more}", subjects[0]) };
    Effect { impact: EffectImpact::Opening, name, text, prompt: None, calls: None }
}

fn broken(found: &Difference) -> Effect {
    let mut name = found.code.to_owned();
    for part in [Some(&found.name), found.values.get("argument")].into_iter().flatten() {
        if !part.is_empty() {
            name.push(':');
            name.push_str(part);
        }
    }
    let calls = match &found.affects {
        AffectedCalls::All => Some(BrokenCalls::All),
        AffectedCalls::Omitting(argument) => Some(BrokenCalls::Omitting(argument.clone())),
        AffectedCalls::Sending(argument) => Some(BrokenCalls::Sending(argument.clone())),
        _ => None,
    };
    let prompt = (found.subject == Subject::Prompt).then(|| found.name.clone());
    Effect { impact: EffectImpact::Breaking, name, text: found.to_string(), prompt, calls }
}

fn shown(subjects: &[String]) -> String {
    let named: Vec<String> = subjects.iter().take(MAX_NAMED).map(|subject| format!("`{subject}`")).collect();
    match subjects.len().saturating_sub(MAX_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Replaces the effects beyond the limit by one that has to be confirmed like them.
fn bounded(mut effects: Vec<Effect>) -> Vec<Effect> {
    let Some(first) = effects.get(MAX_EFFECTS - 1).filter(|_| effects.len() > MAX_EFFECTS) else { return effects };
    let (impact, more) = (first.impact, effects.len() - MAX_EFFECTS + 1);
    effects.truncate(MAX_EFFECTS - 1);
    let text = format!("{more} more effects of this kind");
    effects.push(Effect { impact, name: format!("more:{more}"), text, prompt: None, calls: None });
    effects
}
