//! The printed form of values, filters that insert them safely, and limits for filters that enlarge them.
//!
//! Text is printed as it is, missing values as nothing, `true` and `4` in their usual form, lists and mappings as JSON.
//! The engine's default, `True` and `{'a': None}`, is Python's notation.

use std::{
    borrow::Cow,
    fmt::{self, Write},
    io,
};

use minijinja::{
    Environment, Error, ErrorKind, Output, State, Value, filters as engine,
    value::{Kwargs, Rest, ValueKind, ValueOrKwargs, from_args},
};

use super::{
    builtins::Misfit,
    meter::{CHARACTER, ITEM, left, spend, spend_deep, spend_text},
    operators::settled,
};

/// The most items of a list that a filter creates, or of one of its items.
const MAX_ITEMS: usize = 100_000;

/// Bytes that are created before they are counted together.
const PORTION: usize = 1 << 16;

pub(super) fn add_to(environment: &mut Environment<'static>, misfit: Misfit) {
    for (name, filter) in [
        ("fence", Value::from_function(fence)),
        ("xml", Value::from_function(xml)),
        ("quote", Value::from_function(quote)),
        ("json", Value::from_function(json)),
        ("tojson", Value::from_function(json)),
        ("replace", Value::from_function(replace)),
        ("indent", Value::from_function(indent)),
        ("join", Value::from_function(join)),
        ("batch", Value::from_function(batch)),
        ("slice", Value::from_function(slice)),
        ("string", Value::from_function(string)),
    ] {
        environment.add_filter(name, misfit.filter(move |state, _, values| filter.call(state, values)));
    }
}

/// `{{ code | fence("rust") }}`: a Markdown code block (CommonMark, section 4.5). Its fence is longer than any run of
/// backticks in the value, so that the value cannot close it. A missing value gives an empty text.
fn fence(state: &mut State<'_, '_>, value: &Value, language: Option<&Value>) -> Result<String, Error> {
    if value.is_undefined() || value.is_none() {
        return Ok(String::new());
    }
    let body = text(state, value)?;
    let longest = body.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    spend_text(state, body.len().saturating_mul(CHARACTER as usize).saturating_add(2 * longest))?;
    let fence = "`".repeat(longest.max(2) + 1);
    // A language of several words, or one with a backtick, would break the opening line.
    let language = language.map(|language| text(state, language)).transpose()?.unwrap_or_default();
    let language = language.split(|c: char| c.is_whitespace() || c == '`').next().unwrap_or_default();
    let newline = if body.ends_with('\n') { "" } else { "\n" };
    Ok(format!("{fence}{language}\n{body}{newline}{fence}"))
}

/// `{{ notes | xml("notes") }}`: the value between `<notes>` and `</notes>`. End tags inside the value are escaped,
/// so that the value cannot close the element.
fn xml(state: &mut State<'_, '_>, value: &Value, tag: &str) -> Result<String, Error> {
    let is_name = tag.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && tag.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if !is_name {
        return Err(Error::new(ErrorKind::InvalidOperation, format!("invalid name of an XML element: `{tag}`")));
    }
    if value.is_undefined() || value.is_none() {
        return Ok(String::new());
    }
    let body = text(state, value)?;
    spend_text(state, body.len())?;
    Ok(format!("<{tag}>\n{}\n</{tag}>", defuse(&body, tag).trim_end_matches('\n')))
}

/// Escapes the `<` of everything that resembles an end tag of `tag`, in any letter case and with white space that
/// people or models overlook.
fn defuse(body: &str, tag: &str) -> String {
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(open) = rest.find('<') {
        out.push_str(&rest[..open]);
        let after = rest[open + 1..].trim_start();
        let is_end = after.strip_prefix('/').map(str::trim_start).is_some_and(|name| {
            name.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag))
                && !name[tag.len()..].starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
        });
        out.push_str(if is_end { "&lt;" } else { "<" });
        rest = &rest[open + 1..];
    }
    out.push_str(rest);
    out
}

