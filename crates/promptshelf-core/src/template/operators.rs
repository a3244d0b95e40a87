//! The operators of the language as filters that count their work; `metered` writes them into templates.
//!
//! Authors cannot use their names: `check` reports unknown filters.

use std::sync::LazyLock;

use minijinja::{Environment, Error, ErrorKind, Expression, State, Value, value::ValueKind};

use super::meter::{CHARACTER, COPIED, ITEM, SEARCHED, comparison, left, spend, spend_comparison, spend_deep};

/// A sequence of `+` copies its items once in 32 times (see `MergeSeq` of the engine), and a copy takes half as long as
/// a visit.
const ADDED: u64 = 64;

/// A stored value is copied each time, so it counts a fraction even without growth; texts joined from ten thousand
/// pieces remain possible.
const STORED: u64 = 32;

/// The most levels of a stored value; a loop could nest it in itself any number of times.
const MAX_STORED_DEPTH: usize = 100;

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_filter("__in", contains);
    environment
        .add_filter("__eq", |state: &mut State<'_, '_>, a: &Value, b: &Value| compared(state, a, b, |a, b| a == b));
    environment
        .add_filter("__ne", |state: &mut State<'_, '_>, a: &Value, b: &Value| compared(state, a, b, |a, b| a != b));
    environment
        .add_filter("__lt", |state: &mut State<'_, '_>, a: &Value, b: &Value| compared(state, a, b, |a, b| a < b));
    environment
        .add_filter("__le", |state: &mut State<'_, '_>, a: &Value, b: &Value| compared(state, a, b, |a, b| a <= b));
    environment
        .add_filter("__gt", |state: &mut State<'_, '_>, a: &Value, b: &Value| compared(state, a, b, |a, b| a > b));
    environment
        .add_filter("__ge", |state: &mut State<'_, '_>, a: &Value, b: &Value| compared(state, a, b, |a, b| a >= b));
    environment.add_filter("__times", times);
    environment.add_filter("__slice", slice);
    environment.add_filter("__text", text);
    environment.add_filter("__term", term);
    environment.add_filter("__base", base);
    environment.add_filter("__whole", whole);
    environment.add_filter("__made", made);
    environment.add_filter("__stored", stored);
    environment.add_filter("__item", item);
}

static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(Environment::new);

/// Evaluates an operator of the engine. An error gets the place of the template, not of the expression.
fn evaluated(expression: &Expression<'_, '_>, values: &[(&str, &Value)]) -> Result<Value, Error> {
    let context = Value::from_pairs(values.iter().map(|(name, value)| (*name, (*value).clone())));
    expression.eval(context).map_err(|error| {
        let detail = error.detail().unwrap_or_default().to_owned();
        Error::new(error.kind(), detail)
    })
}

/// `value in container`
fn contains(state: &mut State<'_, '_>, value: &Value, container: &Value) -> Result<Value, Error> {
    static IN: LazyLock<Expression<'static, 'static>> = LazyLock::new(|| compile("value in container"));
    match list_contains(state, value, container)? {
        Some(is_found) => Ok(Value::from(is_found)),
        None => evaluated(&IN, &[("value", value), ("container", container)]),
    }
}

/// `value is in(container)`, which is false where the operator fails.
pub(super) fn is_in(state: &mut State<'_, '_>, value: &Value, container: &Value) -> Result<bool, Error> {
    match list_contains(state, value, container)? {
        Some(is_found) => Ok(is_found),
        None => ENGINE.empty_state().perform_test("in", &[value.clone(), container.clone()]),
    }
}

/// Visits the items of a list one by one, so that only those before the found one count. For other containers, counts
/// the work and returns `None`.
fn list_contains(state: &mut State<'_, '_>, value: &Value, container: &Value) -> Result<Option<bool>, Error> {
    if !matches!(container.kind(), ValueKind::Seq | ValueKind::Iterable) {
        spend_deep(state, value, 1)?;
        spend(state, container.as_str().map_or(0, str::len) as u64 / SEARCHED)?;
        return Ok(None);
    }
    let most = left(state);
    let (mut work, mut is_found) = (0_u64, false);
    for item in container.try_iter()? {
        work = work.saturating_add(ITEM).saturating_add(comparison(value, &item, most)?);
        is_found = item == *value;
        if is_found || work > most {
            break;
        }
    }
    spend(state, work)?;
    Ok(Some(is_found))
}

fn compared(
    state: &mut State<'_, '_>,
    one: &Value,
    other: &Value,
    compare: impl Fn(&Value, &Value) -> bool,
) -> Result<bool, Error> {
    spend_comparison(state, one, other)?;
    Ok(compare(one, other))
}

