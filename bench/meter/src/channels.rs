//! Channels: publishing, the way of a revision to eight replicas, and the start of a large channel.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use promptshelf_server::channels::LibraryChecker;
use promptshelf_store::{Actor, Change, ChannelName, Digest, Publish, RevisionKind, Store};
use promptshelf_testkit::database::Postgres;
use tokio::task::JoinSet;

use crate::{
    Plan,
    growth::Stream,
    library,
    load::{self, Connection, Seen},
    message::{Era, ROWS},
    server::{self, Kind, Server},
};

const REPLICAS: usize = 8;
pub(crate) const WRITERS: usize = 16;

/// Publishes and replicas on one database.
#[derive(Debug)]
pub(crate) struct Followed {
    /// `PostgreSQL`, with or without notifications, or `SQLite`.
    pub(crate) store: &'static str,
    /// The time of a publish, with the check of the tree.
    pub(crate) publishing: Seen,
    /// From the start of a publish to `list_changed` at each of the replicas.
    pub(crate) followed: Seen,
    /// Publishes in a second by one writer, and by sixteen that publish different files.
    pub(crate) rates: (f64, f64),
    /// Resident memory of a replica.
    pub(crate) memory: u64,
}

/// The start of a server with a large channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LargeChannel {
    pub(crate) files: usize,
    /// Storing the folder with `promptshelf init`.
    pub(crate) storing: Duration,
    /// From process start to the first response, from PostgreSQL and from the folder.
    pub(crate) channel: Duration,
    pub(crate) folder: Duration,
    /// Resident memory of both.
    pub(crate) memory: (u64, u64),
}

/// The answers of a replica while its database answers, and after it has stopped to.
#[derive(Debug)]
pub(crate) struct Outage {
    pub(crate) before: Seen,
    pub(crate) during: Seen,
}

/// All measurements of this module.
#[derive(Debug)]
pub(crate) struct Channels {
    pub(crate) followed: Vec<Followed>,
    pub(crate) outage: Outage,
    pub(crate) large: LargeChannel,
}

/// Runs the measurements if selected.
pub(crate) async fn measure(plan: &Plan) -> Result<Option<Channels>> {
    if !plan.wants("channels") {
        return Ok(None);
    }
    let postgres = Postgres::start();
    let folder = plan.scratch.join("channel");
    library::write_listed(&folder, 100, 1_000)?;
    library::write_asked(&folder)?;
    let file = format!("sqlite:{}", plan.scratch.join("channel.db").display());
    let mut followed = Vec::new();
    let without_listen = format!("{}?notifications=off", postgres.database());
    for (store, url) in
        [("PostgreSQL", postgres.database()), ("PostgreSQL without LISTEN", without_listen), ("SQLite", file)]
    {
        init(plan, &url, &folder)?;
        let found = follow(plan, store, &url).await.with_context(|| format!("replicas on {store}"))?;
        println!(
            "channels: {store}: publish {:.1?}, list_changed {:.1?} (p99 {:.1?}), {:.0} and {:.0} publishes a second",
            found.publishing.percentile(50),
            found.followed.percentile(50),
            found.followed.percentile(99),
            found.rates.0,
            found.rates.1,
        );
        followed.push(found);
    }
    let outage = outage(plan, &postgres, &folder).await.context("a replica without its database")?;
    println!(
        "channels: p99 {:.1?} with the database, {:.1?} without",
        outage.before.percentile(99),
        outage.during.percentile(99)
    );
    let large = large(plan, &postgres).await?;
    println!("channels: {large:.1?}");
    Ok(Some(Channels { followed, outage, large }))
}

