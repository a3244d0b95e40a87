//! Pools of connections.

use std::{
    fs::OpenOptions,
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use sqlx::{
    ConnectOptions, Connection as _, PgPool, SqlitePool,
    postgres::{PgConnectOptions, PgConnection, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use super::{
    OlderSchema, OpenFile, failure, timed_out,
    transaction::{Connection, Transaction},
};
use crate::{
    StoreError,
    address::{Place, PostgresUrl, StoreUrl},
};

const CONNECT: Duration = Duration::from_secs(10);

const BUSY: Duration = Duration::from_secs(8);

/// The longest wait for the writing connection of this process to an SQLite file. A publish of 100,000 files takes
/// seconds.
const WRITER: Duration = Duration::from_secs(60);

const CONNECTIONS: u32 = 8;

const READERS: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    Write,
    /// Writes while no other transaction of a store writes.
    Exclusive,
    /// Holds a lock of its own for up to minutes, and changes nothing. PostgreSQL only: a file has other locks.
    Guard,
}

#[derive(Clone)]
pub(crate) enum Database {
    Postgres(PgPool, Option<Arc<OlderSchema>>, DiskState),
    /// SQLite. The writing connection is one of its own, so that writers wait in line instead of competing for the lock.
    Sqlite {
        /// Connections that read.
        readers: SqlitePool,
        /// The connection that writes.
        writer: SqlitePool,
        /// The file of both.
        file: Arc<OpenFile>,
        older: Option<Arc<OlderSchema>>,
        disk: DiskState,
    },
}

/// Whether the last change failed because the disk of the store is full.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiskState(Arc<AtomicBool>, pub(super) Faults);

/// How a statement fails in a test.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The database refuses it.
    Refused,
    /// The connection is lost before it.
    Cut,
    /// It is carried out, and the connection is lost before the answer.
    Unanswered,
}

/// The statement that fails in a test: the number of statements until then, 0 for none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(Arc<(AtomicU64, AtomicU8)>);

impl Faults {
    const KINDS: [Fault; 3] = [Fault::Refused, Fault::Cut, Fault::Unanswered];

    pub(crate) fn set(&self, number: u64, fault: Fault) {
        self.0.1.store(fault as u8, Ordering::SeqCst);
        self.0.0.store(number, Ordering::SeqCst);
    }

    pub(crate) fn left(&self) -> u64 {
        self.0.0.load(Ordering::SeqCst)
    }

    /// Counts a statement. Returns how it fails.
    pub(super) fn next(&self) -> Option<Fault> {
        // Outside of tests, one load.
        if self.0.0.load(Ordering::Relaxed) == 0 || self.0.0.fetch_sub(1, Ordering::SeqCst) != 1 {
            return None;
        }
        Faults::KINDS.get(usize::from(self.0.1.load(Ordering::SeqCst))).copied()
    }
}

impl Fault {
    pub(super) fn error(self) -> StoreError {
        let reason = "a test lets this statement fail".to_owned();
        match self {
            Fault::Refused => StoreError::Database { reason, source: None },
            Fault::Cut | Fault::Unanswered => StoreError::Unreachable { reason, source: None },
        }
    }
}

impl DiskState {
    pub(super) fn set_full(&self, is_full: bool) {
        self.0.store(is_full, Ordering::Relaxed);
    }
}

impl Database {
    /// Connects. Only `create` makes a new SQLite file.
    pub(crate) async fn connect(url: &StoreUrl, create: bool) -> Result<Database, StoreError> {
        match url.place() {
            Place::Sqlite(path) => {
                match path.try_exists() {
                    Ok(false) if !create => return Err(StoreError::NotFound { what: format!("the store {url}") }),
                    Err(error) => {
                        return Err(StoreError::Unreachable {
                            reason: format!("{}: {error}", path.display()),
                            source: Some(Arc::new(error)),
                        });
                    }
                    Ok(_) => {}
                }
                if create {
                    create_private(path)?;
                }
                let file = Arc::new(OpenFile::new(path));
                if is_read_only(path) {
                    readable(path)?;
                    return Ok(Database::at_rest(path));
                }
                let options = SqliteConnectOptions::new()
                    .filename(path)
                    .busy_timeout(BUSY)
                    .foreign_keys(true)
                    .synchronous(SqliteSynchronous::Full)
                    .disable_statement_logging();
                // Each commit is copied into the file itself, so that a program which ends without closing the store leaves
                // nothing that a copy of the file alone would lack.
                let write = options.clone().journal_mode(SqliteJournalMode::Wal).pragma("wal_autocheckpoint", "1");
                let pool = || SqlitePoolOptions::new().idle_timeout(None).max_lifetime(None);
                let writer = pool().max_connections(1).acquire_timeout(WRITER).connect_lazy_with(write);
                let readers = pool().max_connections(READERS).acquire_timeout(WRITER).connect_lazy_with(options);
                Ok(Database::Sqlite { readers, writer, file, older: None, disk: DiskState::default() })
            }
            Place::Postgres(url) => {
                let options = postgres_options(url)?;
                let limit = url.connect_timeout().unwrap_or(CONNECT);
                // The pool repeats a refused connection until its time is up, and then hides the reason.
                let connection = tokio::time::timeout(limit, PgConnection::connect_with(&options)).await;
                let connection = connection.map_err(|_| timed_out())?;
                connection.map_err(|error| with_ignored_passwords(url, error))?.close().await.ok();
                let pool = PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(limit);
                Ok(Database::Postgres(pool.connect_lazy_with(options), None, DiskState::default()))
            }
        }
    }

    /// Opens a file that nothing changes, such as a backup.
    pub(crate) fn at_rest(path: &Path) -> Database {
        let options = read_only(path);
        let pool = || SqlitePoolOptions::new().max_connections(READERS).connect_lazy_with(options.clone());
        let (readers, writer, file) = (pool(), pool(), Arc::new(OpenFile::new(path)));
        Database::Sqlite { readers, writer, file, older: None, disk: DiskState::default() }
    }

    /// Closes all connections. SQLite then writes its log into the file.
    pub(crate) async fn close(&self) {
        match self {
            Database::Postgres(pool, ..) => pool.close().await,
            Database::Sqlite { readers, writer, .. } => {
                readers.close().await;
                writer.close().await;
            }
        }
    }

    /// Returns whether another SQLite file is at the path, so that changes would be lost.
    pub(crate) fn is_replaced(&self) -> Result<bool, StoreError> {
        match self {
            Database::Sqlite { file, .. } => file.is_replaced(),
            Database::Postgres(..) => Ok(false),
        }
    }

    pub(crate) async fn discard(&self) {
        self.close().await;
        if let Database::Sqlite { file, .. } = self {
            file.remove_log();
        }
    }

    /// Only reads from now on, from a store whose newest migration is `present`.
    pub(crate) fn read_older(&mut self, present: u64) {
        let (Database::Postgres(_, older, _) | Database::Sqlite { older, .. }) = self;
        *older = Some(Arc::new(OlderSchema::new(present)));
    }

    /// The statement that fails in a test.
    pub(crate) fn faults(&self) -> &Faults {
        let (Database::Postgres(.., disk) | Database::Sqlite { disk, .. }) = self;
        &disk.1
    }

    /// Returns whether the last change failed because the disk is full.
    pub(crate) fn is_full(&self) -> bool {
        let (Database::Postgres(.., disk) | Database::Sqlite { disk, .. }) = self;
        disk.0.load(Ordering::Relaxed)
    }

    pub(crate) async fn begin(&self, mode: Mode) -> Result<Transaction, StoreError> {
        let (Database::Postgres(.., disk) | Database::Sqlite { disk, .. }) = self;
        let transaction = self.begin_in(mode).await?;
        let changes = matches!(mode, Mode::Write | Mode::Exclusive);
        Ok(if changes { transaction.on(disk.clone()) } else { transaction })
    }

    async fn begin_in(&self, mode: Mode) -> Result<Transaction, StoreError> {
        let (Database::Postgres(_, older, _) | Database::Sqlite { older, .. }) = self;
        if let (Some(older), true) = (older, mode != Mode::Read) {
            return Err(older.refuse_changes());
        }
        match self {
            Database::Postgres(pool, older, _) => {
                let connection = Connection::Postgres(pool.acquire().await.map_err(failure)?);
                match older {
                    Some(older) => older.begin(connection, POSTGRES_READ_OLDER).await,
                    None => Transaction::begin(connection, postgres_begin(mode), self.faults()).await,
                }
            }
            Database::Sqlite { readers, writer, older, .. } => {
                // A backup can be copied over the open file, which SQLite does not notice: no page of an earlier
                // transaction may stay in memory.
                let (pool, begin) = match mode {
                    Mode::Read => (readers, "PRAGMA shrink_memory; BEGIN"),
                    _ => (writer, "PRAGMA shrink_memory; BEGIN IMMEDIATE"),
                };
                let connection = Connection::Sqlite(pool.acquire().await.map_err(failure)?);
                match older {
                    Some(older) => older.begin(connection, begin).await,
                    None => Transaction::begin(connection, begin, self.faults()).await,
                }
            }
        }
    }
}

/// As for [`Mode::Read`], but temporary views are made first, which a read-only transaction could not do.
const POSTGRES_READ_OLDER: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL lock_timeout = '8s'; \
                                   SET LOCAL statement_timeout = '60s'";

// A file of a store is opened by SQLite alone: a process that closes a file loses all its locks on it, also those of the
// connections it has open. Another process would then take itself for the only one, and remove the log that is in use
// (<https://www.sqlite.org/howtocorrupt.html>, section 2.2).

/// Whether a file cannot be written, such as one on a medium that is read-only.
fn is_read_only(path: &Path) -> bool {
    permitted(path, false)
        .is_err_and(|error| matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem))
}

