//! Prompts that a template calls: existence, depth, cycles, and their required arguments.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use super::{Missing, Scope, partials::Including};
use crate::{
    argument::{self, Argument, RawArguments},
    definition::PromptDefinition,
    diagnostic::{Code, Diagnostic, Severity, nearest},
    prompt::{CheckedBody, Prompt},
    template::lint::PromptCall,
};

pub(super) fn check(
    definition: &PromptDefinition,
    own: &Including,
    call: &PromptCall,
    scope: &Scope<'_>,
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
    let included = match scope.prompt(name) {
        Ok(included) => included,
        Err(Missing::Cycle(way)) => {
            let way: Vec<String> = way.iter().map(|name| format!("`{name}`")).collect();
            let message = format!("circular call of prompts: {}", way.join(" → "));
            let help = Some("remove one of these calls".to_owned());
            return error(Code::CircularInclude, &call.target.span, message, help);
        }
        Err(Missing::TooDeep) => return error(Code::CircularInclude, &call.target.span, too_deep(scope), None),
        Err(Missing::Broken) => {
            let message = format!("the prompt `{name}` cannot be called because it has errors of its own");
            let help = Some("correct that prompt first".to_owned());
            return error(Code::MissingPrompt, &call.target.span, message, help);
        }
        Err(Missing::Unknown(near)) => {
            let message = format!("prompt `{name}` not found in the library");
            let help = near.map_or_else(
                || "`promptshelf list` shows every prompt; use `include` for a file".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            return error(Code::MissingPrompt, &call.target.span, message, Some(help));
        }
    };
    if matches!(included.body, CheckedBody::Function(_)) {
        let message = format!("the prompt `{name}` is written in code and cannot be called from a template");
        return error(Code::InvalidCall, &call.target.span, message, None);
    }
    if included.depth() >= scope.catalog.policy().budget.include_depth {
        return error(Code::CircularInclude, &call.target.span, too_deep(scope), None);
    }
    for (passed, constant) in &call.named {
        let Some(argument) = included.argument(&passed.name) else {
            let known = included.arguments().iter().map(Argument::name);
            let help = nearest(&passed.name, known).map(|near| format!("did you mean `{near}`?"));
            let message = format!("the prompt `{name}` has no argument `{}`", passed.name);
            error(Code::InvalidCall, &passed.span, message, help);
            continue;
        };
        let Some(constant) = constant else { continue };
        let value = RawArguments::from_iter([(passed.name.as_str(), constant.as_str())]);
        let bound = argument::bind(std::slice::from_ref(argument), &value, scope.catalog.policy().value_bytes);
        for problem in bound.err().into_iter().flatten() {
            error(Code::InvalidCall, &passed.span, format!("invalid argument of the prompt `{name}`: {problem}"), None);
        }
    }
    for argument in included.arguments().iter().filter(|argument| argument.required() && !call.is_open) {
        if !call.named.iter().any(|(passed, _)| passed.name == argument.name()) {
            let message = format!("the prompt `{name}` requires the argument `{}`", argument.name());
            let help = format!("write `prompt(\"{name}\", {}=…)`", argument.name());
            error(Code::InvalidCall, &call.target.span, message, Some(help));
        }
    }
    prompts.insert(name.clone(), included);
}

fn too_deep(scope: &Scope<'_>) -> String {
    format!("prompts call each other more than {} levels deep", scope.catalog.policy().budget.include_depth)
}
