//! One template, compiled on first use.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, OnceLock},
};

use minijinja::{
    Environment, Value as JinjaValue,
    machinery::{Token, tokenize},
    syntax::SyntaxConfig,
};

use super::{
    compile_error::CompileError,
    environment::{self, to_jinja},
    metered,
    piece::{Piece, Remaining},
    render::{self, MAIN},
};
use crate::{
    definition::Budget,
    diagnostic::SourceText,
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
    /// The number of tokens in tags; `None` if some of them may be run, or walk a value, any number of times.
    steps: Option<usize>,
}

/// Words of tags and filters whose work is not proportional to the size of the values.
const HEAVY: &[&str] = &[
    "for",
    "macro",
    "call",
    "block",
    "import",
    "from",
    "extends",
    "range",
    "map",
    "select",
    "selectattr",
    "reject",
    "rejectattr",
    "batch",
    "slice",
    "zip",
    "chain",
    "sort",
    "dictsort",
    "groupby",
    "unique",
    "sum",
    "replace",
];

/// The work of a rendering on a thread that answers requests: tokens times bytes of values, a few milliseconds.
const QUICK: usize = 16 << 20;

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
        let engine = self.compile().map_err(|error| RenderError::Failed(error.message))?;
        let texts = self.partials.iter().map(|partial| &*partial.text).chain([self.text()]);
        let steps = texts.map(steps).sum();
        // A concurrent compilation has the same result.
        Ok(self.compiled.get_or_init(|| Box::new(Compiled { engine, steps })))
    }

    /// Returns whether a rendering takes a few milliseconds at most: a template without loops, and values whose size is
    /// proportionate.
    pub(crate) fn is_quick(&self, value_bytes: usize) -> bool {
        let steps = self.compiled().ok().and_then(|compiled| compiled.steps);
        steps.is_some_and(|steps| steps.saturating_mul(value_bytes) <= QUICK)
    }

    fn compile(&self) -> Result<Environment<'static>, CompileError> {
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
        let values = variables.iter().map(|(name, value)| (name.as_str(), JinjaValue::from(value.as_str())));
        render::render_text(&self.compiled()?.engine, values, left)
    }

    /// Renders a prompt into pieces: text, and directives between texts. Subtracts the used budget from `left`.
    pub(crate) fn render(&self, bindings: &Bindings, left: &mut Remaining) -> Result<Vec<Piece>, RenderError> {
        let expected = self.range.len() + bindings.size();
        let values = bindings.iter().map(|(name, value)| (name, to_jinja(value)));
        render::render(&self.compiled()?.engine, values, expected, left)
    }
}

fn steps(text: &str) -> Option<usize> {
    let mut steps = 0;
    for (token, _) in tokenize(text, false, SyntaxConfig::default()).map_while(Result::ok) {
        match token {
            Token::TemplateData(_) => {}
            Token::Mul | Token::Pow => return None,
            Token::Ident(word) if HEAVY.contains(&word) => return None,
            _ => steps += 1,
        }
    }
    Some(steps)
}

/// Adds a template in the form that is run. Errors refer to the template as it was written.
fn add(environment: &mut Environment<'static>, name: &str, text: &str) -> Result<(), CompileError> {
    let counted = metered::metered(text).into_owned();
    let Err(error) = environment.add_template_owned(name.to_owned(), counted) else { return Ok(()) };
    // The written form is never run, because its operators count nothing; only its errors are better.
    let error = environment.template_from_str(text).err().unwrap_or(error);
    Err(CompileError::new(&error, text))
}
