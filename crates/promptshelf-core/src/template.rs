//! Templates: compiled on first use, rendered within a budget, and safe against forged structure.
//!
//! `role`, `attach`, `link` and `prompt` insert a sentinel into the output: a frame with a random number that is
//! unknown outside of the rendering. Afterwards, the text is cut at the sentinels and nowhere else. No value and no
//! filter can produce the number, so no value can start a message, change a role or add a block.
//!
//! This is the only module that uses the template engine.

mod builtins;
mod depth;
mod environment;
mod filters;
mod functions;
pub(crate) mod lint;
mod meter;
mod operators;
mod syntax;
mod words;

use std::{
    fmt, io,
    ops::Range,
    sync::{Arc, OnceLock},
};

use depth::TOO_DEEP;
use environment::{fixed_globals, to_jinja};
use lint::Use;
use meter::{AT_LEAST, MEMBER, Meter, work_bytes};
use minijinja::{
    Environment, Error, ErrorKind, Expression, State, Value as JinjaValue,
    machinery::{
        ast::{BinOpKind, Expr, UnaryOpKind},
        parse, parse_expr,
    },
    value::Object,
};
use operators::{Charged, charged, charged_expression, limit};

use crate::{
    content::{Annotations, Role},
    definition::Budget,
    diagnostic::{Code, Diagnostic, Location, SourceText},
    interrupt::{Interrupt, remaining_work, spend_work},
    render_error::RenderError,
    value::{Bindings, Value, Variables},
};

pub use words::{TemplateWord, TemplateWords};

pub(crate) use environment::{is_filter, known_globals};
pub(crate) use functions::sent;
pub(crate) use lint::Lint;
pub(crate) use syntax::or_literally;

/// A template that does not compile.
#[derive(Clone, Debug)]
pub(crate) struct CompileError {
    pub(crate) message: String,
    /// Bytes of the template.
    pub(crate) span: Range<usize>,
    pub(crate) help: Option<String>,
}

impl CompileError {
    pub(crate) fn at(self, location: Location) -> Diagnostic {
        Diagnostic { help: self.help, ..Diagnostic::error(Code::TemplateSyntax, location, self.message) }
    }

    fn new(error: &minijinja::Error, text: &str) -> CompileError {
        let message = match error.detail() {
            Some(detail) => detail.to_owned(),
            None => error.kind().to_string(),
        };
        let span = error.range().unwrap_or_else(|| line_span(text, error.line().unwrap_or(1)));
        CompileError { message, span, help: None }
    }
}

fn bytes(span: minijinja::machinery::Span) -> Range<usize> {
    span.start_offset as usize..span.end_offset as usize
}

/// Returns the bytes of a line, counted from one.
fn line_span(text: &str, line: usize) -> Range<usize> {
    let start = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    let end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
    start..end
}

// A public summary of a template's calls and values, found without rendering it.
// For programs that inspect templates, such as lints and editors. Mistakes in a template are not
// here; [`check`](crate::check) reports them.

/// The calls of a template and the values that it inserts as they are.
///
/// ```
/// use promptshelf_core::TemplateAnalysis;
///
/// let analysis = TemplateAnalysis::of("{{ role('user') }}Review:\n{{ code }}");
/// assert_eq!(analysis.calls[0].name, "role");
/// assert_eq!(analysis.unenclosed[0].name, "code");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateAnalysis {
    /// Names that neither the template nor the engine defines, in the order of the text: its arguments.
    pub variables: Vec<TemplateUse>,
    /// Partials that are included, imported or extended; the span is the path's.
    pub partials: Vec<TemplateUse>,
    /// Calls of `role`, `attach`, `link` and `prompt`, in the order of the text.
    pub calls: Vec<TemplateUse>,
    /// Files and URIs that are attached by a literal; the span is the literal's.
    pub attached: Vec<TemplateUse>,
    /// Arguments that are inserted without a filter such as `fence`, `xml` or `quote` that shows
    /// where the value begins and ends; the span is the tag's.
    pub unenclosed: Vec<TemplateUse>,
}

