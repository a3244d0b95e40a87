//! Conditions: boolean expressions in template syntax.

use minijinja::{Expression, Value as JinjaValue};

use super::{
    compile_error::CompileError,
    depth::TOO_DEEP,
    environment::{self, fixed_globals, to_jinja},
    meter::{AT_LEAST, MEMBER, Meter},
    operators::charged_expression,
    syntax,
};
use crate::{
    interrupt::{Interrupt, remaining_work, spend_work},
    value::{Bindings, Value},
};

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
        let compile = |text: &str| environment::shared().compile_expression_owned(text.to_owned());
        let written = compile(text);
        let written = written.map_err(|error| syntax::in_expression(text, CompileError::new(&error, text)))?;
        let mut names: Vec<String> = written.undeclared_variables(false).into_iter().collect();
        // The engine refuses parentheses that are nested too deeply.
        let expression = compile(&charged_expression(text)).map_err(|_| CompileError {
            message: TOO_DEEP.to_owned(),
            span: 0..text.len(),
            help: None,
        })?;
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
        let context = JinjaValue::from_pairs(known.chain(std::iter::once(meter.variable())));
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