/// `{{ message | quote }}`: a Markdown block quotation, every line after `> `. A lone carriage return ends a line,
/// too (CommonMark, section 2.1).
fn quote(state: &mut State<'_, '_>, value: &Value) -> Result<String, Error> {
    let body = text(state, value)?.replace("\r\n", "\n").replace('\r', "\n");
    spend_text(state, body.len().saturating_mul(3))?;
    let lines = body.lines().map(|line| if line.is_empty() { ">".to_owned() } else { format!("> {line}") });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// `{{ value | json }}`: the value as JSON. `indent=2` formats it on several lines.
fn json(state: &mut State<'_, '_>, value: &Value, kwargs: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = kwargs.get("indent")?;
    kwargs.assert_all_used()?;
    as_json(state, value, indent.is_some())
}

/// `{{ value | string }}`: the value as text.
fn string(state: &mut State<'_, '_>, value: &Value) -> Result<String, Error> {
    let text = text(state, value)?;
    spend_text(state, text.len())?;
    Ok(text.into_owned())
}

/// The engine's `replace` with a limit, because the lengths of two values could multiply.
fn replace(state: &mut State<'_, '_>, value: &Value, from: &str, to: &str) -> Result<String, Error> {
    let body = text(state, value)?;
    if from.is_empty() {
        return Err(Error::new(ErrorKind::InvalidOperation, "cannot replace an empty string"));
    }
    let growth = to.len().saturating_sub(from.len()).saturating_mul(body.matches(from).count());
    spend_text(state, body.len().saturating_mul(CHARACTER as usize).saturating_add(growth))?;
    Ok(body.replace(from, to))
}

/// The engine's `indent` with a limit.
fn indent(state: &mut State<'_, '_>, value: &Value, arguments: Rest<ValueOrKwargs>) -> Result<String, Error> {
    let arguments = arguments.into_values();
    let (positional, kwargs): (&[Value], Kwargs) = from_args(&arguments)?;
    let (width, first, blank): (Option<usize>, Option<bool>, Option<bool>) = from_args(positional)?;
    let width = width.map_or_else(|| kwargs.get("width"), |width| Ok(Some(width)))?.unwrap_or(4);
    let first = first.map_or_else(|| kwargs.get("first"), |first| Ok(Some(first)))?.unwrap_or(false);
    let blank = blank.map_or_else(|| kwargs.get("blank"), |blank| Ok(Some(blank)))?.unwrap_or(false);
    kwargs.assert_all_used()?;
    let body = text(state, value)?;
    let lines = body.split('\n').count();
    spend_text(state, body.len().saturating_add(width.saturating_mul(lines)))?;
    let margin = " ".repeat(width);
    let mut out = String::with_capacity(body.len());
    for (index, line) in body.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        if (index > 0 || first) && (blank || !line.trim().is_empty()) {
            out.push_str(&margin);
        }
        out.push_str(line);
    }
    Ok(out)
}

/// `{{ tags | join(", ") }}`: the items, or one attribute of each, as text.
fn join(
    state: &mut State<'_, '_>,
    value: &Value,
    joiner: Option<&str>,
    attribute: Option<&str>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let joiner = joiner.map_or_else(|| kwargs.get("d"), |joiner| Ok(Some(joiner)))?.unwrap_or_default();
    let attribute = attribute.map_or_else(|| kwargs.get("attribute"), |attribute| Ok(Some(attribute)))?;
    kwargs.assert_all_used()?;
    let mut joined = String::new();
    if value.is_undefined() {
        return Ok(joined);
    }
    // Counted in portions: most items are short.
    let mut uncounted = 0;
    for (index, item) in value.try_iter()?.enumerate() {
        let item = attribute.map_or_else(|| Ok(item.clone()), |attribute| item.get_attr(attribute))?;
        let item = text(state, &item)?;
        let joint = if index > 0 { joiner } else { "" };
        uncounted += joint.len() + item.len() + ITEM as usize;
        if uncounted >= PORTION {
            spend_text(state, std::mem::take(&mut uncounted))?;
        }
        joined.push_str(joint);
        joined.push_str(&item);
    }
    spend_text(state, uncounted)?;
    Ok(joined)
}

/// The engine's `batch` with a limit: it pads the last batch to any length.
fn batch(state: &mut State<'_, '_>, value: Value, count: usize, fill_with: Option<Value>) -> Result<Value, Error> {
    visited(state, &value)?;
    let batches = engine::batch(state, value, few(count)?, fill_with)?;
    settled(state, batches)
}

/// The engine's `slice` with a limit.
fn slice(state: &mut State<'_, '_>, value: Value, count: usize, fill_with: Option<Value>) -> Result<Value, Error> {
    visited(state, &value)?;
    let slices = engine::slice(state, value, few(count)?, fill_with)?;
    settled(state, slices)
}

fn visited(state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    spend(state, (value.len().unwrap_or(0) as u64).saturating_mul(2 * ITEM))
}

fn few(count: usize) -> Result<usize, Error> {
    if count > MAX_ITEMS {
        return Err(Error::new(ErrorKind::OutOfFuel, format!("a list of {MAX_ITEMS} items")));
    }
    Ok(count)
}

/// Prints a value; replaces the engine's formatter.
pub(super) fn print(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    metered(out, state, value)
}

pub(super) fn text<'v>(state: &mut State<'_, '_>, value: &'v Value) -> Result<Cow<'v, str>, Error> {
    if let Some(text) = value.as_str() {
        return Ok(Cow::Borrowed(text));
    }
    let mut text = String::new();
    metered(&mut text, state, value)?;
    Ok(Cow::Owned(text))
}

