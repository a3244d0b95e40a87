//! Tasks of this repository for people and CI: `cargo xtask test`, `tidy`, `guide`, `fuzz`, `bench`,
//! `guard` and `release`.
//!
//! No part of the product is here. Each task starts programs that a person could start by hand, and prints their
//! command lines.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the output is for people")]

mod bench;
mod conformance;
mod fuzz;
mod guard;
mod guide;
mod prepare;
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
    /// Run everything that CI runs
    Test {
        /// Run this step only; can be given more than once
        #[arg(long, value_name = "STEP")]
        only: Vec<String>,
        /// List the steps
        #[arg(long)]
        list: bool,
    },
    /// Check the rules that the compiler cannot check: layers, reserved output, names of machines
    Tidy,
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
    /// Write the guide's reference pages from the binary, and build the guide into target/guide
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
        Verb::Test { list: true, .. } => {
            for step in steps::STEPS {
                println!("{:<12} {}", step.name, step.about);
            }
            Ok(())
        }
        Verb::Test { only, .. } => steps::run(&repository, &only),
        Verb::Tidy => tidy::run(&repository),
        Verb::Fuzz { seconds, target } => fuzz::run(&repository, seconds, target.as_deref()),
        Verb::Bench { quick, only, attack_seconds, peers } => {
            bench::run(&repository, quick, &only, attack_seconds, peers.as_deref())
        }
        Verb::Guide => guide::write(&repository),
        Verb::Release(options) => release::run(&repository, &options),
        Verb::Guard { update } => guard::run(&repository, update.as_deref()),
    }
}
