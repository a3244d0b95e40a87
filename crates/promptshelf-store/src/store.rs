//! A store: opening it, and what all operations share.

use std::{collections::HashMap, fmt, path::Path, sync::Arc};

use crate::{
    StoreError,
    address::{ChannelName, Place, StoreUrl},
    database::{Database, Fault, Migrated, Mode, NEWEST, is_foreign, migrate, version},
    moving::{full_target, is_backup},
    snapshot::Snapshots,
};
use parking_lot::Mutex;

/// A store of channels. Cheap to clone; clones share the connections.
///
/// Every operation is one or two transactions and either happens as a whole or not at all. A database that does not
/// answer gives [`StoreError::Unreachable`] within about 12 seconds. If the connection breaks during a commit, the error
/// mentions it, and the operation may have happened: repeating a publish is safe, because the files are compared again.
#[derive(Clone)]
pub struct Store(Arc<Inner>, Option<u64>);

struct Inner {
    url: StoreUrl,
    database: Database,
    migrated_from: Option<u64>,
    snapshots: Snapshots,
    turns: Mutex<HashMap<ChannelName, Arc<tokio::sync::Mutex<()>>>>,
}

impl Store {
    /// Creates a store: the SQLite file, or the tables in an existing PostgreSQL database. Opens one that exists.
    ///
    /// # Errors
    ///
    /// [`StoreError::State`] for a backup, which nothing changes, and for a SQLite file of another program,
    /// [`StoreError::NewerSchema`], and errors of the database.
    pub async fn create(url: &StoreUrl) -> Result<Store, StoreError> {
        Store::connect(url, true).await
    }

    /// Opens a store, and brings its schema up to date.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if the store does not exist, [`StoreError::State`] as for [`Store::create`],
    /// [`StoreError::NewerSchema`], and errors of the database.
    pub async fn open(url: &StoreUrl) -> Result<Store, StoreError> {
        Store::connect(url, false).await
    }

    /// Opens a store for reading, and leaves its schema as it is: a store of an older release shows what it has. Changes
    /// fail if the schema is not up to date, and in a backup.
    ///
    /// # Errors
    ///
    /// As [`Store::open`], but backups can be read.
    pub async fn open_unmigrated(url: &StoreUrl) -> Result<Store, StoreError> {
        let database = Database::connect(url, false).await?;
        if let (Place::Sqlite(file), true) = (url.place(), is_backup(&database).await?) {
            database.close().await;
            return Store::at_rest(file).await;
        }
        Store::reading(url, database).await
    }

    /// Opens a backup, which nothing changes.
    pub(crate) async fn at_rest(file: &Path) -> Result<Store, StoreError> {
        Store::reading(&StoreUrl::file(file), Database::at_rest(file)).await
    }

    async fn reading(url: &StoreUrl, mut database: Database) -> Result<Store, StoreError> {
        let (present, newest) = version(&database).await?;
        if present == 0 {
            must_not_be_foreign(&database, url).await?;
            return Err(StoreError::not_found(format!("a store in {url}")));
        }
        if present < newest {
            database.read_older(present);
        }
        Ok(Store::of(url, database, None))
    }

    /// Returns the number of the newest migration that this release knows.
    #[must_use]
    pub fn newest_schema() -> u64 {
        NEWEST
    }

    /// Returns the number of the newest migration that the store had before it was opened, if its schema was brought up to
    /// date then.
    #[must_use]
    pub fn migrated_from(&self) -> Option<u64> {
        self.0.migrated_from
    }

    /// Returns the number of the newest migration that the store has, and of the newest one that this release knows.
    /// Applies none. The first number is 0 for a database without a store.
    ///
    /// # Errors
    ///
    /// As [`Store::open`].
    pub async fn schema(url: &StoreUrl) -> Result<(u64, u64), StoreError> {
        version(&Database::connect(url, false).await?).await
    }

    async fn connect(url: &StoreUrl, create: bool) -> Result<Store, StoreError> {
        let database = Database::connect(url, create).await?;
        if let Err(error) = must_be_changeable(&database, url).await {
            database.close().await;
            return Err(error);
        }
        match migrate(&database, create).await.map_err(|error| full_target(error, url))? {
            Migrated::NoStore => Err(StoreError::not_found(format!("a store in {url}"))),
            Migrated::Current => Ok(Store::of(url, database, None)),
            Migrated::From(before) => Ok(Store::of(url, database, Some(before).filter(|before| *before > 0))),
        }
    }

