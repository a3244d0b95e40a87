//! Templates: compiled once, when they are first rendered, within a budget, and
//! unable to be forged.
//!
//! `role`, `attach`, `link` and `prompt` leave a *mark* in the text that comes out: a
//! frame that holds a number nobody outside this rendering can know. After the
//! rendering the text is cut at the marks, and only there. Whatever a value
//! holds, and whatever filters do to it, it cannot spell that number, so it
//! cannot start a message, change a role or add a block.
//!
//! This room is the only one that knows the template engine.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, OnceLock},
};

use minijinja::{Environment, UndefinedBehavior, Value as JinjaValue};

use crate::{
    argument::{Bindings, Value},
    content::Annotations,
    definition::Budget,
    diagnostic::{Code, Diagnostic, Location, SourceText},
    resource::Variables,
};

mod analysis;
mod condition;
mod depth;
mod environment;
mod filters;
mod functions;
mod kept;
pub(crate) mod lint;
mod marks;
mod meter;
mod outline;
mod plain;
mod print;
mod render;
mod syntax;

pub use analysis::{TemplateAnalysis, TemplateUse};
pub(crate) use condition::Condition;
pub(crate) use lint::Lint;
pub use outline::Outline;
use plain::{Plain, Printed};
pub use render::RenderError;

/// The name under which a template itself is kept beside its partials.
const MAIN: &str = "<prompt>";

/// How deep partials can include each other, whatever the library allows: more
/// than this the engine's stack does not hold.
pub(crate) const MAX_INCLUDE_DEPTH: usize = 40;

/// One template with everything that it includes. It is compiled when it is
/// rendered for the first time: of a large library most prompts never are.
pub(crate) struct Template {
    source: Arc<SourceText>,
    /// Bytes of the source.
    range: Range<usize>,
    partials: Box<[Arc<SourceText>]>,
    budget: Arc<Budget>,
    compiled: OnceLock<Box<Compiled>>,
}

/// What a template has become.
struct Compiled {
    plain: Option<Plain>,
    /// The engine with the template and its partials in it, once it was needed.
    engine: OnceLock<Environment<'static>>,
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Template")
    }
}

/// A template that does not compile.
#[derive(Debug)]
pub(crate) struct CompileError {
    pub(crate) message: String,
    /// Bytes of the template.
    pub(crate) span: std::ops::Range<usize>,
    /// What to do about it.
    pub(crate) help: Option<String>,
}

impl Template {
    /// A template with its partials. All of them have to be such that a
    /// [`Lint`] could be made of them.
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

    /// The engine with the template and its partials in it.
    fn engine<'t>(&self, compiled: &'t Compiled) -> Result<&'t Environment<'static>, RenderError> {
        if let Some(engine) = compiled.engine.get() {
            return Ok(engine);
        }
        let engine = self.compile().map_err(|error| RenderError::Failed(error.message))?;
        // Whoever else compiled it meanwhile made the same of it.
        Ok(compiled.engine.get_or_init(|| engine))
    }

    fn compile(&self) -> Result<Environment<'static>, CompileError> {
        let mut environment = environment::base();
        environment.set_fuel(Some(self.budget.fuel));
        // One include costs ten of the engine's own steps of depth; the rest is for loops and macros.
        environment.set_recursion_limit(self.budget.include_depth.min(MAX_INCLUDE_DEPTH) * 10 + 50);
        for partial in &*self.partials {
            add(&mut environment, &partial.path, &partial.text)?;
        }
        add(&mut environment, MAIN, self.text())?;
        Ok(environment)
    }

    /// What one rendering may use.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Renders a template that makes no messages, such as a resource's text.
    pub(crate) fn render_text(&self, variables: &Variables) -> Result<String, RenderError> {
        let mut left = Left::of(&self.budget);
        let find = |name: &str| Some(Printed::Text(variables.get(name).map_or("", String::as_str)));
        match self.begin(find, &mut left)? {
            Begun::Done(text) => Ok(text),
            Begun::For(engine) => {
                let values = variables.iter().map(|(name, value)| (name.as_str(), JinjaValue::from(value.as_str())));
                render::render_text(engine, JinjaValue::from_pairs(values), &mut left)
            }
        }
    }

    /// Renders a prompt into pieces: text, and what stands between the texts.
    /// Takes what it uses off what is left.
    pub(crate) fn render(&self, bindings: &Bindings, left: &mut Left) -> Result<Vec<Piece>, RenderError> {
        match self.begin(|name| Printed::of(bindings.get(name)), left)? {
            Begun::Done(text) => Ok(vec![Piece::Text(text)]),
            Begun::For(engine) => self.run(engine, bindings, left),
        }
    }

    /// What a plain template says, or else the engine that has to be asked.
    fn begin<'v>(&self, find: impl Fn(&str) -> Option<Printed<'v>>, left: &mut Left) -> Result<Begun<'_>, RenderError> {
        let compiled = self.compiled.get_or_init(|| {
            let plain = Plain::of(self.text());
            Box::new(Compiled { plain, engine: OnceLock::new() })
        });
        match compiled.plain.as_ref().and_then(|plain| plain.render(find, left)) {
            Some(text) => Ok(Begun::Done(text)),
            None => Ok(Begun::For(self.engine(compiled)?)),
        }
    }

    fn run(&self, engine: &Environment<'_>, bindings: &Bindings, left: &mut Left) -> Result<Vec<Piece>, RenderError> {
        let context = JinjaValue::from_pairs(bindings.iter().map(|(name, value)| (name, to_jinja(value))));
        let values = bindings.iter().map(|(_, value)| match value {
            Value::Text(text) => text.len(),
            _ => 0,
        });
        render::render(engine, context, self.range.len() + values.sum::<usize>(), left)
    }
}

