//! One template, compiled on first use and rendered within a budget.

use std::{
    fmt, io,
    ops::Range,
    sync::{Arc, OnceLock},
};

use minijinja::{Environment, Error, Value as JinjaValue};

use super::{
    compile_error::CompileError,
    environment::{self, to_jinja},
    meter::Meter,
    operators::{Charged, charged, limit},
    pieces::{Piece, Remaining, Sentinels},
};
use crate::{
    definition::Budget,
    diagnostic::SourceText,
    interrupt::Interrupt,
    render_error::RenderError,
    value::{Bindings, Variables},
};

/// The upper bound for nested includes, whatever the library's limit is: deeper nesting would overflow the stack of
/// the engine.
pub(crate) const MAX_INCLUDE_DEPTH: usize = 40;

/// A template with its partials. It is compiled when it is first rendered, because most prompts of a large library
/// never are.
pub(crate) struct Template {
    source: Arc<SourceText>,
    /// Bytes of the source.
    range: Range<usize>,
    partials: Box<[Arc<SourceText>]>,
    budget: Arc<Budget>,
    compiled: OnceLock<Box<Compiled>>,
}

struct Compiled {
    engine: Environment<'static>,
    /// The number of tokens in tags; `None` if some of them may run, or walk a value, any number of times.
    steps: Option<usize>,
    /// The most steps of the engine, so that those that repeat a text of the template cannot write too much.
    fuel: u64,
}

/// The work of a rendering on a thread that answers requests: tokens times bytes of values, a few milliseconds.
const QUICK: usize = 16 << 20;

/// The bytes of the template's own text that loops and macros may repeat, if each step writes the longest one. At most
/// every third step does.
const REPEATED_BYTES: u64 = 192 << 20;

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Template")
    }
}

impl Template {
    /// Creates a template with its partials. All of them must have been analysed by [`Lint`] without errors.
    pub(crate) fn new(
        source: Arc<SourceText>,
        range: Range<usize>,
        partials: &[Arc<SourceText>],
        budget: &Arc<Budget>,
    ) -> Template {
        Template { source, range, partials: partials.into(), budget: Arc::clone(budget), compiled: OnceLock::new() }
    }

    fn text(&self) -> &str {
        self.source.text.get(self.range.clone()).unwrap_or_default()
    }

    fn compiled(&self) -> Result<&Compiled, RenderError> {
        if let Some(compiled) = self.compiled.get() {
            return Ok(compiled);
        }
        let compiled = self.compile().map_err(|error| RenderError::Failed(error.message))?;
        // A concurrent compilation has the same result.
        Ok(self.compiled.get_or_init(|| Box::new(compiled)))
    }

    /// Returns whether a rendering takes a few milliseconds at most: a template without loops, and values whose size is
    /// proportionate.
    pub(crate) fn is_quick(&self, value_bytes: usize) -> bool {
        let steps = self.compiled().ok().and_then(|compiled| compiled.steps);
        steps.is_some_and(|steps| steps.saturating_mul(value_bytes) <= QUICK)
    }

    fn compile(&self) -> Result<Compiled, CompileError> {
        let mut engine = environment::base();
        engine.set_fuel(Some(self.budget.fuel));
        // One include uses ten levels of the engine's recursion limit; the rest is for loops and macros.
        engine.set_recursion_limit(self.budget.include_depth.min(MAX_INCLUDE_DEPTH) * 10 + 50);
        let partials = self.partials.iter().map(|partial| (partial.path.as_str(), &*partial.text));
        let texts: Vec<_> = partials.chain([(MAIN, self.text())]).collect();
        let charged: Vec<Charged<'_>> = texts.iter().map(|(_, text)| charged(text)).collect();
        let steps = charged.iter().map(|one| one.steps).sum();
        let repeats_includes = charged.iter().any(|one| one.repeats_includes);
        let repeated = charged.iter().map(|one| if repeats_includes { one.longest } else { one.repeated }).max();
        for ((name, text), charged) in texts.into_iter().zip(charged) {
            add(&mut engine, name, text, charged.text.into_owned())?;
        }
        Ok(Compiled { engine, steps, fuel: REPEATED_BYTES / repeated.unwrap_or(0).max(1) as u64 })
    }

    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Renders a template that makes no messages, such as a resource's text.
    pub(crate) fn render_text(&self, variables: &Variables, left: &mut Remaining) -> Result<String, RenderError> {
        let values = variables.iter().map(|(name, value)| (name.as_str(), JinjaValue::from(value.as_str())));
        let Compiled { engine, fuel, .. } = self.compiled()?;
        render_text((engine, *fuel), values, left)
    }

