//! Binding of a call: its strings are validated against the arguments of a prompt, all at once.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
};

use foldhash::fast::RandomState;

use super::checked::Argument;
use crate::{
    diagnostic::nearest,
    interrupt::{Interrupt, bounded},
    invisible::named,
    value::{Bindings, Value, Variables},
};

/// The largest number of bytes of a caller's text that an error repeats.
const ECHO_BYTES: usize = 64;

const MAX_UNKNOWN: usize = 20;

/// The arguments of a call: names and values, in the order of the request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawArguments<'a>(Vec<(Cow<'a, str>, RawArgumentValue<'a>)>);

/// One value of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum RawArgumentValue<'a> {
    /// A string, as the protocol requires.
    Text(Cow<'a, str>),
    /// Another JSON value, as it was sent; also a string that is not Unicode.
    Other(Cow<'a, str>),
}

impl RawArgumentValue<'_> {
    /// Returns the JSON type in words, such as `number`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            RawArgumentValue::Text(_) => "string",
            RawArgumentValue::Other(json) => match json.as_bytes().first() {
                Some(b'"') => "string that is not Unicode",
                Some(b'{') => "object",
                Some(b'[') => "array",
                Some(b't' | b'f') => "boolean",
                Some(b'n') => "null",
                _ => "number",
            },
        }
    }
}

impl<'a> FromIterator<(Cow<'a, str>, RawArgumentValue<'a>)> for RawArguments<'a> {
    fn from_iter<I: IntoIterator<Item = (Cow<'a, str>, RawArgumentValue<'a>)>>(values: I) -> RawArguments<'a> {
        RawArguments(values.into_iter().collect())
    }
}

impl<'a> RawArguments<'a> {
    /// Creates an empty list.
    #[must_use]
    pub const fn new() -> RawArguments<'a> {
        RawArguments(Vec::new())
    }

    /// Adds a value. If a name occurs twice, the last value is used, as JSON readers agree on.
    pub fn push(&mut self, name: impl Into<Cow<'a, str>>, value: RawArgumentValue<'a>) {
        self.0.push((name.into(), value));
    }

    /// Returns the value of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RawArgumentValue<'a>> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn by_name(&self) -> HashMap<&str, &RawArgumentValue<'a>, RandomState> {
        self.iter().collect()
    }

    /// Copies the values, for another thread.
    #[must_use]
    pub fn into_owned(self) -> RawArguments<'static> {
        let owned = |(name, value): (Cow<'a, str>, RawArgumentValue<'a>)| {
            let value = match value {
                RawArgumentValue::Text(text) => RawArgumentValue::Text(Cow::Owned(text.into_owned())),
                RawArgumentValue::Other(json) => RawArgumentValue::Other(Cow::Owned(json.into_owned())),
            };
            (Cow::Owned(name.into_owned()), value)
        };
        RawArguments(self.0.into_iter().map(owned).collect())
    }

    /// Returns the number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a name has a value. An empty text means "not set", as a blank field of a form.
    pub(crate) fn has_value(&self, name: &str) -> bool {
        match self.get(name) {
            Some(RawArgumentValue::Text(text)) => !text.is_empty(),
            Some(RawArgumentValue::Other(_)) => true,
            None => false,
        }
    }

    /// Iterates over the names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    /// Iterates over all names and values, in the order of the request. A name that occurs twice is returned twice.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawArgumentValue<'a>)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }
}

impl<'a> From<&'a Variables> for RawArguments<'a> {
    fn from(variables: &'a Variables) -> RawArguments<'a> {
        let text = |(name, value): (&'a String, &'a String)| {
            (Cow::Borrowed(name.as_str()), RawArgumentValue::Text(Cow::Borrowed(value.as_str())))
        };
        RawArguments(variables.iter().map(text).collect())
    }
}

impl<'a, N: Into<Cow<'a, str>>, V: Into<Cow<'a, str>>> FromIterator<(N, V)> for RawArguments<'a> {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> RawArguments<'a> {
        RawArguments(
            pairs.into_iter().map(|(name, value)| (name.into(), RawArgumentValue::Text(value.into()))).collect(),
        )
    }
}

/// One invalid or missing value of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The argument.
    pub argument: String,
    /// The problem, as the rest of a sentence that begins with the argument's name.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.argument, self.reason)
    }
}

