//! Connections, transactions and migrations on SQLite and PostgreSQL behind one interface.
//!
//! Both databases understand the same statements: `$1` placeholders, three types, multi-row `VALUES`, `RETURNING`. The
//! few differences are methods of [`Transaction`].

mod migrate;
mod pool;
mod transaction;
mod value;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{File, TryLockError},
    path::{Path, PathBuf},
    sync::Arc,
};

use migrate::after;
use parking_lot::Mutex;
use pool::Faults;
use sqlx::error::DatabaseError;
use transaction::Connection;

use crate::{
    StoreError,
    address::{Place, StoreUrl},
};

pub(crate) use migrate::{KNOWN_MAJOR, Migrated, NEWEST, Table, VERSIONS, is_foreign, migrate, tables, version};
pub use pool::Fault;
pub(crate) use pool::{Database, Mode, listener_pool, private_file, readable, settle};
pub(crate) use transaction::{CHANNEL_OF_HINTS, Transaction};
pub(crate) use value::{Row, Value, json, malformed};

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

// The identity of an open SQLite file: another file can be moved to its path, and the connections do not notice it.
// SQLite would apply the log (`…-wal`) of the old file to the new one, so the log has to go before the new file is
// opened (<https://www.sqlite.org/howtocorrupt.html>, section 1.4).

type FileId = (u64, u64);

#[derive(Debug)]
pub(crate) struct OpenFile {
    path: PathBuf,
    ids: Mutex<Ids>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ids {
    file: Option<FileId>,
    log: Option<FileId>,
}

impl OpenFile {
    /// Remembers the file at a path, before it is opened or after it was created.
    pub(crate) fn new(path: &Path) -> OpenFile {
        let ids = Ids { file: id(path), log: None };
        OpenFile { path: path.to_owned(), ids: Mutex::new(ids) }
    }

    /// Returns whether a path is another name of the file.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let known = self.ids.lock().file;
        known.is_some() && id(path) == known
            || std::fs::canonicalize(path).is_ok_and(|it| std::fs::canonicalize(&self.path).is_ok_and(|own| own == it))
    }

    pub(crate) fn is_replaced(&self) -> Result<bool, StoreError> {
        let mut ids = self.ids.lock();
        let present = id(&self.path);
        if ids.file.is_none() {
            // The store was being created.
            ids.file = present;
        }
        if present == ids.file {
            ids.log = id(&self.companion("-wal")).or(ids.log);
            return Ok(false);
        }
        if present.is_some() {
            return Ok(true);
        }
        let reason = format!("the file {} was moved or removed while it was open", self.path.display());
        Err(StoreError::Unreachable { reason, source: None })
    }

    /// Removes the log of the replaced file, unless it is already that of the new one. The connections are closed.
    pub(crate) fn remove_log(&self) {
        let ids = *self.ids.lock();
        let log = self.companion("-wal");
        if ids.log.is_some() && id(&log) == ids.log {
            // Another process may have removed them.
            std::fs::remove_file(log).ok();
            std::fs::remove_file(self.companion("-shm")).ok();
        }
    }

    fn companion(&self, suffix: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(suffix);
        path.into()
    }
}

#[cfg(unix)]
fn id(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt as _;

    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Elsewhere an open file cannot be replaced.
#[cfg(not(unix))]
fn id(_: &Path) -> Option<FileId> {
    None
}

/// Converts an error of a driver. The texts of the drivers never contain a password; those about the configuration may
/// contain parts of the URL, and are not passed on.
pub(crate) fn failure(error: sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::Database(ref database) => {
            let reason = database.message().to_owned();
            match class(&**database) {
                Class::Unreachable => unreachable(reason, error),
                Class::Busy => unreachable(format!("another process holds a lock for too long ({reason})"), error),
                Class::Missing => StoreError::NotFound { what: missing(&reason) },
                Class::Full => StoreError::Full { reason, source: Some(Arc::new(error)) },
                // SQLite does not say why.
                Class::Refused if reason.starts_with("unable to open database file") => {
                    refused(format!("{reason}: the program needs the right to read and write it and its folder"), error)
                }
                Class::Refused => refused(reason, error),
            }
        }
        sqlx::Error::Io(ref cause) => unreachable(cause.to_string(), error),
        sqlx::Error::Tls(ref cause) => unreachable(format!("TLS: {cause}"), error),
        sqlx::Error::Protocol(_) => unreachable("the answer is not that of PostgreSQL".to_owned(), error),
        sqlx::Error::PoolTimedOut => unreachable("no connection within the time limit".to_owned(), error),
        sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => {
            unreachable("the connection is closed".to_owned(), error)
        }
        sqlx::Error::Configuration(_) | sqlx::Error::InvalidArgument(_) => StoreError::InvalidUrl {
            reason: "the settings of the connection are invalid: check the URL and the PG… environment variables"
                .to_owned(),
        },
        _ => refused(error.to_string(), error),
    }
}

/// Returns the error for a statement without an answer in time.
pub(crate) fn timed_out() -> StoreError {
    StoreError::Unreachable { reason: "the database did not answer within the time limit".to_owned(), source: None }
}

