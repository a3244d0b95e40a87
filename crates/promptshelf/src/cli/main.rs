//! The `promptshelf` program: reads the arguments, runs a command, and ends with a documented exit code.

mod args;
mod chat;
mod commands;
mod connect;
mod exit;
mod library;
mod observe;
mod output;
mod settings;
mod source;
mod state;
mod telemetry;
mod terminal;

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
};

use crate::{
    args::{CommandLine, LogFormat, TokenVerb, Verb},
    exit::{Exit, Failure},
};

/// mimalloc keeps the memory of large answers; with glibc's allocator an answer of 100 kB takes twice the time
/// (see `docs/performance.md`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is logged when nobody says.
const SERVER_LOG: &str = "info";
/// A verb that answers and ends shows what is wrong in its answer, if at all. What a
/// foreign server sends reaches no log line, where nothing would make it visible.
const VERB_LOG: &str = "error,promptshelf_source=off,rmcp=off";

/// Does what the arguments of this process ask for.
fn main() -> ExitCode {
    let CommandLine { verb, log } = CommandLine::read();
    let usual = if matches!(verb, Verb::Serve(_)) { SERVER_LOG } else { VERB_LOG };
    let level = log.level.as_deref().filter(|level| !level.is_empty()).unwrap_or(usual);
    let environment = |name: &str| std::env::var(name).ok();
    let traces = match &verb {
        Verb::Serve(arguments) => commands::serve::traces(arguments, environment),
        _ => Ok(None),
    };
    let started = traces.and_then(|traces| telemetry::start(log.log_format, level, traces.as_ref()));
    // What is to be sent is sent before the last word.
    let outcome = started.and_then(|exporter| perform(&verb, log.log_format, exporter.is_some()));
    match outcome {
        Ok(()) => Exit::Done.into(),
        Err(failure) => {
            output::report_failure(&failure);
            failure.exit.into()
        }
    }
}

fn perform(verb: &Verb, log_format: LogFormat, has_traces: bool) -> Result<(), Failure> {
    let mut runtime = match verb {
        // One client asks one thing after the other: more threads would only have to be started.
        Verb::Serve(arguments) if arguments.stdio => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.enable_all().build()?;
    let outcome = runtime.block_on(async {
        match verb {
            Verb::Serve(arguments) => {
                let context = commands::serve::ProcessContext {
                    stdin_is_terminal: io::stdin().is_terminal(),
                    log_format,
                    has_traces,
                };
                commands::serve::run(arguments, context, |name| std::env::var(name).ok()).await
            }
            Verb::Audit(arguments) => commands::audit::run(arguments),
            Verb::Token(TokenVerb::New(arguments)) => commands::token::new(arguments),
            Verb::Check(arguments) => commands::check::run(arguments),
            Verb::Explain(arguments) => commands::explain::run(arguments),
            Verb::Clients(arguments) => commands::clients::run(arguments),
            Verb::Render(arguments) => commands::render::run(arguments).await,
            Verb::New(arguments) => commands::new::run(arguments),
            Verb::Fmt(arguments) => commands::fmt::run(arguments),
            Verb::Test(arguments) => commands::test::run(arguments).await,
            Verb::Schema(arguments) => commands::schema::run(arguments),
            Verb::List(arguments) => commands::list::run(arguments).await,
            Verb::Get(arguments) => commands::get::run(arguments).await,
            Verb::Complete(arguments) => commands::complete::run(arguments).await,
            Verb::Chat(arguments) => chat::chat(arguments).await,
            Verb::SignIn(arguments) => commands::sign_in::sign_in(arguments).await,
            Verb::SignOut(arguments) => commands::sign_in::sign_out(arguments),
            Verb::Resources(arguments) => commands::resources::run(arguments).await,
            Verb::Import(arguments) => commands::import::run(arguments),
            Verb::Export(arguments) => commands::export::run(arguments).await,
            Verb::Lsp(arguments) => commands::lsp::run(arguments),
        }
    });
    // Somebody may still be reading stdin, which nothing can interrupt.
    runtime.shutdown_background();
    outcome
}