/// Validates the values of a call and fills in defaults. `value_bytes` limits each value.
///
/// - An absent argument and, for an optional one, an empty string mean "not set": common clients send `""` for every
///   field left blank.
/// - For a required argument an empty string is a value like any other.
/// - Values for arguments that the prompt does not have are ignored; see [`Prompt::unknown_arguments`](crate::Prompt::unknown_arguments).
/// - Invisible characters are kept, removed or rejected, by the policy of the argument or else of the library.
/// - A value that is one bare placeholder, `$1` to `$9` or `$ARGUMENTS`, is accepted unchanged: such a client fills
///   the placeholder in afterwards, by itself.
///
/// # Errors
///
/// Every problem of the call, in the order of the arguments.
pub fn bind(arguments: &[Argument], raw: &RawArguments<'_>, value_bytes: usize) -> Result<Bindings, Vec<Problem>> {
    bind_all(arguments, raw, value_bytes, |argument, bindings| {
        argument.is_indispensable() && argument.applies(bindings)
    })
}

/// Validates the values of a call before any form is shown: reports each problem that no answer can solve.
pub(crate) fn check_before_forms(
    arguments: &[Argument],
    raw: &RawArguments<'_>,
    value_bytes: usize,
) -> Result<(), Vec<Problem>> {
    let asked = arguments.iter().filter(|other| other.is_asked() && !raw.has_value(other.name()));
    let asked: HashSet<&str> = asked.map(Argument::name).collect();
    let is_answered_later = |name: &String| asked.contains(name.as_str());
    // A condition on an answer is not decided yet.
    let is_decided = |argument: &Argument| {
        argument.condition.as_ref().is_none_or(|condition| !condition.names().iter().any(is_answered_later))
    };
    bind_all(arguments, raw, value_bytes, |argument, bindings| {
        argument.required() && is_decided(argument) && argument.applies(bindings)
    })
    .map(drop)
}

/// Validates all values. `is_due` decides whether an argument without a value is a problem.
fn bind_all(
    arguments: &[Argument],
    raw: &RawArguments<'_>,
    value_bytes: usize,
    is_due: impl Fn(&Argument, &Bindings) -> bool,
) -> Result<Bindings, Vec<Problem>> {
    bounded(Interrupt::brief, || {
        let values = raw.by_name();
        let mut unknown = None;
        let mut bindings = Bindings(Vec::with_capacity(arguments.len()));
        let mut problems = Vec::new();
        for argument in arguments {
            match argument.bind(values.get(argument.name()).copied(), &bindings, value_bytes) {
                Ok(Some(value)) => bindings.0.push((argument.name().to_owned(), value)),
                Ok(None) if is_due(argument, &bindings) => {
                    let unknown = unknown.get_or_insert_with(|| unknown_names(arguments, raw));
                    problems.push(argument.problem(missing(argument, unknown)));
                }
                Ok(None) => {}
                Err(reason) => problems.push(argument.problem(reason)),
            }
        }
        if problems.is_empty() { Ok(bindings) } else { Err(problems) }
    })
}

