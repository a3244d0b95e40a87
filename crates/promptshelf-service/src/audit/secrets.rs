//! Removal of sensitive values from log messages and rejections.

use std::borrow::Cow;

use promptshelf_core::{Problem, Prompt, RawArgumentValue, RawArguments, invisible::stripped};

use crate::rejection::Rejection;

const HIDDEN: &str = "…";

#[derive(Debug)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    pub(crate) fn of(prompt: &Prompt, arguments: &RawArguments<'_>) -> Secrets {
        let sensitive = prompt.arguments().iter().filter(|argument| argument.is_sensitive());
        let texts = sensitive.filter_map(|argument| match arguments.get(argument.name()) {
            Some(RawArgumentValue::Text(text)) if !text.trim().is_empty() => Some(text.trim()),
            _ => None,
        });
        // Prompts may receive values without their invisible characters.
        let mut values: Vec<String> =
            texts.flat_map(|text| [text.into(), stripped(text)]).map(Cow::into_owned).collect();
        values.retain(|value| !value.trim().is_empty());
        // One value may contain another one, so longer values are replaced first.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Secrets(values)
    }

    /// Returns a text without the secrets.
    pub(crate) fn hide(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| if text.contains(secret) { text.replace(secret, HIDDEN) } else { text })
    }

    /// Returns a rejection without the secrets.
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
