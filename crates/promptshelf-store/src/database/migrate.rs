//! The schema and its migrations: forward only, numbered, part of the binary.

use super::{
    pool::{Database, Mode},
    transaction::Transaction,
    value::{ColumnType, Row, Value},
    without_comments,
};
use crate::{
    StoreError,
    tables::{chain, channel, prompt},
};

struct Migration {
    /// Whether older releases must not use the store afterwards. Other migrations only add, so that two releases can run
    /// side by side.
    is_major: bool,
    sql: &'static str,
}

/// All migrations; the first has the number 1.
const MIGRATIONS: &[Migration] = &[
    Migration { is_major: true, sql: include_str!("../../migrations/0001_channels.sql") },
    Migration { is_major: false, sql: include_str!("../../migrations/0002_usage.sql") },
    Migration { is_major: false, sql: include_str!("../../migrations/0003_comments.sql") },
    Migration { is_major: false, sql: include_str!("../../migrations/0004_webhooks.sql") },
    Migration { is_major: false, sql: include_str!("../../migrations/0005_evaluations.sql") },
    Migration { is_major: false, sql: include_str!("../../migrations/0006_usage_details.sql") },
    Migration { is_major: false, sql: include_str!("../../migrations/0007_rollouts.sql") },
    Migration { is_major: false, sql: include_str!("../../migrations/0008_rollout_history.sql") },
    Migration { is_major: false, sql: include_str!("../../migrations/0009_source_signals.sql") },
    Migration { is_major: false, sql: include_str!("../../migrations/0010_rollout_applied.sql") },
    Migration { is_major: false, sql: include_str!("../../migrations/0011_identity_policies_tokens.sql") },
    Migration { is_major: false, sql: include_str!("../../migrations/0012_operation.sql") },
    Migration { is_major: false, sql: include_str!("../../migrations/0013_once.sql") },
    Migration { is_major: false, sql: include_str!("../../migrations/0014_findings.sql") },
    Migration { is_major: false, sql: include_str!("../../migrations/0015_lapsed_reviews.sql") },
];

const CHAIN: u64 = 11;

/// From here on each channel counts the versions of its prompts.
pub(crate) const VERSIONS: u64 = 14;

/// The newest migration that older releases do not understand.
pub(crate) const KNOWN_MAJOR: u64 = {
    let mut major = 0;
    let mut at = 0;
    while at < MIGRATIONS.len() {
        at += 1;
        if MIGRATIONS[at - 1].is_major {
            major = at as u64;
        }
    }
    major
};

/// Returns the number of the newest migration of a database, which is 0 without tables, and the newest known number.
pub(crate) async fn version(database: &Database) -> Result<(u64, u64), StoreError> {
    let mut transaction = database.begin(Mode::Read).await?;
    let result = present(&mut transaction).await;
    Ok((transaction.finish(result).await?, MIGRATIONS.len() as u64))
}

pub(crate) const NEWEST: u64 = MIGRATIONS.len() as u64;

pub(super) fn after(number: u64) -> impl Iterator<Item = &'static str> {
    MIGRATIONS.iter().skip(usize::try_from(number).unwrap_or(usize::MAX)).map(|migration| migration.sql)
}

/// A table, as the migrations make it.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    columns: Vec<(String, ColumnType)>,
    has_identity: bool,
}

impl Table {
    pub(crate) fn has_identity(&self) -> bool {
        self.has_identity
    }

    pub(crate) fn columns(&self) -> String {
        self.columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn select(&self) -> String {
        format!("SELECT {} FROM {}", self.columns(), self.name)
    }

    /// Returns the values of a row of [`Table::select`].
    pub(crate) fn values(&self, row: &Row) -> Result<Vec<Value>, StoreError> {
        self.columns.iter().map(|(name, kind)| row.value(name.as_str(), *kind)).collect()
    }

    fn add(&mut self, words: &[&str]) {
        // Others are constraints.
        let [name, kind, ..] = words else { return };
        let kind = match kind.trim_end_matches(',') {
            "BIGINT" => ColumnType::Int,
            "TEXT" => ColumnType::Text,
            "{BYTES}" => ColumnType::Bytes,
            "{ID}" => {
                self.has_identity = true;
                ColumnType::Int
            }
            _ => return,
        };
        self.columns.push(((*name).to_owned(), kind));
    }
}

/// Returns the tables of the schema with this number, each after those that it refers to.
pub(crate) fn tables(schema: u64) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let migrations = MIGRATIONS.iter().take(usize::try_from(schema).unwrap_or(usize::MAX));
    let statements: Vec<String> = migrations.map(|migration| without_comments(migration.sql)).collect();
    for statement in statements.iter().flat_map(|sql| sql.split(';')).map(str::trim) {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let of_line = |line: &str, table: &mut Table| {
            let words = words(line);
            table.add(&words.iter().map(String::as_str).collect::<Vec<_>>());
        };
        let mut lines = statement.lines();
        let first = words(lines.next().unwrap_or_default());
        match first.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["CREATE", "TABLE", name, "("] => {
                let mut table = Table { name: (*name).to_owned(), columns: Vec::new(), has_identity: false };
                lines.for_each(|line| of_line(line, &mut table));
                tables.push(table);
            }
            ["ALTER", "TABLE", name, "ADD", "COLUMN", column @ ..] => {
                if let Some(table) = tables.iter_mut().find(|table| table.name == *name) {
                    table.add(column);
                }
            }
            _ => {}
        }
    }
    tables
}

