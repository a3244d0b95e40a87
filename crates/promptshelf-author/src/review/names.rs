//! Names that clients or people confuse with each other.

use std::{collections::HashMap, sync::Arc};

use promptshelf_core::{Code, Diagnostic, Prompt};
use unicode_security::{MixedScript as _, confusable_detection::skeleton};

pub(super) fn check(prompts: &[Arc<Prompt>], found: &mut Vec<Diagnostic>) {
    // Portable names remain distinct in every client, and look different, too.
    if prompts.iter().all(|prompt| prompt.name().is_portable()) {
        return;
    }
    let after = "in clients that replace characters such as capitals and dots";
    pairs(prompts, mangled, found, |one, other| {
        let message = format!("the prompts `{}` and `{}` have the same name {after}", one.name(), other.name());
        (Code::CollidingName, message, "rename one of them, with lower-case letters, digits, `-` and `_`")
    });
    // The only similar ASCII characters are `l` and `1`, and `O` and `0`. Names with numbers contain them too often
    // for a warning.
    if prompts.iter().all(|prompt| prompt.name().as_str().is_ascii()) {
        return;
    }
    pairs(
        prompts,
        |name| skeleton(name).collect(),
        found,
        |one, other| {
            let message = format!("the names `{}` and `{}` look the same", one.name(), other.name());
            (Code::ConfusableName, message, "rename one of them, with letters of one script")
        },
    );
    for prompt in prompts.iter().filter(|prompt| !prompt.name().as_str().is_single_script()) {
        let message = format!("the name `{}` mixes letters of several scripts that look alike", prompt.name());
        let place = prompt.definition().origin.locate("name");
        found.push(
            Diagnostic::warning(Code::ConfusableName, place, message).help("write the name in letters of one script"),
        );
    }
}

fn pairs(
    prompts: &[Arc<Prompt>],
    form: impl Fn(&str) -> String,
    found: &mut Vec<Diagnostic>,
    say: impl Fn(&Prompt, &Prompt) -> (Code, String, &'static str),
) {
    let mut first: HashMap<String, &Arc<Prompt>> = HashMap::with_capacity(prompts.len());
    for prompt in prompts.iter() {
        match first.entry(form(prompt.name().as_str())) {
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(prompt);
            }
            std::collections::hash_map::Entry::Occupied(other) => {
                let other = other.get();
                let (code, message, help) = say(prompt, other);
                found.push(
                    Diagnostic::warning(code, prompt.definition().origin.locate("name"), message)
                        .also(other.definition().origin.locate("name"), "the other one")
                        .help(help),
                );
            }
        }
    }
}

fn mangled(name: &str) -> String {
    let normal = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '_' };
    name.chars().map(normal).collect()
}

#[cfg(test)]
mod tests {
    use promptshelf_core::{Definitions, PromptDefinition, check};

    use crate::review;

    fn found(names: &[&str]) -> Vec<String> {
        let prompt = |name: &&str| PromptDefinition::template(*name, "Hello").description("Greets");
        let definitions = Definitions::from_iter(names.iter().map(prompt));
        let checked = check(definitions, None);
        review(&checked.catalog, &[]).iter().map(|found| format!("{}: {}", found.code, found.message)).collect()
    }

    #[test]
    fn names_equal_after_normalization_are_reported() {
        let shown = found(&["git.commit", "git_commit", "Git_Commit", "git-commit"]);
        assert_eq!(shown.iter().filter(|found| found.starts_with("colliding-name")).count(), 2, "{shown:?}");
    }

    #[test]
    fn similar_looking_names_are_reported() {
        // The first letter of the second name is Cyrillic.
        let shown = found(&["commit", "\u{441}ommit"]);
        assert_eq!(shown.iter().filter(|found| found.starts_with("confusable-name")).count(), 2, "{shown:?}");
        assert!(shown.iter().any(|found| found.contains("mixes letters")), "{shown:?}");
        assert!(found(&["größe", "übung"]).is_empty());
    }
}
