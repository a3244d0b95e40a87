//! What a server asks in between, and what somebody answers.

use std::{fmt, future::Future, pin::Pin};

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Value};

/// Values for the fields of a form.
pub type Answers = Map<String, Value>;

/// The most fields that a form is shown with.
const MOST_FIELDS: usize = 100;
/// The most choices that a field is shown with.
const MOST_CHOICES: usize = 1000;
/// The longest message or label that is kept, in bytes.
const LONGEST_TEXT: usize = 8 << 10;

/// Something a server wants to know before it goes on.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// Where it comes from: the target we are connected to, and not what the
    /// server calls itself.
    pub from: String,
    /// What the server says about it.
    pub message: String,
    /// What it wants.
    pub asked: Asked,
    /// What was answered before, when somebody has gone back to it.
    pub before: Option<Answers>,
    /// Whether [`Answer::Back`] leads to an earlier question.
    pub can_go_back: bool,
}

/// What a question wants.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Asked {
    /// Values.
    Form(Vec<Field>),
    /// That a page is visited. It is never opened by itself.
    Visit {
        /// Its address.
        url: String,
    },
}

/// A field of a form.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Field {
    /// What its value is sent under.
    pub name: String,
    /// What people call it.
    pub title: Option<String>,
    /// What is expected.
    pub description: Option<String>,
    /// Whether it has to be filled in.
    pub required: bool,
    /// What is taken when nothing is typed.
    pub default: Option<Value>,
    /// What it takes.
    pub kind: FieldKind,
    /// The least length or value.
    pub least: Option<f64>,
    /// The greatest length or value.
    pub most: Option<f64>,
}

/// What a field takes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldKind {
    /// Text, with a format such as `email` or `date` where the server says one.
    Text(Option<String>),
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
    /// One of these.
    One(Vec<Choice>),
    /// Any of these.
    Any(Vec<Choice>),
}

/// A value that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// What is sent.
    pub value: String,
    /// What is shown.
    pub title: Option<String>,
}

/// What somebody does with a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Here are the values; none for a page that was visited.
    Accept(Answers),
    /// No answer, but the server may go on.
    Decline,
    /// No answer, and no prompt either.
    Cancel,
    /// To the question before. The same as [`Answer::Cancel`] where there is none.
    Back,
}

/// Whoever answers what servers ask.
pub trait ElicitationHandler: Send + Sync + 'static {
    /// Answers one question. It may take as long as it takes.
    fn answer(&self, question: Question) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>>;
}

impl fmt::Debug for dyn ElicitationHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ElicitationHandler")
    }
}

impl Answer {
    pub(super) fn into_wire(self) -> ElicitResult {
        match self {
            Answer::Accept(values) if values.is_empty() => ElicitResult::new(ElicitationAction::Accept),
            Answer::Accept(values) => ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(values)),
            Answer::Decline => ElicitResult::new(ElicitationAction::Decline),
            Answer::Cancel | Answer::Back => ElicitResult::new(ElicitationAction::Cancel),
        }
    }
}

impl Question {
    pub(super) fn from_wire(target: &str, params: &ElicitRequestParams) -> Question {
        let (message, asked) = match params {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(requested_schema).unwrap_or_default();
                (message.as_str(), Asked::Form(fields(&schema)))
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                (message.as_str(), Asked::Visit { url: cut(url) })
            }
            _ => ("", Asked::Form(Vec::new())),
        };
        Question { from: target.to_owned(), message: cut(message), asked, before: None, can_go_back: false }
    }

    /// What the question seems to ask for that nobody should type into a form:
    /// servers must not ask for it there (specification, *Elicitation*).
    #[must_use]
    pub fn looks_secret(&self) -> Option<&'static str> {
        let Asked::Form(fields) = &self.asked else { return None };
        let of_field = |field: &Field| {
            secret_in(&field.name)
                .or_else(|| field.title.as_deref().and_then(secret_in))
                .or_else(|| field.description.as_deref().and_then(secret_in))
        };
        fields.iter().find_map(of_field).or_else(|| secret_in(&self.message))
    }
}

