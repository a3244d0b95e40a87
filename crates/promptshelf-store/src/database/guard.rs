//! A lock between the processes that use a store, which ends with its holder.

use std::fs::{File, TryLockError};

use super::{
    pool::{Database, Mode, private_file},
    transaction::Transaction,
};
use crate::{
    StoreError,
    address::{Place, StoreUrl},
};

const TRY_LOCK: &str = "SELECT CAST(CASE WHEN pg_try_advisory_xact_lock(8101813019) THEN 1 ELSE 0 END AS BIGINT)";

/// The lock of the process that delivers webhooks: an advisory lock of PostgreSQL, held by an open transaction because a
/// pooler may give a session to others; for SQLite a lock on a file next to the database. Both end with the process.
pub(crate) enum Guard {
    Postgres(Transaction),
    Sqlite(#[expect(dead_code, reason = "kept open for its lock")] File),
}

impl Guard {
    /// Takes the lock, or returns `None` if another process or another store of this one has it.
    pub(crate) async fn try_lock(database: &Database, url: &StoreUrl) -> Result<Option<Guard>, StoreError> {
        match url.place() {
            Place::Postgres(_) => {
                let mut transaction = database.begin(Mode::Guard).await?;
                let row = transaction.row(TRY_LOCK, vec![]).await;
                let is_locked = row.and_then(|row| row.map_or(Ok(0), |row| row.int(0)));
                match is_locked {
                    Ok(1) => Ok(Some(Guard::Postgres(transaction))),
                    other => transaction.finish(other.map(|_| None)).await,
                }
            }
            Place::Sqlite(path) => {
                let mut name = path.clone().into_os_string();
                name.push("-webhooks");
                let failed = |error: std::io::Error| StoreError::Database {
                    reason: format!("the file {} cannot be locked: {error}", name.display()),
                    source: Some(std::sync::Arc::new(error)),
                };
                let file = private_file().create(true).truncate(false).open(&name).map_err(failed)?;
                match file.try_lock() {
                    Ok(()) => Ok(Some(Guard::Sqlite(file))),
                    Err(TryLockError::WouldBlock) => Ok(None),
                    Err(TryLockError::Error(error)) => Err(failed(error)),
                }
            }
        }
    }

    pub(crate) async fn is_held(&mut self) -> bool {
        match self {
            Guard::Postgres(transaction) => transaction.run("SELECT 1", vec![]).await.is_ok(),
            Guard::Sqlite(_) => true,
        }
    }

    /// Releases the lock. A dropped one is released too, with its connection.
    pub(crate) async fn release(self) {
        if let Guard::Postgres(transaction) = self {
            transaction.finish(Ok(())).await.ok();
        }
    }
}
