//! Values that are sent to a database, and rows that it returns.

use std::sync::Arc;

use jiff::Timestamp;
use sqlx::{ColumnIndex, Row as _, postgres::PgRow, sqlite::SqliteRow};

use super::failure;
use crate::{StoreError, model::Digest};

/// A parameter of a statement. `None` is a typed NULL, which PostgreSQL needs.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Int(Some(number))
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        // No row has a number above `i64::MAX`, so the comparison with it has the same result.
        Value::Int(Some(i64::try_from(number).unwrap_or(i64::MAX)))
    }
}

impl From<Option<u64>> for Value {
    fn from(number: Option<u64>) -> Value {
        number.map_or(Value::Int(None), Value::from)
    }
}

impl From<Timestamp> for Value {
    fn from(time: Timestamp) -> Value {
        Value::Int(Some(time.as_microsecond()))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(Some(text.to_owned()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(Some(text))
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Value {
        Value::Text(text.map(str::to_owned))
    }
}

impl From<Digest> for Value {
    fn from(digest: Digest) -> Value {
        Value::Bytes(Some(digest.bytes().to_vec()))
    }
}

impl From<Option<Digest>> for Value {
    fn from(digest: Option<Digest>) -> Value {
        Value::Bytes(digest.map(|digest| digest.bytes().to_vec()))
    }
}

impl From<&Arc<[u8]>> for Value {
    fn from(bytes: &Arc<[u8]>) -> Value {
        Value::Bytes(Some(bytes.to_vec()))
    }
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Int,
    Text,
    Bytes,
}

/// A row of a result. Columns are read by name; that of a single value by its position.
pub(crate) enum Row {
    Postgres(PgRow),
    Sqlite(SqliteRow),
}

/// The name of a column, or its position.
pub(crate) trait Column: ColumnIndex<PgRow> + ColumnIndex<SqliteRow> {}

impl<T: ColumnIndex<PgRow> + ColumnIndex<SqliteRow>> Column for T {}

macro_rules! column {
    ($row:expr, $index:expr) => {
        match $row {
            Row::Postgres(row) => row.try_get($index),
            Row::Sqlite(row) => row.try_get($index),
        }
        .map_err(failure)
    };
}

impl Row {
    /// Returns a value as it is written again.
    pub(crate) fn value(&self, column: &str, kind: ColumnType) -> Result<Value, StoreError> {
        Ok(match kind {
            ColumnType::Int => Value::Int(column!(self, column)?),
            ColumnType::Text => Value::Text(column!(self, column)?),
            ColumnType::Bytes => Value::Bytes(column!(self, column)?),
        })
    }

    pub(crate) fn int(&self, column: impl Column) -> Result<i64, StoreError> {
        column!(self, column)
    }

    /// Returns a number that is never negative, such as that of a revision.
    pub(crate) fn number(&self, column: impl Column) -> Result<u64, StoreError> {
        u64::try_from(self.int(column)?).map_err(|_| malformed("a negative number"))
    }

    /// Returns a number or `None` for NULL.
    pub(crate) fn optional_number(&self, column: impl Column) -> Result<Option<u64>, StoreError> {
        let number: Option<i64> = column!(self, column)?;
        number.map(|number| u64::try_from(number).map_err(|_| malformed("a negative number"))).transpose()
    }

    pub(crate) fn time(&self, column: impl Column) -> Result<Timestamp, StoreError> {
        Timestamp::from_microsecond(self.int(column)?).map_err(|_| malformed("a time out of range"))
    }

    /// Returns a time or `None` for NULL.
    pub(crate) fn optional_time(&self, column: impl Column) -> Result<Option<Timestamp>, StoreError> {
        let number: Option<i64> = column!(self, column)?;
        let time = |number| Timestamp::from_microsecond(number).map_err(|_| malformed("a time out of range"));
        number.map(time).transpose()
    }

    pub(crate) fn text(&self, column: impl Column) -> Result<String, StoreError> {
        column!(self, column)
    }

    /// Returns a text or `None` for NULL.
    pub(crate) fn optional_text(&self, column: impl Column) -> Result<Option<String>, StoreError> {
        column!(self, column)
    }

    /// Returns bytes.
    pub(crate) fn bytes(&self, column: impl Column) -> Result<Vec<u8>, StoreError> {
        column!(self, column)
    }

    pub(crate) fn digest(&self, column: impl Column) -> Result<Digest, StoreError> {
        Digest::from_bytes(&self.bytes(column)?).ok_or_else(|| malformed("a digest that has not 32 bytes"))
    }

    /// Returns a digest or `None` for NULL.
    pub(crate) fn optional_digest(&self, column: impl Column) -> Result<Option<Digest>, StoreError> {
        let bytes: Option<Vec<u8>> = column!(self, column)?;
        let digest =
            |bytes: Vec<u8>| Digest::from_bytes(&bytes).ok_or_else(|| malformed("a digest that has not 32 bytes"));
        bytes.map(digest).transpose()
    }

    pub(crate) fn json<T: serde::de::DeserializeOwned>(&self, column: impl Column) -> Result<T, StoreError> {
        from_json(&self.text(column)?)
    }

    /// Returns a value from JSON or `None` for NULL.
    pub(crate) fn optional_json<T: serde::de::DeserializeOwned>(
        &self,
        column: impl Column,
    ) -> Result<Option<T>, StoreError> {
        self.optional_text(column)?.map(|text| from_json(&text)).transpose()
    }
}

fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| malformed(&format!("JSON with an error: {error}")))
}

pub(crate) fn json(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::invalid(error.to_string()))
}

/// Reports a stored value that this program never writes.
pub(crate) fn malformed(what: &str) -> StoreError {
    StoreError::Database { reason: format!("a row contains {what}; was it changed by another program?"), source: None }
}
