//! Prompts that their source could not understand: they are looked at for more
//! mistakes, so that all are found at once, and never served.

use std::sync::Arc;

use super::{prompt, scope::Shelf};
use crate::{
    definition::{BrokenFile, PromptDefinition},
    diagnostic::{Code, Diagnostic},
};

/// Adds what is wrong with a draft to `found`, which holds what its source found.
pub(super) fn check(broken: &BrokenFile, shelf: &Shelf<'_>, found: &mut Vec<Diagnostic>) {
    let Some(draft) = &broken.draft else { return };
    let known: Vec<Diagnostic> =
        found.iter().filter(|it| it.is_error() && it.location.source.path == broken.path).cloned().collect();
    let more = match prompt::check(Arc::clone(draft), shelf) {
        Ok(prompt) => prompt.uses().warnings.clone(),
        Err(found) => found,
    };
    found.extend(more.into_iter().filter(|new| !follows(new, broken, draft, &known)));
}

/// Whether a mistake may be nothing but a consequence of one that is known.
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
        // Any of the lines that could not be read may say it.
        Code::MissingDescription => known.iter().any(|old| old.code == Code::Syntax),
        Code::UndeclaredArgument
        | Code::UnusedArgument
        | Code::InvalidCondition
        | Code::InvalidCompletion
        | Code::CircularCompletion
        | Code::NoEffect => !broken.has_all_arguments,
        // What an argument takes depends on its type.
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
