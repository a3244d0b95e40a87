//! `promptshelf store`: maintenance of a store.

use promptshelf_store::{Misfit, Store, VerifiedChannel};
use serde_json::json;

use super::{
    access::{StorePlace, waiting},
    report,
};
use crate::{
    args::channels::{MaintenanceArguments, MigrateArguments, PruneArguments},
    exit::{Exit, Failure},
    output::count,
};

pub(crate) async fn migrate(arguments: &MigrateArguments) -> Result<(), Failure> {
    let place = StorePlace::of(&arguments.store)?;
    let url = &place.address.store;
    let (present, newest) = waiting(url, Store::schema(url)).await.map_err(|error| place.opening(error))?;
    let is_current = present >= newest;
    if !arguments.check && !is_current {
        place.changing("store/migrate", async |_| Ok(())).await?;
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

pub(crate) async fn gc(arguments: &MaintenanceArguments) -> Result<(), Failure> {
    let place = StorePlace::of(&arguments.store)?;
    let (contents, bytes) =
        place.changing("store/gc", async |store| Ok(waiting(store.url(), store.gc()).await?)).await?;
    if arguments.json {
        return report::print_json(&json!({ "contents": contents, "bytes": bytes }));
    }
    report::print_line(&format!("removed {}, {bytes} bytes", counted(contents, "content")))
}

pub(crate) async fn verify(arguments: &MaintenanceArguments) -> Result<(), Failure> {
    let place = StorePlace::of(&arguments.store)?;
    let channels = place.reading("store/verify", async |store| Ok(waiting(store.url(), store.verify()).await?)).await?;
    if arguments.json {
        report::print_json(&json!({ "channels": channels }))?;
    } else {
        for VerifiedChannel { name, revision, digest, misfit } in &channels {
            let digest = digest.map_or_else(|| "no digest".to_owned(), |digest| digest.short());
            report::print_line(&match misfit {
                Some(Misfit { revision, reason }) => format!("{name}: revision {revision} does not fit: {reason}"),
                None if *revision == 0 => format!("{name}: empty"),
                None => format!("{name}: revision {revision} ({digest}) and all before it fit"),
            })?;
        }
    }
    let fits = channels.iter().all(|channel| channel.misfit.is_none());
    if fits { Ok(()) } else { Err(Failure::reported(Exit::Failed)) }
}

pub(crate) async fn new_epoch(arguments: &MaintenanceArguments) -> Result<(), Failure> {
    let place = StorePlace::of(&arguments.store)?;
    let epoch =
        place.changing("store/new-epoch", async |store| Ok(waiting(store.url(), store.new_epoch()).await?)).await?;
    if arguments.json {
        return report::print_json(&json!({ "epoch": epoch }));
    }
    report::print_line(&format!("the store has the new epoch {epoch}: every replica reads everything again"))
}

pub(crate) async fn prune(arguments: &PruneArguments) -> Result<(), Failure> {
    let place = StorePlace::of(&arguments.store)?;
    let age = arguments.older_than;
    let removed =
        place.changing("store/prune", async |store| Ok(waiting(store.url(), store.prune(age)).await?)).await?;
    if arguments.json {
        return report::print_json(&json!({ "revisions": removed }));
    }
    report::print_line(&format!("removed {}", counted(removed, "revision")))?;
    report::print_line(&format!("next: {} removes their contents", place.command("store gc")))
}

fn counted(number: u64, thing: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), thing)
}