/// What [`migrate`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Migrated {
    NoStore,
    Current,
    From(u64),
}

/// Brings the schema up to date. Only `create` makes the first tables.
pub(crate) async fn migrate(database: &Database, create: bool) -> Result<Migrated, StoreError> {
    if !create {
        match version(database).await? {
            (0, _) => return Ok(Migrated::NoStore),
            (present, known) if present >= known => return Ok(Migrated::Current),
            _ => {}
        }
    }
    let mut transaction = database.begin(Mode::Exclusive).await?;
    let result = apply(&mut transaction).await;
    let before = transaction.finish(result).await?;
    Ok(if before >= MIGRATIONS.len() as u64 { Migrated::Current } else { Migrated::From(before) })
}

/// Whether a SQLite file has the tables of another program, and no store. Others share databases of PostgreSQL.
pub(crate) async fn is_foreign(database: &Database) -> Result<bool, StoreError> {
    if let Database::Postgres(..) = database {
        return Ok(false);
    }
    let mut transaction = database.begin(Mode::Read).await?;
    let others = "SELECT 1 FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' \
                  AND NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'ps_migration')";
    let row = transaction.row(others, vec![]).await;
    transaction.finish(row).await.map(|row| row.is_some())
}

async fn present(transaction: &mut Transaction) -> Result<u64, StoreError> {
    let tables = if transaction.is_postgres() {
        "SELECT CAST(CASE WHEN to_regclass('ps_migration') IS NULL THEN 0 ELSE 1 END AS BIGINT)"
    } else {
        "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = 'ps_migration'"
    };
    let number = |row: Option<super::value::Row>| row.map_or(Ok(0), |row| row.number(0));
    if number(transaction.row(tables, vec![]).await?)? == 0 {
        return Ok(0);
    }
    let row = transaction.row("SELECT COALESCE(MAX(number), 0) FROM ps_migration", vec![]).await?;
    let present = number(row)?;
    let major = number(transaction.row("SELECT major FROM ps_library WHERE id = 1", vec![]).await?)?;
    if major > KNOWN_MAJOR {
        return Err(StoreError::NewerSchema { found: present, known: MIGRATIONS.len() as u64 });
    }
    Ok(present)
}

async fn apply(transaction: &mut Transaction) -> Result<u64, StoreError> {
    // Another process may have migrated while this one waited for the lock.
    let present = present(transaction).await?;
    let (bytes, id) = if transaction.is_postgres() {
        ("BYTEA", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY")
    } else {
        ("BLOB", "INTEGER PRIMARY KEY AUTOINCREMENT")
    };
    for (index, migration) in MIGRATIONS.iter().enumerate() {
        let number = index as u64 + 1;
        if number <= present {
            continue;
        }
        transaction.script(migration.sql.replace("{BYTES}", bytes).replace("{ID}", id)).await?;
        if number == 1 {
            let epoch = uuid::Uuid::new_v4().to_string();
            let insert = "INSERT INTO ps_library (id, epoch, major) VALUES (1, $1, 0)";
            transaction.run(insert, vec![epoch.into()]).await?;
        }
        if number == CHAIN {
            for channel in channel::all(transaction).await? {
                chain::complete(transaction, &channel).await?;
            }
        }
        if number == VERSIONS {
            prompt::fill(transaction).await?;
        }
        let now = transaction.now();
        let record = format!("INSERT INTO ps_migration (number, at) VALUES ($1, {now})");
        transaction.run(record, vec![number.into()]).await?;
    }
    transaction.run("UPDATE ps_library SET major = $1 WHERE id = 1 AND major < $1", vec![KNOWN_MAJOR.into()]).await?;
    Ok(present)
}