/// Returns a value as JSON; `null` for a missing one.
fn as_json(state: &mut State<'_, '_>, value: &Value, is_pretty: bool) -> Result<String, Error> {
    let mut text = String::new();
    let null = Value::from(());
    let value = if value.is_undefined() { &null } else { value };
    visit(state, value)?;
    let mut into = Metered { into: &mut text, left: left(state), written: 0 };
    let written = if is_pretty {
        serde_json::to_writer_pretty(&mut into, value)
    } else {
        serde_json::to_writer(&mut into, value)
    };
    // Each character is looked at before it is written.
    let bytes = into.written.saturating_mul(CHARACTER as usize);
    spend_text(state, bytes)?;
    written.map_err(|error| Error::new(ErrorKind::InvalidOperation, format!("cannot be written as JSON: {error}")))?;
    Ok(text)
}

fn metered(into: &mut impl Write, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    if let Some(text) = value.as_str() {
        spend_text(state, text.len())?;
        return Ok(into.write_str(text)?);
    }
    visit(state, value)?;
    let mut into = Metered { into, left: left(state), written: 0 };
    let written = write_value(&mut into, value);
    let bytes = into.written;
    spend_text(state, bytes)?;
    written
}

/// Counts the visit of all items, and rejects a value whose depth would overflow the stack.
fn visit(state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match value.as_object() {
        Some(_) => spend_deep(state, value, 2),
        None => Ok(()),
    }
}

fn write_value(into: &mut Metered<'_, impl Write>, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => {}
        ValueKind::Bool => into.write_str(if value.is_true() { "true" } else { "false" })?,
        ValueKind::Number if !value.is_integer() => write!(into, "{}", f64::try_from(value.clone())?)?,
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => serde_json::to_writer(into, value)
            .map_err(|error| Error::new(ErrorKind::InvalidOperation, format!("cannot be printed: {error}")))?,
        _ => write!(into, "{value}")?,
    }
    Ok(())
}

/// Stops at the limit: a short list can contain one long text many times.
struct Metered<'w, W> {
    into: &'w mut W,
    left: u64,
    written: usize,
}

impl<W: Write> Write for Metered<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.written += text.len();
        if self.written as u64 >= self.left {
            return Err(fmt::Error);
        }
        self.into.write_str(text)
    }
}

impl<W: Write> io::Write for Metered<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        self.write_str(text).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(expression: &str, value: impl Into<Value>) -> Result<String, Error> {
        let mut environment = Environment::new();
        environment.set_fuel(Some(1_000));
        add_to(&mut environment, Misfit::Fails);
        environment.render_str(expression, Value::from_pairs([("value", value.into())]))
    }

    #[test]
    fn fence_is_longer_than_any_in_the_value() {
        let fenced = filtered("{{ value | fence('rust') }}", "a ```` b").expect("renders");
        assert_eq!(fenced, "`````rust\na ```` b\n`````");
        assert_eq!(filtered("{{ value | fence('a`b c') }}", "x\n").expect("renders"), "```a\nx\n```");
        assert_eq!(filtered("{{ nothing | fence }}", "x").expect("renders"), "");
    }

    #[test]
    fn value_cannot_close_its_element() {
        let body = "a </note> b </ NOTE > c </notes> d < /note\t>";
        let wrapped = filtered("{{ value | xml('note') }}", body).expect("renders");
        assert_eq!(wrapped, "<note>\na &lt;/note> b &lt;/ NOTE > c </notes> d &lt; /note\t>\n</note>");
        assert!(filtered("{{ value | xml('a b') }}", "x").is_err());
    }

    #[test]
    fn quote_covers_every_line_ending() {
        assert_eq!(filtered("{{ value | quote }}", "a\n\nb\rc\r\nd").expect("renders"), "> a\n>\n> b\n> c\n> d");
    }

    #[test]
    fn indent_takes_the_engines_arguments() {
        for (expression, expected) in [
            ("{{ value | indent }}", "a\n\n    b"),
            ("{{ value | indent(2, true) }}", "  a\n\n  b"),
            ("{{ value | indent(width=1, blank=true) }}", "a\n \n b"),
            ("{{ value | indent(1, false, true) }}", "a\n \n b"),
        ] {
            assert_eq!(filtered(expression, "a\n\nb").expect("renders"), expected, "{expression}");
        }
    }

    #[test]
    fn growth_is_bounded() {
        let long = "a".repeat(1 << 16);
        for expression in [
            "{{ value | replace('a', value) }}",
            "{{ '' | indent(9999999999999) }}",
            "{{ 'x' | indent(9999999999999) }}",
            "{{ ([value] * 1000) | join }}",
            "{{ value | join(value) }}",
            "{{ [1] | batch(999999999, 'x') }}",
            "{{ [1] | slice(999999999) }}",
        ] {
            let error = filtered(expression, long.as_str()).expect_err(expression);
            assert_eq!(error.kind(), ErrorKind::OutOfFuel, "{expression}: {error}");
        }
        assert_eq!(filtered("{{ value | replace('X', '-') }}", "aXa").expect("renders"), "a-a");
    }
}