/// Fails if this process may not read a file, or not write it. Does not open it.
#[cfg(unix)]
fn permitted(path: &Path, reads: bool) -> io::Result<()> {
    use rustix::fs::Access;

    Ok(rustix::fs::access(path, if reads { Access::READ_OK } else { Access::WRITE_OK })?)
}

/// Locks of other systems do not end so.
#[cfg(not(unix))]
fn permitted(path: &Path, reads: bool) -> io::Result<()> {
    std::fs::File::options().read(reads).write(!reads).open(path).map(drop)
}

/// Fails if a file cannot be read: SQLite would not say why.
pub(crate) fn readable(path: &Path) -> Result<(), StoreError> {
    permitted(path, true).map_err(|error| StoreError::Unreachable {
        reason: format!(
            "the file {} cannot be read: {error}; run the program as the user that owns it",
            path.display()
        ),
        source: Some(Arc::new(error)),
    })
}

/// Adds to a refused sign-in that the file with the passwords is ignored, as by the programs of PostgreSQL.
#[cfg(unix)]
fn with_ignored_passwords(url: &PostgresUrl, error: sqlx::Error) -> StoreError {
    use std::{env, os::unix::fs::PermissionsExt as _, path::PathBuf};

    let is_password = error.as_database_error().is_some_and(|error| error.code().as_deref() == Some("28P01"));
    let (reason, source) = match failure(error) {
        StoreError::Database { reason, source } => (reason, source),
        other => return other,
    };
    let file = env::var_os("PGPASSFILE").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".pgpass")));
    let is_used = is_password && !url.has_password() && env::var_os("PGPASSWORD").is_none();
    let is_open = |file: &PathBuf| {
        std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o077 != 0)
    };
    let reason = match file.filter(|file| is_used && is_open(file)) {
        Some(file) => {
            let file = file.display();
            format!("{reason}; the passwords in {file} are ignored because others may read it: `chmod 600 {file}`")
        }
        None => reason,
    };
    StoreError::Database { reason, source }
}

