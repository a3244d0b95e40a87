//! Filters and tests of the engine that walk a value, with their work counted.
//!
//! The engine counts one step for each of them, whatever the size of the value. The results of lazy filters are
//! collected at once.
//!
//! Elsewhere: filters with another result than the engine's (`filters`), and operators (`operators`).

use minijinja::{
    Environment, Error, ErrorKind, State, Value, filters, tests,
    value::{Rest, ValueKind, ValueOrKwargs},
};

use super::{
    meter::{CHARACTER, ITEM, MEMBER, SEARCHED, spend, spend_comparison, spend_deep},
    operators::{is_in, settled},
};

const CALL: u64 = 128;

#[derive(Clone, Copy)]
enum Work {
    /// The length of a text; nothing for a list.
    Length,
    Items,
    Calls,
    Whole,
    Characters,
    Sort,
    Product,
    Sum,
}

/// What a filter or test does that cannot be applied to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// It fails. For the check, which finds mistakes in the template itself.
    Fails,
    /// A filter returns the value as it is, and a test is false: a template that the check accepts renders for all values.
    IsPassedOver,
}

impl Misfit {
    pub(super) fn filter(
        self,
        filter: impl Fn(&mut State<'_, '_>, &Value, &[Value]) -> Result<Value, Error> + Send + Sync + 'static,
    ) -> impl Fn(&mut State<'_, '_>, &Value, Rest<ValueOrKwargs>) -> Result<Value, Error> + Send + Sync + 'static {
        move |state, value, arguments| {
            let mut values = vec![value.clone()];
            values.extend(arguments.into_values());
            match filter(state, value, &values) {
                // A missing value stays missing.
                Err(error) if self.passes_over(&error) && value.is_none() => Ok(Value::UNDEFINED),
                Err(error) if self.passes_over(&error) => Ok(value.clone()),
                result => result,
            }
        }
    }

    fn test(self, result: Result<bool, Error>) -> Result<bool, Error> {
        match result {
            Err(error) if self.passes_over(&error) => Ok(false),
            result => result,
        }
    }

    /// Whether an error is not about the budget. The check has found the mistakes of the template itself.
    fn passes_over(self, error: &Error) -> bool {
        self == Misfit::IsPassedOver && error.kind() != ErrorKind::OutOfFuel
    }
}

pub(super) fn add_to(environment: &mut Environment<'static>, misfit: Misfit) {
    let mut add =
        |name: &'static str, work: Work, filter: Value| environment.add_filter(name, filter_with(misfit, work, filter));
    for (name, filter) in [
        ("abs", Value::from_function(filters::abs)),
        ("attr", Value::from_function(filters::attr)),
        ("count", Value::from_function(filters::length)),
        ("first", Value::from_function(filters::first)),
        ("float", Value::from_function(filters::float)),
        ("int", Value::from_function(filters::int)),
        ("last", Value::from_function(filters::last)),
        ("length", Value::from_function(filters::length)),
        ("round", Value::from_function(filters::round)),
    ] {
        add(name, Work::Length, filter);
    }
    for (name, filter) in [
        ("chain", Value::from_function(chain)),
        ("items", Value::from_function(filters::items)),
        ("list", Value::from_function(filters::list)),
        ("zip", Value::from_function(filters::zip)),
    ] {
        add(name, Work::Items, filter);
    }
    for (name, filter) in [
        ("map", Value::from_function(filters::map)),
        ("reject", Value::from_function(filters::reject)),
        ("rejectattr", Value::from_function(filters::rejectattr)),
        ("select", Value::from_function(filters::select)),
        ("selectattr", Value::from_function(filters::selectattr)),
    ] {
        add(name, Work::Calls, filter);
    }
    for (name, filter) in [
        ("capitalize", Value::from_function(filters::capitalize)),
        ("lines", Value::from_function(filters::lines)),
        ("lower", Value::from_function(filters::lower)),
        ("split", Value::from_function(filters::split)),
        ("upper", Value::from_function(filters::upper)),
        ("urlencode", Value::from_function(filters::urlencode)),
    ] {
        add(name, Work::Whole, filter);
    }
    for (name, filter) in [
        ("max", Value::from_function(filters::max)),
        ("min", Value::from_function(filters::min)),
        ("pprint", Value::from_function(filters::pprint)),
        ("reverse", Value::from_function(filters::reverse)),
        ("title", Value::from_function(filters::title)),
    ] {
        add(name, Work::Characters, filter);
    }
    for (name, filter) in [
        ("dictsort", Value::from_function(filters::dictsort)),
        ("groupby", Value::from_function(filters::groupby)),
        ("sort", Value::from_function(filters::sort)),
        ("unique", Value::from_function(filters::unique)),
    ] {
        add(name, Work::Sort, filter);
    }
    add("sum", Work::Sum, Value::from_function(filters::sum));
    add("trim", Work::Product, Value::from_function(filters::trim));

    for (names, test) in [
        (&["==", "eq", "equalto"][..], Value::from_function(tests::is_eq)),
        (&["!=", "ne"], Value::from_function(tests::is_ne)),
        (&["<", "lt", "lessthan"], Value::from_function(tests::is_lt)),
        (&["<=", "le"], Value::from_function(tests::is_le)),
        (&[">", "gt", "greaterthan"], Value::from_function(tests::is_gt)),
        (&[">=", "ge"], Value::from_function(tests::is_ge)),
        (&["sameas"], Value::from_function(tests::is_sameas)),
    ] {
        for name in names {
            let test = test.clone();
            environment.add_test(*name, move |state: &mut State<'_, '_>, value: &Value, other: &Value| {
                spend_comparison(state, value, other)?;
                misfit.test(test.call(state, &[value.clone(), other.clone()]).map(|answer| answer.is_true()))
            });
        }
    }
    for (name, test) in [
        ("divisibleby", Value::from_function(is_divisible)),
        ("even", Value::from_function(tests::is_even)),
        ("filter", Value::from_function(tests::is_filter)),
        ("odd", Value::from_function(tests::is_odd)),
        ("test", Value::from_function(tests::is_test)),
        ("lower", Value::from_function(tests::is_lower)),
        ("upper", Value::from_function(tests::is_upper)),
        ("startingwith", Value::from_function(tests::is_startingwith)),
        ("endingwith", Value::from_function(tests::is_endingwith)),
    ] {
        environment.add_test(name, move |state: &mut State<'_, '_>, value: &Value, others: Rest<Value>| {
            for value in std::iter::once(value).chain(others.iter()) {
                spend_deep(state, value, CHARACTER)?;
            }
            let values: Vec<Value> = std::iter::once(value.clone()).chain(others.0).collect();
            misfit.test(test.call(state, &values).map(|answer| answer.is_true()))
        });
    }
    environment.add_test("in", move |state: &mut State<'_, '_>, value: &Value, container: &Value| {
        misfit.test(is_in(state, value, container))
    });
}