/// Creates a store with a folder as the first revision.
pub(crate) fn init(plan: &Plan, url: &str, folder: &Path) -> Result<()> {
    let output = Command::new(&plan.promptshelf).args(["init", url, "--from"]).arg(folder).output()?;
    ensure!(output.status.success(), "`init` failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn serve(plan: &Plan, url: &str, port: u16) -> Command {
    let mut command = Command::new(&plan.promptshelf);
    command.args(["serve", url, "--http", &format!("127.0.0.1:{port}")]);
    command
}

async fn follow(plan: &Plan, name: &'static str, url: &str) -> Result<Followed> {
    let mut replicas = Vec::new();
    let mut streams = Vec::new();
    for number in 0..REPLICAS {
        let port = server::free_port()?;
        let log = plan.scratch.join(format!("replica-{number}.log"));
        replicas.push(Server::start(serve(plan, url, port), port, None, &log)?);
        streams.push(Stream::open(port).await?);
    }
    let store = Store::open(&url.parse()?).await?;
    let (mut publishing, mut followed) = (Seen::default(), Seen::default());
    for edit in 0..if plan.quick { 5 } else { 40 } {
        let began = Instant::now();
        publish(&store, 7, edit).await?;
        publishing.latencies.push(began.elapsed());
        let mut waiting = JoinSet::new();
        for mut stream in streams.drain(..) {
            waiting.spawn(async move {
                let at = stream.wait_for("notifications/prompts/list_changed").await?;
                anyhow::Ok((at, stream))
            });
        }
        while let Some(arrived) = waiting.join_next().await {
            let (at, stream) = arrived??;
            followed.latencies.push(at - began);
            streams.push(stream);
        }
    }
    publishing.latencies.sort_unstable();
    followed.latencies.sort_unstable();
    let memory = replicas.iter().map(|replica| server::memory(replica.child.id()).map(|(now, _)| now));
    let memory = memory.collect::<Result<Vec<_>>>()?.iter().sum::<u64>() / REPLICAS as u64;
    drop((streams, replicas));
    let rates = (rate(plan, &store, 1).await?, rate(plan, &store, WRITERS).await?);
    Ok(Followed { store: name, publishing, followed, rates, memory })
}

/// Publishes in a second by writers of different files.
async fn rate(plan: &Plan, store: &Store, writers: usize) -> Result<f64> {
    let time = Duration::from_secs(if plan.quick { 2 } else { 10 });
    let began = Instant::now();
    let mut writing = JoinSet::new();
    for writer in 0..writers {
        let store = store.clone();
        writing.spawn(async move {
            let mut published = 0_usize;
            while began.elapsed() < time {
                publish(&store, 10 + writer, 1_000 + published).await?;
                published += 1;
            }
            anyhow::Ok(published)
        });
    }
    let mut published = 0;
    while let Some(count) = writing.join_next().await {
        published += count??;
    }
    Ok(published as f64 / began.elapsed().as_secs_f64())
}

/// Publishes an edit of one file.
async fn publish(store: &Store, file: usize, edit: usize) -> Result<()> {
    let channel = ChannelName::production();
    let path = format!("part-000/{file}.md");
    let (head, files) = store.files(&channel, None).await?;
    let before = files.iter().find(|entry| entry.path == path).map(|entry| entry.digest);
    let after = library::listed(file, &format!(" Edit {edit}.")).into_bytes();
    ensure!(before != Some(Digest::of(&after)), "the same content");
    let publish = Publish {
        channel,
        base: head.revision,
        kind: RevisionKind::Publish,
        message: format!("edit {edit}"),
        proposal: None,
        expected: None,
        emergency: None,
        changes: vec![Change { path, before, after: Some(after.into()) }],
        dry_run: false,
    };
    let author = Actor { name: "meter".to_owned(), may_publish: true, may_administer: true, review_roles: None };
    let published = store.publish(publish, &author, Arc::new(LibraryChecker::new())).await?;
    ensure!(published.proposal.revision.is_some(), "not published: {:?}", published.proposal.lacks);
    Ok(())
}

/// Sends requests to a replica, and stops the database meanwhile. An answer that is late or not a success is an error.
async fn outage(plan: &Plan, postgres: &Postgres, folder: &Path) -> Result<Outage> {
    const CONNECTIONS: usize = 16;
    // Longer than the time limit for a comparison with the database, which is 3 seconds.
    let time = Duration::from_secs(if plan.quick { 5 } else { 15 });
    let url = postgres.database();
    init(plan, &url, folder)?;
    let port = server::free_port()?;
    let _server = Server::start(serve(plan, &url, port), port, None, &plan.scratch.join("outage.log"))?;
    let row = &ROWS[0];
    let message = row.message(Era::Modern);
    row.check(&Connection::open(port).await?.ask(&message.http(port)).await?)?;
    let before = load::run(port, &message.http(port), CONNECTIONS, time).await?;
    postgres.stop();
    let during = load::run(port, &message.http(port), CONNECTIONS, time).await;
    postgres.proceed();
    Ok(Outage { before, during: during? })
}

async fn large(plan: &Plan, postgres: &Postgres) -> Result<LargeChannel> {
    let files = if plan.quick { 10_000 } else { 100_000 };
    let folder = plan.scratch.join("large-channel");
    let prompts = files - library::OTHER_FILES;
    library::write_listed(&folder, prompts, 1_000)?;
    library::write_asked(&folder)?;
    let url = postgres.database();
    let began = Instant::now();
    init(plan, &url, &folder)?;
    let storing = began.elapsed();
    let port = server::free_port()?;
    let (channel, channel_memory) = first_response(plan, serve(plan, &url, port), port).await?;
    let port = server::free_port()?;
    let command = plan.programs.command(Kind::Promptshelf, port, (prompts, 1_000), &folder);
    let (folder_time, folder_memory) = first_response(plan, command, port).await?;
    fs::remove_dir_all(&folder)?;
    Ok(LargeChannel { files, storing, channel, folder: folder_time, memory: (channel_memory, folder_memory) })
}

/// Returns the time to the first response, and the memory some seconds later.
async fn first_response(plan: &Plan, command: Command, port: u16) -> Result<(Duration, u64)> {
    let began = Instant::now();
    let server = Server::start(command, port, None, &plan.scratch.join("large-channel.log"))?;
    let row = &ROWS[0];
    row.check(&Connection::open(port).await?.ask(&row.message(Era::Modern).http(port)).await?)?;
    let time = began.elapsed();
    // As in the measurement of growth.
    tokio::time::sleep(Duration::from_secs(5)).await;
    Ok((time, server::memory(server.child.id())?.0))
}