enum Class {
    Unreachable,
    Busy,
    Missing,
    Full,
    Refused,
}

fn class(error: &dyn DatabaseError) -> Class {
    let code = error.code();
    let code = code.as_deref().unwrap_or_default();
    // Class and condition codes: PostgreSQL, appendix A. Result codes: sqlite.org/rescode.html.
    if let Ok(code) = code.parse::<u32>()
        && error.try_downcast_ref::<sqlx::sqlite::SqliteError>().is_some()
    {
        return match code & 0xff {
            5 | 6 => Class::Busy,
            13 => Class::Full,
            // Writing or mapping beyond the end of the space, beyond a limit of the size of files, or on a failing disk.
            10 if matches!(code, 778 | 4874) => Class::Full,
            _ => Class::Refused,
        };
    }
    match code {
        "55P03" => Class::Busy,
        "57014" | "57P01" | "57P02" | "57P03" | "57P05" | "53300" => Class::Unreachable,
        "3D000" => Class::Missing,
        "53100" => Class::Full,
        _ if code.starts_with("08") => Class::Unreachable,
        _ => Class::Refused,
    }
}

/// PostgreSQL's words are `database "x" does not exist`; `NotFound` appends the verb itself.
fn missing(message: &str) -> String {
    let name = message.strip_suffix(" does not exist").unwrap_or(message);
    format!("the {name}")
}

fn unreachable(reason: String, source: sqlx::Error) -> StoreError {
    StoreError::Unreachable { reason, source: Some(Arc::new(source)) }
}

fn refused(reason: String, source: sqlx::Error) -> StoreError {
    StoreError::Database { reason, source: Some(Arc::new(source)) }
}

// Reading a store whose schema is older than this release, without migrating it.
// What the missing migrations add is made up within each transaction, which is rolled back at its end: temporary tables
// without rows, and temporary views that have the missing columns with their defaults. Names of temporary objects come
// before those of the store, so that every statement works as it is.

#[derive(Debug)]
pub(crate) struct OlderSchema {
    present: u64,
    postgres: String,
    sqlite: String,
}

impl OlderSchema {
    /// `present` is the number of the newest migration that the store has.
    fn new(present: u64) -> OlderSchema {
        let missing: Vec<&str> = after(present).collect();
        let of = |bytes, id, main| stand_ins(&missing, main).replace("{BYTES}", bytes).replace("{ID}", id);
        OlderSchema {
            present,
            postgres: of("BYTEA", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY", ""),
            sqlite: of("BLOB", "INTEGER PRIMARY KEY AUTOINCREMENT", "main."),
        }
    }

    async fn begin(&self, connection: Connection, begin: &'static str) -> Result<Transaction, StoreError> {
        let mut transaction = Transaction::begin(connection, begin, &Faults::default()).await?.discarded();
        let statements = if transaction.is_postgres() { &self.postgres } else { &self.sqlite };
        transaction.script(statements.clone()).await?;
        Ok(transaction)
    }

    fn refuse_changes(&self) -> StoreError {
        let present = self.present;
        StoreError::state(format!("the store has the older schema {present}, and was opened for reading"))
    }
}

/// Returns the statements for missing migrations. `main` is the prefix of the store's own tables.
fn stand_ins(missing: &[&str], main: &str) -> String {
    let mut tables = Vec::new();
    let mut columns: BTreeMap<&str, String> = BTreeMap::new();
    let mut script = String::new();
    let without_comments: Vec<String> = missing.iter().map(|sql| without_comments(sql)).collect();
    for statement in without_comments.iter().flat_map(|sql| sql.split(';')).map(str::trim) {
        let words: Vec<&str> = statement.split_whitespace().collect();
        match words.as_slice() {
            ["CREATE", "TABLE", table, ..] => {
                let _ = writeln!(script, "{};", statement.replacen("CREATE", "CREATE TEMP", 1));
                tables.push(*table);
            }
            ["ALTER", "TABLE", table, "ADD", "COLUMN", ..] if tables.contains(table) => {
                let _ = writeln!(script, "{statement};");
            }
            ["ALTER", "TABLE", table, "ADD", "COLUMN", column, kind, ..] => {
                let default = statement.split_once(" DEFAULT ").map_or("NULL", |(_, default)| default);
                let _ = write!(columns.entry(table).or_default(), ", CAST({default} AS {kind}) AS {column}");
            }
            // Indexes, and changes of rows.
            _ => {}
        }
    }
    for (table, columns) in columns {
        let _ = writeln!(script, "CREATE TEMP VIEW {table} AS SELECT known.*{columns} FROM {main}{table} known;");
    }
    script
}

/// Removes comments, and references, which temporary tables cannot have to others.
fn without_comments(sql: &str) -> String {
    let line = |line: &str| {
        let line = line.split("--").next().unwrap_or_default().trim_end();
        match line.split_once(" REFERENCES ") {
            Some((column, _)) if line.ends_with(',') => format!("{column},"),
            Some((column, _)) => column.to_owned(),
            None => line.to_owned(),
        }
    };
    sql.lines().map(line).collect::<Vec<_>>().join("\n")
}
