//! Tasks of this repository for people and CI: `cargo xtask test`, `install`, `nightly`, `chaos`, `coverage`, `mutants`,
//! `tidy`, `guide`, `fuzz`, `bench`, `guard` and `release`.
//!
//! No part of the product is here. Each task starts programs that a person could start manually, and prints their
//! command lines.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the output is for people")]

mod bench;
mod conformance;
mod fuzz;
mod guard;
mod guide;
mod prepare;
mod proof;
mod release;
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
#[command(name = "cargo xtask", about = "Tasks of this repository for people and CI")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run everything that CI runs for a change
    Test(Choice),
    /// Install the packages of npm and PyPI that the tests use. A whole run of `test` does it by itself
    Install,
    /// Run what takes long for what it proves of one change, and write target/nightly/report.md
    Nightly {
        #[command(flatten)]
        choice: Choice,
        /// The minutes of each part that could go on for ever: sequences, faults, random bytes
        #[arg(long, value_name = "M")]
        minutes: Option<u64>,
    },
    /// Check rules that no other tool checks: names of machines and registries, the changelog
    Tidy,
    /// Cause faults at random while clients publish and read, and judge what they were told
    Chaos {
        /// The seed of the plan of faults
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
        /// How long it runs
        #[arg(long, value_name = "M", default_value_t = 1)]
        minutes: u64,
        /// Print the plan of faults, and end
        #[arg(long)]
        plan: bool,
    },
    /// Count which lines and regions the tests run, and compare them with the thresholds of each crate (needs
    /// cargo-llvm-cov)
    Coverage,
    /// Change decisions about access, limits and publishing in small ways, and report the changes that no test notices
    /// (installs cargo-mutants)
    Mutants {
        /// Only in lines that differ from this commit
        #[arg(long, value_name = "COMMIT")]
        since: Option<String>,
    },
    /// Send random bytes to the parsers of untrusted input (needs cargo-fuzz and a nightly toolchain)
    Fuzz {
        /// Seconds for each target
        #[arg(long, value_name = "N", default_value_t = 60)]
        seconds: u32,
        /// Only this target instead of all of them
        target: Option<String>,
    },
    /// Measure the release binary and other servers side by side, and write docs/performance.md
    Bench {
        /// Short runs, and only one of each
        #[arg(long)]
        quick: bool,
        /// This row only; can be given more than once
        #[arg(long, value_name = "ROW")]
        only: Vec<String>,
        /// Seconds of each turn of the attack, instead of four
        #[arg(long, value_name = "SECONDS")]
        attack_seconds: Option<u64>,
        /// These servers only, besides promptshelf and the bare handler: rmcp, typescript, python, fastmcp
        #[arg(long, value_name = "SERVERS", num_args = 0..=1, default_missing_value = "", value_delimiter = ',')]
        peers: Option<Vec<String>>,
    },
    /// Build the guide, with the reference that the binary makes, into target/guide
    Guide,
    /// Make the files of a release for a target: archive, Debian package, checksums, bill of materials, manifests
    Release(release::Options),
    /// Count the instructions of the hot paths, and compare them with bench/guard/counts.json
    Guard {
        /// Record the counts, with the reason for the change
        #[arg(long, value_name = "REASON")]
        update: Option<String>,
    },
}

#[derive(clap::Args)]
struct Choice {
    /// Run this step only; can be given more than once
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// List the steps
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    match run(Cli::parse().verb) {
        Ok(()) => ExitCode::SUCCESS,
        // Without the backtrace that anyhow would add: the causes are sufficient.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result<()> {
    let repository = Repository::find()?;
    match verb {
        Verb::Test(choice) => choice.run(&repository, steps::TEST),
        Verb::Install => prepare::install_everything(&repository),
        Verb::Nightly { choice, minutes } => {
            let repository = Repository { minutes, ..repository };
            if choice.list {
                return choice.run(&repository, steps::NIGHTLY);
            }
            proof::begin(&repository)?;
            let outcome = choice.run(&repository, steps::NIGHTLY);
            proof::report(&repository, outcome.is_ok())?;
            outcome
        }
        Verb::Chaos { seed, minutes, plan } => proof::chaos(&repository, seed, minutes, plan),
        Verb::Coverage => proof::coverage(&repository),
        Verb::Mutants { since } => proof::mutants(&repository, since.as_deref()),
        Verb::Tidy => tidy::run(&repository),
        Verb::Fuzz { seconds, target } => fuzz::run(&repository, seconds, target.as_deref()),
        Verb::Bench { quick, only, attack_seconds, peers } => {
            bench::run(&repository, quick, &only, attack_seconds, peers.as_deref())
        }
        Verb::Guide => guide::build(&repository),
        Verb::Release(options) => release::run(&repository, &options),
        Verb::Guard { update } => guard::run(&repository, update.as_deref()),
    }
}

impl Choice {
    fn run(&self, repository: &Repository, steps: &[steps::Step]) -> Result<()> {
        if !self.list {
            return steps::run(repository, steps, &self.only);
        }
        for step in steps {
            println!("{:<12} {}", step.name, step.about);
        }
        Ok(())
    }
}