/// `a * b`. The engine repeats a text or list up to a hundred million times. Operands that are variables have names.
fn times(
    state: &mut State<'_, '_>,
    one: &Value,
    other: &Value,
    one_name: Option<&str>,
    other_name: Option<&str>,
) -> Result<Value, Error> {
    static PRODUCT: LazyLock<Expression<'static, 'static>> = LazyLock::new(|| compile("a * b"));
    if one.is_integer()
        && other.is_integer()
        && let (Some(one), Some(other)) = (one.as_i64(), other.as_i64())
        && let Some(product) = one.checked_mul(other)
    {
        return Ok(Value::from(product));
    }
    let length = |value: &Value| match value.kind() {
        ValueKind::String => value.as_str().map(|text| text.len() as u64),
        ValueKind::Seq | ValueKind::Iterable => value.len().map(|items| (items as u64).saturating_mul(ITEM)),
        _ => None,
    };
    if let Some((length, count)) =
        length(one).map(|length| (length, other)).or_else(|| length(other).map(|length| (length, one)))
    {
        spend(state, length.saturating_mul(count.as_usize().unwrap_or(0) as u64))?;
    }
    let product = evaluated(&PRODUCT, &[("a", one), ("b", other)]);
    let product = product.map_err(|error| {
        // As the engine words it, which resolves names in templates of its own only.
        let undefined = [(one, one_name), (other, other_name)].into_iter().find(|(value, _)| value.is_undefined());
        match undefined.and_then(|(_, name)| name) {
            Some(name) => {
                let detail = error.detail().unwrap_or_default();
                Error::new(error.kind(), format!("{detail} (`{name}` is undefined)"))
            }
            None => error,
        }
    })?;
    settled(state, product)
}

/// `value[start:stop:step]`. The engine reads a list from its beginning, and only when the result is used.
fn slice(state: &mut State<'_, '_>, value: &Value, start: &Value, stop: &Value, step: &Value) -> Result<Value, Error> {
    static SLICE: LazyLock<Expression<'static, 'static>> = LazyLock::new(|| compile("value[start:stop:step]"));
    let work = match value.kind() {
        ValueKind::String => (value.as_str().map_or(0, str::len) as u64).saturating_mul(CHARACTER),
        ValueKind::Seq | ValueKind::Iterable => (value.len().unwrap_or(0) as u64).saturating_mul(ITEM / 2),
        _ => 0,
    };
    spend(state, work)?;
    let sliced = evaluated(&SLICE, &[("value", value), ("start", start), ("stop", stop), ("step", step)])?;
    settled(state, sliced)
}

fn compile(source: &'static str) -> Expression<'static, 'static> {
    ENGINE.compile_expression(source).unwrap_or_else(|error| panic!("{source}: {error}"))
}

/// Turns a lazy result into a list: walking a chain of them would take unbounded time and stack.
pub(super) fn settled(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    if value.kind() != ValueKind::Iterable {
        return Ok(value);
    }
    let most = left(state);
    let mut work = 0_u64;
    let mut items = Vec::new();
    for item in value.try_iter()? {
        work += ITEM;
        if work > most {
            break;
        }
        items.push(item);
    }
    spend(state, work)?;
    Ok(Value::from(items))
}

fn text(state: &mut State<'_, '_>, value: Value, copies: u64) -> Result<Value, Error> {
    match value.as_str() {
        Some(text) => spend(state, (text.len() as u64).saturating_mul(copies) / COPIED)?,
        None => spend_deep(state, &value, copies)?,
    }
    Ok(value)
}

fn term(state: &mut State<'_, '_>, value: Value, copies: u64) -> Result<Value, Error> {
    let work = match value.kind() {
        ValueKind::String => (value.as_str().map_or(0, str::len) as u64).saturating_mul(copies) / COPIED,
        ValueKind::Seq | ValueKind::Iterable => items_size(&value).saturating_mul(copies) / ADDED,
        _ => return Ok(value),
    };
    spend(state, work)?;
    Ok(value)
}

/// The value before `[…]`. Only lists know the place of an item; others are read from their beginning.
fn base(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    if value.kind() == ValueKind::Iterable {
        spend(state, items_size(&value))?;
    }
    Ok(value)
}

/// A value that is walked as a whole, such as the arguments of `f(*values)`.
fn whole(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    spend_deep(state, &value, 1)?;
    Ok(value)
}

/// The text of a macro or a block, parts of which may be the template's own.
fn made(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    spend(state, value.as_str().map_or(0, str::len) as u64 / COPIED)?;
    Ok(value)
}

/// A value that a namespace stores: texts can grow from one iteration of a loop to the next. Counts its growth.
fn stored(state: &mut State<'_, '_>, value: Value, before: &Value) -> Result<Value, Error> {
    let size = |value: &Value| match value.kind() {
        ValueKind::String => value.as_str().map_or(0, str::len) as u64,
        _ => items_size(value),
    };
    let (now, before) = (size(&value), size(before));
    spend(state, now.saturating_sub(before).saturating_add(now / STORED))?;
    let mut inner = value.clone();
    for _ in 0..MAX_STORED_DEPTH {
        let Some(first) = first_item(&inner) else { return Ok(value) };
        inner = first;
    }
    Err(Error::new(ErrorKind::InvalidOperation, "a value is nested too deeply"))
}

fn first_item(value: &Value) -> Option<Value> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => value.try_iter().ok()?.next(),
        ValueKind::Map => value.try_iter().ok()?.next().and_then(|key| value.get_item(&key).ok()),
        _ => None,
    }
}

fn item(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    match value.as_str() {
        Some(text) => spend(state, text.len() as u64)?,
        None => spend_deep(state, &value, 1)?,
    }
    Ok(value)
}

fn items_size(value: &Value) -> u64 {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => (value.len().unwrap_or(0) as u64).saturating_mul(ITEM),
        _ => 0,
    }
}
