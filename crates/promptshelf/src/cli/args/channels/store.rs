//! Arguments of the commands that maintain a store.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::{StoreArguments, StoreText};
use crate::args::{
    help,
    time::age,
    words::{BackupFile, Nothing, Words},
};

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Bring the schema of a store up to date
    #[command(after_help = help::STORE_EXAMPLES)]
    Migrate(MigrateArguments),
    /// Remove contents that no revision and no open proposal refers to
    Gc(MaintenanceArguments),
    /// Compare all revisions and contents with their digests, and name the first revision that does not fit
    ///
    /// Exits with code 1 if one does not fit. The digest of the newest revision stands for its whole history: compare it
    /// with the one that you noted, or that a server shows at /readyz. Changes of policies, version numbers of prompts,
    /// comments and evaluations have no digest.
    Verify(MaintenanceArguments),
    /// Make every replica read everything again
    ///
    /// Not needed after a restore: replicas compare the digests of revisions.
    NewEpoch(MaintenanceArguments),
    /// Remove old revisions from the history; those that are served stay
    ///
    /// Shows what it removes. To remove more revisions than stay, it needs `--yes` or an answer in a terminal.
    Prune(PruneArguments),
    /// Copy everything to another, empty store, such as from SQLite to PostgreSQL
    ///
    /// History, proposals, policies, evaluations, comments, usage, tokens, webhooks and rollouts, all compared at the end. A
    /// copy that was interrupted goes on when it is repeated. Stop the servers first, or publishes during the copy are in
    /// the old store only.
    Copy(CopyArguments),
    /// Write everything into a file, while servers run
    ///
    /// The file fits both databases. It has one moment of the store, and replaces an earlier backup once it is complete.
    Backup(BackupArguments),
    /// Make the store what it was when a backup was written, while servers run
    ///
    /// Servers have the old state until all of the backup is there, and then read everything again. Tokens that were revoked
    /// since stay so, and rollouts are stopped.
    Restore(RestoreArguments),
}

#[derive(Debug, Args)]
#[command(mut_arg("store", |from| from.alias("from")))]
pub(crate) struct CopyArguments {
    #[command(flatten)]
    pub(crate) words: Words<StoreArguments, Nothing>,

    /// The new store: an SQLite file, which is created, or an empty database of PostgreSQL
    #[arg(long, value_name = "STORE")]
    pub(crate) to: StoreText,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    #[command(flatten)]
    pub(crate) words: Words<StoreArguments, BackupFile>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    #[command(flatten)]
    pub(crate) words: Words<StoreArguments, BackupFile>,

    /// Replace everything that the store has
    #[arg(long)]
    pub(crate) replace: bool,

    /// With `--replace`, even if the backup is of another store
    #[arg(long, requires = "replace")]
    pub(crate) other_store: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArguments {
    #[command(flatten)]
    pub(crate) words: Words<StoreArguments, Nothing>,

    /// Change nothing; exit with code 1 if the schema is out of date
    #[arg(long)]
    pub(crate) check: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MaintenanceArguments {
    #[command(flatten)]
    pub(crate) words: Words<StoreArguments, Nothing>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArguments {
    #[command(flatten)]
    pub(crate) words: Words<StoreArguments, Nothing>,

    /// The least age of removed revisions, such as 90d, 12w or 36h
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Duration,

    /// Show what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
