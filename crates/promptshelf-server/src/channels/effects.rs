//! What a tree breaks and opens for the callers of the one that it replaces.

use std::{
    collections::{BTreeMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use promptshelf_author::{
    AffectedCalls, Difference, Impact, Opened, Subject, differences, opened_files, opened_moves, opened_prompts,
    opened_rules, opened_texts,
};
use promptshelf_core::{Catalog, RulePart};
use promptshelf_source::{MemoryFile, MemoryTree, syntax::front_matter};
use promptshelf_store::{BrokenCalls, Effect, EffectImpact};

/// The most effects; the last one stands for the rest.
const MAX_EFFECTS: usize = 500;

const MAX_NAMED: usize = 12;

const CHANGED: [&str; 2] = ["access-changed", "diagnostics-changed"];

type Side = (MemoryTree, Catalog);

/// `before` is the tree that is replaced, `source` the one that the changed files are copied from.
pub(super) fn effects(
    before: Option<&Side>,
    source: Option<&Side>,
    (after, new): (&MemoryTree, &Catalog),
) -> Vec<Effect> {
    let mut effects = Vec::new();
    if let Some((source, of_source)) = source {
        effects = copied((before.map(|(before, _)| before), source, after), of_source, new);
    }
    if let Some((before, old)) = before {
        effects.extend(replaced((before, old), (after, new)));
    }
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

/// Returns what is closed in the tree that it is copied from, and open to more callers afterwards.
fn copied(
    (before, source, after): (Option<&MemoryTree>, &MemoryTree, &MemoryTree),
    old: &Catalog,
    new: &Catalog,
) -> Vec<Effect> {
    let is_changed = |path: &str, file: &MemoryFile| {
        before.and_then(|before| before.get(path)).is_none_or(|known| known.bytes() != file.bytes())
    };
    let changed: HashSet<&str> = after
        .iter()
        .filter(|(path, file)| source.get(path).is_some() && is_changed(path, file))
        .map(|(path, _)| path)
        .collect();
    let prompts = new.prompts().iter().filter(|prompt| changed.contains(prompt.source().path.as_str()));
    let (names, files): (Vec<&str>, Vec<&str>) =
        prompts.map(|prompt| (prompt.name().as_str(), prompt.source().path.as_str())).unzip();
    let files: HashSet<&str> = files.into_iter().filter(|path| source.get(path).is_some()).collect();
    let rest = changed.into_iter().filter(|path| !files.contains(path));
    let found = opened_prompts(old, new, names).into_iter().chain(opened_files(old, new, rest));
    let opening = |found: Opened| {
        let Opened { names, before, now, .. } = found;
        let text = format!("{}: open to {now} here, and to {before} where it comes from", shown(&names));
        opening_of("source-opened", &names, text)
    };
    found.map(opening).collect()
}

fn replaced((before, old): (&MemoryTree, &Catalog), (after, new): (&MemoryTree, &Catalog)) -> Vec<Effect> {
    let (opening, breaking): (Vec<_>, Vec<_>) = differences(old, new)
        .into_iter()
        .filter(|found| found.impact != Impact::Notice)
        .partition(|found| found.impact == Impact::Opening || CHANGED.contains(&found.code));
    let prompts: HashSet<&str> =
        old.prompts().iter().chain(new.prompts().iter()).map(|prompt| prompt.source().path.as_str()).collect();
    // The prompts themselves are compared.
    let staying =
        before.iter().map(|(path, _)| path).filter(|path| after.get(path).is_some() && !prompts.contains(path));
    let mut files = opened_files(old, new, staying);
    let (same, similar) = if old.restricts_contents() { moves(before, after) } else { Default::default() };
    files.extend(opened_moves(old, new, same));
    let is_told = |part: &RulePart<'_>| {
        let of_difference = opening.iter().any(|found| match found.subject {
            Subject::Prompt => old.find(&found.name).is_some_and(|prompt| part.fits_prompt(prompt)),
            Subject::Resource => part.fits_uri(&found.name),
            _ => false,
        });
        of_difference || files.iter().flat_map(|found| &found.names).any(|path| part.fits_path(path))
    };
    let rules = opened_rules(old, new, is_told);
    let mut effects = opened(opening);
    effects.extend(files.into_iter().map(|found| {
        let Opened { names, before, now, .. } = found;
        let text =
            format!("{} open to {now} now, before to {before}: more callers may read than before", shown(&names));
        opening_of("file-opened", &names, text)
    }));
    effects.extend(opened_moves(old, new, similar).into_iter().map(|found| {
        let Opened { names, before, now, .. } = found;
        let text = format!(
            "{}: new and open to {now}, while a file is gone that was open to {before}: make sure that it is not its text",
            shown(&names)
        );
        opening_of("move-opened", &names, text)
    }));
    effects.extend(rules.into_iter().map(|found| {
        let Opened { names, before, now, .. } = found;
        let text = format!("the rule for {}: what fits it later is open to {now}, before to {before}", shown(&names));
        opening_of("rule-opened", &names, text)
    }));
    effects.extend(opened_texts(old, new).into_iter().map(|found| {
        let subject = format!("{}:{}", found.prompt, found.content);
        opening_of("content-opened", &[subject], format!("`{}`: {}", found.prompt, found.text))
    }));
    effects.extend(breaking.iter().map(broken));
    effects
}

/// Paths of files before, and paths of others that may have their text now.
type Moves<'t> = Vec<(Vec<&'t str>, Vec<&'t str>)>;

/// Returns the files whose text is new at other paths, and those that are gone with all new ones: a changed word, a new name or
/// another folder hides none.
fn moves<'t>(before: &'t MemoryTree, after: &'t MemoryTree) -> (Moves<'t>, Moves<'t>) {
    let mut texts: BTreeMap<u64, (Vec<&str>, Vec<&str>)> = BTreeMap::new();
    for (path, file) in after.iter() {
        let old = before.get(path);
        if old.is_none_or(|old| old.bytes() != file.bytes())
            && let Some(text) = text_of(file.bytes())
            && old.is_none_or(|old| text_of(old.bytes()) != Some(text))
        {
            texts.entry(text).or_default().1.push(path);
        }
    }
    let (mut gone, is_needed) = (Vec::new(), !texts.is_empty());
    for (path, file) in before.iter().filter(|_| is_needed) {
        match text_of(file.bytes()).and_then(|text| texts.get_mut(&text)) {
            Some((known, _)) => known.push(path),
            None if after.get(path).is_none() => gone.push(path),
            None => {}
        }
    }
    let new = after.iter().map(|(path, _)| path).filter(|path| before.get(path).is_none()).collect();
    (texts.into_values().collect(), vec![(gone, new)])
}

/// Returns a number for the words below the front matter of a file, or for all its words if none are below it: other keys (the
/// access, for example) and white space make no other text. `None` without words.
fn text_of(content: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(content);
    let below = front_matter(&text).map(|(_, body)| &text[body]).filter(|body| !body.trim().is_empty());
    let mut words = below.unwrap_or(text.trim_start_matches('\u{feff}')).split_whitespace().peekable();
    words.peek()?;
    let mut hasher = DefaultHasher::new();
    words.for_each(|word| word.hash(&mut hasher));
    Some(hasher.finish())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_white_space_make_no_other_text() {
        let text = |text: &str| text_of(text.as_bytes());
        let plan = text("---\naccess:\n  roles: [boss]\n---\nThe plan:\n\n- one\n");
        assert!(plan.is_some());
        for same in [
            "The plan: - one",
            "---\ndescription: x\n---\nThe plan:\n\n- one\n\n",
            "\u{feff}---\r\ndescription: x\r\n---\r\nThe  plan:\r\n\r\n- one\r\n",
            "\n\tThe plan:\n- one",
        ] {
            assert_eq!(text(same), plan, "{same:?}");
        }
        for other in ["The plan: - two", "Theplan: - one", "---\na: b\n---\n", "---\nThe plan: - one"] {
            assert_ne!(text(other), plan, "{other:?}");
        }
        assert_eq!((text(""), text("\u{feff} \n\t")), (None, None));
        assert_ne!(text("---\na: b\n---\n"), None);
    }
}
