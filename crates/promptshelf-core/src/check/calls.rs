//! Prompts that a template includes: existence, depth, circles, and their required arguments.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use super::{
    partials::Including,
    scope::{Missing, Shelf},
};
use crate::{
    argument::{self, Argument, RawArguments},
    definition::PromptDefinition,
    diagnostic::{Code, Diagnostic, Severity, nearest},
    prompt::{CheckedBody, Prompt},
    template::lint::PromptCall,
};

/// Checks one call, and adds the prompt that it includes.
pub(super) fn check(
    definition: &PromptDefinition,
    own: &Including,
    call: &PromptCall,
    shelf: &Shelf<'_>,
    prompts: &mut BTreeMap<String, Arc<Prompt>>,
    found: &mut Vec<Diagnostic>,
) {
    let name = &call.target.name;
    let mut error = |code, span: &Range<usize>, message: String, help: Option<String>| {
        let location = own.at(span);
        let related = Vec::new();
        found.push(Diagnostic { code, severity: Severity::Error, message, location, related, help });
    };
    if definition.arguments.iter().any(|argument| argument.name == "prompt") {
        let help = "give the argument another name".to_owned();
        let message = "the argument `prompt` hides the function of this name".to_owned();
        return error(Code::InvalidCall, &call.target.span, message, Some(help));
    }
    let included = match shelf.prompt(name) {
        Ok(included) => included,
        Err(Missing::Circle(way)) => {
            let way: Vec<String> = way.iter().map(|name| format!("`{name}`")).collect();
            let message = format!("prompts bring each other in in a circle: {}", way.join(" → "));
            let help = Some("remove one of these calls".to_owned());
            return error(Code::CircularInclude, &call.target.span, message, help);
        }
        Err(Missing::TooDeep) => return error(Code::CircularInclude, &call.target.span, too_deep(shelf), None),
        Err(Missing::Broken) => {
            let message = format!("the prompt `{name}` cannot be brought in, because it is broken itself");
            let help = Some("mend that one first".to_owned());
            return error(Code::MissingPrompt, &call.target.span, message, help);
        }
        Err(Missing::Unknown(near)) => {
            let message = format!("there is no prompt `{name}` in the library");
            let help = near.map_or_else(
                || "`promptshelf list` shows every prompt; `include` brings in a file".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            return error(Code::MissingPrompt, &call.target.span, message, Some(help));
        }
    };
    if matches!(included.body, CheckedBody::Function(_)) {
        let message = format!("the prompt `{name}` is written in code and cannot be brought in");
        return error(Code::InvalidCall, &call.target.span, message, None);
    }
    if included.depth() >= shelf.catalog.policy().budget.include_depth {
        return error(Code::CircularInclude, &call.target.span, too_deep(shelf), None);
    }
    for (given, constant) in &call.given {
        let Some(argument) = included.argument(&given.name) else {
            let known = included.arguments().iter().map(Argument::name);
            let help = nearest(&given.name, known).map(|near| format!("did you mean `{near}`?"));
            let message = format!("the prompt `{name}` has no argument `{}`", given.name);
            error(Code::InvalidCall, &given.span, message, help);
            continue;
        };
        let Some(constant) = constant else { continue };
        let value = RawArguments::from_iter([(given.name.as_str(), constant.as_str())]);
        let bound = argument::bind(std::slice::from_ref(argument), &value, shelf.catalog.policy().value_bytes);
        for problem in bound.err().into_iter().flatten() {
            error(Code::InvalidCall, &given.span, format!("the prompt `{name}` does not take this: {problem}"), None);
        }
    }
    for argument in included.arguments().iter().filter(|argument| argument.required() && !call.is_open) {
        if !call.given.iter().any(|(given, _)| given.name == argument.name()) {
            let message = format!("the prompt `{name}` needs the argument `{}`", argument.name());
            let help = format!("write `prompt(\"{name}\", {}=…)`", argument.name());
            error(Code::InvalidCall, &call.target.span, message, Some(help));
        }
    }
    prompts.insert(name.clone(), included);
}

fn too_deep(shelf: &Shelf<'_>) -> String {
    format!("prompts bring each other in more than {} deep", shelf.catalog.policy().budget.include_depth)
}
