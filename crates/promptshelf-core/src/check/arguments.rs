//! Arguments of a prompt, and variables of a URI template.

use std::collections::HashMap;

use super::Scope;
use crate::{
    argument::{Argument, Declared},
    content::ResourceBody,
    definition::{ArgumentDefinition, CompletionSource, Origin},
    diagnostic::{Code, Diagnostic, nearest},
    glob::Glob,
};

/// Names that the template language reserves, or that would hide its functions.
const RESERVED: &[&str] = &[
    "role",
    "attach",
    "link",
    "range",
    "dict",
    "namespace",
    "loop",
    "self",
    "super",
    "caller",
    "true",
    "false",
    "none",
    "True",
    "False",
    "None",
    "and",
    "or",
    "not",
    "in",
    "is",
    "if",
    "else",
];

/// Checks every argument of a list and adds the problems to `found`. `part` is the list's name in the definition;
/// `declared` returns the location of the definition at an index. Without a template, names are not checked: those of
/// another server are passed on to it as they are.
pub(super) fn check(
    definitions: &[ArgumentDefinition],
    declared: impl Fn(u32) -> Declared,
    part: &str,
    has_template: bool,
    origin: &Origin,
    scope: &Scope<'_>,
    found: &mut Vec<Diagnostic>,
) -> Vec<Argument> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (index, definition) in definitions.iter().enumerate() {
        let location = origin.locate(&format!("{part}.{index}.name"));
        if let Some(first) = seen.insert(&definition.name, index) {
            let message = format!("the argument `{}` is declared twice", definition.name);
            let first = origin.locate(&format!("{part}.{first}.name"));
            let diagnostic = Diagnostic::error(Code::DuplicateName, location, message);
            found.push(
                diagnostic.also(first, "first declared here").help("give one of them another name, or remove it"),
            );
        } else if let Some(reason) = name_fault(&definition.name).filter(|_| has_template) {
            let message = format!("invalid argument name `{}`: {reason}", definition.name);
            let other = definition.name.replace(['-', ' ', '.'], "_");
            let help = match name_fault(&other) {
                None => format!("write `{other}`"),
                Some(_) if RESERVED.contains(&&*definition.name) => "give it another name".to_owned(),
                Some(_) => "use letters, digits and `_`, and begin with a letter".to_owned(),
            };
            found.push(Diagnostic::error(Code::InvalidName, location, message).help(help));
        }
    }
    let each = (0..).zip(definitions);
    each.map(|(index, definition)| {
        let place = |key: &str| origin.locate(&format!("{part}.{index}.{key}"));
        let (argument, faults) = Argument::new(declared(index), scope.catalog.policy().invisible);
        for fault in faults {
            let message = format!("in the argument `{}`: {}", definition.name, fault.message);
            let diagnostic = Diagnostic::error(fault.code, place(fault.part), message);
            found.push(Diagnostic { help: fault.help, ..diagnostic });
        }
        if definition.required && definition.default.is_some() {
            let message = format!("`required` has no effect: the argument `{}` has a default", definition.name);
            found.push(
                Diagnostic::warning(Code::NoEffect, place("required"), message).help("remove `required` or `default`"),
            );
        }
        let completion = definition.completion.as_ref();
        found.extend(completion.and_then(|completion| {
            completion_fault(completion, definition, definitions, scope, &|| place("complete"))
        }));
        argument
    })
    .collect()
}

/// Returns whether the checks of these arguments use their definitions only, and no files or resources.
pub(super) fn depend_only_on_definition(arguments: &[Argument]) -> bool {
    !arguments.iter().any(|argument| {
        matches!(argument.completion(), Some(CompletionSource::File(_) | CompletionSource::Resources(_)))
    })
}

/// Whether a template can use an argument with this name.
///
/// ```
/// use promptshelf_core::is_variable_name;
///
/// assert!(is_variable_name("role_1") && !is_variable_name("role") && !is_variable_name("pr-number"));
/// ```
#[must_use]
pub fn is_variable_name(name: &str) -> bool {
    name_fault(name).is_none()
}

pub(super) fn name_fault(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("it is empty")
    } else if name.len() > 64 {
        Some("it is longer than 64 bytes")
    } else if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    {
        Some("it is not a valid template variable")
    } else if RESERVED.contains(&name) {
        Some("it is a reserved word of the template language")
    } else {
        None
    }
}

