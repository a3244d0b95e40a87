//! Arguments of tool calls. Models send typed JSON, and prompts take text.

use std::borrow::Cow;

use promptshelf_core::{RawArgumentValue, RawArguments};

use crate::{
    error_code::{WireError, echo},
    request,
};

/// Refuses names that a closed schema does not have.
pub(super) fn refuse_others(given: &RawArguments<'_>, known: &[&str]) -> Result<(), WireError> {
    match given.names().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(other) if known.is_empty() => {
            Err(WireError::for_model(format!("Unknown argument: `{}`; expected no arguments", echo(other))))
        }
        Some(other) => Err(WireError::for_model(format!(
            "Unknown argument: `{}`; expected one of {}",
            echo(other),
            known.join(", ")
        ))),
    }
}

/// Reads a number from 1 to `most`.
pub(super) fn count(json: &str, most: usize) -> Result<usize, WireError> {
    let number = json.trim().parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| WireError::for_model(format!("`limit` must be a whole number from 1 to {most}")))
}

/// Returns the values as texts. `null` means that an argument is left out.
pub(super) fn as_text<'a>(given: &'a RawArguments<'_>) -> RawArguments<'a> {
    let text = |(name, value): (&'a str, &'a RawArgumentValue<'_>)| {
        let value = match value {
            RawArgumentValue::Text(text) => RawArgumentValue::Text(Cow::Borrowed(&**text)),
            RawArgumentValue::Other(json) if json == "null" => return None,
            // A string that is not Unicode stays invalid.
            RawArgumentValue::Other(json) if json.starts_with('"') => RawArgumentValue::Other(Cow::Borrowed(&**json)),
            RawArgumentValue::Other(json) => RawArgumentValue::Text(Cow::Borrowed(&**json)),
        };
        Some((Cow::Borrowed(name), value))
    };
    given.iter().filter_map(text).collect()
}

/// Reads an object inside of the arguments. Some models send it as a text with JSON.
pub(super) fn nested<'a>(value: Option<&'a RawArgumentValue<'_>>) -> Result<RawArguments<'a>, WireError> {
    let json: &str = match value {
        None => return Ok(RawArguments::new()),
        Some(RawArgumentValue::Other(json)) if json == "null" => return Ok(RawArguments::new()),
        Some(RawArgumentValue::Other(json)) => json,
        Some(RawArgumentValue::Text(text)) => text,
    };
    let malformed = || WireError::for_model("`arguments` must be an object with the arguments of the prompt");
    request::arguments_of(json).ok_or_else(malformed)
}
