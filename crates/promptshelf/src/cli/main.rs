//! The `promptshelf` program: reads the arguments, runs a command, and ends with a documented exit code.

mod args;
mod chat;
mod client_config;
mod command_line;
mod commands;
mod connect;
mod environment;
mod library;
mod observe;
mod output;
mod source;
mod telemetry;
mod terminal;
mod whole_file;
mod working_copy;

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
};

use promptshelf_server::{failure as exit, launcher, settings, sources, state};

use crate::{
    args::{CommandLine, LogFormat},
    commands::{Command, serve::ProcessContext},
    exit::{Exit, Failure},
    settings::Settings,
};

/// mimalloc keeps the memory of large answers; with glibc's allocator an answer of 100 kB takes twice the time
/// (see `docs/performance.md`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The default log level of `serve`. The SDK logs text of other servers.
const SERVER_LOG: &str = "info,rmcp=off";
/// The default log level of the other commands, which report errors in their output. Text of foreign servers is not
/// logged, because it would not be escaped.
const COMMAND_LOG: &str = "error,promptshelf_server::api=off,promptshelf_source=off,rmcp=off";

fn main() -> ExitCode {
    args::complete::answer();
    if args::asks_for_version_as_json(std::env::args_os().skip(1)) {
        return ended(commands::version());
    }
    if let Err(failure) = environment::read_secrets() {
        return ended(Err(failure));
    }
    let CommandLine { command, common } = CommandLine::read();
    output::configure(&common);
    let default_level = if matches!(command, Command::Serve(_)) { SERVER_LOG } else { COMMAND_LOG };
    let level = common.level.as_deref().filter(|level| !level.is_empty()).unwrap_or(default_level);
    ended(run_logged(&command, level, common.log_format))
}

fn ended(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => Exit::Success.into(),
        Err(failure) => {
            output::report_failure(&failure);
            failure.exit.into()
        }
    }
}

fn run_logged(command: &Command, level: &str, log_format: LogFormat) -> Result<(), Failure> {
    let settings = match command {
        Command::Serve(arguments) if !arguments.check => {
            Some(commands::serve::read(arguments, &environment::variable)?)
        }
        _ => None,
    };
    let traces = settings.as_ref().and_then(|settings| settings.fixed.traces.as_ref());
    // Dropping the exporter sends the pending spans, before an error is printed.
    let exporter = telemetry::start(log_format, level, traces)?;
    run(command, settings.unwrap_or_default(), log_format, exporter.is_some())
}

fn run(command: &Command, settings: Settings, log_format: LogFormat, has_traces: bool) -> Result<(), Failure> {
    let mut runtime = match command {
        // A single client sends few requests at a time, and a single thread starts faster.
        Command::Serve(arguments) if arguments.stdio => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    // Nested values and blocks of templates use the stack; pages of it that nothing touches take no memory.
    let runtime = runtime.thread_stack_size(8 << 20).enable_all().build()?;
    let process = ProcessContext { stdin_is_terminal: io::stdin().is_terminal(), log_format, has_traces };
    let outcome = runtime.block_on(async {
        let outcome = tokio::select! {
            outcome = command.run(settings, process) => Ok(outcome),
            number = terminal::signalled() => Err(number),
        };
        promptshelf_client::closed().await;
        outcome
    });
    let outcome = outcome.unwrap_or_else(|number| std::process::exit(128 + number));
    // A pending read of stdin cannot be interrupted, and must not delay the end.
    runtime.shutdown_background();
    outcome
}
