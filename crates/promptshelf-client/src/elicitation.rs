//! Elicitation: forms and pages that a server requests while it handles a request (specification 2026-07-28, *Client
//! features / Elicitation*).

use std::{fmt, future::Future, pin::Pin};

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Value};

/// The values of a form, by field name.
pub type FormValues = Map<String, Value>;

/// The most fields of a form; further ones are dropped.
const MAX_FIELDS: usize = 100;
/// The most choices of a field; further ones are dropped.
const MAX_CHOICES: usize = 1000;
/// The longest message or label, in bytes; longer ones are truncated.
const MAX_TEXT_BYTES: usize = 8 << 10;

/// A request of a server for input from the user.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Elicitation {
    /// The label of the connection ([`ConnectOptions::label`](crate::ConnectOptions::label)), not the name that the
    /// server chose.
    pub from: String,
    /// The server's message to the user.
    pub message: String,
    /// The requested input.
    pub mode: ElicitationMode,
    /// The earlier values, if the user went back to this form.
    pub previous: Option<FormValues>,
    /// Whether [`ElicitationResponse::Back`] leads to an earlier form.
    pub can_go_back: bool,
}

/// The input that a server requests.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ElicitationMode {
    /// Values for the fields of a form.
    Form(Vec<FormField>),
    /// A visit to a page. This crate never opens it.
    Url {
        /// The page's URL.
        url: String,
    },
}

/// A field of a form.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FormField {
    /// The key of its value.
    pub name: String,
    /// Its title, for people.
    pub title: Option<String>,
    /// Its description, for people.
    pub description: Option<String>,
    /// Whether a value is required.
    pub required: bool,
    /// The default value.
    pub default: Option<Value>,
    /// The type of its value.
    pub kind: FieldKind,
    /// The least value, length in characters, or number of choices.
    pub minimum: Option<f64>,
    /// The greatest value, length in characters, or number of choices.
    pub maximum: Option<f64>,
}

/// The type of a field's value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldKind {
    /// Text, with a JSON Schema format such as `email` or `date`, if given.
    Text(Option<String>),
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// A boolean.
    Boolean,
    /// One of the choices.
    One(Vec<Choice>),
    /// Any number of the choices.
    Any(Vec<Choice>),
}

/// A choice of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// The value to send.
    pub value: String,
    /// The title to show.
    pub title: Option<String>,
}

/// The user's response to an [`Elicitation`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ElicitationResponse {
    /// The values; empty for a page that was visited.
    Accept(FormValues),
    /// No input; the server may continue without it.
    Decline,
    /// No input; the request ends with [`ClientError::Cancelled`](crate::ClientError::Cancelled).
    Cancel,
    /// Back to the previous form; the same as `Cancel` for the first form ([`Elicitation::can_go_back`]).
    Back,
}

/// Presents elicitations to a user.
///
/// ```
/// use std::pin::Pin;
///
/// use promptshelf_client::{Elicitation, ElicitationHandler, ElicitationResponse};
///
/// struct DeclineAll;
///
/// impl ElicitationHandler for DeclineAll {
///     fn elicit(&self, _: Elicitation) -> Pin<Box<dyn Future<Output = ElicitationResponse> + Send + '_>> {
///         Box::pin(std::future::ready(ElicitationResponse::Decline))
///     }
/// }
/// ```
pub trait ElicitationHandler: Send + Sync + 'static {
    /// Returns the user's response. The timeout of the request does not run meanwhile.
    fn elicit(&self, elicitation: Elicitation) -> Pin<Box<dyn Future<Output = ElicitationResponse> + Send + '_>>;
}

impl fmt::Debug for dyn ElicitationHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ElicitationHandler")
    }
}

impl ElicitationResponse {
    pub(crate) fn into_wire(self) -> ElicitResult {
        match self {
            ElicitationResponse::Accept(values) if values.is_empty() => ElicitResult::new(ElicitationAction::Accept),
            ElicitationResponse::Accept(values) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(values))
            }
            ElicitationResponse::Decline => ElicitResult::new(ElicitationAction::Decline),
            ElicitationResponse::Cancel | ElicitationResponse::Back => ElicitResult::new(ElicitationAction::Cancel),
        }
    }
}

impl Elicitation {
    pub(crate) fn from_wire(label: &str, params: &ElicitRequestParams) -> Elicitation {
        let (message, mode) = match params {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(requested_schema).unwrap_or_default();
                (message.as_str(), ElicitationMode::Form(fields(&schema)))
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                (message.as_str(), ElicitationMode::Url { url: truncated(url) })
            }
            _ => ("", ElicitationMode::Form(Vec::new())),
        };
        Elicitation { from: label.to_owned(), message: truncated(message), mode, previous: None, can_go_back: false }
    }

    /// Returns the kind of secret that a form seems to request, such as `a password`. Servers must not request secrets
    /// in forms (specification, *Elicitation*), so a user should be warned.
    #[must_use]
    pub fn requested_secret(&self) -> Option<&'static str> {
        let ElicitationMode::Form(fields) = &self.mode else { return None };
        let of_field = |field: &FormField| {
            secret_in(&field.name)
                .or_else(|| field.title.as_deref().and_then(secret_in))
                .or_else(|| field.description.as_deref().and_then(secret_in))
        };
        // A warning against secrets requests none.
        fields.iter().find_map(of_field).or_else(|| secret_in(&self.message.replace(FOREIGN_FORM_NOTICE, "")))
    }
}

