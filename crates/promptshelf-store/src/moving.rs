//! Copies of whole stores: to another store, to a backup and back.
//!
//! There is one reader and one writer. A backup is a store in an SQLite file, with a list of what it has. Contents are
//! copied first, some at a time: nothing refers to them yet, and a copy that was interrupted goes on with them. All other
//! rows follow in one transaction, so that the target has the old or the new state, and never a part.

use std::{
    collections::{BTreeMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    StoreError,
    address::{Place, StoreUrl},
    database::{
        Database, Mode, NEWEST, OpenFile, Table, Transaction, VERSIONS, Value, insert, json, private_file, readable,
        settle, tables, version,
    },
    digest::Parts,
    hints::{ALL_SOURCES, ALL_TOKENS},
    input::MAX_FILE_BYTES,
    model::{Digest, Epoch},
    rollout::SERVER,
    store::Store,
    tables::{blob, chain, channel, prompt},
    verify::{VerifiedChannel, verified},
};

/// The rows and bytes that are written at once.
const ROWS: usize = 500;
const BYTES: usize = 4 << 20;

/// The longest value of a backup: the largest content. Lists are shorter.
const MAX_VALUE: usize = MAX_FILE_BYTES;

/// The table of a backup that lists what it has.
const MANIFEST: &str = "backup_manifest";

const CONTENTS: &str = "ps_blob";

/// The tables of a store about itself: its schema and its epoch.
const OWN: [&str; 2] = ["ps_migration", "ps_library"];

/// What a copy of a store has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StoreCopy {
    /// The number of rows by table.
    pub rows: BTreeMap<String, u64>,
    /// The channels with their newest revisions, whose digests stand for all before them.
    pub channels: Vec<VerifiedChannel>,
    /// The epoch of the target.
    pub epoch: Epoch,
    /// The time of the backup that was made or restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_of: Option<Timestamp>,
}

/// The list of what a backup has.
#[derive(Serialize, Deserialize)]
struct Manifest {
    /// The schema whose columns the digests cover.
    schema: u64,
    at: Timestamp,
    tables: BTreeMap<String, Tally>,
}

/// The rows of a table: their number, and a digest that does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Tally {
    rows: u64,
    sum: [u64; 4],
}

impl Tally {
    fn add(&mut self, row: &[Value]) {
        let mut parts = Parts::default();
        for value in row {
            match value {
                Value::Int(number) => parts.add_optional(number.map(i64::to_le_bytes).as_ref().map(|it| &it[..])),
                Value::Text(text) => parts.add_optional(text.as_deref().map(str::as_bytes)),
                Value::Bytes(bytes) => parts.add_optional(bytes.as_deref()),
            }
        }
        let digest = parts.digest();
        for (sum, bytes) in self.sum.iter_mut().zip(digest.bytes().as_chunks::<8>().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*bytes));
        }
        self.rows += 1;
    }
}

type Tallies = BTreeMap<String, Tally>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The target becomes this store, with its epoch.
    Move,
    /// The target becomes a file that lists what it has.
    Backup,
    /// The target returns to an earlier state, which is a new epoch.
    Restore { replaces: bool },
}

impl Store {
    /// Copies everything to another store, which must be empty. A copy that was interrupted goes on where it stopped.
    /// The copy has the epoch of the store: replicas and folders that followed it can follow the copy.
    ///
    /// # Errors
    ///
    /// [`StoreError::State`] if the target has data or the store does not fit its digests, [`StoreError::InvalidInput`]
    /// if its disk is full, [`StoreError::NewerSchema`], and errors of both databases. The target is unchanged then,
    /// but for contents that nothing refers to.
    pub async fn copy_to(&self, target: &Store) -> Result<StoreCopy, StoreError> {
        copy(self, target, None, Purpose::Move).await.map_err(|error| full_target(error, target.url()))
    }

