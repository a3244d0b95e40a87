//! The check of prompts that their source could not read completely: they are checked for more mistakes, so that one
//! run reports all, and are never served.

use std::sync::Arc;

use super::{Scope, prompt};
use crate::{
    definition::{BrokenFile, PromptDefinition},
    diagnostic::{Code, Diagnostic},
};

/// Adds the mistakes of a draft to `found`, which contains those that its source found.
pub(super) fn check(broken: &BrokenFile, scope: &Scope<'_>, found: &mut Vec<Diagnostic>) {
    let Some(draft) = &broken.draft else { return };
    let known: Vec<Diagnostic> =
        found.iter().filter(|it| it.is_error() && it.location.source.path == broken.path).cloned().collect();
    let more = match prompt::check(Arc::clone(draft), scope) {
        Ok(prompt) => prompt.uses().warnings.clone(),
        Err(found) => found,
    };
    found.extend(more.into_iter().filter(|new| !follows(new, broken, draft, &known)));
}

/// Whether a mistake may only be a consequence of a known one.
fn follows(new: &Diagnostic, broken: &BrokenFile, draft: &PromptDefinition, known: &[Diagnostic]) -> bool {
    if new.location.source.path != broken.path {
        return new.code == Code::UndeclaredArgument && !broken.has_all_arguments;
    }
    let touches = |old: &Diagnostic| {
        let (old, new) = (old.location.span(), new.location.span());
        old.start <= new.start && new.start <= old.end
    };
    if known.iter().any(touches) {
        return true;
    }
    match new.code {
        // The description may be in any of the lines that could not be read.
        Code::MissingDescription => {
            known.iter().any(|old| old.code == Code::Syntax || old.message.starts_with("the front matter"))
        }
        Code::UndeclaredArgument
        | Code::UnusedArgument
        | Code::InvalidCondition
        | Code::InvalidCompletion
        | Code::CircularCompletion
        | Code::NoEffect => !broken.has_all_arguments,
        // The valid values of an argument depend on its type.
        Code::InvalidValue | Code::InvalidDefault => (0..draft.arguments.len()).any(|index| {
            let part = |key: &str| draft.origin.locate(&format!("arguments.{index}{key}")).span();
            let argument = part("");
            let start = new.location.span().start;
            argument.start <= start
                && start < argument.end
                && known.iter().any(|old| old.location.span() == part(".type"))
        }),
        _ => false,
    }
}
