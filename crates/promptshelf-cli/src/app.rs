//! The program from its first argument to its exit code: the only file that
//! knows every room.

use std::{
    io::{self, IsTerminal, Write},
    path::Path,
    process::ExitCode,
};

use anstyle::{AnsiColor, Style};
use promptshelf_server::Library;

use crate::{
    exit::{Exit, Failure},
    host, telemetry,
    verbs::{self, CommandLine, Verb, paper::Paper},
};

/// What is logged when nobody says.
const SERVER_LOG: &str = "info";
/// A verb that answers and ends shows what is wrong in its answer, if at all. What a
/// foreign server sends reaches no log line, where nothing would make it visible.
const VERB_LOG: &str = "error,promptshelf_source=off,rmcp=off";

/// Does what the arguments of this process ask for.
pub fn run() -> ExitCode {
    let CommandLine { verb, log } = CommandLine::read();
    let usual = if matches!(verb, Verb::Serve(_)) { SERVER_LOG } else { VERB_LOG };
    let level = log.level.as_deref().filter(|level| !level.is_empty()).unwrap_or(usual);
    let environment = |name: &str| std::env::var(name).ok();
    let traces = match &verb {
        Verb::Serve(arguments) => verbs::serve::traces(arguments, environment),
        _ => Ok(None),
    };
    let started = traces.and_then(|traces| telemetry::start(log.log_format, level, traces.as_ref()));
    // What is to be sent is sent before the last word.
    let outcome = started.and_then(|sending| perform(&verb, log.log_format, sending.is_some()));
    match outcome {
        Ok(()) => Exit::Done.into(),
        Err(failure) => {
            complain(&failure);
            failure.exit.into()
        }
    }
}

fn perform(verb: &Verb, log_format: telemetry::LogFormat, has_traces: bool) -> Result<(), Failure> {
    let mut runtime = match verb {
        // One client asks one thing after the other: more threads would only have to be started.
        Verb::Serve(arguments) if arguments.stdio => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.enable_all().build()?;
    let outcome = runtime.block_on(async {
        match verb {
            Verb::Serve(arguments) => {
                let around =
                    verbs::serve::Around { stdin_is_terminal: io::stdin().is_terminal(), log_format, has_traces };
                verbs::serve::run(arguments, around, |name| std::env::var(name).ok()).await
            }
            Verb::Audit(arguments) => verbs::audit::run(arguments),
            Verb::Token(verbs::TokenVerb::New(arguments)) => verbs::token::new(arguments),
            Verb::Check(arguments) => verbs::check::run(arguments),
            Verb::Explain(arguments) => verbs::explain::run(arguments),
            Verb::Clients(arguments) => verbs::clients::run(arguments),
            Verb::Render(arguments) => verbs::render::run(arguments).await,
            Verb::New(arguments) => verbs::new::run(arguments),
            Verb::Fmt(arguments) => verbs::fmt::run(arguments),
            Verb::Test(arguments) => verbs::test::run(arguments).await,
            Verb::Schema(arguments) => verbs::schema::run(arguments),
            Verb::List(arguments) => verbs::list::run(arguments).await,
            Verb::Get(arguments) => verbs::get::run(arguments).await,
            Verb::Complete(arguments) => verbs::complete::run(arguments).await,
            Verb::Chat(arguments) => host::chat(arguments).await,
            Verb::SignIn(arguments) => verbs::remote::sign_in::sign_in(arguments).await,
            Verb::SignOut(arguments) => verbs::remote::sign_in::sign_out(arguments),
            Verb::Resources(arguments) => verbs::remote::resources::run(arguments).await,
            Verb::Import(arguments) => verbs::import::run(arguments),
            Verb::Export(arguments) => verbs::export::run(arguments).await,
            Verb::Lsp(arguments) => verbs::lsp::run(arguments),
        }
    });
    // Somebody may still be reading stdin, which nothing can interrupt.
    runtime.shutdown_background();
    outcome
}

/// Opens a library for a verb that answers and ends.
pub(crate) fn open(folder: &Path) -> Result<Library, Failure> {
    Ok(Library::builder().folder(folder).build()?)
}

/// Says on stderr why the program ends. A closed stderr is nobody's concern.
pub(crate) fn complain(failure: &Failure) {
    const ERROR: Style = AnsiColor::Red.on_default().bold();
    const HELP: Style = AnsiColor::Cyan.on_default().bold();
    if failure.sentence.is_empty() {
        return;
    }
    let mut paper = Paper::stderr();
    let said = format!("{} {}", paper.styled(ERROR, "error:"), paper.text(&failure.sentence));
    let help = failure.help.as_ref().map(|help| format!("\n {} {}", paper.styled(HELP, "help:"), paper.text(help)));
    writeln!(paper.out, "{said}{}", help.unwrap_or_default()).ok();
}
