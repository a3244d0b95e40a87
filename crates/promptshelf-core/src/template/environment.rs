//! The configuration of the template engine: its filters, tests and functions.

use std::sync::{Arc, LazyLock};

use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value as JinjaValue};

use super::{builtins, filters, functions, operators, print};
use crate::value::Value;

/// The functions of the template language.
pub(super) const GLOBALS: &[&str] = &["role", "attach", "link", "prompt", "range", "dict", "namespace"];

/// Filters of the engine that are not available. `safe` and `escape` concern HTML; `format` can produce a gigabyte
/// from two bytes.
const LEFT_OUT: &[&str] = &["safe", "escape", "e", "format"];

static BASE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UNDEFINED);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_debug(true);
    environment.set_formatter(print::print);
    environment.remove_global("debug");
    for filter in LEFT_OUT {
        environment.remove_filter(filter);
    }
    builtins::add_to(&mut environment);
    operators::add_to(&mut environment);
    filters::add_to(&mut environment);
    functions::add_to(&mut environment);
    environment
});

/// Returns the environment that all others are cloned from.
pub(super) fn shared() -> &'static Environment<'static> {
    &BASE
}

/// Returns a new environment. Filters and functions are shared, so that it is cheap and every prompt can have its
/// own.
pub(super) fn base() -> Environment<'static> {
    BASE.clone()
}

/// The filters of the template language.
pub(super) const FILTERS: &[&str] = &[
    "abs",
    "attr",
    "batch",
    "bool",
    "capitalize",
    "chain",
    "count",
    "d",
    "default",
    "dictsort",
    "fence",
    "first",
    "float",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "json",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "pprint",
    "quote",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "select",
    "selectattr",
    "slice",
    "sort",
    "split",
    "string",
    "sum",
    "title",
    "tojson",
    "trim",
    "unique",
    "upper",
    "urlencode",
    "xml",
    "zip",
];

/// The tests (`x is …`) of the template language.
pub(super) const TESTS: &[&str] = &[
    "!=",
    "<",
    "<=",
    "==",
    ">",
    ">=",
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "int",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sameas",
    "sequence",
    "startingwith",
    "string",
    "test",
    "true",
    "undefined",
    "upper",
];

/// Returns the functions of the template language.
pub(crate) fn known_globals() -> impl Iterator<Item = &'static str> {
    GLOBALS.iter().copied()
}

/// The words that templates can use in addition to arguments.
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
    /// All words.
    pub const ALL: TemplateWords = TemplateWords { functions: GLOBALS, filters: FILTERS, tests: TESTS };
}

/// Returns the functions whose names arguments cannot have. `prompt` is excluded: it is a function only in a call,
/// because it is a frequent name of arguments.
pub(super) fn fixed_globals() -> impl Iterator<Item = &'static str> {
    known_globals().filter(|name| *name != "prompt")
}

/// Returns whether a word is the name of a filter.
pub(crate) fn is_filter(word: &str) -> bool {
    FILTERS.contains(&word)
}

/// A missing argument prints nothing, and so do its attributes: `{{ options.depth }}` without `options`.
const UNDEFINED: UndefinedBehavior = UndefinedBehavior::Chainable;

/// Converts a value for the engine.
pub(super) fn to_jinja(value: &Value) -> JinjaValue {
    match value {
        Value::Text(text) => JinjaValue::from(Arc::clone(text)),
        Value::Integer(number) => JinjaValue::from(*number),
        Value::Number(number) => JinjaValue::from(*number),
        Value::Boolean(boolean) => JinjaValue::from(*boolean),
        Value::List(items) => items.iter().map(|item| JinjaValue::from(item.as_str())).collect(),
        Value::Json(json) => JinjaValue::from(minijinja::value::Serde(json)),
    }
}

#[cfg(test)]
mod tests {
    use minijinja::ErrorKind;

    use super::*;

    #[test]
    fn listed_filters_and_tests_exist() {
        let environment = base();
        for filter in FILTERS {
            let result = environment.empty_state().apply_filter(filter, &[]);
            assert!(!result.is_err_and(|error| error.kind() == ErrorKind::UnknownFilter), "{filter}");
        }
        for test in TESTS {
            let result = environment.empty_state().perform_test(test, &[]);
            assert!(!result.is_err_and(|error| error.kind() == ErrorKind::UnknownTest), "{test}");
        }
    }
}
