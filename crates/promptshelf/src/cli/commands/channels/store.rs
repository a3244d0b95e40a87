//! `promptshelf store`: what keeps a store in order.

use std::{path::Path, time::Duration};

use clap::{Args, Subcommand};
use promptshelf_service::Method;
use promptshelf_store::{Misfit, Prunable, Store, StoreCopy, StoreError, VerifiedChannel};
use serde_json::json;

use super::{
    access::{self, Opening, StorePlace, waiting},
    report,
};
use crate::{
    args::{
        Words,
        place::{StoreArguments, StoreText},
        time::age,
        words::{BackupFile, Nothing},
    },
    exit::{Exit, Failure},
    output::{agrees, count, list_json},
    terminal,
};

const STORE_EXAMPLES: &str = "\
Every command brings the schema up to date when it opens a store; this one does
nothing else.

Examples:
  promptshelf store migrate sqlite:team.db --check
  promptshelf store backup sqlite:team.db team.backup";

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Bring the schema of a store up to date
    #[command(after_help = STORE_EXAMPLES)]
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

pub(crate) async fn run(command: &StoreCommand) -> Result<(), Failure> {
    match command {
        StoreCommand::Migrate(arguments) => migrate(arguments).await,
        StoreCommand::Gc(arguments) => collect_garbage(arguments).await,
        StoreCommand::Verify(arguments) => verify(arguments).await,
        StoreCommand::NewEpoch(arguments) => new_epoch(arguments).await,
        StoreCommand::Prune(arguments) => prune(arguments).await,
        StoreCommand::Copy(arguments) => copy_store(arguments).await,
        StoreCommand::Backup(arguments) => back_up(arguments).await,
        StoreCommand::Restore(arguments) => restore(arguments).await,
    }
}

async fn migrate(arguments: &MigrateArguments) -> Result<(), Failure> {
    let place = StorePlace::of(&arguments.words.library)?;
    let url = &place.address.store;
    let (present, newest) = waiting(url, Store::schema(url)).await.map_err(|error| place.opening(error))?;
    let is_current = present >= newest;
    if !arguments.check && !is_current {
        place.changing(Method::StoreMigrate, async |_| Ok(())).await?;
    }
    if arguments.json {
        let schema = if arguments.check { present } else { present.max(newest) };
        report::print_json(&json!({ "schema": schema, "newest": newest }))?;
    } else {
        report::print_line(&match (is_current, arguments.check) {
            (true, _) if present > newest => format!(
                "the schema of {url} is newer than this program: version {present} of {newest}; both can use it, and a newer \
                 release has what was added"
            ),
            (true, _) => format!("the schema of {url} is up to date: version {present}"),
            (false, true) => format!("the schema of {url} is out of date: version {present} of {newest}"),
            (false, false) => format!("the schema of {url} was version {present}, and is version {newest} now"),
        })?;
    }
    if arguments.check && !is_current { Err(Failure::reported(Exit::Failed)) } else { Ok(()) }
}

async fn collect_garbage(arguments: &MaintenanceArguments) -> Result<(), Failure> {
    let place = StorePlace::of(&arguments.words.library)?;
    let (contents, bytes) =
        place.changing(Method::StoreGc, async |store| Ok(waiting(store.url(), store.gc()).await?)).await?;
    if arguments.json {
        return report::print_json(&json!({ "contents": contents, "bytes": bytes }));
    }
    report::print_line(&format!("removed {}, {bytes} bytes", counted(contents, "content")))
}

async fn verify(arguments: &MaintenanceArguments) -> Result<(), Failure> {
    let place = StorePlace::of(&arguments.words.library)?;
    let channels =
        place.reading(Method::StoreVerify, async |store| Ok(waiting(store.url(), store.verify()).await?)).await?;
    if arguments.json {
        report::print_json(&list_json(channels.iter().map(|channel| json!(channel))))?;
    } else {
        print_verified(&channels)?;
    }
    let fits = channels.iter().all(|channel| channel.misfit.is_none());
    if fits { Ok(()) } else { Err(Failure::reported(Exit::Failed)) }
}

fn print_verified(channels: &[VerifiedChannel]) -> Result<(), Failure> {
    for VerifiedChannel { name, revision, digest, misfit } in channels {
        let digest = digest.map_or_else(|| "no digest".to_owned(), |digest| digest.short());
        report::print_line(&match misfit {
            Some(Misfit { revision, reason }) => format!("{name}: revision {revision} does not fit: {reason}"),
            None if *revision == 0 => format!("{name}: empty"),
            None => format!("{name}: revision {revision} ({digest}) and all before it fit"),
        })?;
    }
    Ok(())
}

async fn copy_store(arguments: &CopyArguments) -> Result<(), Failure> {
    let (from, to) = (StorePlace::of(&arguments.words.library)?, StorePlace::unpinned(&arguments.to)?);
    let source = access::open(&from.address, Opening::Read).await?;
    let copied = to.filling(Method::StoreCopy, async |target| {
        let copied = waiting(target.url(), source.copy_to(target)).await;
        copied.map_err(|error| filled(error, "name an empty database, or a file that does not exist"))
    });
    let copied = copied.await;
    source.close().await;
    print_copy(&copied?, arguments.json, |copied| format!("copied {copied} to {}", to.address.store))
}

