//! The passes of a sync: one, or one after each change.

use std::{future::pending, sync::Arc, time::Duration};

use promptshelf_client::PromptInfo;
use promptshelf_core::Catalog;
use tokio::time::sleep;

use super::{Job, Listed, report::Report};
use crate::{
    connect::{Connection, Options, connect},
    exit::{Exit, Failure},
    output::{note, report_failure, visible_line},
    terminal::Progress,
};

/// The time between two requests for the list, for servers that do not notify and for subscriptions that were lost.
const POLL: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(200);
/// The pause before the first attempt to connect again, which doubles with every attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Runs one pass; with `--watch` further ones until a signal ends the process.
pub(super) async fn run(job: &Job<'_>) -> Result<(), Failure> {
    let connection = connected(job).await?;
    if !job.arguments.watch {
        let report = job.pass(&connection, &listed(&connection).await?).await?;
        if let Some(library) = &connection.library {
            library.note_errors();
        }
        report.print(job.arguments.json, None, &job.key())?;
        return if report.is_refused() { Err(Failure::reported(Exit::Failed)) } else { Ok(()) };
    }
    tokio::select! {
        result = follow(job, connection) => result,
        () = ended() => Ok(()),
    }
}

/// Runs a pass after each change, and connects again after the connection was lost.
async fn follow(job: &Job<'_>, first: Connection) -> Result<(), Failure> {
    let mut earlier = Report::default();
    let mut connection = Some(first);
    let mut pause = FIRST_PAUSE;
    let mut is_first = true;
    let mut reported: Option<Failure> = None;
    loop {
        let failure = match connection.take() {
            Some(connection) => match follow_connection(job, &connection, &mut earlier, &mut is_first).await {
                Ok(()) => None,
                Err(failure) if is_first => return Err(failure),
                Err(failure) => Some(failure),
            },
            None => match connected(job).await {
                Ok(again) => {
                    pause = FIRST_PAUSE;
                    connection = Some(again);
                    continue;
                }
                Err(failure) => Some(failure),
            },
        };
        if let Some(failure) = &failure
            && reported.as_ref() != Some(failure)
        {
            report_failure(failure);
        }
        reported = failure;
        sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// Runs passes until the connection is lost.
async fn follow_connection(
    job: &Job<'_>,
    connection: &Connection,
    earlier: &mut Report,
    is_first: &mut bool,
) -> Result<(), Failure> {
    let mut known: Option<Listed> = None;
    while !connection.client.is_closed() {
        // Before the list is requested, so that no change is missed. A new subscription with every request by time,
        // because a server that was restarted has forgotten the earlier one.
        let mut changes = connection.client.changes();
        loop {
            let served = connection.library.as_ref().map(|open| open.library.catalog());
            let all = listed(connection).await?;
            if known.as_ref() != Some(&all) || !all.prompts.iter().all(has_digest) {
                let report = job.pass(connection, &all).await?;
                report.print(job.arguments.json, Some(earlier), &job.key())?;
                if std::mem::take(is_first) && !job.arguments.json {
                    note(&[format!("following {}", connection.source)]);
                }
                *earlier = report;
                known = Some(all);
            }
            tokio::select! {
                is_open = changes.next() => match is_open {
                    true => known = None,
                    false => return Ok(()),
                },
                () = replaced(connection, served) => known = None,
                () = sleep(POLL) => break,
            }
        }
    }
    Ok(())
}

/// Returns whether an entry changes with the text of its prompt: servers of channels send a digest of it.
fn has_digest(prompt: &PromptInfo) -> bool {
    prompt.raw["_meta"]["dev.promptshelf/digest"].is_string()
}

/// Waits until a library of this process has another catalog. The text of a prompt can change without its entry in the
/// list, so that the server sends no notification.
async fn replaced(connection: &Connection, served: Option<Arc<Catalog>>) {
    let (Some(open), Some(served)) = (&connection.library, served) else { return pending().await };
    while Arc::ptr_eq(&served, &open.library.catalog()) {
        sleep(LOOK).await;
    }
}

async fn connected(job: &Job<'_>) -> Result<Connection, Failure> {
    let progress = Progress::new(visible_line(&job.source.to_string()).into_owned());
    let options = Options { watch: job.arguments.watch, ..Options::new(job.arguments.source.timeout(), &progress) };
    connect(&job.source, options, &progress).await
}

async fn listed(connection: &Connection) -> Result<Listed, Failure> {
    let prompts = connection.client.all_prompts().await.map_err(|error| connection.failure(error))?;
    let skills = connection.client.all_skills().await.map_err(|error| connection.failure(error))?;
    Ok(Listed { prompts, skills })
}

async fn ended() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => return,
                _ = tokio::signal::ctrl_c() => return,
            }
        }
    }
    tokio::signal::ctrl_c().await.ok();
}