/// A name in a template and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateUse {
    /// The function, file, URI or argument.
    pub name: String,
    /// Bytes of the template.
    pub span: Range<usize>,
}

impl TemplateAnalysis {
    /// Analyses a template. Where parts of it are malformed, the result covers the readable rest.
    #[must_use]
    pub fn of(text: &str) -> TemplateAnalysis {
        let lint = Lint::of(text);
        let public = |uses: Vec<Use>| uses.into_iter().map(|Use { name, span }| TemplateUse { name, span }).collect();
        TemplateAnalysis {
            variables: public(lint.variables),
            partials: public(lint.partials),
            calls: public(lint.structure),
            attached: public(lint.attached),
            unenclosed: public(lint.unenclosed),
        }
    }
}

/// Returns the value of a literal. What has to be computed is none: `"x" * 100_000_000` would be outside of every bound.
pub(crate) fn literal(expression: &Expr<'_>) -> Option<JinjaValue> {
    is_literal(expression).then(|| expression.as_const()).flatten()
}

fn is_literal(expression: &Expr<'_>) -> bool {
    match expression {
        Expr::Const(_) => true,
        Expr::UnaryOp(operation) => {
            matches!((&operation.op, &operation.expr), (UnaryOpKind::Neg, Expr::Const(_)))
        }
        // As long as it is written.
        Expr::BinOp(operation) => {
            matches!(operation.op, BinOpKind::Concat) && is_literal(&operation.left) && is_literal(&operation.right)
        }
        Expr::List(list) => list.items.iter().all(is_literal),
        Expr::Tuple(tuple) => tuple.items.iter().all(is_literal),
        Expr::Map(map) => map.keys.iter().chain(&map.values).all(is_literal),
        _ => false,
    }
}

/// A compiled condition, such as `language == "python"`.
pub(crate) struct Condition {
    expression: Expression<'static, 'static>,
    names: Vec<String>,
    text: String,
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Condition({:?})", self.text)
    }
}