async fn back_up(arguments: &BackupArguments) -> Result<(), Failure> {
    let (place, file) = (StorePlace::of(&arguments.words.library)?, Path::new(arguments.words.name()));
    let copied =
        place.reading(Method::StoreBackup, async |store| Ok(waiting(store.url(), store.back_up(file)).await?)).await?;
    print_copy(&copied, arguments.json, |copied| format!("wrote {copied} to {}", file.display()))
}

async fn restore(arguments: &RestoreArguments) -> Result<(), Failure> {
    let (place, file) = (StorePlace::of(&arguments.words.library)?, Path::new(arguments.words.name()));
    let restored = place.filling(Method::StoreRestore, async |store| {
        let RestoreArguments { replace, other_store, .. } = *arguments;
        let restored = waiting(store.url(), store.restore(file, replace, other_store)).await;
        restored.map_err(|error| {
            let is_of_other =
                matches!(&error, StoreError::State { reason } if reason.contains("a backup of another store"));
            let failure = filled(error, "`--replace` replaces everything that it has");
            if is_of_other {
                failure.help("`--replace --other-store` replaces all of it nevertheless")
            } else {
                failure
            }
        })
    });
    let restored = restored.await?;
    let at = restored.backup_of.map(|at| format!(" of {at:.0}")).unwrap_or_default();
    print_copy(&restored, arguments.json, |copied| {
        format!("restored {copied}{at}; every replica reads everything again (epoch {})", restored.epoch)
    })
}

/// The error of a store that is not empty, with a help.
fn filled(error: StoreError, help: &str) -> Failure {
    let has_data = matches!(&error, StoreError::State { reason } if reason.contains("has data already"));
    let failure = Failure::from(error);
    if has_data { failure.help(help) } else { failure }
}

fn print_copy(copy: &StoreCopy, is_json: bool, line: impl FnOnce(&str) -> String) -> Result<(), Failure> {
    if is_json {
        return report::print_json(&json!(copy));
    }
    let contents = copy.rows.get("ps_blob").copied().unwrap_or_default();
    let rows = copy.rows.values().sum::<u64>() - contents;
    let (contents, rows) = (counted(contents, "content"), counted(rows, "row"));
    report::print_line(&line(&format!("{contents} and {rows} of {} tables", copy.rows.len() - 1)))?;
    print_verified(&copy.channels)
}

async fn new_epoch(arguments: &MaintenanceArguments) -> Result<(), Failure> {
    let place = StorePlace::of(&arguments.words.library)?;
    let epoch =
        place.changing(Method::StoreNewEpoch, async |store| Ok(waiting(store.url(), store.new_epoch()).await?)).await?;
    if arguments.json {
        return report::print_json(&json!({ "epoch": epoch }));
    }
    report::print_line(&format!("the store has the new epoch {epoch}: every replica reads everything again"))
}

async fn prune(arguments: &PruneArguments) -> Result<(), Failure> {
    let place = StorePlace::of(&arguments.words.library)?;
    let (age, is_json) = (arguments.older_than, arguments.json);
    if arguments.dry_run {
        let store = access::open(&place.address, Opening::Read).await?;
        let prunable = waiting(store.url(), store.prunable(age)).await;
        store.close().await;
        let prunable = prunable?;
        if is_json {
            let revisions: u64 = prunable.iter().map(|one| one.revisions).sum();
            return report::print_json(&json!({ "dryRun": true, "revisions": revisions, "channels": prunable }));
        }
        print_prunable(&prunable)?;
        return report::print_line("nothing was removed (dry run)");
    }
    let prune = async |store: &Store| {
        let prunable = waiting(store.url(), store.prunable(age)).await?;
        if !is_json {
            print_prunable(&prunable)?;
        }
        must_be_meant(&prunable)?;
        Ok((prunable, waiting(store.url(), store.prune(age)).await?))
    };
    let (prunable, removed) = place.changing(Method::StorePrune, prune).await?;
    if is_json {
        return report::print_json(&json!({ "revisions": removed, "channels": prunable }));
    }
    report::print_line(&format!("removed {}", counted(removed, "revision")))?;
    report::print_line(&format!("next: {} removes their contents", place.command("store gc")))
}

fn print_prunable(prunable: &[Prunable]) -> Result<(), Failure> {
    for Prunable { channel, revisions, kept, oldest, since, .. } in prunable {
        report::print_line(&format!(
            "{channel}: {} before revision {oldest} (of {since:.0}) to remove; {kept} stay",
            counted(*revisions, "revision")
        ))?;
    }
    Ok(())
}

/// Asks before old revisions are removed for good. Without a terminal, more than what stays is removed only with `--yes`:
/// that is more often a wrong age.
fn must_be_meant(prunable: &[Prunable]) -> Result<(), Failure> {
    let (removed, kept) = prunable.iter().fold((0, 0), |sums, one| (sums.0 + one.revisions, sums.1 + one.kept));
    if removed == 0 || agrees() {
        return Ok(());
    }
    if terminal::is_interactive() {
        let question = format!("Remove {} for good? [y/N] ", counted(removed, "revision"));
        let is_meant = terminal::agree(&question);
        return if is_meant { Ok(()) } else { Err(Failure::new(Exit::Declined, "nothing was removed")) };
    }
    if removed <= kept {
        return Ok(());
    }
    let message = format!(
        "{} would be removed for good, and {kept} would stay: nothing was removed",
        counted(removed, "revision")
    );
    Err(Failure::new(Exit::Declined, message).help("`--dry-run` shows them; `--yes` removes them"))
}

fn counted(number: u64, thing: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), thing)
}
