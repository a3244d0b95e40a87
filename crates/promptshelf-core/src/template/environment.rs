//! The configuration of the template engine: its filters, tests and functions.

use std::sync::{Arc, LazyLock};

use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior, Value as JinjaValue};

use super::{
    builtins::{self, Misfit},
    filters, functions, operators,
    words::{self, names},
};
use crate::value::Value;

/// Filters of the engine that are not available. `safe` and `escape` concern HTML; `format` can produce a gigabyte
/// from two bytes.
const LEFT_OUT: &[&str] = &["safe", "escape", "e", "format"];

static BASE: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Misfit::IsPassedOver));

/// The environment in which filters and tests fail for values that they cannot be applied to.
static STRICT: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Misfit::Fails));

fn environment(misfit: Misfit) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UNDEFINED);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_debug(true);
    environment.set_formatter(filters::print);
    environment.remove_global("debug");
    for filter in LEFT_OUT {
        environment.remove_filter(filter);
    }
    builtins::add_to(&mut environment, misfit);
    operators::add_to(&mut environment);
    filters::add_to(&mut environment, misfit);
    functions::add_to(&mut environment);
    environment
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Filter,
    Test,
}

/// Returns the error of a filter or test with these arguments if it cannot be applied to any kind of value: the mistake
/// is in the template. If some arguments are only known later, the others stand for them, and their number matters only.
pub(super) fn fault(word: Word, name: &str, arguments: &[JinjaValue], are_known: bool) -> Option<String> {
    let list = |items: &[JinjaValue]| JinjaValue::from(items.to_vec());
    let map = JinjaValue::from_pairs([("a", 1)]);
    let values = [
        JinjaValue::from("a"),
        JinjaValue::from("1"),
        JinjaValue::from(1),
        list(&[JinjaValue::from(1)]),
        list(&[JinjaValue::from("a")]),
        list(std::slice::from_ref(&map)),
        list(&[list(&[JinjaValue::from(1), JinjaValue::from(2)])]),
        map,
    ];
    let mut first = None;
    for value in values {
        let all: Vec<JinjaValue> = std::iter::once(value).chain(arguments.iter().cloned()).collect();
        let result = match word {
            Word::Filter => STRICT.empty_state().apply_filter(name, &all).map(drop),
            Word::Test => STRICT.empty_state().perform_test(name, &all).map(drop),
        };
        match result {
            Ok(()) => return None,
            // An attribute or item that the examples lack.
            Err(error) if error.kind() == ErrorKind::UndefinedError => return None,
            Err(error) if !are_known => {
                if matches!(error.kind(), ErrorKind::MissingArgument | ErrorKind::TooManyArguments) {
                    return Some(error.detail().map_or_else(|| error.kind().to_string(), str::to_owned));
                }
            }
            Err(error) => {
                first.get_or_insert_with(|| error.detail().map_or_else(|| error.kind().to_string(), str::to_owned));
            }
        }
    }
    first
}

pub(super) fn shared() -> &'static Environment<'static> {
    &BASE
}

/// Returns a new environment. Filters and functions are shared, so that it is cheap and every prompt can have its
/// own.
pub(super) fn base() -> Environment<'static> {
    BASE.clone()
}

/// Tests that are signs, as in `select("==", 1)`.
const SIGNS: &[&str] = &["!=", "<", "<=", "==", ">", ">="];

pub(super) const GLOBALS: &[&str] = &names::<{ words::FUNCTIONS.len() }>(words::FUNCTIONS, &[]);

pub(super) const FILTERS: &[&str] = &names::<{ words::FILTERS.len() }>(words::FILTERS, &[]);

/// The tests (`x is …`) of the template language.
pub(super) const TESTS: &[&str] = &names::<{ words::TESTS.len() + SIGNS.len() }>(words::TESTS, SIGNS);

pub(crate) fn known_globals() -> impl Iterator<Item = &'static str> {
    GLOBALS.iter().copied()
}

/// Returns the functions whose names arguments cannot have. `prompt` is excluded: it is a function only in a call,
/// because it is a frequent name of arguments.
pub(super) fn fixed_globals() -> impl Iterator<Item = &'static str> {
    known_globals().filter(|name| *name != "prompt")
}

pub(crate) fn is_filter(word: &str) -> bool {
    FILTERS.contains(&word)
}

/// A missing argument prints nothing, and so do its attributes: `{{ options.depth }}` without `options`.
const UNDEFINED: UndefinedBehavior = UndefinedBehavior::Chainable;

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
