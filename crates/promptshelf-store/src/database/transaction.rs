//! A transaction on either database.

use std::{borrow::Cow, time::Duration};

use futures_util::{StreamExt, stream::BoxStream};
use sqlx::{AssertSqlSafe, Postgres, Sqlite, pool::PoolConnection};

use super::{
    failure,
    pool::{DiskState, Fault, Faults},
    timed_out,
    value::{Row, Value},
};
use crate::StoreError;

/// The longest wait for the next row or the end of a statement. Longer than the limits that the server enforces, so that
/// it ends the wait only if the server is silent.
const SILENCE: Duration = Duration::from_secs(12);

/// The same for a file, which only a broken disk keeps silent.
const DISK: Duration = Duration::from_secs(120);

pub(crate) const CHANNEL_OF_HINTS: &str = "promptshelf";

/// A transaction. Dropped without [`Transaction::finish`], it is rolled back, and its connection is closed.
pub(crate) struct Transaction {
    connection: Connection,
    is_finished: bool,
    /// Whether nothing that it does is kept.
    is_discarded: bool,
    disk: Option<DiskState>,
    faults: Faults,
}

pub(super) enum Connection {
    Postgres(PoolConnection<Postgres>),
    Sqlite(PoolConnection<Sqlite>),
}

macro_rules! fetch {
    ($database:ty, $connection:expr, $row:path, $sql:expr, $values:expr, $persistent:expr, $limit:expr) => {{
        let mut query = sqlx::query::<$database>(AssertSqlSafe($sql)).persistent($persistent);
        for value in $values {
            query = match value {
                Value::Int(value) => query.bind(value),
                Value::Text(value) => query.bind(value),
                Value::Bytes(value) => query.bind(value),
            };
        }
        let mut stream = query.fetch(&mut **$connection);
        let mut rows = Vec::new();
        while let Some(row) = in_time($limit, stream.next()).await? {
            rows.push($row(row.map_err(failure)?));
        }
        Ok(rows)
    }};
}

/// The rows of a result, as they arrive.
pub(crate) struct Rows<'a> {
    rows: BoxStream<'a, Result<Row, sqlx::Error>>,
    limit: Duration,
}

impl Rows<'_> {
    pub(crate) async fn next(&mut self) -> Result<Option<Row>, StoreError> {
        in_time(self.limit, self.rows.next()).await?.transpose().map_err(failure)
    }
}

impl Transaction {
    /// Begins a transaction with statements that take no parameters.
    pub(super) async fn begin(
        connection: Connection,
        statements: &'static str,
        faults: &Faults,
    ) -> Result<Transaction, StoreError> {
        let faults = faults.clone();
        let mut transaction = Transaction { connection, is_finished: false, is_discarded: false, disk: None, faults };
        transaction.script(statements).await?;
        Ok(transaction)
    }

    pub(super) fn on(self, disk: DiskState) -> Transaction {
        let mut transaction = self;
        transaction.disk = Some(disk);
        transaction
    }

    pub(super) fn discarded(self) -> Transaction {
        let mut transaction = self;
        transaction.is_discarded = true;
        transaction
    }

    pub(crate) async fn rows(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, StoreError> {
        let sql: Cow<'static, str> = sql.into();
        // PostgreSQL has no texts with it, and SQLite must not answer otherwise.
        if values.iter().any(|value| matches!(value, Value::Text(Some(text)) if text.contains('\0'))) {
            return Err(StoreError::invalid("a name or text has the character NUL, which none may have: leave it out"));
        }
        let fault = self.fault()?;
        let rows = match &mut self.connection {
            // Unnamed statements: a pooler may give the next transaction another connection.
            Connection::Postgres(connection) => {
                fetch!(Postgres, connection, Row::Postgres, sql, values, false, SILENCE)
            }
            Connection::Sqlite(connection) => fetch!(Sqlite, connection, Row::Sqlite, sql, values, true, DISK),
        };
        fault.map_or(rows, Err)
    }

    /// Fails as a test wants it before a statement. Returns the error after it.
    fn fault(&self) -> Result<Option<StoreError>, StoreError> {
        match self.faults.next() {
            None => Ok(None),
            Some(Fault::Unanswered) => Ok(Some(Fault::Unanswered.error())),
            Some(fault) => Err(fault.error()),
        }
    }

    /// Returns the rows of a statement without parameters, however many there are.
    pub(crate) fn stream(&mut self, sql: String) -> Rows<'_> {
        let sql = AssertSqlSafe(sql);
        match &mut self.connection {
            Connection::Postgres(connection) => {
                let rows = sqlx::query::<Postgres>(sql).persistent(false).fetch(&mut **connection);
                Rows { rows: rows.map(|row| row.map(Row::Postgres)).boxed(), limit: SILENCE }
            }
            Connection::Sqlite(connection) => {
                let rows = sqlx::query::<Sqlite>(sql).fetch(&mut **connection);
                Rows { rows: rows.map(|row| row.map(Row::Sqlite)).boxed(), limit: DISK }
            }
        }
    }