/// A rendering that needed no engine, or one that does.
enum Begun<'t> {
    Done(String),
    For(&'t Environment<'static>),
}

/// Adds a template as it is run. What is wrong with it is said of the template
/// as it was written.
fn add(environment: &mut Environment<'static>, name: &str, text: &str) -> Result<(), CompileError> {
    let counted = kept::counted(text).into_owned();
    if environment.add_template_owned(name.to_owned(), counted).is_ok() {
        return Ok(());
    }
    environment.add_template_owned(name.to_owned(), text.to_owned()).map_err(|error| CompileError::new(&error, text))
}

fn to_jinja(value: &Value) -> JinjaValue {
    match value {
        Value::Text(text) => JinjaValue::from(Arc::clone(text)),
        Value::Integer(number) => JinjaValue::from(*number),
        Value::Number(number) => JinjaValue::from(*number),
        Value::Boolean(boolean) => JinjaValue::from(*boolean),
        Value::List(items) => items.iter().map(|item| JinjaValue::from(item.as_str())).collect(),
        Value::Json(json) => JinjaValue::from(minijinja::value::Serde(json)),
    }
}

/// What one rendering may still use: all prompts that it brings in share it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub(crate) fuel: u64,
    pub(crate) output_bytes: usize,
}

impl Left {
    /// Everything, before anything is rendered.
    pub(crate) fn of(budget: &Budget) -> Left {
        Left { fuel: budget.fuel, output_bytes: budget.output_bytes }
    }
}

/// What a rendering is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Mark(Mark),
}

/// What a template's functions put between texts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mark {
    Role { role: crate::Role, annotations: Annotations },
    Attach(Attach),
    Link(Link),
    Prompt(Call),
}

/// A block to put in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attach {
    /// A library file's path, or a URI.
    pub(crate) target: String,
    pub(crate) uri: Option<String>,
    pub(crate) mime: Option<String>,
    pub(crate) annotations: Annotations,
}

/// Another prompt to bring in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// As a caller would send them.
    pub(crate) arguments: Variables,
}

/// A link to put in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    /// A library file's path, or a URI.
    pub(crate) target: String,
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) mime: Option<String>,
    pub(crate) annotations: Annotations,
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

fn bytes(span: minijinja::machinery::Span) -> std::ops::Range<usize> {
    span.start_offset as usize..span.end_offset as usize
}

/// The bytes of a line, counted from one.
fn line_span(text: &str, line: usize) -> std::ops::Range<usize> {
    let start = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    let end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
    start..end
}

/// The names that decide a condition; none for one that is none.
pub(crate) fn condition_names(text: &str) -> Vec<String> {
    Condition::parse(text).map(|condition| condition.names()).unwrap_or_default()
}

/// Functions that a template knows.
pub(crate) fn known_globals() -> impl Iterator<Item = &'static str> {
    environment::GLOBALS.iter().copied()
}

/// What a template can use besides its arguments.
#[derive(Clone, Copy, Debug)]
pub struct TemplateWords {
    /// Functions, such as `attach`.
    pub functions: &'static [&'static str],
    /// Filters, such as `upper`.
    pub filters: &'static [&'static str],
    /// Tests (`x is …`), such as `defined`.
    pub tests: &'static [&'static str],
}

impl TemplateWords {
    /// Every word there is.
    pub const ALL: TemplateWords =
        TemplateWords { functions: environment::GLOBALS, filters: environment::FILTERS, tests: environment::TESTS };
}

/// Functions that no argument is called like. `prompt` is one only where it is
/// called, because arguments are often called so.
fn fixed_globals() -> impl Iterator<Item = &'static str> {
    known_globals().filter(|name| *name != "prompt")
}

/// Whether a word is the name of a filter.
pub(crate) fn is_filter(word: &str) -> bool {
    environment::FILTERS.contains(&word)
}

/// An argument that was not given prints as nothing, and so does what is asked
/// of it: `{{ options.depth }}` without `options`.
const UNDEFINED: UndefinedBehavior = UndefinedBehavior::Chainable;
