//! Deprecations of prompts: a member of `_meta`, and a sentence before the description, which is all that most clients
//! show.

use std::borrow::Cow;

use promptshelf_core::Prompt;
use promptshelf_service::{DeprecationNotice, View};
use serde::Serialize;

/// The member `dev.promptshelf/deprecated` of `_meta`.
#[derive(Serialize)]
pub(super) struct WireDeprecation<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replacement: Option<String>,
}

impl<'a> WireDeprecation<'a> {
    pub(super) fn of(prompt: &'a Prompt, view: &View) -> Option<WireDeprecation<'a>> {
        let DeprecationNotice { message, replacement, .. } = view.deprecation(prompt)?;
        Some(WireDeprecation { message, replacement })
    }

    /// The mark of an answer under a former name of the prompt.
    pub(super) fn renamed(prompt: &Prompt) -> WireDeprecation<'_> {
        WireDeprecation { message: Some("This name is a former one."), replacement: Some(prompt.name().to_string()) }
    }
}

pub(super) fn description<'a>(prompt: &Prompt, view: &View, text: Option<&'a str>) -> Option<Cow<'a, str>> {
    match view.deprecation(prompt) {
        None => text.map(Cow::Borrowed),
        Some(notice) => Some(match text {
            Some(text) => format!("{notice} {text}").into(),
            None => notice.to_string().into(),
        }),
    }
}
