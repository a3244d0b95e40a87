//! Deprecated prompts that other prompts call, and replacements that cannot be used.

use promptshelf_core::{Catalog, Code, Deprecation, Diagnostic, Prompt, nearest};

pub(super) fn check(prompt: &Prompt, catalog: &Catalog, found: &mut Vec<Diagnostic>) {
    match prompt.deprecation() {
        Some(Deprecation { replacement: Some(name), .. }) => {
            // A source of several has a prefix, which the prompt's own file does not name.
            let own = catalog.part_of(prompt).map(|(_, own)| own);
            let prefix =
                own.and_then(|own| prompt.name().as_str().strip_suffix(own.name().as_str()).map(str::to_owned));
            replacement(prompt, &format!("{}{name}", prefix.unwrap_or_default()), catalog, found);
        }
        Some(_) => {}
        None => {
            for (called, place) in catalog.calls(prompt) {
                if let Some(deprecation) = called.deprecation() {
                    let message = format!("calls the deprecated prompt `{}`", called.name());
                    let mut diagnostic = Diagnostic::warning(Code::DeprecatedPrompt, place, message)
                        .also(called.definition().origin.locate("deprecated"), "deprecated here");
                    if let Some(name) = &deprecation.replacement {
                        diagnostic = diagnostic.help(format!("call `{name}` instead"));
                    }
                    found.push(diagnostic);
                }
            }
        }
    }
}

fn replacement(prompt: &Prompt, name: &str, catalog: &Catalog, found: &mut Vec<Diagnostic>) {
    let (message, help) = match catalog.find(name) {
        Some(other) if other.name() == prompt.name() => {
            (format!("the prompt `{name}` is its own replacement"), "name another prompt, or remove the key".to_owned())
        }
        Some(other) => match other.deprecation() {
            None => return,
            Some(Deprecation { replacement: Some(next), .. }) if *next != *prompt.name().as_str() => {
                (format!("the replacement `{name}` is deprecated too"), format!("name its replacement `{next}`"))
            }
            Some(_) => (
                format!("the replacement `{name}` is deprecated too"),
                "name a prompt that is not deprecated".to_owned(),
            ),
        },
        None => {
            let near = nearest(name, catalog.prompts().iter().map(|prompt| prompt.name().as_str()));
            let help = near.map_or_else(
                || "name a prompt of this library, or remove the key".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            (format!("no prompt has the name `{name}` of this replacement"), help)
        }
    };
    let place = prompt.definition().origin.locate("deprecated.replacement");
    found.push(Diagnostic::warning(Code::InvalidReplacement, place, message).help(help));
}
