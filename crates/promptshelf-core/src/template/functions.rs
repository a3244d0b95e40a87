//! The functions `role`, `attach`, `link` and `prompt`, which create structure.

use std::borrow::Cow;

use minijinja::{
    Environment, Error, ErrorKind, State, Value,
    value::{Kwargs, ValueKind},
};

use super::{Attach, Call, Directive, Link, Sentinels, filters::text};
use crate::{
    content::{Annotations, MimeType, Role},
    uri_template::label_fault,
    value::Variables,
};

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_function("role", role);
    environment.add_function("attach", attach);
    environment.add_function("link", link);
    environment.add_function("prompt", prompt);
    environment.add_function("range", range);
}

const MAX_RANGE: u64 = 100_000;

const MAX_NUMBER: u64 = 1 << 30;

pub(super) fn keywords(function: &str) -> &'static [&'static str] {
    match function {
        "role" => &["audience", "priority"],
        "attach" => &["uri", "mime", "audience", "priority"],
        "link" => &["name", "title", "description", "mime", "audience", "priority"],
        _ => &[],
    }
}

fn role(state: &mut State<'_, '_>, role: &str, kwargs: Kwargs) -> Result<String, Error> {
    let role = Role::parse(role)
        .ok_or_else(|| invalid(format!("unknown role `{}`: expected \"user\" or \"assistant\"", shortened(role))))?;
    let annotations = annotations(&kwargs)?;
    Sentinels::put(state, Directive::Role { role, annotations })
}

fn attach(state: &mut State<'_, '_>, target: &Value, kwargs: Kwargs) -> Result<String, Error> {
    let mark = Attach {
        target: text(state, target)?.into_owned(),
        uri: word(state, &kwargs, "uri")?,
        mime: word(state, &kwargs, "mime")?,
        annotations: annotations(&kwargs)?,
    };
    Sentinels::put(state, Directive::Attach(mark))
}

fn link(state: &mut State<'_, '_>, target: &Value, kwargs: Kwargs) -> Result<String, Error> {
    let mark = Link {
        target: text(state, target)?.into_owned(),
        name: word(state, &kwargs, "name")?,
        title: word(state, &kwargs, "title")?,
        description: word(state, &kwargs, "description")?,
        mime: word(state, &kwargs, "mime")?,
        annotations: annotations(&kwargs)?,
    };
    Sentinels::put(state, Directive::Link(mark))
}

/// Returns a keyword argument as text; `None` if it was left out.
fn word(state: &mut State<'_, '_>, kwargs: &Kwargs, name: &str) -> Result<Option<String>, Error> {
    let value = kwargs.get::<Option<Value>>(name)?.filter(|value| !value.is_undefined() && !value.is_none());
    value.map(|value| text(state, &value).map(Cow::into_owned)).transpose()
}

fn prompt(state: &mut State<'_, '_>, name: &str, kwargs: Kwargs) -> Result<String, Error> {
    let mut arguments = Variables::new();
    let keys: Vec<String> = kwargs.args().map(str::to_owned).collect();
    for key in keys {
        if let Some(value) = sent(&kwargs.get::<Value>(&key)?) {
            arguments.insert(key, value);
        }
    }
    Sentinels::put(state, Directive::Prompt(Call { name: name.to_owned(), arguments }))
}

/// Returns a value as a caller would send it; `None` if it is undefined.
pub(crate) fn sent(value: &Value) -> Option<String> {
    match value.as_str() {
        Some(text) => Some(text.to_owned()),
        None if value.is_undefined() || value.is_none() => None,
        None => Some(serde_json::to_string(value).unwrap_or_else(|_| value.to_string())),
    }
}

/// The engine's `range`, restricted to numbers that cannot overflow.
fn range(lower: i64, upper: Option<i64>, step: Option<i64>) -> Result<Value, Error> {
    let mut numbers = [Some(lower), upper, step].into_iter().flatten();
    if numbers.any(|number| number.unsigned_abs() > MAX_NUMBER) {
        return Err(Error::new(ErrorKind::OutOfFuel, format!("a range up to {MAX_NUMBER}")));
    }
    let (from, to) = upper.map_or((0, lower), |upper| (lower, upper));
    let (distance, stride) = ((to - from).unsigned_abs(), step.unwrap_or(1).unsigned_abs());
    if distance > MAX_RANGE.saturating_mul(stride) {
        return Err(Error::new(ErrorKind::OutOfFuel, format!("a range of {MAX_RANGE} numbers")));
    }
    let small = |number: i64| isize::try_from(number).map_err(|error| invalid(error.to_string()));
    minijinja::functions::range(small(lower)?, upper.map(small).transpose()?, step.map(small).transpose()?)
}

/// Returns the error of a literal keyword argument, as far as its value alone shows it.
pub(super) fn fault(name: &str, value: &Value) -> Option<String> {
    let detail = |error: Error| error.detail().unwrap_or_default().to_owned();
    match name {
        "priority" => match f64::try_from(value.clone()) {
            Ok(number) => priority(number).err().map(detail),
            Err(_) => Some("`priority` must be a number between 0 and 1".into()),
        },
        "audience" => audiences(value).err().map(detail),
        "mime" => {
            let mime = value.as_str().and_then(MimeType::parse);
            mime.is_none().then(|| format!("invalid MIME type `{value}`: expected one such as \"text/markdown\""))
        }
        "uri" => value.as_str().map_or_else(|| Some("`uri` must be text".into()), label_fault),
        _ => None,
    }
}

/// Returns the annotations of a call. The check has reported literals that are none.
fn annotations(kwargs: &Kwargs) -> Result<Annotations, Error> {
    let given = kwargs.get::<Option<Value>>("priority")?.and_then(|value| f64::try_from(value).ok());
    let audience = kwargs.get::<Option<Value>>("audience")?.and_then(|roles| audiences(&roles).ok());
    let priority = given.and_then(|number| priority(number).ok());
    Ok(Annotations { audience: audience.unwrap_or_default(), priority, last_modified: None })
}

fn priority(number: f64) -> Result<f64, Error> {
    if (0.0..=1.0).contains(&number) {
        return Ok(number);
    }
    Err(invalid("`priority` must be between 0 and 1".into()))
}

fn audiences(roles: &Value) -> Result<Vec<Role>, Error> {
    match roles.kind() {
        ValueKind::Seq | ValueKind::Iterable => roles.try_iter()?.map(|one| audience(&one)).collect(),
        _ => Ok(vec![audience(roles)?]),
    }
}

fn audience(value: &Value) -> Result<Role, Error> {
    value
        .as_str()
        .and_then(Role::parse)
        .ok_or_else(|| invalid("`audience` must be \"user\", \"assistant\", or a list of them".into()))
}

fn invalid(detail: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail)
}

fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(40)]
}
