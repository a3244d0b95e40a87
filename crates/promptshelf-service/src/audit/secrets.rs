//! Values that must not appear in anything that is written or said.

use std::borrow::Cow;

use promptshelf_core::{Problem, Prompt, RawArgumentValue, RawArguments, invisible::stripped};

use crate::Rejection;

/// What stands in the place of a secret.
const HIDDEN: &str = "…";

/// The sensitive values of one question.
#[derive(Debug)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    pub(crate) fn of(prompt: &Prompt, given: &RawArguments<'_>) -> Secrets {
        let sensitive = prompt.arguments().iter().filter(|argument| argument.is_sensitive());
        let given = sensitive.filter_map(|argument| match given.get(argument.name()) {
            Some(RawArgumentValue::Text(text)) if !text.trim().is_empty() => Some(text.trim()),
            _ => None,
        });
        // The prompt may have got it without its invisible characters.
        let mut values: Vec<String> =
            given.flat_map(|text| [text.into(), stripped(text)]).map(Cow::into_owned).collect();
        values.retain(|value| !value.trim().is_empty());
        // A value may hold another one: the longer one goes first.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Secrets(values)
    }

    /// A text without them.
    pub(crate) fn hide(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| if text.contains(secret) { text.replace(secret, HIDDEN) } else { text })
    }

    /// A rejection without them.
    pub(crate) fn hide_in(&self, rejection: Rejection) -> Rejection {
        if self.0.is_empty() {
            return rejection;
        }
        match rejection {
            Rejection::InvalidArguments { prompt, problems } => {
                let hidden = |problem: Problem| Problem { reason: self.hide(problem.reason), ..problem };
                Rejection::InvalidArguments { prompt, problems: problems.into_iter().map(hidden).collect() }
            }
            Rejection::UnusableArguments { prompt, reason } => {
                Rejection::UnusableArguments { prompt, reason: self.hide(reason) }
            }
            other => other,
        }
    }
}
