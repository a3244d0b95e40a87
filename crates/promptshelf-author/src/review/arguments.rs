//! Arguments without a description, and conditions that are never true.

use promptshelf_core::{Argument, ArgumentType, Body, Code, Diagnostic, Prompt, RawArguments, bind};

const MAX_COMBINATIONS: usize = 1_000;

pub(super) fn check(prompt: &Prompt, found: &mut Vec<Diagnostic>) {
    for (index, argument) in prompt.arguments().iter().enumerate() {
        let place = |part: &str| prompt.definition().origin.locate(&format!("arguments.{index}.{part}"));
        // Formats without a template language cannot describe arguments, or do it in a way of their own.
        let can_be_described = !matches!(prompt.definition().body, Body::Pieces(_));
        if can_be_described && argument.description().is_none_or(|description| description.trim().is_empty()) {
            let message = format!("the argument `{}` has no description", argument.name());
            let help = "describe it, with an example: many clients show nothing else";
            found.push(Diagnostic::warning(Code::MissingDescription, place("name"), message).help(help));
        }
        if is_never_asked(prompt, argument) {
            let message = format!("the condition is never true: `{}` is never requested", argument.name());
            let help = "compare with possible values of the other arguments";
            found.push(Diagnostic::warning(Code::InvalidCondition, place("when"), message).help(help));
        }
    }
}

/// Returns whether an argument's condition is false for all possible values of the arguments that it depends on.
/// Conditions on free text count as satisfiable.
fn is_never_asked(prompt: &Prompt, argument: &Argument) -> bool {
    let Some(names) = argument.condition_names() else { return false };
    let used: Vec<Argument> =
        prompt.arguments().iter().filter(|other| names.iter().any(|name| name == other.name())).cloned().collect();
    let mut ways: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
    for other in &used {
        let Some(values) = values(other) else { return false };
        if ways.len() * values.len() > MAX_COMBINATIONS {
            return false;
        }
        ways = ways
            .iter()
            .flat_map(|way| values.iter().map(|value| way.iter().copied().chain([(other.name(), *value)]).collect()))
            .collect();
    }
    !ways.into_iter().any(|way| {
        let arguments: RawArguments<'_> = way.into_iter().collect();
        bind(&used, &arguments, usize::MAX).is_ok_and(|bound| argument.applies(&bound))
    })
}

/// Returns all possible values of an argument, with an empty string for "missing"; `None` if any text is possible.
fn values(argument: &Argument) -> Option<Vec<&str>> {
    let mut values: Vec<&str> = match argument.kind() {
        ArgumentType::List | ArgumentType::Json => return None,
        ArgumentType::Boolean => vec!["true", "false"],
        _ if argument.choices().is_empty() => return None,
        _ => argument.choices().iter().map(|choice| &*choice.value).collect(),
    };
    if !argument.required() {
        values.push("");
    }
    Some(values)
}