fn completion_fault(
    completion: &CompletionSource,
    own: &ArgumentDefinition,
    all: &[ArgumentDefinition],
    scope: &Scope<'_>,
    place: &dyn Fn() -> crate::Location,
) -> Option<Diagnostic> {
    match completion {
        CompletionSource::File(path) => match scope.files.by_path.get(path).map(|file| &file.body) {
            Some(ResourceBody::Text(_)) => None,
            Some(ResourceBody::Blob(_)) => Some(Diagnostic::error(
                Code::InvalidCompletion,
                place(),
                format!("the completion file `{path}` is not a text file"),
            )),
            None => {
                let near = nearest(path, scope.files.by_path.keys().map(String::as_str));
                let mut fault = Diagnostic::error(
                    Code::MissingFile,
                    place(),
                    format!("completion file `{path}` not found in the library"),
                );
                fault.help = near.map(|near| format!("did you mean `{near}`?"));
                Some(fault)
            }
        },
        CompletionSource::By { argument, cases } => by_fault(argument, cases, own, all, place),
        CompletionSource::Resources(glob) => match Glob::name(glob) {
            Err(error) => {
                let message = format!("invalid URI pattern {error}");
                Some(Diagnostic::error(Code::InvalidCompletion, place(), message))
            }
            Ok(pattern) => {
                let message = || format!("no resource of this server matches `{glob}`");
                let is_any = scope.uris.any(|uri| pattern.is_match(uri));
                (!is_any).then(|| Diagnostic::warning(Code::InvalidCompletion, place(), message()))
            }
        },
        CompletionSource::Values(values) if values.is_empty() => {
            Some(Diagnostic::warning(Code::NoEffect, place(), "the list of completion values is empty"))
        }
        CompletionSource::Values(_)
        | CompletionSource::Paths(_)
        | CompletionSource::RootPaths { .. }
        | CompletionSource::Function(_)
        | CompletionSource::Remote(_) => None,
    }
}

fn by_fault(
    by: &str,
    cases: &[(String, Vec<String>)],
    own: &ArgumentDefinition,
    all: &[ArgumentDefinition],
    place: &dyn Fn() -> crate::Location,
) -> Option<Diagnostic> {
    if let Some(cycle) = cycle(own, all) {
        let message = format!("circular completion: {cycle}");
        return Some(
            Diagnostic::error(Code::CircularCompletion, place(), message)
                .help("complete one of them from a plain list"),
        );
    }
    if by == own.name {
        return Some(Diagnostic::error(
            Code::InvalidCompletion,
            place(),
            format!("the completion of `{by}` cannot depend on itself"),
        ));
    }
    let Some(other) = all.iter().find(|argument| argument.name == by) else {
        let mut fault = Diagnostic::error(
            Code::InvalidCompletion,
            place(),
            format!("the completion depends on the unknown argument `{by}`"),
        );
        fault.help = nearest(by, all.iter().map(|argument| argument.name.as_str()))
            .map(|near| format!("did you mean `{near}`?"));
        return Some(fault);
    };
    let (case, _) = cases
        .iter()
        .find(|(case, _)| !other.choices.is_empty() && !other.choices.iter().any(|choice| choice.value == *case))?;
    let mut fault =
        Diagnostic::error(Code::InvalidCompletion, place(), format!("the argument `{by}` has no choice `{case}`"));
    fault.help = nearest(case, other.choices.iter().map(|choice| choice.value.as_str()))
        .map(|near| format!("did you mean `{near}`?"));
    Some(fault)
}

/// Returns the cycle of dependent completions that contains this argument, if it has several members.
fn cycle(own: &ArgumentDefinition, all: &[ArgumentDefinition]) -> Option<String> {
    let waits_for = |argument: &ArgumentDefinition| match &argument.completion {
        Some(CompletionSource::By { argument: by, .. }) => all.iter().find(|other| other.name == *by),
        _ => None,
    };
    let mut path = vec![own];
    let mut next = waits_for(own)?;
    while next.name != own.name {
        if path.len() > all.len() {
            return None;
        }
        path.push(next);
        next = waits_for(next)?;
    }
    let names = path.iter().chain([&own]).map(|argument| format!("`{}`", argument.name));
    (path.len() > 1).then(|| names.collect::<Vec<_>>().join(" → "))
}