    /// Writes everything into a file, which it replaces once it is complete. Servers can use the store meanwhile; the file
    /// has one moment of it.
    ///
    /// # Errors
    ///
    /// [`StoreError::InvalidInput`] if there cannot be such a file, [`StoreError::State`] if the path is that of something
    /// else than a backup or of the backup of another store, if another backup to it is being written, or if the store does
    /// not fit its digests, and errors of the database and the file system. What was there before is unchanged then.
    pub async fn back_up(&self, file: &Path) -> Result<StoreCopy, StoreError> {
        self.must_be_another(file)?;
        let file = &replaceable(file).await?;
        let (part, lock) = (beside(file, ".part"), beside(file, ".lock"));
        for needed in [&part, &lock] {
            if fs::symlink_metadata(needed).is_ok_and(|found| !found.is_file()) {
                let needed = needed.display();
                return Err(StoreError::state(format!("{needed} is needed, and is not a file: name another one")));
            }
        }
        let _lock = BackupLock::take(file, lock)?;
        self.must_not_replace_other(file).await?;
        let written = self.write_backup(file, &part).await;
        if written.is_err() {
            remove(&part).ok();
        }
        written
    }

    /// Fails if a file is the one of this store. It must not be opened again.
    fn must_be_another(&self, file: &Path) -> Result<(), StoreError> {
        match self.url().place() {
            Place::Sqlite(store) if OpenFile::new(store).is_at(file) => {
                Err(StoreError::invalid(format!("{} is the store itself", file.display())))
            }
            _ => Ok(()),
        }
    }

    /// Fails if a file is the backup of another store.
    async fn must_not_replace_other(&self, file: &Path) -> Result<(), StoreError> {
        if fs::metadata(file).map_or(0, |found| found.len()) == 0 {
            return Ok(());
        }
        let backup = Store::at_rest(file).await.map_err(|error| damaged(file, &error))?;
        let is_other = is_other(self, &backup).await;
        backup.close().await;
        if !is_other? {
            return Ok(());
        }
        let file = file.display();
        Err(StoreError::state(format!("{file} is a backup of another store, which would be lost: name another file")))
    }

    async fn write_backup(&self, file: &Path, part: &Path) -> Result<StoreCopy, StoreError> {
        let failed = |error: io::Error| unwritable(file, &error);
        remove(part).map_err(failed)?;
        let url = StoreUrl::file(file);
        let target = Store::create(&StoreUrl::file(part)).await.map_err(|error| full_target(error, &url))?;
        let copied = copy(self, &target, None, Purpose::Backup).await.map_err(|error| full_target(error, &url));
        target.close().await;
        let copied = copied?;
        settle(part).await.map_err(|error| full_target(error, &url))?;
        fs::File::open(part).and_then(|written| written.sync_all()).map_err(failed)?;
        fs::rename(part, file).map_err(failed)?;
        // Not every system can open folders; the file itself is on disk.
        fs::File::open(folder_of(file)).and_then(|folder| folder.sync_all()).ok();
        Ok(copied)
    }

    /// Makes the store what it was when a backup was written. `replaces` permits to remove what it has, and `of_other`
    /// a backup of another store. Servers can use the store meanwhile: they have the old state until all of the backup
    /// is there. It has a new epoch then, so that all replicas read everything again. Tokens that were revoked since
    /// stay so, and rollouts are stopped.
    ///
    /// # Errors
    ///
    /// [`StoreError::InvalidInput`] if the file is not a whole backup, [`StoreError::State`] if the store has data and
    /// `replaces` is not set, or the backup is of another store and `of_other` is not set, [`StoreError::NewerSchema`],
    /// and errors of both databases. The store is unchanged then, but for contents that nothing refers to.
    pub async fn restore(&self, file: &Path, replaces: bool, of_other: bool) -> Result<StoreCopy, StoreError> {
        self.must_be_another(file)?;
        let manifest = manifest(file).await?;
        let backup = Store::at_rest(file).await.map_err(|error| damaged(file, &error))?;
        let restored = match is_other(self, &backup).await {
            Ok(true) if replaces && !of_other => Err(StoreError::state(format!(
                "{} is a backup of another store, and {} has data of its own",
                file.display(),
                self.url()
            ))),
            Ok(_) => copy(&backup, self, Some(&manifest), Purpose::Restore { replaces }).await,
            Err(error) => Err(error),
        };
        backup.close().await;
        restored
    }
}

/// Returns whether two stores are known to be different ones: neither their epochs nor any of their revisions are the same.
async fn is_other(one: &Store, other: &Store) -> Result<bool, StoreError> {
    let (one, other) = (identity(one).await?, identity(other).await?);
    Ok(one.0 != other.0 && !one.1.is_empty() && !other.1.is_empty() && one.1.is_disjoint(&other.1))
}

