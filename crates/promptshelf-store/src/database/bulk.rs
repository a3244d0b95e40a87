//! Statements over many rows.

use std::fmt::Write as _;

use super::{transaction::Transaction, value::Value};
use crate::StoreError;

/// The largest number of parameters of a statement on PostgreSQL, whose limit is 65,535.
const PARAMETERS: usize = 16_000;

/// The same on SQLite, which searches the names of all parameters for each one, so long statements are slow.
const PARAMETERS_SQLITE: usize = 600;

/// The size in bytes after which a statement ends.
const BYTES: usize = 4 << 20;

/// Inserts rows with as few statements as the limits of the databases permit. `head` is all before `VALUES`, `tail` all
/// after the rows.
pub(crate) async fn insert(
    transaction: &mut Transaction,
    head: &str,
    rows: Box<dyn Iterator<Item = Vec<Value>> + Send + '_>,
    tail: &str,
) -> Result<(), StoreError> {
    let most = if transaction.is_postgres() { PARAMETERS } else { PARAMETERS_SQLITE };
    let mut rows = rows.peekable();
    while let Some(first) = rows.peek() {
        let width = first.len();
        let mut values = Vec::new();
        let mut bytes = 0;
        let mut sql = format!("{head} VALUES ");
        while values.len() + width <= most
            && bytes < BYTES
            && let Some(row) = rows.next()
        {
            let start = values.len();
            sql.push_str(if start == 0 { "(" } else { ", (" });
            numbers(&mut sql, start, width);
            sql.push(')');
            bytes += row.iter().map(size).sum::<usize>();
            values.extend(row);
        }
        let _ = write!(sql, " {tail}");
        transaction.run(sql, values).await?;
    }
    Ok(())
}

/// Returns the parenthesized list of `count` placeholders after the first `start` ones.
pub(crate) fn list(start: usize, count: usize) -> String {
    let mut sql = String::from("(");
    numbers(&mut sql, start, count);
    sql.push(')');
    sql
}

fn numbers(sql: &mut String, start: usize, count: usize) {
    for number in start + 1..=start + count {
        let comma = if number == start + 1 { "" } else { ", " };
        let _ = write!(sql, "{comma}${number}");
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Int(_) => 8,
        Value::Text(text) => text.as_ref().map_or(0, String::len),
        Value::Bytes(bytes) => bytes.as_ref().map_or(0, Vec::len),
    }
}