/// The engine's `chain`, which finds out only when its result is used that a value has no items.
fn chain(state: &mut State<'_, '_>, value: &Value, others: Rest<Value>) -> Result<Value, Error> {
    for value in std::iter::once(value).chain(others.iter()) {
        value.try_iter()?;
    }
    let values: Vec<Value> = std::iter::once(value.clone()).chain(others.0).collect();
    Value::from_function(filters::chain).call(state, &values)
}

/// `value is divisibleby(other)`. The engine panics for zero.
fn is_divisible(value: &Value, other: &Value) -> bool {
    f64::try_from(other.clone()).is_ok_and(|other| other != 0.0) && tests::is_divisibleby(value, other)
}

fn filter_with(
    misfit: Misfit,
    work: Work,
    filter: Value,
) -> impl Fn(&mut State<'_, '_>, &Value, Rest<ValueOrKwargs>) -> Result<Value, Error> + Send + Sync + 'static {
    misfit.filter(move |state, value, values| {
        spend_work(state, work, value, &values[1..])?;
        let result = filter.call(state, values)?;
        let result = settled(state, result)?;
        match (result.kind(), work) {
            (ValueKind::Seq, Work::Length) => Ok(result),
            (ValueKind::Seq, _) => {
                spend(state, (result.len().unwrap_or(0) as u64).saturating_mul(ITEM))?;
                Ok(result)
            }
            // The engine chains mappings without merging them, any number of times.
            (ValueKind::Map, Work::Items) => {
                let pairs: Result<Vec<(Value, Value)>, Error> =
                    result.try_iter()?.map(|key| result.get_item(&key).map(|item| (key, item))).collect();
                Ok(pairs?.into_iter().collect())
            }
            _ => Ok(result),
        }
    })
}

fn spend_work(state: &mut State<'_, '_>, work: Work, value: &Value, arguments: &[Value]) -> Result<(), Error> {
    let characters = value.as_str().map(|text| text.len() as u64);
    let items = || value.len().unwrap_or(0) as u64;
    let walked = match work {
        Work::Length if value.kind() == ValueKind::Iterable => items().saturating_mul(ITEM),
        Work::Length => characters.unwrap_or(0) / SEARCHED,
        Work::Items if value.kind() == ValueKind::Map => items().saturating_mul(MEMBER),
        Work::Items => characters.unwrap_or_else(|| items().saturating_mul(ITEM)),
        Work::Calls => characters.unwrap_or_else(items).saturating_mul(CALL),
        // The text of a list is written item by item.
        Work::Whole => return spend_all(state, value, if characters.is_some() { 1 } else { 2 }, arguments),
        Work::Characters => match characters {
            Some(bytes) => bytes.saturating_mul(5 * CHARACTER),
            None => return spend_all(state, value, 4, arguments),
        },
        Work::Sort => {
            let passes = u64::from(items().checked_ilog2().unwrap_or(0)) + 1;
            // Each character of a text becomes a value.
            return spend_all(state, value, if characters.is_some() { 2 * passes } else { passes }, arguments);
        }
        Work::Product => {
            let searched: usize = arguments.iter().filter_map(Value::as_str).map(str::len).sum();
            return spend_all(state, value, searched.max(1) as u64, arguments);
        }
        // A sum of lists copies them once in 32 times (see `MergeSeq` of the engine).
        Work::Sum if arguments.is_empty() => items().saturating_mul(ITEM),
        Work::Sum => return spend_all(state, value, items() / 32 + 1, arguments),
    };
    spend(state, walked)?;
    arguments.iter().try_for_each(|argument| spend_deep(state, argument, 1))
}

fn spend_all(state: &mut State<'_, '_>, value: &Value, times: u64, arguments: &[Value]) -> Result<(), Error> {
    spend_deep(state, value, times)?;
    arguments.iter().try_for_each(|argument| spend_deep(state, argument, 1))
}