    /// Lifts the limit of the database for a statement, for results that are read over minutes.
    pub(crate) async fn without_limits(&mut self) -> Result<(), StoreError> {
        if self.is_postgres() { self.script("SET LOCAL statement_timeout = 0").await } else { Ok(()) }
    }

    pub(crate) async fn row(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        values: Vec<Value>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Runs a statement without a result.
    pub(crate) async fn run(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        values: Vec<Value>,
    ) -> Result<(), StoreError> {
        self.rows(sql, values).await.map(|_| ())
    }

    /// Runs statements without parameters and results.
    pub(crate) async fn script(&mut self, sql: impl Into<Cow<'static, str>>) -> Result<(), StoreError> {
        let script = sqlx::raw_sql(AssertSqlSafe(sql.into()));
        let fault = self.fault()?;
        let done = match &mut self.connection {
            Connection::Postgres(connection) => {
                in_time(SILENCE, script.execute(&mut **connection)).await?.map(|_| ()).map_err(failure)
            }
            Connection::Sqlite(connection) => {
                in_time(DISK, script.execute(&mut **connection)).await?.map(|_| ()).map_err(failure)
            }
        };
        fault.map_or(done, Err)
    }

    /// Commits if the result is a success, and rolls back otherwise.
    pub(crate) async fn finish<T>(mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        let disk = self.disk.take();
        let finished = self.end(result).await;
        match (disk, &finished) {
            (Some(disk), Ok(_)) => disk.set_full(false),
            (Some(disk), Err(StoreError::Full { .. })) => disk.set_full(true),
            _ => {}
        }
        finished
    }

    async fn end<T>(mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        match result {
            Ok(value) if self.is_discarded => {
                self.script("ROLLBACK").await?;
                self.is_finished = true;
                Ok(value)
            }
            Ok(value) => {
                self.script("COMMIT").await.map_err(|error| match error {
                    StoreError::Unreachable { reason, source } => StoreError::Unreachable {
                        reason: format!(
                            "{reason}; if something was to be changed, look whether it was before you try again"
                        ),
                        source,
                    },
                    other => other,
                })?;
                self.is_finished = true;
                Ok(value)
            }
            Err(error) => {
                // A connection that does not answer is closed on drop.
                let is_alive = !matches!(error, StoreError::Unreachable { .. });
                self.is_finished = is_alive && self.script("ROLLBACK").await.is_ok();
                Err(error)
            }
        }
    }

    pub(crate) async fn notify(&mut self, payload: &str) -> Result<(), StoreError> {
        if self.is_postgres() {
            let sql = "SELECT pg_notify($1, $2)";
            self.run(sql, vec![CHANNEL_OF_HINTS.into(), payload.into()]).await?;
        }
        Ok(())
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.connection, Connection::Postgres(_))
    }

    /// The end of a SELECT that locks its rows. SQLite has locked the whole file by then.
    pub(crate) fn for_update(&self) -> &'static str {
        if self.is_postgres() { " FOR UPDATE" } else { "" }
    }

    pub(crate) fn now(&self) -> &'static str {
        if self.is_postgres() {
            // Not `now()`: that is the start of the transaction, before it waited for a lock.
            "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"
        } else {
            "CAST(unixepoch('subsec') * 1000000 AS INTEGER)"
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.is_finished {
            match &mut self.connection {
                Connection::Postgres(connection) => connection.close_on_drop(),
                Connection::Sqlite(connection) => connection.close_on_drop(),
            }
        }
    }
}

async fn in_time<T>(limit: Duration, answer: impl Future<Output = T>) -> Result<T, StoreError> {
    tokio::time::timeout(limit, answer).await.map_err(|_| timed_out())
}
