//! Undeclared names in a prompt's texts, and declared but unused arguments.

use std::collections::HashSet;

use super::{MAX_FOUND, Name, Named};
use crate::{
    check::arguments::name_fault,
    definition::{CompletionSource, PromptDefinition},
    diagnostic::{Code, Diagnostic, nearest},
    template::{condition_names, is_filter, known_globals, or_literally},
};

pub(super) fn check(definition: &PromptDefinition, used: &Named, found: &mut Vec<Diagnostic>) {
    let declared = || definition.arguments.iter().map(|argument| argument.name.as_str());
    let all: HashSet<&str> = declared().collect();
    let is_known = |used_name: &Name| {
        all.contains(used_name.name.as_str()) || (used_name.in_partial && used.bound.contains(&used_name.name))
    };
    for variable in used.variables.iter().filter(|variable| !is_known(variable)).take(MAX_FOUND) {
        let name = &variable.name;
        let help = match nearest(name, declared()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if name_fault(name).is_some() => {
                or_literally(Some("write statements between `{%` and `%}`".to_owned()))
            }
            None => or_literally(Some(format!("add `- name: {name}` under `arguments:`"))),
        };
        let message = match name_fault(name) {
            Some(_) => format!("`{name}` is a word of the template language and cannot be inserted"),
            None => format!("`{name}` is used but not declared as an argument"),
        };
        found.push(Diagnostic::error(Code::UndeclaredArgument, variable.location.clone(), message).help(help));
    }
    for called in used.called.iter().take(MAX_FOUND) {
        found.extend(unknown_function(called, all.contains(called.name.as_str()), used));
    }
    let conditions = definition.arguments.iter().filter_map(|argument| argument.when.as_deref());
    let mut in_use: HashSet<String> = conditions.flat_map(condition_names).collect();
    in_use.extend(definition.arguments.iter().filter_map(|argument| match &argument.completion {
        Some(CompletionSource::By { argument: by, .. }) => Some(by.clone()),
        _ => None,
    }));
    in_use.extend(used.variables.iter().chain(&used.called).map(|used| used.name.clone()));
    for (index, argument) in definition.arguments.iter().enumerate() {
        // A name that cannot be used is reported as such.
        if !in_use.contains(&argument.name) && !used.is_unread && name_fault(&argument.name).is_none() {
            let message = format!("the argument `{}` is declared but never used", argument.name);
            let location = definition.origin.locate(&format!("arguments.{index}.name"));
            found.push(
                Diagnostic::warning(Code::UnusedArgument, location, message).help("use it in the text, or remove it"),
            );
        }
    }
}

fn unknown_function(called: &Name, is_argument: bool, used: &Named) -> Option<Diagnostic> {
    let name = &called.name;
    if called.in_partial && used.bound.contains(name) {
        return None;
    }
    let message = if is_argument {
        format!("the argument `{name}` cannot be called")
    } else {
        format!("unknown function `{name}`")
    };
    let mut diagnostic = Diagnostic::error(Code::UnknownFunction, called.location.clone(), message);
    diagnostic.help = match nearest(name, known_globals()) {
        _ if is_argument => None,
        _ if is_filter(name) => Some(format!("`{name}` is a filter: write `… | {name}` after a value")),
        Some(near) => Some(format!("did you mean `{near}`?")),
        None => Some(or_literally(None)),
    };
    Some(diagnostic)
}
