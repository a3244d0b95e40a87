//! The template engine as every prompt gets it: which filters and functions there are.

use std::sync::LazyLock;

use minijinja::{AutoEscape, Environment};

use super::{UNDEFINED, filters, functions, kept, print};

/// The functions that a template knows.
pub(super) const GLOBALS: &[&str] = &["role", "attach", "link", "prompt", "range", "dict", "namespace"];

/// Filters of the engine that are not offered. `safe` and `escape` concern
/// HTML; `format` can be told to make a gigabyte from two bytes.
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
    filters::add_to(&mut environment);
    functions::add_to(&mut environment);
    kept::add_to(&mut environment);
    environment
});

/// The environment that all others are copies of.
pub(super) fn shared() -> &'static Environment<'static> {
    &BASE
}

/// A fresh environment. Filters and functions are shared, so that this costs
/// next to nothing and every prompt can have its own.
pub(super) fn base() -> Environment<'static> {
    BASE.clone()
}

/// The filters that a template knows.
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

/// The tests (`x is …`) that a template knows.
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

#[cfg(test)]
mod tests {
    use minijinja::ErrorKind;

    use super::*;

    #[test]
    fn every_filter_and_test_on_the_lists_exists() {
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
