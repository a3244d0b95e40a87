//! Benchmark driver: starts servers, sends load, writes the report. `cargo xtask bench` builds and installs the
//! servers, then runs this program.

mod attack;
mod channels;
mod chart;
mod growth;
mod library;
mod load;
mod message;
mod pipe;
mod report;
mod rows;
mod server;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::{
    message::ROWS,
    server::{Kind, Programs},
};

/// Options of a run.
#[derive(Debug, Parser)]
pub(crate) struct Plan {
    /// The repository
    #[arg(long)]
    root: PathBuf,
    /// The folder in which everything was built and installed
    #[arg(long)]
    target: PathBuf,
    /// The release binary
    #[arg(long)]
    promptshelf: PathBuf,
    /// Short turns, and only one
    #[arg(long)]
    quick: bool,
    /// These rows only
    #[arg(long, value_name = "ROW")]
    only: Vec<String>,
    /// These servers only, besides promptshelf, with a folder and with a channel, and the bare handler
    #[arg(long, value_delimiter = ',')]
    peers: Option<Vec<String>>,
    /// Seconds of each turn of the attack
    #[arg(long, value_name = "SECONDS")]
    attack_seconds: Option<u64>,
    #[arg(skip)]
    scratch: PathBuf,
    #[arg(skip)]
    programs: Programs,
    #[arg(skip)]
    cores: Option<(usize, usize)>,
}

/// Measurements besides the compared rows.
const GROWTH: &[&str] = &["attack", "channels", "growth", "start"];

impl Plan {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    fn kinds(&self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(|kind| {
            let own = *kind == Kind::Bare || kind.is_promptshelf();
            own || self.peers.as_ref().is_none_or(|peers| peers.iter().any(|peer| peer == kind.name()))
        })
    }

    /// Numbers of concurrent requests.
    fn concurrency(&self) -> impl Iterator<Item = usize> {
        let quick = self.quick;
        [1, 16, 64].into_iter().filter(move |concurrency| !quick || *concurrency != 16)
    }

    fn turns(&self) -> usize {
        if self.quick { 1 } else { 3 }
    }

    fn time(&self) -> Duration {
        Duration::from_millis(if self.quick { 200 } else { 500 })
    }

    fn check(&self) -> Result<()> {
        let rows: Vec<&str> = ROWS.iter().map(|row| row.name).chain(GROWTH.iter().copied()).collect();
        if let Some(unknown) = self.only.iter().find(|only| !rows.contains(&only.as_str())) {
            bail!("unknown row `{unknown}`, expected one of: {}", rows.join(", "));
        }
        let kinds = Kind::ALL.map(Kind::name);
        if let Some(unknown) = self.peers.iter().flatten().find(|peer| !kinds.contains(&peer.as_str())) {
            bail!("unknown server `{unknown}`, expected one of: {}", kinds.join(", "));
        }
        Ok(())
    }
}

fn main() -> Result<()> {
    let mut plan = Plan::parse();
    plan.check()?;
    let scratch = tempfile::tempdir().context("a temporary folder cannot be created")?;
    plan.scratch = scratch.path().to_owned();
    plan.programs =
        Programs { root: plan.root.clone(), target: plan.target.clone(), promptshelf: plan.promptshelf.clone() };
    plan.cores = server::cores();
    growth::allow_many_files();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let growth = runtime.block_on(growth::measure(&plan))?;
    let channels = runtime.block_on(channels::measure(&plan))?;
    if let Some((_, load)) = plan.cores {
        server::pin(load);
    }
    let measurements = runtime.block_on(rows::measure(&plan))?;
    let attack = runtime.block_on(attack::measure(&plan))?;
    report::write(&plan, &measurements, &growth, channels.as_ref(), attack.as_ref())
}
