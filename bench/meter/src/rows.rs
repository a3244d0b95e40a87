//! Comparison of all servers, row by row.
//!
//! The servers of a row run at the same time and are measured in turns, so that other load on the machine affects all
//! of them. Ratios are computed within a turn; the table has the median of the turns.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, Result};

use crate::{
    Plan, channels, library,
    load::{self, Connection, Seen},
    message::{Era, Message, ROWS, Row},
    pipe::Pipe,
    server::{self, Kind, Server},
};

/// Measurements of one server in one row.
#[derive(Clone, Debug)]
pub(crate) struct Measurement {
    pub(crate) row: String,
    /// `http` or `stdio`.
    pub(crate) wire: &'static str,
    pub(crate) era: Era,
    pub(crate) at_once: usize,
    pub(crate) kind: Kind,
    pub(crate) median: Duration,
    pub(crate) p99: Duration,
    /// CPU time of the server for 10,000 requests.
    pub(crate) cpu: Duration,
    /// Ratio of that time to the bare handler's in the same turn: the median of the turns.
    pub(crate) ratio: f64,
    /// The lowest and the highest ratio of a turn.
    pub(crate) spread: (f64, f64),
    pub(crate) memory: u64,
}

/// One turn of one server.
struct Turn {
    seen: Seen,
    cpu: Duration,
}

impl Turn {
    fn cpu_of_10_000(&self) -> f64 {
        self.cpu.as_secs_f64() * 10_000.0 / self.seen.latencies.len().max(1) as f64
    }
}

/// Measures all selected rows.
pub(crate) async fn measure(plan: &Plan) -> Result<Vec<Measurement>> {
    let mut measurements = Vec::new();
    let mut libraries: BTreeMap<(usize, usize), PathBuf> = BTreeMap::new();
    for row in ROWS.iter().filter(|row| plan.wants(row.name)) {
        if let Entry::Vacant(library) = libraries.entry(row.listed) {
            let folder = plan.scratch.join(format!("library-{}", row.listed.0));
            library::write_listed(&folder, row.listed.0, row.listed.1)?;
            library::write_asked(&folder)?;
            channels::init(plan, &server::store(&folder), &folder)?;
            library.insert(folder);
        }
        let folder = &libraries[&row.listed];
        let mut servers = Vec::new();
        for kind in plan.kinds() {
            let port = server::free_port()?;
            let command = plan.programs.command(kind, port, row.listed, folder);
            let log = plan.scratch.join(format!("{}.log", kind.name()));
            match Server::start(command, port, plan.cores.map(|cores| cores.0), &log) {
                Ok(server) => servers.push((kind, server)),
                Err(error) => println!("{}: {} is omitted: {error:#}", row.name, kind.name()),
            }
        }
        for era in Era::BOTH {
            over_http(plan, row, era, &servers, &mut measurements).await?;
        }
        drop(servers);
        if row.over_stdio {
            for era in Era::BOTH {
                over_stdio(plan, row, era, folder, &mut measurements)?;
            }
        }
    }
    Ok(measurements)
}

async fn over_http(
    plan: &Plan,
    row: &Row,
    era: Era,
    servers: &[(Kind, Server)],
    out: &mut Vec<Measurement>,
) -> Result<()> {
    let mut requests = Vec::new();
    for (kind, server) in servers {
        match checked(row, era, server.port).await {
            Ok(message) => requests.push((*kind, server, message.http(server.port))),
            Err(error) => println!("{} {era:?}: {} is omitted: {error:#}", row.name, kind.name()),
        }
    }
    for at_once in plan.concurrency() {
        let mut turns: BTreeMap<usize, Vec<Turn>> = BTreeMap::new();
        for _ in 0..plan.turns() {
            for (at, (kind, server, request)) in requests.iter().enumerate() {
                let before = server::cpu(server.child.id())?;
                let seen = load::run(server.port, request, at_once, plan.time())
                    .await
                    .with_context(|| format!("{} with {}", row.name, kind.name()))?;
                let cpu = server::cpu(server.child.id())?.saturating_sub(before);
                turns.entry(at).or_default().push(Turn { seen, cpu });
            }
        }
        let with = |at: usize| {
            let (kind, server, _) = &requests[at];
            (*kind, server::memory(server.child.id()).unwrap_or_default().0)
        };
        summarise(row, "http", era, at_once, &turns, with, out);
    }
    Ok(())
}

