//! End-to-end tests of the program: command line, servers and examples.

mod audit;
mod authoring;
mod bad_input;
mod channels;
#[cfg(target_os = "linux")]
mod chaos;
#[cfg(unix)]
mod chat;
mod cli_errors;
mod cli_get;
mod cli_targets;
mod client_auth;
#[cfg(unix)]
mod configured_servers;
#[cfg(unix)]
mod confinement;
#[cfg(target_os = "linux")]
mod connection_limits;
#[cfg(unix)]
mod editors;
mod elicitation;
mod embedding;
mod export_bundle;
#[cfg(unix)]
mod first_run;
#[cfg(unix)]
mod git_library;
#[cfg(unix)]
mod hostile_clients;
#[cfg(unix)]
mod hostile_servers;
mod import_export;
mod install;
mod legacy_stream;
#[cfg(unix)]
mod lsp;
#[cfg(unix)]
mod many_streams;
#[cfg(unix)]
mod observe;
#[cfg(unix)]
mod official_client;
mod older_servers;
#[cfg(unix)]
mod operation;
mod page;
mod prompt_cache;
#[cfg(unix)]
mod protocol_rules;
mod rate_limits;
mod reach;
#[cfg(unix)]
mod reload;
mod remote_servers;
#[cfg(unix)]
mod replicas;
mod server_auth;
mod serving;
#[cfg(unix)]
mod shutdown;
#[cfg(unix)]
mod sources;
#[cfg(unix)]
mod starting;
#[cfg(unix)]
mod streams;
mod sync;
mod sync_safety;
mod sync_skills;
#[cfg(target_os = "linux")]
mod system_calls;
#[cfg(unix)]
mod transcripts;
#[cfg(unix)]
mod wire;

// The test kit's modules, under their own names.
#[cfg(unix)]
use promptshelf_testkit::terminal;
use promptshelf_testkit::{fake_server, program};