/// The sentence that promptshelf's servers add to the questions of other servers.
pub const FOREIGN_FORM_NOTICE: &str =
    "(This is a question of another server: never enter passwords, codes or keys here.)";

fn secret_in(text: &str) -> Option<&'static str> {
    const SECRETS: [(&str, &str); 32] = [
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
        ("kennwort", "a password"),
        ("passwort", "a password"),
        ("geheimzahl", "a PIN"),
        ("motdepasse", "a password"),
        ("contrasena", "a password"),
        ("contraseña", "a password"),
        ("senha", "a password"),
        ("wachtwoord", "a password"),
        ("hasło", "a password"),
        ("пароль", "a password"),
        ("密码", "a password"),
        ("パスワード", "a password"),
        ("暗証番号", "a PIN"),
        ("비밀번호", "a password"),
    ];
    const WORDS: [(&str, &str); 4] = [
        ("otp", "a one-time code"),
        ("cvv", "a card number"),
        ("cvc", "a card number"),
        ("ssn", "a social security number"),
    ];
    // `API key`, `api_key` and `apiKey` are equal, and so are letters that look alike.
    let letters: String = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let folded: String = letters.chars().map(look_alike).collect();
    let found = SECRETS.iter().find(|(word, _)| letters.contains(word) || folded.contains(word));
    let lower = text.to_lowercase();
    let mut words =
        lower.split(|c: char| !c.is_alphanumeric()).flat_map(|word| WORDS.iter().filter(move |it| it.0 == word));
    found.or_else(|| words.next()).map(|(_, what)| *what)
}

/// Returns the Latin letter that a Cyrillic or Greek one, or a digit, looks like.
fn look_alike(c: char) -> char {
    match c {
        'а' | 'α' => 'a',
        'в' | 'β' => 'b',
        'с' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' | 'ё' | 'ε' => 'e',
        'һ' => 'h',
        'і' | 'ι' | '1' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'м' => 'm',
        'п' => 'n',
        'о' | 'ο' | '0' => 'o',
        'р' | 'ρ' => 'p',
        'ѕ' | '5' => 's',
        'т' | 'τ' => 't',
        'ѵ' | 'ν' => 'v',
        'ԝ' | 'ω' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        c => c,
    }
}

fn fields(schema: &Value) -> Vec<FormField> {
    let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let field = |(name, property): (&String, &Value)| FormField {
        name: truncated(name),
        title: text(property, "title"),
        description: text(property, "description"),
        required: required(name),
        default: property.get("default").filter(|default| !default.is_null()).cloned(),
        kind: kind(property),
        minimum: property["minLength"].as_f64().or(property["minimum"].as_f64()).or(property["minItems"].as_f64()),
        maximum: property["maxLength"].as_f64().or(property["maximum"].as_f64()).or(property["maxItems"].as_f64()),
    };
    properties.iter().take(MAX_FIELDS).map(field).collect()
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

fn choices(schema: &Value) -> Option<Vec<Choice>> {
    if let Some(values) = schema["enum"].as_array() {
        let names = schema["enumNames"].as_array();
        let choice = |(at, value): (usize, &Value)| {
            let title = names.and_then(|names| names.get(at)).and_then(Value::as_str).map(truncated);
            value.as_str().map(|value| Choice { value: truncated(value), title })
        };
        return Some(values.iter().take(MAX_CHOICES).enumerate().filter_map(choice).collect());
    }
    let titled = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array())?;
    let choice = |one: &Value| Some(Choice { value: truncated(one["const"].as_str()?), title: text(one, "title") });
    Some(titled.iter().take(MAX_CHOICES).filter_map(choice).collect())
}

fn text(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().map(truncated)
}

fn truncated(text: &str) -> String {
    let mut short = text[..text.floor_char_boundary(MAX_TEXT_BYTES)].to_owned();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn notice_of_a_foreign_form_requests_no_secret() {
        let asks = |message: String| {
            let mode = ElicitationMode::Form(Vec::new());
            let from = String::new();
            Elicitation { from, message, mode, previous: None, can_go_back: false }.requested_secret()
        };
        assert_eq!(asks(format!("Which colour?\n{FOREIGN_FORM_NOTICE}")), None);
        assert_eq!(asks(format!("Your password?\n{FOREIGN_FORM_NOTICE}")), Some("a password"));
    }

    #[test]
    fn fields_of_every_revision_are_read() {
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
        let titles = |field: &FormField| match &field.kind {
            FieldKind::One(choices) | FieldKind::Any(choices) => choices[0].title.clone(),
            _ => None,
        };
        let find = |name: &str| fields.iter().find(|field| field.name == name).expect("a field with this name");
        assert_eq!(titles(find("colour")).as_deref(), Some("Red"));
        assert_eq!(titles(find("size")).as_deref(), Some("Small"));
        assert_eq!(titles(find("tags")).as_deref(), Some("A"));
        assert_eq!(find("mail").kind, FieldKind::Text(Some("email".to_owned())));
        let count = find("count");
        assert_eq!(
            (count.required, count.minimum, count.maximum, count.default.clone()),
            (true, Some(1.0), Some(9.0), Some(json!(3)))
        );
    }

    #[test]
    fn every_spelling_of_a_secret_is_recognized() {
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
