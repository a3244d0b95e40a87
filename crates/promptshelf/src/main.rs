//! The `promptshelf` program. `promptshelf --help` says what it does.

mod app;
mod cli;
mod config;
mod exit;
mod host;
mod observe;
mod telemetry;

fn main() -> std::process::ExitCode {
    app::run()
}