/// Returns a problem for each name of a call that the prompt does not have, at most 20, with the most similar argument.
pub(crate) fn unknown(arguments: &[Argument], raw: &RawArguments<'_>) -> Vec<Problem> {
    let problem = |name: &str| {
        let shown = named(&name[..name.floor_char_boundary(ECHO_BYTES)]).into_owned();
        let known = arguments.iter().map(Argument::name);
        let help = match nearest(&shown, known.clone()) {
            Some(similar) => format!("did you mean `{similar}`?"),
            None if arguments.is_empty() => "it has none".to_owned(),
            None => format!(
                "it has {}",
                known.take(MAX_UNKNOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            ),
        };
        Problem { argument: shown, reason: format!("is not an argument of this prompt; {help}") }
    };
    unknown_names(arguments, raw).into_iter().map(problem).collect()
}

/// Returns the first names of a call that the prompt does not have.
fn unknown_names<'r>(arguments: &[Argument], raw: &'r RawArguments<'_>) -> Vec<&'r str> {
    let known: HashSet<&str> = arguments.iter().map(Argument::name).collect();
    raw.names().filter(|name| !known.contains(name)).take(MAX_UNKNOWN).collect()
}

impl Argument {
    /// Returns the value of the call, or the default; `None` if neither exists. An argument whose condition is false
    /// has no default.
    fn bind(
        &self,
        value: Option<&RawArgumentValue<'_>>,
        known: &Bindings,
        value_bytes: usize,
    ) -> Result<Option<Value>, String> {
        match value {
            Some(other @ RawArgumentValue::Other(_)) => Err(format!("must be a string, got a JSON {}", other.kind())),
            Some(RawArgumentValue::Text(text)) => match &*self.sanitized(text, value_bytes)? {
                "" if !self.required() => Ok(self.default_for(known)),
                text => self.parse_sanitized(text).map(Some),
            },
            None => Ok(self.default_for(known)),
        }
    }

    fn default_for(&self, known: &Bindings) -> Option<Value> {
        self.default.as_deref().cloned().filter(|_| self.applies(known))
    }

    /// Applies the length limit and the policy for invisible characters. This is the only function that decides about
    /// them.
    fn sanitized<'t>(&self, text: &'t str, value_bytes: usize) -> Result<Cow<'t, str>, String> {
        if text.len() > value_bytes {
            return Err(format!("is longer than {value_bytes} bytes"));
        }
        self.invisible.apply(text)
    }

    /// Parses a text that passed `sanitized`. JSON escapes can spell invisible characters, so the policy is applied to
    /// the parsed strings again.
    fn parse_sanitized(&self, text: &str) -> Result<Value, String> {
        if is_placeholder(text) {
            return Ok(Value::Text(Arc::from(text)));
        }
        match self.parser().parse(text)? {
            Value::List(items) => {
                let sanitized = items.iter().map(|item| self.invisible.apply(item)).collect::<Result<Vec<_>, _>>()?;
                // The author's constraints on items apply to the text without invisible characters.
                if sanitized.iter().zip(&items).any(|(after, before)| *after != *before) {
                    return self.parser().parse(&serde_json::Value::from(sanitized).to_string());
                }
                Ok(Value::List(items))
            }
            Value::Json(value) => self.let_json_in(value).map(Value::Json),
            other => Ok(other),
        }
    }

    fn let_json_in(&self, value: serde_json::Value) -> Result<serde_json::Value, String> {
        use serde_json::Value;
        Ok(match value {
            Value::String(text) => Value::String(self.invisible.apply(&text)?.into_owned()),
            Value::Array(items) => {
                Value::Array(items.into_iter().map(|item| self.let_json_in(item)).collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let member = |(key, value): (String, Value)| {
                    Ok((self.invisible.apply(&key)?.into_owned(), self.let_json_in(value)?))
                };
                Value::Object(members.into_iter().map(member).collect::<Result<_, String>>()?)
            }
            other => other,
        })
    }

    fn problem(&self, reason: String) -> Problem {
        Problem { argument: self.name().to_owned(), reason }
    }

    pub(crate) fn check(&self, text: &str, value_bytes: usize) -> Result<(), Problem> {
        let checked = self.sanitized(text, value_bytes).and_then(|text| self.parse_sanitized(&text));
        checked.map(drop).map_err(|reason| self.problem(reason))
    }

    pub(crate) fn missing(&self) -> Problem {
        self.problem(missing(self, &[]))
    }

    /// Describes the argument for a caller who sends it instead of answering a form.
    pub(crate) fn described(&self) -> Problem {
        if self.is_indispensable() { self.missing() } else { self.problem(described("is optional", self)) }
    }

    /// Parses a value as this argument's type; `None` if it is invalid.
    #[must_use]
    pub fn parsed(&self, text: &str) -> Option<Value> {
        self.parser().parse(text).ok()
    }
}

pub(crate) fn bind_leniently(arguments: &[Argument], raw: &RawArguments<'_>) -> Bindings {
    let values = raw.by_name();
    let mut known = Bindings::default();
    for argument in arguments {
        if let Ok(Some(value)) = argument.bind(values.get(argument.name()).copied(), &known, usize::MAX) {
            known.0.push((argument.name().to_owned(), value));
        }
    }
    known
}

fn is_placeholder(text: &str) -> bool {
    matches!(text.as_bytes(), [b'$', b'1'..=b'9']) || text == "$ARGUMENTS"
}

/// Returns the message for a missing required argument: its description, its allowed values, and a misspelt name that
/// may have been meant for it.
fn missing(argument: &Argument, unknown: &[&str]) -> String {
    let mut reason = described("is required", argument);
    if let Some(unknown) = nearest(argument.name(), unknown.iter().copied()) {
        let unknown = &unknown[..unknown.floor_char_boundary(ECHO_BYTES)];
        reason.push_str(&format!("; did you misspell it as `{}`?", named(unknown)));
    }
    reason
}

fn described(begin: &str, argument: &Argument) -> String {
    let mut text = begin.to_owned();
    if let Some(description) = argument.description() {
        text.push_str(&format!(" ({description})"));
    }
    if let Some(expectation) = argument.parser().expectation() {
        text.push_str(&format!("; it must be {expectation}"));
    }
    text
}