impl Condition {
    pub(crate) fn parse(text: &str) -> Result<Condition, CompileError> {
        depth::check_expression(text)?;
        // The written form is only parsed: the engine computes its constants while it compiles, outside of every bound.
        parse_expr(text).map_err(|error| syntax::in_expression(text, CompileError::new(&error, text)))?;
        // The engine refuses parentheses that are nested too deeply.
        let charged = charged_expression(text).into_owned();
        let expression = environment::shared().compile_expression_owned(charged).map_err(|_| CompileError {
            message: TOO_DEEP.to_owned(),
            span: 0..text.len(),
            help: None,
        })?;
        let mut names: Vec<String> = expression.undeclared_variables(false).into_iter().collect();
        names.retain(|name| fixed_globals().all(|known| known != name));
        names.sort();
        Ok(Condition { expression, names, text: text.to_owned() })
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns whether it is true. A condition that fails, such as a comparison of different types, or whose operators
    /// walk more than 16 MiB of values, is false; so is one that is not evaluated, because those before it have used up
    /// what may be spent.
    pub(crate) fn holds(&self, bindings: &Bindings) -> bool {
        // Only its own names: converting a large value for every condition of a prompt would be slow.
        let known = || self.names.iter().filter_map(|name| Some((name.as_str(), bindings.get(name)?)));
        let lookups = self.names.len().saturating_mul(bindings.0.len());
        let values: u64 = known().map(|(_, value)| conversion(value)).sum();
        if !spend_work(values.saturating_add(lookups as u64).saturating_add(EVALUATED * self.text.len() as u64)) {
            return false;
        }
        let limit = remaining_work().min(AT_LEAST);
        let meter = Meter::new(limit, Interrupt::current());
        let known = known().map(|(name, value)| (name, to_jinja(value)));
        let context = Named::values(known.chain(std::iter::once(meter.variable())));
        let value = self.expression.eval(context);
        let is_used_up = limit < AT_LEAST && meter.is_used_up();
        // What is left does not suffice, and one more marks it.
        let may = spend_work((limit - meter.remaining()).saturating_add(u64::from(is_used_up)));
        may && value.is_ok_and(|value| value.is_true())
    }
}

const EVALUATED: u64 = 32;

fn conversion(value: &Value) -> u64 {
    match value {
        Value::Text(_) => MEMBER,
        other => MEMBER + 6 * other.size() as u64,
    }
}

/// Returns the names that a condition depends on; empty if it is malformed.
pub(crate) fn condition_names(text: &str) -> Vec<String> {
    Condition::parse(text).map(|condition| condition.names).unwrap_or_default()
}

// The parts of a rendering: text, and directives between texts.
// Directives are sentinels in a text that contains untrusted values.

#[derive(Clone, Debug)]
pub(crate) struct Remaining {
    pub(crate) fuel: u64,
    pub(crate) output_bytes: usize,
    /// Bytes that operations may walk and create.
    pub(crate) work_bytes: u64,
    pub(crate) interrupt: Option<Interrupt>,
}

impl Remaining {
    pub(crate) fn of(budget: &Budget) -> Remaining {
        Remaining {
            fuel: budget.fuel,
            output_bytes: budget.output_bytes,
            work_bytes: work_bytes(budget.fuel),
            interrupt: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Directive(Directive),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Directive {
    Role { role: Role, annotations: Annotations },
    Attach(Attach),
    Link(Link),
    Prompt(Call),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attach {
    pub(crate) target: String,
    pub(crate) uri: Option<String>,
    pub(crate) mime: Option<String>,
    pub(crate) annotations: Annotations,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// The arguments as a caller would send them.
    pub(crate) arguments: Variables,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) target: String,
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) mime: Option<String>,
    pub(crate) annotations: Annotations,
}

/// Opens and closes a sentinel: noncharacters, which Unicode reserves for internal use (section 23.7). They only make
/// sentinels easy to find; the random number inside makes them authentic.
const OPEN: char = '\u{FDD0}';

const CLOSE: char = '\u{FDD1}';

/// The digits at both ends of the number by which a damaged sentinel is found. No value has them by chance.
const PART: usize = 12;

struct Sentinels {
    nonce: String,
    directives: Vec<Directive>,
}

impl Sentinels {
    fn new(random: [u8; 16]) -> Sentinels {
        // Digits only, so that a filter such as `upper` cannot change them.
        Sentinels { nonce: format!("{:039}", u128::from_ne_bytes(random)), directives: Vec::new() }
    }

    /// Returns the sentinels of a rendering. Its number is drawn with the first
    /// one, after the caller's values were fixed, and is never shown.
    fn of<'s>(state: &'s mut State<'_, '_>) -> Result<&'s mut Sentinels, Error> {
        let mut random = [0; 16];
        if state.get_extension::<Sentinels>().is_none() {
            getrandom::fill(&mut random).map_err(|error| {
                let message = "the operating system returned no random numbers for the message boundaries";
                Error::new(ErrorKind::InvalidOperation, message).with_source(error)
            })?;
        }
        Ok(state.get_or_insert_extension_with(|| Sentinels::new(random)))
    }

    fn put(state: &mut State<'_, '_>, directive: Directive) -> Result<String, Error> {
        meter::spend_text(state, size_of::<Directive>() + directive.text_len())?;
        let own = Sentinels::of(state)?;
        own.directives.push(directive);
        Ok(format!("{OPEN}{}:{}{CLOSE}", own.nonce, own.directives.len() - 1))
    }

    fn take(&mut self) -> Sentinels {
        Sentinels { nonce: std::mem::take(&mut self.nonce), directives: std::mem::take(&mut self.directives) }
    }

    /// Cuts a text at its sentinels. `None` if a sentinel was altered, as by a filter after `role(…)`.
    fn cut(&self, text: &str) -> Option<Vec<Piece>> {
        let frame = format!("{OPEN}{}:", self.nonce);
        let mut pieces = Vec::with_capacity(2 * self.directives.len() + 1);
        let mut rest = text;
        while let Some(start) = rest.find(&frame) {
            self.push_text(&mut pieces, &rest[..start])?;
            let after = &rest[start + frame.len()..];
            let (index, after) = after.split_once(CLOSE)?;
            pieces.push(Piece::Directive(self.directives.get(index.parse::<usize>().ok()?)?.clone()));
            rest = after;
        }
        self.push_text(&mut pieces, rest)?;
        Some(pieces)
    }