    /// Renders a prompt into pieces: text, and directives between texts. Subtracts the used budget from `left`.
    pub(crate) fn render(&self, bindings: &Bindings, left: &mut Remaining) -> Result<Vec<Piece>, RenderError> {
        let expected = self.range.len() + bindings.size();
        let values = bindings.iter().map(|(name, value)| (name, to_jinja(value)));
        let Compiled { engine, fuel, .. } = self.compiled()?;
        render((engine, *fuel), values, expected, left)
    }
}

/// Adds a template as it is run. Errors refer to it as it was written.
fn add(environment: &mut Environment<'static>, name: &str, text: &str, charged: String) -> Result<(), CompileError> {
    let Err(error) = environment.add_template_owned(name.to_owned(), charged) else { return Ok(()) };
    // The written form is never run, because its operators count nothing; only its errors are better.
    let error = environment.template_from_str(text).err().unwrap_or(error);
    Err(CompileError::new(&error, text))
}

const MAIN: &str = "<prompt>";

fn render_text<'n>(
    engine: (&Environment<'_>, u64),
    values: impl Iterator<Item = (&'n str, JinjaValue)>,
    left: &mut Remaining,
) -> Result<String, RenderError> {
    run(engine, values, 1_024, left).map(|(text, _)| text)
}

fn render<'n>(
    engine: (&Environment<'_>, u64),
    values: impl Iterator<Item = (&'n str, JinjaValue)>,
    expected: usize,
    left: &mut Remaining,
) -> Result<Vec<Piece>, RenderError> {
    match run(engine, values, expected, left)? {
        (text, None) => Ok(vec![Piece::Text(text)]),
        (text, Some(marks)) => marks.cut(&text).ok_or_else(|| {
            let message = "the result of role(), attach(), link() or prompt() was changed before it was printed";
            RenderError::TemplateFailed(message.into())
        }),
    }
}

/// Runs an engine with its largest number of steps. `expected` is the estimated length of the output in bytes.
fn run<'n>(
    engine: (&Environment<'_>, u64),
    values: impl Iterator<Item = (&'n str, JinjaValue)>,
    expected: usize,
    left: &mut Remaining,
) -> Result<(String, Option<Sentinels>), RenderError> {
    let (environment, limit) = engine;
    let fuel = left.fuel.min(limit);
    let mut lean;
    let environment = if environment.fuel() == Some(fuel) {
        environment
    } else {
        lean = environment.clone();
        lean.set_fuel(Some(fuel));
        &lean
    };
    let template = environment.get_template(MAIN).map_err(|error| failure(&error))?;
    let mut output = Bounded {
        bytes: Vec::with_capacity(expected.min(left.output_bytes)),
        limit: left.output_bytes,
        exceeded: false,
    };
    let meter = Meter::new(left.work_bytes, left.interrupt.clone());
    let context = JinjaValue::from_pairs(values.chain(std::iter::once(meter.variable())));
    let rendered = template.render_captured_to(context, &mut output);
    if left.interrupt.as_ref().is_some_and(Interrupt::is_set) {
        return Err(RenderError::Interrupted);
    }
    if output.exceeded {
        return Err(RenderError::OverBudget(format!("{} bytes of text", left.output_bytes)));
    }
    let mut rendered = rendered.map_err(|error| failure(&error))?;
    let (marks, used) = rendered.with_state_mut(|state| {
        let used = state.fuel_levels().map_or(0, |(used, _)| used);
        (state.get_extension_mut::<Sentinels>().map(Sentinels::take), used)
    });
    left.fuel -= used.min(left.fuel);
    left.work_bytes = meter.remaining();
    left.output_bytes = left.output_bytes.saturating_sub(output.bytes.len());
    let text = String::from_utf8(output.bytes).map_err(|error| RenderError::Failed(error.to_string()))?;
    Ok((text, marks))
}

fn failure(error: &Error) -> RenderError {
    if let Some(limit) = limit(error) {
        return RenderError::OverBudget(limit.to_owned());
    }
    let mut error = error;
    while let Some(inside) = std::error::Error::source(error).and_then(|source| source.downcast_ref::<Error>()) {
        error = inside;
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
