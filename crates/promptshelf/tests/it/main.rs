//! The program from outside: its command line, its servers, its examples.

mod answers;
#[cfg(unix)]
mod asked;
#[cfg(unix)]
mod attacks;
mod audit;
mod author;
#[cfg(unix)]
mod chat;
#[cfg(unix)]
mod crowd;
#[cfg(unix)]
mod duties;
mod embedding;
#[cfg(unix)]
mod ending;
mod exchange;
#[cfg(unix)]
mod hostile;
mod limits;
#[cfg(unix)]
mod lsp;
mod mistakes;
#[cfg(all(unix, feature = "traces"))]
mod observe;
#[cfg(unix)]
mod official_client;
#[cfg(unix)]
mod operation;
mod page;
#[cfg(unix)]
mod reload;
mod remote;
mod serving;
mod sign_in;
mod signing_in;
#[cfg(unix)]
mod streams;
#[cfg(unix)]
mod transcripts;
mod unasked;
#[cfg(unix)]
mod wire;

// The harness, under the names of its modules.
#[cfg(unix)]
use promptshelf_testkit::terminal;
use promptshelf_testkit::{fake_server, program};
