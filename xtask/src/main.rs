//! What people and CI do with this repository: `cargo xtask test`, `tidy`,
//! `conformance`, `fuzz`, `bench` and `guard`.
//!
//! Nothing of the product is here. Everything starts programs that a person
//! could start by hand, and says which.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "people read what this prints")]

mod bench;
mod conformance;
mod fuzz;
mod guard;
mod guide;
mod prepare;
mod repository;
mod steps;
mod terminal;
mod tidy;
mod web;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::repository::Repository;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "What people and CI do with this repository")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run everything that CI runs
    Test {
        /// Run this step only; can be given more than once
        #[arg(long, value_name = "STEP")]
        only: Vec<String>,
        /// Say which steps there are
        #[arg(long)]
        list: bool,
    },
    /// Check the rules that the compiler cannot check: layers, imports, lengths, language
    Tidy {
        /// Lower the ceilings of xtask/ceilings.toml to the current counts
        #[arg(long)]
        lower: bool,
        /// List every place that counts towards a ceiling
        #[arg(long)]
        list: bool,
    },
    /// Run the tests, the official clients and suites, and write docs/conformance.md and SECURITY.md's table
    Conformance {
        /// Write the tables from the tags, and keep the recorded results of the suites
        #[arg(long)]
        without_running: bool,
    },
    /// Send random bytes where bytes of strangers are read (needs cargo-fuzz and a nightly toolchain)
    Fuzz {
        /// For how long, each target
        #[arg(long, value_name = "N", default_value_t = 60)]
        seconds: u32,
        /// Only this target; all of them one after the other without it
        target: Option<String>,
    },
    /// Measure the release binary and other servers side by side, and write docs/performance.md
    Bench {
        /// Short turns, and only one
        #[arg(long)]
        quick: bool,
        /// This row only; can be given more than once
        #[arg(long, value_name = "ROW")]
        only: Vec<String>,
        /// These servers only, besides promptshelf and the bare handler: rmcp, typescript, python, fastmcp
        #[arg(long, value_name = "SERVERS", num_args = 0..=1, default_missing_value = "", value_delimiter = ',')]
        peers: Option<Vec<String>>,
    },
    /// Write the guide's reference pages from the binary, and build the guide into target/guide
    Guide,
    /// Count the instructions of the hot paths, and refuse a rise against bench/guard/counts.json
    Guard {
        /// Write down what is counted, and why it may be so
        #[arg(long, value_name = "REASON")]
        update: Option<String>,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().verb) {
        Ok(()) => ExitCode::SUCCESS,
        // Without the backtrace that anyhow would add: the causes say it all.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result<()> {
    let repository = Repository::find()?;
    match verb {
        Verb::Test { list: true, .. } => {
            for step in steps::STEPS {
                println!("{:<12} {}", step.name, step.about);
            }
            Ok(())
        }
        Verb::Test { only, .. } => steps::run(&repository, &only),
        Verb::Tidy { list: true, .. } => tidy::list(&repository),
        Verb::Tidy { lower: true, .. } => tidy::lower(&repository),
        Verb::Tidy { .. } => tidy::run(&repository),
        Verb::Conformance { without_running: true } => conformance::write_requirements(&repository),
        Verb::Conformance { without_running: false } => {
            steps::run(&repository, &["test", "client-v2", "client-v1", "guided"].map(str::to_owned))?;
            steps::suites(&repository)?;
            conformance::write(&repository)
        }
        Verb::Fuzz { seconds, target } => fuzz::run(&repository, seconds, target.as_deref()),
        Verb::Bench { quick, only, peers } => bench::run(&repository, quick, &only, peers.as_deref()),
        Verb::Guide => guide::write(&repository),
        Verb::Guard { update } => guard::run(&repository, update.as_deref()),
    }
}