/// A word for a secret, in a text that is written in any of the usual ways.
fn secret_in(text: &str) -> Option<&'static str> {
    const SECRETS: [(&str, &str); 18] = [
        ("password", "a password"),
        ("passwd", "a password"),
        ("passphrase", "a passphrase"),
        ("passcode", "a passcode"),
        ("pincode", "a PIN"),
        ("secret", "a secret"),
        ("apikey", "an API key"),
        ("accesskey", "an access key"),
        ("privatekey", "a private key"),
        ("accesstoken", "a token"),
        ("authtoken", "a token"),
        ("bearertoken", "a token"),
        ("refreshtoken", "a token"),
        ("credential", "credentials"),
        ("creditcard", "a card number"),
        ("cardnumber", "a card number"),
        ("socialsecurity", "a social security number"),
        ("seedphrase", "a seed phrase"),
    ];
    // `API key`, `api_key` and `apiKey` are the same to whoever types one in.
    let letters: String = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    SECRETS.iter().find(|(word, _)| letters.contains(word)).map(|(_, what)| *what)
}

fn fields(schema: &Value) -> Vec<Field> {
    let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let field = |(name, property): (&String, &Value)| Field {
        name: cut(name),
        title: text(property, "title"),
        description: text(property, "description"),
        required: required(name),
        default: property.get("default").filter(|default| !default.is_null()).cloned(),
        kind: kind(property),
        least: property["minLength"].as_f64().or(property["minimum"].as_f64()).or(property["minItems"].as_f64()),
        most: property["maxLength"].as_f64().or(property["maximum"].as_f64()).or(property["maxItems"].as_f64()),
    };
    properties.iter().take(MOST_FIELDS).map(field).collect()
}

fn kind(property: &Value) -> FieldKind {
    if let Some(choices) = choices(property) {
        return FieldKind::One(choices);
    }
    match property["type"].as_str() {
        Some("array") => FieldKind::Any(choices(&property["items"]).unwrap_or_default()),
        Some("boolean") => FieldKind::Boolean,
        Some("integer") => FieldKind::Integer,
        Some("number") => FieldKind::Number,
        _ => FieldKind::Text(text(property, "format")),
    }
}

/// Choices under any of the keywords that revisions have used for them.
fn choices(schema: &Value) -> Option<Vec<Choice>> {
    if let Some(values) = schema["enum"].as_array() {
        let names = schema["enumNames"].as_array();
        let choice = |(at, value): (usize, &Value)| {
            let title = names.and_then(|names| names.get(at)).and_then(Value::as_str).map(cut);
            value.as_str().map(|value| Choice { value: cut(value), title })
        };
        return Some(values.iter().take(MOST_CHOICES).enumerate().filter_map(choice).collect());
    }
    let titled = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array())?;
    let choice = |one: &Value| Some(Choice { value: cut(one["const"].as_str()?), title: text(one, "title") });
    Some(titled.iter().take(MOST_CHOICES).filter_map(choice).collect())
}

fn text(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().map(cut)
}

fn cut(text: &str) -> String {
    let mut kept = text[..text.floor_char_boundary(LONGEST_TEXT)].to_owned();
    if kept.len() < text.len() {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_read_in_every_revisions_words() {
        let schema = json!({
            "type": "object",
            "properties": {
                "colour": { "type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"] },
                "size": { "type": "string", "oneOf": [{ "const": "s", "title": "Small" }] },
                "tags": { "type": "array", "items": { "anyOf": [{ "const": "a", "title": "A" }] } },
                "count": { "type": "integer", "minimum": 1, "maximum": 9, "default": 3 },
                "mail": { "type": "string", "format": "email" },
            },
            "required": ["count"],
        });
        let fields = fields(&schema);
        let titles = |field: &Field| match &field.kind {
            FieldKind::One(choices) | FieldKind::Any(choices) => choices[0].title.clone(),
            _ => None,
        };
        let find = |name: &str| fields.iter().find(|field| field.name == name).expect("it is there");
        assert_eq!(titles(find("colour")).as_deref(), Some("Red"));
        assert_eq!(titles(find("size")).as_deref(), Some("Small"));
        assert_eq!(titles(find("tags")).as_deref(), Some("A"));
        assert_eq!(find("mail").kind, FieldKind::Text(Some("email".to_owned())));
        let count = find("count");
        assert_eq!(
            (count.required, count.least, count.most, count.default.clone()),
            (true, Some(1.0), Some(9.0), Some(json!(3)))
        );
    }

    #[test]
    fn a_question_for_a_secret_is_noticed_however_it_is_spelled() {
        for text in
            ["Your password", "API key", "api_key", "apiKey", "PRIVATE-KEY", "GitHub access token", "Credit card"]
        {
            assert!(secret_in(text).is_some(), "{text}");
        }
        for text in ["The tone", "How many tokens", "keyboard layout", "Language", "pin the version"] {
            assert!(secret_in(text).is_none(), "{text}");
        }
    }
}
