//! One template, compiled on first use.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, OnceLock},
};

use minijinja::{Environment, Value as JinjaValue};

use super::{
    compile_error::CompileError,
    environment::{self, to_jinja},
    metered,
    piece::{Piece, Remaining},
    plain::{Plain, Printed},
    render::{self, MAIN},
};
use crate::{
    definition::Budget,
    diagnostic::SourceText,
    render_error::RenderError,
    value::{Bindings, Value, Variables},
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
    plain: Option<Plain>,
    engine: OnceLock<Environment<'static>>,
}

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

    fn engine<'t>(&self, compiled: &'t Compiled) -> Result<&'t Environment<'static>, RenderError> {
        if let Some(engine) = compiled.engine.get() {
            return Ok(engine);
        }
        let engine = self.compile().map_err(|error| RenderError::Failed(error.message))?;
        // A concurrent compilation has the same result.
        Ok(compiled.engine.get_or_init(|| engine))
    }

    pub(super) fn compile(&self) -> Result<Environment<'static>, CompileError> {
        let mut environment = environment::base();
        environment.set_fuel(Some(self.budget.fuel));
        // One include uses ten levels of the engine's recursion limit; the rest is for loops and macros.
        environment.set_recursion_limit(self.budget.include_depth.min(MAX_INCLUDE_DEPTH) * 10 + 50);
        for partial in &*self.partials {
            add(&mut environment, &partial.path, &partial.text)?;
        }
        add(&mut environment, MAIN, self.text())?;
        Ok(environment)
    }

    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Renders a template that makes no messages, such as a resource's text.
    pub(crate) fn render_text(&self, variables: &Variables, left: &mut Remaining) -> Result<String, RenderError> {
        let find = |name: &str| Some(Printed::Text(variables.get(name).map_or("", String::as_str)));
        match self.begin(find, left)? {
            Begun::Done(text) => Ok(text),
            Begun::For(engine) => {
                let values = variables.iter().map(|(name, value)| (name.as_str(), JinjaValue::from(value.as_str())));
                render::render_text(engine, values, left)
            }
        }
    }

    /// Renders a prompt into pieces: text, and directives between texts. Subtracts the used budget from `left`.
    pub(crate) fn render(&self, bindings: &Bindings, left: &mut Remaining) -> Result<Vec<Piece>, RenderError> {
        match self.begin(|name| Printed::of(bindings.get(name)), left)? {
            Begun::Done(text) => Ok(vec![Piece::Text(text)]),
            Begun::For(engine) => self.run(engine, bindings, left),
        }
    }

    /// Renders a plain template directly; for others, returns the engine to use.
    fn begin<'v>(
        &self,
        find: impl Fn(&str) -> Option<Printed<'v>>,
        left: &mut Remaining,
    ) -> Result<Begun<'_>, RenderError> {
        let compiled = self.compiled.get_or_init(|| {
            let plain = Plain::of(self.text());
            Box::new(Compiled { plain, engine: OnceLock::new() })
        });
        match compiled.plain.as_ref().and_then(|plain| plain.render(find, left)) {
            Some(text) => Ok(Begun::Done(text)),
            None => Ok(Begun::For(self.engine(compiled)?)),
        }
    }

    pub(super) fn run(
        &self,
        engine: &Environment<'_>,
        bindings: &Bindings,
        left: &mut Remaining,
    ) -> Result<Vec<Piece>, RenderError> {
        let lengths = bindings.iter().map(|(_, value)| match value {
            Value::Text(text) => text.len(),
            _ => 0,
        });
        let expected = self.range.len() + lengths.sum::<usize>();
        let values = bindings.iter().map(|(name, value)| (name, to_jinja(value)));
        render::render(engine, values, expected, left)
    }
}

enum Begun<'t> {
    Done(String),
    For(&'t Environment<'static>),
}

/// Adds a template in the form that is run. Errors refer to the template as it was written.
fn add(environment: &mut Environment<'static>, name: &str, text: &str) -> Result<(), CompileError> {
    let counted = metered::metered(text).into_owned();
    let Err(error) = environment.add_template_owned(name.to_owned(), counted) else { return Ok(()) };
    // The written form is never run, because its operators count nothing; only its errors are better.
    let error = environment.template_from_str(text).err().unwrap_or(error);
    Err(CompileError::new(&error, text))
}
