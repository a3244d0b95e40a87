//! Forms and pages of another server, for the user of a caller: bounded, cleaned, and marked with their origin.

use promptshelf_client::{Choice, Elicitation, ElicitationMode, FOREIGN_FORM_NOTICE, FieldKind, FormField};
use promptshelf_core::{self as core, ArgumentDefinition, ArgumentType, Constraints, RemoteForm};
use serde_json::Value;

use crate::{
    convert::{Refused, Schemes, check_uri},
    definition::visible,
};

/// The longest key of a form, in bytes.
const MAX_KEY_BYTES: usize = 128;

/// Converts an elicitation of the source `source`.
pub(crate) fn remote_form(source: &str, key: String, elicitation: &Elicitation) -> Result<RemoteForm, Refused> {
    if key.is_empty() || key.len() > MAX_KEY_BYTES || visible(&key) != key {
        return Err(Refused("a form with an invalid key".to_owned()));
    }
    if let Some(secret) = elicitation.requested_secret() {
        return Err(Refused(format!("a form that asks for {secret}")));
    }
    // Without it, a user could take the question for one of this server. Not every word for a secret is recognized.
    let question = visible(&elicitation.message).replace(FOREIGN_FORM_NOTICE, "");
    let message = format!("The server of the source {source} asks: {}\n{FOREIGN_FORM_NOTICE}", question.trim_end());
    match &elicitation.mode {
        ElicitationMode::Form(fields) => {
            let fields = fields.iter().map(field).collect::<Result<_, _>>()?;
            Ok(RemoteForm { key, message, url: None, fields })
        }
        ElicitationMode::Url { url } => {
            check_uri(url, &Schemes::new())?;
            if url.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://")) {
                Ok(RemoteForm { key, message, url: Some(url.clone()), fields: Vec::new() })
            } else {
                Err(Refused("a web page that is not at https:".to_owned()))
            }
        }
        _ => Err(Refused("a request for input of an unknown kind".to_owned())),
    }
}

fn field(field: &FormField) -> Result<ArgumentDefinition, Refused> {
    if field.name.is_empty() || visible(&field.name) != field.name {
        return Err(Refused("a form with an invalid field".to_owned()));
    }
    let (kind, choices) = match &field.kind {
        FieldKind::Text(format) if format.as_deref() == Some("date") => (ArgumentType::Date, Vec::new()),
        FieldKind::Text(_) => (ArgumentType::String, Vec::new()),
        FieldKind::Integer => (ArgumentType::Integer, Vec::new()),
        FieldKind::Number => (ArgumentType::Number, Vec::new()),
        FieldKind::Boolean => (ArgumentType::Boolean, Vec::new()),
        FieldKind::One(all) => (ArgumentType::String, choices(all)?),
        FieldKind::Any(all) => (ArgumentType::List, choices(all)?),
        _ => return Err(Refused("a form with a field of an unknown kind".to_owned())),
    };
    let constraints = match kind {
        ArgumentType::Integer | ArgumentType::Number => {
            Constraints { minimum: field.minimum, maximum: field.maximum, ..Constraints::default() }
        }
        ArgumentType::String if choices.is_empty() => Constraints {
            min_length: field.minimum.map(length),
            max_length: field.maximum.map(length),
            ..Constraints::default()
        },
        _ => Constraints::default(),
    };
    let definition = ArgumentDefinition {
        title: field.title.as_deref().map(visible),
        description: field.description.as_deref().map(visible),
        required: field.required,
        kind,
        default: field.default.as_ref().map(default_text),
        choices,
        ..ArgumentDefinition::new(&*field.name)
    };
    Ok(definition.constrained(constraints))
}

fn choices(choices: &[Choice]) -> Result<Vec<core::Choice>, Refused> {
    let choice = |choice: &Choice| {
        if visible(&choice.value) == choice.value {
            Ok(core::Choice { value: choice.value.clone(), title: choice.title.as_deref().map(visible) })
        } else {
            Err(Refused("a form with an invalid choice".to_owned()))
        }
    };
    choices.iter().map(choice).collect()
}

fn default_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), visible)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "negative lengths mean 0")]
fn length(value: f64) -> usize {
    value as usize
}
