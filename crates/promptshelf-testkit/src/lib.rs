//! Harnesses that the tests of several crates share: an HTTP client, a pipe, a terminal, a fake server, a database,
//! proxies that cut connections, and runners of programs.
//!
//! None of them depends on another crate of this project: a test passes in the server or the command that it tests.
//! Every wait ends after [`PATIENCE`], and a helper that finds something unexpected panics, as an assertion does.

#![expect(clippy::missing_panics_doc, reason = "every helper panics when the test has failed")]
#![expect(clippy::print_stdout, reason = "figures of long tests are for people")]

use std::time::Duration;

pub mod client;
pub mod cuttable;
#[cfg(unix)]
pub mod database;
pub mod fake_server;
pub mod folder;
pub mod git;
pub mod headers;
pub mod history;
pub mod http;
#[cfg(unix)]
pub mod nginx;
pub mod pipe;
#[cfg(unix)]
pub mod pooler;
pub mod program;
pub mod receiver;
pub mod served;
pub mod tcp_proxy;
#[cfg(unix)]
pub mod terminal;

/// The longest wait for anything before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Tells a figure of a long test, such as how many sequences it ran: on stdout, and as a line of the file that the variable
/// `FIGURES` names, from which `cargo xtask nightly` makes its report.
pub fn figure(text: &str) {
    println!("figures: {text}");
    let Some(path) = std::env::var_os("FIGURES") else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| std::io::Write::write_all(&mut file, format!("{text}\n").as_bytes()));
    written.expect("the file of the figures is writable");
}

/// Returns the number in a variable, by which a long test is made longer.
#[must_use]
pub fn amount(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Numbers that a seed decides.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates the numbers of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns the next number, which is less than `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// Waits for `waiting`, at most for [`PATIENCE`]; `what` describes it in the panic message.
pub async fn in_time<T>(what: &str, waiting: impl Future<Output = T>) -> T {
    let result = tokio::time::timeout(PATIENCE, waiting).await;
    result.unwrap_or_else(|_| panic!("{what}: nothing within {PATIENCE:?}"))
}