    fn push_text(&self, pieces: &mut Vec<Piece>, text: &str) -> Option<()> {
        // A part of the number without its frame means that a sentinel was damaged. It must not be shown.
        let (begin, end) = (&self.nonce[..PART], &self.nonce[self.nonce.len() - PART..]);
        if text.contains(begin) || text.contains(end) {
            return None;
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text.to_owned()));
        }
        Some(())
    }
}

impl Directive {
    /// Bytes of the texts that it holds.
    fn text_len(&self) -> usize {
        let optional = |texts: &[&Option<String>]| -> usize {
            texts.iter().map(|text| text.as_ref().map_or(0, String::len)).sum()
        };
        match self {
            Directive::Role { .. } => 0,
            Directive::Attach(Attach { target, uri, mime, .. }) => target.len() + optional(&[uri, mime]),
            Directive::Prompt(Call { name, arguments }) => {
                name.len() + arguments.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
            }
            Directive::Link(Link { target, name, title, description, mime, .. }) => {
                target.len() + optional(&[name, title, description, mime])
            }
        }
    }
}

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
    /// As [`Charged::steps`], of all texts.
    steps: Option<usize>,
    /// The most steps of the engine, so that those that repeat a text of the template cannot write too much.
    fuel: u64,
}

/// The bytes of a value that a template has itself.
const SHORT: usize = 32;

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
        steps.is_some_and(|steps| steps.saturating_mul(value_bytes.max(SHORT)) <= QUICK)
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
    // The written form is never compiled, because its operators count nothing; only its errors are better.
    let error = parse(text, name, Default::default()).err().unwrap_or(error);
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
    let context = Named::values(values.chain(std::iter::once(meter.variable())));
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

/// The values of a rendering, sorted by name: to make and drop a map of the engine is a tenth of a short rendering.
#[derive(Debug)]
struct Named(Vec<(JinjaValue, JinjaValue)>);

impl Named {
    fn values<'n>(values: impl Iterator<Item = (&'n str, JinjaValue)>) -> JinjaValue {
        // The engine keeps short texts without an allocation.
        let mut values: Vec<_> = values.map(|(name, value)| (JinjaValue::from(name), value)).collect();
        values.sort_unstable_by(|(one, _), (other, _)| one.as_str().cmp(&other.as_str()));
        JinjaValue::from_object(Named(values))
    }
}

impl Object for Named {
    fn get_value(self: &Arc<Named>, key: &JinjaValue) -> Option<JinjaValue> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Named>, key: &str) -> Option<JinjaValue> {
        let place = self.0.binary_search_by(|(name, _)| name.as_str().unwrap_or_default().cmp(key)).ok()?;
        Some(self.0[place].1.clone())
    }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::value::Value;

    /// One condition may walk megabytes, a thousand of them may not.
    // req: S-275
    #[test]
    fn conditions_share_what_may_be_spent() {
        let bindings = Bindings(vec![("text".to_owned(), Value::Text(Arc::from("x".repeat(1_000))))]);
        let condition = Condition::parse("text * 4000 == 'x' or true").expect("a condition");
        let bounds = Interrupt::new();
        let held = bounds.scope(|| (0..1_000).filter(|_| condition.holds(&bindings)).count());
        assert!((10..100).contains(&held) && bounds.has_refused_work(), "{held}");
    }

    // req: S-218
    #[test]
    fn operators_of_a_condition_count_their_work() {
        let holds = |condition: &str, text: &str| {
            let bindings = Bindings(vec![("text".to_owned(), Value::Text(Arc::from(text)))]);
            Condition::parse(condition).expect("a condition").holds(&bindings)
        };
        let long = "x".repeat(100_000);
        for condition in ["text * 1000", "(text * 100 * 100)[0] == 'x'", "'y' not in [text * 1000]"] {
            assert!(holds(condition, "x"), "{condition}");
            assert!(!holds(condition, &long), "{condition}");
        }
        assert!(holds("text == 'x' or text in ['y', text] and 'x' in text", &long));
    }
}
