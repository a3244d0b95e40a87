//! Steps and conditions of a guided prompt.

use std::collections::HashSet;

use crate::{
    argument::Argument,
    definition::PromptDefinition,
    diagnostic::{Code, Diagnostic, nearest},
    uri_template::scheme,
};

pub(super) fn check(definition: &PromptDefinition, arguments: &[Argument], found: &mut Vec<Diagnostic>) {
    for (index, argument) in arguments.iter().enumerate() {
        conditions(definition, &arguments[..index], index, argument, found);
        if argument.is_asked() && sounds_secret(argument.name()) {
            let message = format!("`{}` looks like a secret, and forms must not ask for secrets", argument.name());
            found.push(
                Diagnostic::warning(
                    Code::AsksForSecret,
                    definition.origin.locate(&format!("arguments.{index}.name")),
                    message,
                )
                .help("ask for it on a page: add a step with a `url`"),
            );
        }
    }
    let asking_steps: HashSet<u32> =
        arguments.iter().filter(|argument| argument.is_asked()).map(Argument::step).collect();
    let mut seen = HashSet::new();
    let mut keys = HashSet::new();
    for (index, step) in definition.steps.iter().enumerate() {
        let place = |part: &str| definition.origin.locate(&format!("steps.{index}.{part}"));
        if !seen.insert(step.number) {
            let message = format!("step {} is described twice", step.number);
            found.push(Diagnostic::error(Code::DuplicateName, place("step"), message));
        }
        if let Some(key) = step.key.as_deref().filter(|key| !keys.insert(*key)) {
            found.push(Diagnostic::error(Code::DuplicateName, place("key"), format!("two steps have the key `{key}`")));
        }
        match &step.url {
            Some(url) if scheme(url).as_deref() != Some("https") => {
                let message = format!("clients cannot open `{url}`");
                found.push(Diagnostic::error(Code::InvalidValue, place("url"), message).help("use an https: URL"));
            }
            Some(_) if asking_steps.contains(&step.number) => {
                let message = format!("step {} opens a page, and cannot show a form as well", step.number);
                found.push(
                    Diagnostic::error(Code::InvalidCondition, place("url"), message)
                        .help("give the form a step of its own"),
                );
            }
            None if !asking_steps.contains(&step.number) => {
                let message = format!("no argument is asked for in step {}", step.number);
                found.push(
                    Diagnostic::warning(Code::NoEffect, place("step"), message)
                        .help("give an argument `ask: true` and this `step`, or the step a `url`"),
                );
            }
            _ => {}
        }
    }
}

/// Returns whether an argument's name suggests a secret. MCP (*Elicitation*) requires that such values are entered on
/// a page, not in a client's form.
fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace(['-', '_'], "");
    ["password", "passwd", "passphrase", "secret", "apikey", "accesstoken", "authtoken", "credential", "privatekey"]
        .iter()
        .any(|word| name.contains(word))
}

/// Checks when one argument is requested: its step and its condition.
fn conditions(
    definition: &PromptDefinition,
    before: &[Argument],
    index: usize,
    argument: &Argument,
    found: &mut Vec<Diagnostic>,
) {
    let place = |part: &str| definition.origin.locate(&format!("arguments.{index}.{part}"));
    for (part, is_there) in
        [("step", argument.definition().step.is_some()), ("when", argument.definition().when.is_some())]
    {
        if is_there && !argument.is_asked() {
            let message = format!("`{part}` has no effect: the argument `{}` is not asked for", argument.name());
            found.push(Diagnostic::warning(Code::NoEffect, place(part), message).help("add `ask: true`"));
        }
    }
    let Some(condition) = &argument.condition else { return };
    for name in condition.names().to_vec() {
        let message = match before.iter().find(|other| other.name() == name) {
            Some(other) if other.is_asked() && other.step() > argument.step() => {
                format!("`{name}` is asked for in a later step than `{}`, whose condition uses it", argument.name())
            }
            Some(_) => continue,
            None if definition.arguments.iter().any(|other| other.name == name) => {
                format!("the condition uses `{name}`, which is not declared before `{}`", argument.name())
            }
            None => format!("the condition uses the unknown argument `{name}`"),
        };
        let mut diagnostic = Diagnostic::error(Code::InvalidCondition, place("when"), message);
        diagnostic.help = nearest(&name, before.iter().map(Argument::name))
            .map(|near| format!("did you mean `{near}`?"))
            .filter(|_| !definition.arguments.iter().any(|other| other.name == name));
        found.push(diagnostic);
    }
}