#[cfg(not(unix))]
fn with_ignored_passwords(_: &PostgresUrl, error: sqlx::Error) -> StoreError {
    failure(error)
}

/// Without a log nothing changes in the file, so that no lock is needed, for which SQLite would write.
fn read_only(path: &Path) -> SqliteConnectOptions {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let has_log = std::fs::metadata(log).is_ok_and(|log| log.len() > 0);
    let options = SqliteConnectOptions::new().filename(path).read_only(true).immutable(!has_log);
    options.foreign_keys(true).disable_statement_logging()
}

/// Makes one file of a closed store, without a log that is written for readers.
pub(crate) async fn settle(path: &Path) -> Result<(), StoreError> {
    let options = SqliteConnectOptions::new().filename(path).journal_mode(SqliteJournalMode::Delete);
    options.connect().await.map_err(failure)?.close().await.map_err(failure)
}

/// Returns a pool of its own for a listener: it holds a connection as long as it listens, and compares two at the start.
pub(crate) fn listener_pool(pool: &PgPool) -> PgPool {
    let options = PgPoolOptions::new().max_connections(2).acquire_timeout(CONNECT).idle_timeout(CONNECT);
    options.connect_lazy_with((*pool.connect_options()).clone())
}

/// Statements of one message. `SET LOCAL` and the advisory locks end with the transaction, so that they work behind a
/// pooler. Garbage collection and migrations take the lock alone; publishers share it. The number is arbitrary.
fn postgres_begin(mode: Mode) -> &'static str {
    match mode {
        Mode::Read => {
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL lock_timeout = '8s'; \
             SET LOCAL statement_timeout = '60s'"
        }
        Mode::Write => {
            "BEGIN; SET LOCAL lock_timeout = '8s'; SET LOCAL statement_timeout = '10s'; \
             SELECT pg_advisory_xact_lock_shared(8101813017)"
        }
        Mode::Exclusive => {
            "BEGIN; SET LOCAL lock_timeout = '8s'; SET LOCAL statement_timeout = '10s'; \
             SELECT pg_advisory_xact_lock(8101813017)"
        }
        // The server ends the transaction of a client that has vanished, so that the lock does not stay with it.
        Mode::Guard => {
            "BEGIN; SET LOCAL statement_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '60s'"
        }
    }
}

/// Creates an empty file that only this user can read and write, unless it exists: prompts may be restricted to some
/// callers. SQLite gives the permissions of the file to its log too.
fn create_private(path: &Path) -> Result<(), StoreError> {
    let mut options = private_file();
    match options.create_new(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(StoreError::invalid(format!("the file {} cannot be created: {error}", path.display()))),
    }
}

/// Returns options to open a file for writing that only this user can read if it is created.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn postgres_options(url: &PostgresUrl) -> Result<PgConnectOptions, StoreError> {
    let mut options = PgConnectOptions::from_url(url.for_driver()).map_err(failure)?;
    if options.get_application_name().is_none() {
        options = options.application_name("promptshelf");
    }
    // PgBouncer refuses connections with `extra_float_digits`, and floats are not used.
    Ok(options.extra_float_digits(None).statement_cache_capacity(0).disable_statement_logging())
}
