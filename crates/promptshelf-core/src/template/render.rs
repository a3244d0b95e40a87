//! One rendering within its budget, into pieces.

use std::io;

use minijinja::{Environment, Error, ErrorKind, Value};

use super::{
    meter::Meter,
    piece::{Piece, Remaining},
    sentinels::Sentinels,
};
use crate::{interrupt::Interrupt, render_error::RenderError};

pub(super) const MAIN: &str = "<prompt>";

pub(super) fn render_text<'n>(
    environment: &Environment<'_>,
    values: impl Iterator<Item = (&'n str, Value)>,
    left: &mut Remaining,
) -> Result<String, RenderError> {
    run(environment, values, 1_024, left).map(|(text, _)| text)
}

pub(super) fn render<'n>(
    environment: &Environment<'_>,
    values: impl Iterator<Item = (&'n str, Value)>,
    expected: usize,
    left: &mut Remaining,
) -> Result<Vec<Piece>, RenderError> {
    match run(environment, values, expected, left)? {
        (text, None) => Ok(vec![Piece::Text(text)]),
        (text, Some(marks)) => marks.cut(&text).ok_or_else(|| {
            RenderError::Failed(
                "a filter changed the result of role(), attach(), link() or prompt() before it was printed".into(),
            )
        }),
    }
}

/// `expected` is the estimated length of the output in bytes.
fn run<'n>(
    environment: &Environment<'_>,
    values: impl Iterator<Item = (&'n str, Value)>,
    expected: usize,
    left: &mut Remaining,
) -> Result<(String, Option<Sentinels>), RenderError> {
    let mut lean;
    let environment = match environment.fuel() {
        Some(whole) if whole != left.fuel => {
            lean = environment.clone();
            lean.set_fuel(Some(left.fuel));
            &lean
        }
        _ => environment,
    };
    let template = environment.get_template(MAIN).map_err(|error| failure(&error))?;
    let mut output = Bounded {
        bytes: Vec::with_capacity(expected.min(left.output_bytes)),
        limit: left.output_bytes,
        exceeded: false,
    };
    let meter = Meter::new(left.work_bytes, left.interrupt.clone());
    let context = Value::from_pairs(values.chain(std::iter::once(meter.variable())));
    let rendered = template.render_captured_to(context, &mut output);
    if left.interrupt.as_ref().is_some_and(Interrupt::is_set) {
        return Err(RenderError::Interrupted);
    }
    if output.exceeded {
        return Err(RenderError::OverBudget(format!("{} bytes of text", left.output_bytes)));
    }
    let mut rendered = rendered.map_err(|error| failure(&error))?;
    let (marks, fuel) = rendered.with_state_mut(|state| {
        let fuel = state.fuel_levels().map(|(_, remaining)| remaining);
        (state.get_extension_mut::<Sentinels>().map(Sentinels::take), fuel)
    });
    left.fuel = fuel.unwrap_or(left.fuel);
    left.work_bytes = meter.remaining();
    left.output_bytes = left.output_bytes.saturating_sub(output.bytes.len());
    let text = String::from_utf8(output.bytes).map_err(|error| RenderError::Failed(error.to_string()))?;
    Ok((text, marks))
}

fn failure(error: &Error) -> RenderError {
    // Each `include` wraps the error of a partial once.
    let mut error = error;
    while let Some(inside) = std::error::Error::source(error).and_then(|source| source.downcast_ref::<Error>()) {
        error = inside;
    }
    if error.kind() == ErrorKind::OutOfFuel {
        return RenderError::OverBudget(error.detail().unwrap_or("too many steps").to_owned());
    }
    let place = match (error.name(), error.line()) {
        (Some(name), Some(line)) if name == MAIN => format!(" (line {line} of the template)"),
        (Some(name), Some(line)) => format!(" (line {line} of {name})"),
        _ => String::new(),
    };
    RenderError::TemplateFailed(format!(
        "{}{place}",
        error.detail().map_or_else(|| error.kind().to_string(), str::to_owned)
    ))
}

struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
    exceeded: bool,
}

impl io::Write for &mut Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            self.exceeded = true;
            return Err(io::Error::other("the output is too large"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