/// Returns the epoch of a store and the digests of its revisions, which cover author, time and history. Those of schemas
/// before 11 have none.
async fn identity(store: &Store) -> Result<(Epoch, HashSet<Digest>), StoreError> {
    let has_digests = version(store.database()).await?.0 >= 11;
    let mut transaction = store.database().begin(Mode::Read).await?;
    let result = async {
        let epoch = channel::epoch(&mut transaction).await?;
        let mut digests = HashSet::new();
        if has_digests {
            let mut rows = transaction.stream("SELECT digest FROM ps_revision WHERE digest IS NOT NULL".to_owned());
            while let Some(row) = rows.next().await? {
                digests.insert(row.digest("digest")?);
            }
        }
        Ok((epoch, digests))
    }
    .await;
    transaction.finish(result).await
}

/// The right of a process to write a backup to a file: a lock on a file next to it, which ends with the process.
struct BackupLock(#[expect(dead_code, reason = "kept open for its lock")] fs::File, PathBuf);

impl BackupLock {
    fn take(file: &Path, path: PathBuf) -> Result<BackupLock, StoreError> {
        let running = || {
            StoreError::state(format!(
                "another backup to {} is being written: wait until it is complete, or name another file",
                file.display()
            ))
        };
        let locked =
            private_file().create(true).truncate(false).open(&path).map_err(|error| unwritable(file, &error))?;
        match locked.try_lock() {
            // Whoever had the lock before removes the file.
            Ok(()) if is_at(&locked, &path) => Ok(BackupLock(locked, path)),
            Ok(()) | Err(fs::TryLockError::WouldBlock) => Err(running()),
            Err(fs::TryLockError::Error(error)) => Err(unwritable(file, &error)),
        }
    }
}

impl Drop for BackupLock {
    fn drop(&mut self) {
        // Before the lock ends, so that nobody else's file is removed.
        fs::remove_file(&self.1).ok();
    }
}

#[cfg(unix)]
fn is_at(file: &fs::File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let id = |found: io::Result<fs::Metadata>| found.ok().map(|found| (found.dev(), found.ino()));
    id(file.metadata()).is_some_and(|own| Some(own) == id(fs::metadata(path)))
}

/// Elsewhere a removed file keeps its name while it is open.
#[cfg(not(unix))]
fn is_at(_: &fs::File, _: &Path) -> bool {
    true
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Returns the file that a backup replaces or makes: that at the end of links. Devices, pipes and whatever else is not a
/// regular file stay.
async fn replaceable(file: &Path) -> Result<PathBuf, StoreError> {
    let shown = file.display();
    match fs::metadata(file) {
        Ok(found) if !found.is_file() => Err(StoreError::state(format!(
            "{shown} exists, and is not a file: name a new file, which can be copied once it is complete"
        ))),
        // Such as one of `mktemp`.
        Ok(found) if found.len() > 0 && manifest(file).await.is_err() => {
            Err(StoreError::state(format!("the file {shown} exists, and is not a backup: name another file")))
        }
        Ok(_) => fs::canonicalize(file).map_err(|error| unwritable(file, &error)),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unwritable(file, &error)),
        Err(_) if fs::symlink_metadata(file).is_ok() => {
            Err(StoreError::state(format!("{shown} is a link to a file that does not exist: name another file")))
        }
        Err(_) => {
            let folder = folder_of(file);
            if folder.is_dir() {
                return Ok(file.to_owned());
            }
            Err(StoreError::invalid(format!(
                "the file {shown} cannot be written: the folder {} does not exist; make it first",
                folder.display()
            )))
        }
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn remove(file: &Path) -> io::Result<()> {
    // What a killed program has left, with its log.
    for suffix in ["", "-wal", "-shm"] {
        match fs::remove_file(beside(file, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn unwritable(file: &Path, error: &io::Error) -> StoreError {
    StoreError::invalid(format!("the file {} cannot be written: {error}", file.display()))
}

/// Names the target of a copy whose disk is full: the store that is copied has no need of space.
pub(crate) fn full_target(error: StoreError, target: &StoreUrl) -> StoreError {
    match (error, target.place()) {
        (StoreError::Full { .. }, Place::Sqlite(file)) => unwritable(file, &io::ErrorKind::StorageFull.into()),
        (StoreError::Full { reason, .. }, Place::Postgres(_)) => {
            StoreError::state(format!("the disk of {target} is full ({reason}): make space there"))
        }
        (error, _) => error,
    }
}

fn damaged(file: &Path, error: &StoreError) -> StoreError {
    let cause = match error {
        StoreError::Database { reason, .. } if reason.contains("no such table") => {
            "it was not written by `promptshelf store backup`".to_owned()
        }
        StoreError::Database { reason, .. } => reason.clone(),
        other => other.to_string(),
    };
    StoreError::invalid(format!("{} is not a whole backup of a store ({cause}): use another one", file.display()))
}

/// Returns whether a database has the mark of a backup.
pub(crate) async fn is_backup(database: &Database) -> Result<bool, StoreError> {
    let mut transaction = database.begin(Mode::Read).await?;
    if transaction.is_postgres() {
        return transaction.finish(Ok(false)).await;
    }
    let row = transaction.row(format!("SELECT 1 FROM sqlite_schema WHERE name = '{MANIFEST}'"), vec![]).await;
    Ok(transaction.finish(row).await?.is_some())
}

/// Reads the list of what a backup has.
async fn manifest(file: &Path) -> Result<Manifest, StoreError> {
    // Opening a pipe would wait for its other end.
    if fs::metadata(file).is_ok_and(|found| !found.is_file()) {
        return Err(StoreError::invalid(format!("{} is not a file: expected a backup", file.display())));
    }
    readable(file).map_err(|error| StoreError::invalid(error.to_string()))?;
    let database = Database::at_rest(file);
    let read = async {
        let mut transaction = database.begin(Mode::Read).await?;
        let found = must_be_plain(&mut transaction).await;
        transaction.finish(found).await?;
        let mut transaction = database.begin(Mode::Read).await?;
        let row = transaction.row(format!("SELECT json FROM {MANIFEST}"), vec![]).await;
        let row = transaction.finish(row).await?;
        row.ok_or_else(|| StoreError::state("its list of contents is empty"))?.json::<Manifest>(0)
    };
    let read = read.await;
    database.close().await;
    let manifest = read.map_err(|error| damaged(file, &error))?;
    match manifest.schema {
        found if found > NEWEST => Err(StoreError::NewerSchema { found, known: NEWEST }),
        _ => Ok(manifest),
    }
}

/// Fails unless a file has tables that are stored row by row: what views and computed columns return has no bound. No value
/// may be longer than the largest content.
async fn must_be_plain(transaction: &mut Transaction) -> Result<(), StoreError> {
    let other = "SELECT name FROM sqlite_schema WHERE type IN ('view', 'trigger') \
                 OR (type = 'table' AND (rootpage = 0 OR sql LIKE 'CREATE VIRTUAL%')) \
                 UNION ALL SELECT t.name FROM sqlite_schema t, pragma_table_xinfo(t.name) c \
                 WHERE t.type = 'table' AND c.hidden <> 0 LIMIT 1";
    if let Some(row) = transaction.row(other, vec![]).await? {
        return Err(StoreError::state(format!("{} in it is not a table with stored rows", row.text(0)?)));
    }
    let columns = "SELECT t.name AS of, c.name FROM sqlite_schema t, pragma_table_info(t.name) c \
                   WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite!_%' ESCAPE '!'";
    for row in transaction.rows(columns, vec![]).await? {
        let quoted = |name: String| format!("\"{}\"", name.replace('"', "\"\""));
        let (table, column) = (quoted(row.text("of")?), quoted(row.text("name")?));
        let sql = format!("SELECT 1 FROM {table} WHERE LENGTH({column}) > {MAX_VALUE} LIMIT 1");
        if transaction.row(sql, vec![]).await?.is_some() {
            return Err(StoreError::state(format!("a value of {table} is longer than {MAX_VALUE} bytes")));
        }
    }
    Ok(())
}

async fn copy(
    source: &Store,
    target: &Store,
    manifest: Option<&Manifest>,
    purpose: Purpose,
) -> Result<StoreCopy, StoreError> {
    if source.url() == target.url() {
        return Err(StoreError::invalid(format!("{} is both the source and the target", source.url())));
    }
    // A newer release may have added what this one does not know.
    for store in [source, target] {
        let (found, known) = version(store.database()).await?;
        if found > known {
            return Err(StoreError::NewerSchema { found, known });
        }
    }
    let schema = match manifest {
        Some(manifest) => manifest.schema,
        None => version(source.database()).await?.0,
    };
    let tables: Vec<Table> = tables(schema).into_iter().filter(|table| !OWN.contains(&table.name.as_str())).collect();
    let mut from = source.database().begin(Mode::Read).await?;
    let mut copying = Copying { from: &mut from, target, tables, purpose, tallies: Tallies::new() };
    let copied = copying.run(schema, manifest).await;
    // Nothing was changed in the source.
    from.finish(Ok(())).await.ok();
    copied
}

struct Copying<'a> {
    /// One moment of the source.
    from: &'a mut Transaction,
    target: &'a Store,
    /// The tables of the source's schema, in the order of their references.
    tables: Vec<Table>,
    purpose: Purpose,
    tallies: Tallies,
}

impl Copying<'_> {
    async fn run(&mut self, schema: u64, manifest: Option<&Manifest>) -> Result<StoreCopy, StoreError> {
        self.from.without_limits().await?;
        let mut transaction = self.target.database().begin(Mode::Read).await?;
        let result = self.must_be_usable(&mut transaction).await;
        transaction.finish(result).await?;
        let contents = self.copy_contents().await?;
        let mut to = self.target.database().begin(Mode::Exclusive).await?;
        let result = self.replace(&mut to, &contents, schema, manifest).await;
        to.finish(result).await
    }

    async fn must_be_usable(&self, to: &mut Transaction) -> Result<(), StoreError> {
        if self.purpose == (Purpose::Restore { replaces: true }) {
            return Ok(());
        }
        for table in tables(NEWEST).iter().filter(|table| !OWN.contains(&table.name.as_str())) {
            // Contents alone are what an interrupted copy has left.
            if table.name != CONTENTS
                && to.row(format!("SELECT 1 FROM {} LIMIT 1", table.name), vec![]).await?.is_some()
            {
                let channels: Vec<String> =
                    channel::all(to).await?.into_iter().map(|channel| channel.name.to_string()).collect();
                let channels = if channels.is_empty() {
                    String::new()
                } else {
                    format!(", with the channels {}", channels.join(", "))
                };
                return Err(StoreError::state(format!("the store {} has data already{channels}", self.target.url())));
            }
        }
        Ok(())
    }

    /// Copies the contents that the target lacks, each part in a transaction of its own. Returns the digests of all.
    async fn copy_contents(&mut self) -> Result<HashSet<Digest>, StoreError> {
        let known: HashSet<Digest> = contents_of(self.target).await?;
        let Some(table) = self.tables.iter().find(|table| table.name == CONTENTS) else { return Ok(HashSet::new()) };
        let (mut all, mut tally) = (HashSet::new(), Tally::default());
        let (mut part, mut size) = (blob::Contents::new(), 0);
        let mut rows = self.from.stream(table.select());
        while let Some(row) = rows.next().await? {
            tally.add(&table.values(&row)?);
            let digest = row.digest("digest")?;
            all.insert(digest);
            if known.contains(&digest) {
                continue;
            }
            let bytes: Arc<[u8]> = row.bytes("bytes")?.into();
            if Digest::of(&bytes) != digest {
                return Err(StoreError::Corrupt { what: format!("the content {digest} of the source") });
            }
            size += bytes.len();
            part.insert(digest, bytes);
            if size >= BYTES || part.len() >= ROWS {
                write_contents(self.target, &part).await?;
                (part, size) = (blob::Contents::new(), 0);
            }
        }
        drop(rows);
        if !part.is_empty() {
            write_contents(self.target, &part).await?;
        }
        self.tallies.insert(CONTENTS.to_owned(), tally);
        Ok(all)
    }

    async fn replace(
        &mut self,
        to: &mut Transaction,
        contents: &HashSet<Digest>,
        schema: u64,
        manifest: Option<&Manifest>,
    ) -> Result<StoreCopy, StoreError> {
        to.without_limits().await?;
        self.must_be_usable(to).await?;
        let present: HashSet<Digest> = blob::all(to).await?.into_iter().map(|(digest, _)| digest).collect();
        if contents.iter().any(|digest| !present.contains(digest)) {
            let reason = "contents were removed from the target during the copy: repeat it";
            return Err(StoreError::state(reason));
        }
        let revoked =
            to.rows("SELECT digest, revoked, revoker FROM ps_token WHERE revoked IS NOT NULL", vec![]).await?;
        let counters = counters(to).await?;
        for table in tables(NEWEST).iter().rev().filter(|table| !OWN.contains(&table.name.as_str())) {
            if table.name != CONTENTS {
                clear(to, &table.name).await?;
            }
        }
        for table in self.tables.iter().filter(|table| table.name != CONTENTS) {
            let tally = copy_table(self.from, to, table).await?;
            self.tallies.insert(table.name.clone(), tally);
        }
        if manifest.is_some_and(|manifest| manifest.tables != self.tallies) {
            let reason = "the backup does not have what was written into it: it is damaged, or was changed. Use another one; \
                 `promptshelf store copy sqlite:BACKUP --to sqlite:NEW.db` makes a store of what this one has";
            return Err(StoreError::invalid(reason));
        }
        self.compare(to).await?;
        set_counters(self.from, to, counters).await?;
        let (mut epoch, mut backup_of) = (channel::epoch(self.from).await?, manifest.map(|manifest| manifest.at));
        for one in channel::all(to).await? {
            chain::complete(to, &one).await?;
        }
        if schema < VERSIONS {
            prompt::fill(to).await?;
        }
        match self.purpose {
            Purpose::Move => {}
            Purpose::Backup => {
                let at = Timestamp::now();
                let manifest = json(&Manifest { schema, at, tables: self.tallies.clone() })?;
                to.run(format!("CREATE TABLE {MANIFEST} (json TEXT NOT NULL)"), vec![]).await?;
                to.run(format!("INSERT INTO {MANIFEST} (json) VALUES ($1)"), vec![manifest.into()]).await?;
                backup_of = Some(at);
            }
            Purpose::Restore { .. } => {
                epoch = Epoch(uuid::Uuid::new_v4().to_string());
                for row in revoked {
                    let sql = "UPDATE ps_token SET revoked = $2, revoker = $3 WHERE digest = $1 AND revoked IS NULL";
                    let revoker = row.optional_text("revoker")?;
                    let values =
                        vec![row.digest("digest")?.into(), row.int("revoked")?.into(), revoker.as_deref().into()];
                    to.run(sql, values).await?;
                }
                let sql = format!(
                    "UPDATE ps_rollout SET percent = 0, is_stopped = 1, changed_by = $1, changed_at = {}, \
                     phase = 'stopped', reason = 'the store was restored' WHERE is_stopped = 0",
                    to.now()
                );
                to.run(sql, vec![SERVER.into()]).await?;
            }
        }
        channel::set_epoch(to, &epoch).await?;
        let channels = verified(to).await?;
        if let Some((channel, misfit)) = channels.iter().find_map(|one| Some((&one.name, one.misfit.as_ref()?))) {
            let reason = format!(
                "revision {} of {channel} does not fit in the source: {}; nothing was copied. `promptshelf store verify` \
                 shows all",
                misfit.revision, misfit.reason
            );
            return Err(StoreError::state(reason));
        }
        let names = channels.iter().map(|channel| channel.name.as_str());
        for payload in names.chain([ALL_TOKENS, ALL_SOURCES]) {
            to.notify(payload).await?;
        }
        let rows = self.tallies.iter().map(|(table, tally)| (table.clone(), tally.rows)).collect();
        Ok(StoreCopy { rows, channels, epoch, backup_of })
    }

    /// Reads what was written, and compares it with what was read.
    async fn compare(&self, to: &mut Transaction) -> Result<(), StoreError> {
        for table in self.tables.iter().filter(|table| table.name != CONTENTS) {
            let mut tally = Tally::default();
            let mut rows = to.stream(table.select());
            while let Some(row) = rows.next().await? {
                tally.add(&table.values(&row)?);
            }
            if self.tallies.get(&table.name) != Some(&tally) {
                let reason = format!("the rows of {} are not those of the source; nothing was changed", table.name);
                return Err(StoreError::Database { reason, source: None });
            }
        }
        Ok(())
    }
}

async fn contents_of(store: &Store) -> Result<HashSet<Digest>, StoreError> {
    let mut transaction = store.database().begin(Mode::Read).await?;
    let result = blob::all(&mut transaction).await;
    Ok(transaction.finish(result).await?.into_iter().map(|(digest, _)| digest).collect())
}

async fn write_contents(store: &Store, contents: &blob::Contents) -> Result<(), StoreError> {
    let mut transaction = store.database().begin(Mode::Write).await?;
    let result = blob::write(&mut transaction, contents).await;
    transaction.finish(result).await
}

/// Removes all rows of a table, some at a time: a statement has a limit.
async fn clear(to: &mut Transaction, table: &str) -> Result<(), StoreError> {
    let row = if to.is_postgres() { "ctid" } else { "rowid" };
    let sql = format!("DELETE FROM {table} WHERE {row} IN (SELECT {row} FROM {table} LIMIT 2000) RETURNING 1");
    while !to.rows(sql.clone(), vec![]).await?.is_empty() {}
    Ok(())
}

async fn copy_table(from: &mut Transaction, to: &mut Transaction, table: &Table) -> Result<Tally, StoreError> {
    let mut tally = Tally::default();
    let head = format!("INSERT INTO {} ({})", table.name, table.columns());
    let mut part = Vec::new();
    let mut rows = from.stream(table.select());
    loop {
        let row = rows.next().await?;
        let is_last = row.is_none();
        if let Some(row) = row {
            let values = table.values(&row)?;
            tally.add(&values);
            part.push(values);
        }
        if is_last || part.len() >= ROWS {
            let written = insert(to, &head, Box::new(std::mem::take(&mut part).into_iter()), "").await;
            written.map_err(|error| in_table(error, &table.name))?;
        }
        if is_last {
            return Ok(tally);
        }
    }
}

fn in_table(error: StoreError, table: &str) -> StoreError {
    match error {
        StoreError::Database { reason, source } => {
            StoreError::Database { reason: format!("{reason} (in {table})"), source }
        }
        other => other,
    }
}

/// Returns the last ids that a database has given, by table.
async fn counters(transaction: &mut Transaction) -> Result<BTreeMap<String, i64>, StoreError> {
    let mut counters = BTreeMap::new();
    for table in tables(NEWEST).into_iter().filter(Table::has_identity) {
        let name = table.name;
        let sql = if transaction.is_postgres() {
            format!(
                "SELECT COALESCE(pg_sequence_last_value(CAST(pg_get_serial_sequence('{name}', 'id') AS regclass)), 0)"
            )
        } else {
            format!("SELECT COALESCE((SELECT seq FROM sqlite_sequence WHERE name = '{name}'), 0)")
        };
        let last = transaction.row(sql, vec![]).await?.map_or(Ok(0), |row| row.int(0))?;
        counters.insert(name, last);
    }
    Ok(counters)
}

/// Sets the last ids to the highest ones that either database has given: none is ever given to something else.
async fn set_counters(
    from: &mut Transaction,
    to: &mut Transaction,
    before: BTreeMap<String, i64>,
) -> Result<(), StoreError> {
    let source = counters(from).await?;
    for (table, before) in before {
        let highest = to.row(format!("SELECT COALESCE(MAX(id), 0) FROM {table}"), vec![]).await?;
        let highest = highest.map_or(Ok(0), |row| row.int(0))?;
        let last = highest.max(before).max(source.get(&table).copied().unwrap_or_default());
        if last == 0 {
            continue;
        }
        if to.is_postgres() {
            let sql = format!("SELECT setval(pg_get_serial_sequence('{table}', 'id'), $1)");
            to.run(sql, vec![last.into()]).await?;
        } else {
            to.run(format!("DELETE FROM sqlite_sequence WHERE name = '{table}'"), vec![]).await?;
            let sql = "INSERT INTO sqlite_sequence (name, seq) VALUES ($1, $2)";
            to.run(sql, vec![table.into(), last.into()]).await?;
        }
    }
    Ok(())
}
