//! The printed form of values.
//!
//! Text as it is; nothing for missing values; `true` and `4` in their usual form; lists and mappings as JSON. The
//! engine's default, `True` and `{'a': None}`, is Python's notation.

use std::{
    borrow::Cow,
    fmt::{self, Write},
    io,
};

use minijinja::{Error, ErrorKind, Output, State, Value, value::ValueKind};

use super::meter;

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
pub(super) fn json(state: &mut State<'_, '_>, value: &Value, is_pretty: bool) -> Result<String, Error> {
    let mut text = String::new();
    let null = Value::from(());
    let value = if value.is_undefined() { &null } else { value };
    visit(state, value)?;
    let mut into = Metered { into: &mut text, left: meter::left(state), written: 0 };
    let written = match is_pretty {
        true => serde_json::to_writer_pretty(&mut into, value),
        false => serde_json::to_writer(&mut into, value),
    };
    // Each character is looked at before it is written.
    let bytes = into.written.saturating_mul(meter::CHARACTER as usize);
    meter::spend_text(state, bytes)?;
    written.map_err(|error| Error::new(ErrorKind::InvalidOperation, format!("cannot be written as JSON: {error}")))?;
    Ok(text)
}

fn metered(into: &mut impl Write, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    visit(state, value)?;
    let mut into = Metered { into, left: meter::left(state), written: 0 };
    let written = write_value(&mut into, value);
    let bytes = into.written;
    meter::spend_text(state, bytes)?;
    written
}

/// Counts the visit of all items, and rejects a value whose depth would overflow the stack.
fn visit(state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match value.as_object() {
        Some(_) => meter::spend_deep(state, value, 2),
        None => Ok(()),
    }
}

fn write_value(into: &mut Metered<'_, impl Write>, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => {}
        ValueKind::String => into.write_str(value.as_str().unwrap_or_default())?,
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