/// Sends one request, and returns the message if the result is valid.
async fn checked(row: &Row, era: Era, port: u16) -> Result<Message> {
    let message = row.message(era);
    row.check(&Connection::open(port).await?.ask(&message.http(port)).await?)?;
    Ok(message)
}

fn over_stdio(plan: &Plan, row: &Row, era: Era, folder: &std::path::Path, out: &mut Vec<Measurement>) -> Result<()> {
    let message = row.message(era).body;
    let mut pipes = Vec::new();
    for kind in plan.kinds() {
        let start = || {
            let command = plan.programs.command(kind, 0, row.listed, folder);
            let mut pipe = Pipe::start(command, plan.cores.map(|cores| cores.0))?;
            if era == Era::Legacy {
                pipe.greet()?;
            }
            row.check(&pipe.ask(&message)?)?;
            Ok::<_, anyhow::Error>(pipe)
        };
        match start() {
            Ok(pipe) => pipes.push((kind, pipe)),
            Err(error) => println!("{} {era:?}: {} is omitted: {error:#}", row.name, kind.name()),
        }
    }
    for at_once in plan.concurrency().filter(|at_once| *at_once < 64) {
        let mut turns: BTreeMap<usize, Vec<Turn>> = BTreeMap::new();
        for _ in 0..plan.turns() {
            for (at, (kind, pipe)) in pipes.iter_mut().enumerate() {
                let process = pipe.child.id();
                let before = server::cpu(process)?;
                let seen = match pipe.run(&message, at_once, plan.time()) {
                    Ok(seen) => seen,
                    Err(error) => {
                        println!("{} {era:?} c={at_once}: {} is omitted: {error:#}", row.name, kind.name());
                        continue;
                    }
                };
                let cpu = server::cpu(process)?.saturating_sub(before);
                turns.entry(at).or_default().push(Turn { seen, cpu });
            }
        }
        let with = |at: usize| (pipes[at].0, server::memory(pipes[at].1.child.id()).unwrap_or_default().0);
        summarise(row, "stdio", era, at_once, &turns, with, out);
    }
    Ok(())
}

fn summarise(
    row: &Row,
    wire: &'static str,
    era: Era,
    at_once: usize,
    turns: &BTreeMap<usize, Vec<Turn>>,
    with: impl Fn(usize) -> (Kind, u64),
    out: &mut Vec<Measurement>,
) {
    let bare = turns.iter().find(|(at, _)| with(**at).0 == Kind::Bare).map(|(_, turns)| turns);
    for (at, own) in turns {
        let (kind, memory) = with(*at);
        let turns = own.iter().zip(bare.into_iter().flatten());
        let ratios: Vec<f64> = turns.map(|(own, bare)| own.cpu_of_10_000() / bare.cpu_of_10_000()).collect();
        let lowest = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = ratios.iter().copied().fold(0.0, f64::max);
        let measurement = Measurement {
            row: row.about(),
            wire,
            era,
            at_once,
            kind,
            median: Duration::from_secs_f64(median(
                own.iter().map(|turn| turn.seen.percentile(50).as_secs_f64()).collect(),
            )),
            p99: Duration::from_secs_f64(median(
                own.iter().map(|turn| turn.seen.percentile(99).as_secs_f64()).collect(),
            )),
            cpu: Duration::from_secs_f64(median(own.iter().map(Turn::cpu_of_10_000).collect())),
            ratio: median(ratios),
            spread: (lowest, highest),
            memory,
        };
        println!(
            "{:<40} {wire:<5} {era:<6?} c={at_once:<3} {:<12} cpu {:>7.2} ms/10k  x{:<7.2} median {:>9.1?} p99 {:>9.1?} {:>5} MB",
            measurement.row,
            kind.name(),
            measurement.cpu.as_secs_f64() * 1_000.0,
            measurement.ratio,
            measurement.median,
            measurement.p99,
            memory >> 20,
        );
        out.push(measurement);
    }
}

/// Returns the median; NaN for an empty list.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}