    fn of(url: &StoreUrl, database: Database, migrated_from: Option<u64>) -> Store {
        let (snapshots, turns) = (Snapshots::default(), Mutex::default());
        Store(Arc::new(Inner { url: url.clone(), database, migrated_from, snapshots, turns }), None)
    }

    /// Fails for a backup: a server and whatever changes a store would not open it.
    ///
    /// # Errors
    ///
    /// [`StoreError::State`], and errors of the database.
    pub async fn must_be_changeable(&self) -> Result<(), StoreError> {
        must_be_changeable(&self.0.database, &self.0.url).await
    }

    /// Bounds what each caller may store through this store without publishing it: the bytes of a day, in uploads and open
    /// proposals, that no revision has. Without it, nothing is bounded.
    #[must_use]
    pub fn with_quota(self, bytes: u64) -> Store {
        Store(self.0, Some(bytes))
    }

    /// Bounds the size of an SQLite file, so that a test can fill its disk.
    #[doc(hidden)]
    pub async fn limit_pages(&self, pages: u32) -> Result<(), StoreError> {
        let mut transaction = self.0.database.begin(Mode::Write).await?;
        let result = transaction.script(format!("PRAGMA max_page_count = {pages}")).await;
        transaction.finish(result).await
    }

    /// Lets the statement with a number fail, counted from now on, so that a test can try each.
    #[doc(hidden)]
    pub fn break_statement(&self, number: u64, fault: Fault) {
        self.0.database.faults().set(number, fault);
    }

    /// Returns how many statements are left until the one that fails; 0 if it has failed.
    #[doc(hidden)]
    #[must_use]
    pub fn unbroken_statements(&self) -> u64 {
        self.0.database.faults().left()
    }

    pub(crate) fn quota(&self) -> Option<u64> {
        self.1
    }

    /// Returns whether the last change failed because the disk of the store is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.database.is_full()
    }

    /// Returns the place of the store.
    #[must_use]
    pub fn url(&self) -> &StoreUrl {
        &self.0.url
    }

    /// Closes the connections of all clones; their operations fail afterwards. A program that ends without it leaves the
    /// files `…-wal` and `…-shm` next to an SQLite store; the last changes are only there if they were being read.
    pub async fn close(&self) {
        self.0.database.close().await;
    }

    /// Returns whether another file is at the path of an SQLite store: a backup was moved there, for instance. The open
    /// store still has the old file, and its changes would be lost. Always false for PostgreSQL.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unreachable`] if the file was moved or removed.
    pub fn is_replaced(&self) -> Result<bool, StoreError> {
        self.0.database.is_replaced()
    }

    /// Closes the connections to a replaced store, so that the new one can be opened.
    pub async fn discard(&self) {
        self.0.database.discard().await;
    }

    pub(crate) fn database(&self) -> &Database {
        &self.0.database
    }

    pub(crate) fn snapshots(&self) -> &Snapshots {
        &self.0.snapshots
    }

    pub(crate) fn turn(&self, channel: &ChannelName) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.0.turns.lock();
        // Names that are not in use any more leave the table, so that it does not grow.
        turns.retain(|name, turn| name == channel || Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(channel.clone()).or_default())
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.0.url)
    }
}

async fn must_be_changeable(database: &Database, url: &StoreUrl) -> Result<(), StoreError> {
    if is_backup(database).await? {
        return Err(StoreError::state(format!(
            "{url} is a backup, and a backup that is changed cannot be restored: `promptshelf store copy {url} --to \
             sqlite:NEW.db` makes a store of it that can be served and changed"
        )));
    }
    must_not_be_foreign(database, url).await
}

/// Fails for the file of another program: its tables stay its own.
async fn must_not_be_foreign(database: &Database, url: &StoreUrl) -> Result<(), StoreError> {
    if !is_foreign(database).await? {
        return Ok(());
    }
    Err(StoreError::state(format!(
        "{url} is the database of another program, not a store, and was not changed: name a new file, such as \
         sqlite:team.db"
    )))
}
