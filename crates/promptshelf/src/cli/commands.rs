//! The commands: each is a module with its arguments, its examples and what it does.

mod audit;
mod channels;
mod check;
mod consent;
mod diagnostics;
mod explain;
mod export;
mod fmt;
mod get;
mod health;
pub(crate) mod help;
mod import;
mod init_library;
mod install;
mod known_clients;
pub(crate) mod list;
mod lsp;
pub(crate) mod markdown;
mod model_api;
mod new;
mod own_library;
mod private_files;
mod render;
pub(crate) mod resources;
pub(crate) mod saved;
mod schema;
pub(crate) mod serve;
mod shell;
pub(crate) mod show;
mod sign_in;
mod source;
mod suggest;
mod sync;
mod test;
mod token;
pub(crate) mod values;

use std::io;

use clap::Subcommand;

pub(crate) use self::channels::diff::tree as channel_tree;
use self::channels::{diff, evaluate, history, init, policy, promote, publish, pull, review, rollout, store, usage};
use crate::{chat, environment, exit::Failure, settings::Settings};

/// What the program is called for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a library to MCP clients, on stdio or over HTTP
    Serve(serve::ServeArguments),
    /// Ask a server over HTTP whether it runs
    Health(health::HealthArguments),
    /// Show recorded requests with caller and outcome
    Audit(audit::AuditArguments),
    /// Show and steer the sources of prompts in server.toml
    #[command(subcommand)]
    Source(source::SourceCommand),
    /// Create, list and revoke tokens for sign-in
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Report every mistake in a library
    Check(check::CheckArguments),
    /// Explain the codes of `check`
    Explain(explain::ExplainArguments),
    /// List the known MCP clients, and how they treat prompts
    KnownClients(known_clients::KnownClientsArguments),
    /// Render a prompt in readable form, with sizes and tokens
    Render(render::RenderArguments),
    /// Create a prompt file from a template
    New(new::NewArguments),
    /// Format the front matter of prompt files
    Fmt(fmt::FmtArguments),
    /// Run the tests of prompts
    Test(test::TestArguments),
    /// Print the JSON Schema of prompt files, promptshelf.toml or server.toml
    Schema(schema::SchemaArguments),
    /// List the prompts of a library
    List(list::ListArguments),
    /// Render a prompt and print its messages
    Get(get::GetArguments),
    /// Suggest values for an argument of a prompt
    Suggest(suggest::SuggestArguments),
    /// Convert prompts of other programs to files of a library
    Import(import::ImportArguments),
    /// Convert prompts of a library to files of other programs
    Export(export::ExportArguments),
    /// Create a library with example prompts, or a store of channels
    Init(init::InitArguments),
    /// Publish the changes of a folder to a channel
    Publish(publish::PublishArguments),
    /// Copy a channel to a folder
    Pull(pull::PullArguments),
    /// Show the revisions of a channel
    History(history::HistoryArguments),
    /// Compare revisions and folders, by their files or by what their prompts render
    Diff(diff::DiffArguments),
    /// List the open proposals, or show one
    Proposals(review::ProposalsArguments),
    /// Approve a proposal, which publishes it once the policy is met
    Approve(review::ApproveArguments),
    /// Reject a proposal
    Reject(review::RejectArguments),
    /// Copy prompts from one channel to another
    Promote(promote::PromoteArguments),
    /// Return a channel, or one prompt of it, to an earlier revision
    Rollback(promote::RollbackArguments),
    /// Show the channels with their policies, or change one
    Policy(policy::PolicyArguments),
    /// Run evaluations of prompts, and store their results for release gates
    Evaluate(evaluate::EvaluateArguments),
    /// Serve a share of the callers of a channel another one, in steps
    #[command(subcommand)]
    Rollout(rollout::RolloutCommand),
    /// Show who uses which prompts how often
    Usage(usage::UsageArguments),
    /// Maintain a store
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Add a library or server to the configuration of an MCP client
    Install(install::InstallArguments),
    /// Remove a library or server from the configuration of an MCP client
    Uninstall(install::UninstallArguments),
    /// Write prompts as files that a client reads, and keep them current
    Sync(sync::SyncArguments),
    /// Run a language server for editors, on stdin and stdout
    Lsp(lsp::LspArguments),
    /// List the resources of a library or server, or read one
    Resources(resources::ResourcesArguments),
    /// Use the prompts of one or several libraries and servers interactively
    Use(chat::UseArguments),
    /// Sign in to a server in the browser
    SignIn(sign_in::SignInArguments),
    /// Delete the stored credentials of a server
    SignOut(sign_in::SignOutArguments),
    /// Explain a command or show a page of the guide
    Help(help::HelpArguments),
    /// Print the completions of a shell
    Completions(shell::CompletionsArguments),
    /// Write manual pages
    Man(shell::ManArguments),
}

/// The commands in groups, each by frequency.
pub(crate) const GROUPS: [(&str, &[&str]); 7] = [
    ("Write", &["new", "check", "fmt", "test", "render", "explain", "import", "export", "schema", "lsp"]),
    ("Use", &["list", "get", "use", "suggest", "resources"]),
    ("Serve", &["serve", "health", "source"]),
    ("Connect", &["install", "uninstall", "sync", "known-clients", "sign-in", "sign-out"]),
    (
        "Team",
        &[
            "publish",
            "pull",
            "history",
            "diff",
            "proposals",
            "approve",
            "reject",
            "promote",
            "rollback",
            "rollout",
            "policy",
            "evaluate",
        ],
    ),
    ("Operate", &["usage", "audit", "token", "store"]),
    ("Setup", &["init", "help", "completions", "man"]),
];

impl Command {
    /// Runs the command; `settings` and `process` are those of `serve`.
    pub(crate) async fn run(&self, settings: Settings, process: serve::ProcessContext) -> Result<(), Failure> {
        match self {
            Command::Serve(arguments) => serve::run(arguments, settings, process, environment::variable).await,
            Command::Health(arguments) => health::run(arguments).await,
            Command::Audit(arguments) => audit::run(arguments),
            Command::Source(command) => source::run(command).await,
            Command::Token(command) => token::run(command).await,
            Command::Check(arguments) => check::run(arguments).await,
            Command::Explain(arguments) => explain::run(arguments),
            Command::KnownClients(arguments) => known_clients::run(arguments),
            Command::Render(arguments) => render::run(arguments).await,
            Command::New(arguments) => new::run(arguments),
            Command::Fmt(arguments) => fmt::run(arguments),
            Command::Test(arguments) => test::run(arguments).await,
            Command::Schema(arguments) => schema::run(arguments),
            Command::List(arguments) => list::run(arguments).await,
            Command::Get(arguments) => get::run(arguments).await,
            Command::Suggest(arguments) => suggest::run(arguments).await,
            Command::Import(arguments) => import::run(arguments),
            Command::Export(arguments) => export::run(arguments).await,
            Command::Init(arguments) => init::run(arguments).await,
            Command::Publish(arguments) => publish::run(arguments).await,
            Command::Pull(arguments) => pull::run(arguments).await,
            Command::History(arguments) => history::run(arguments).await,
            Command::Diff(arguments) => diff::run(arguments).await,
            Command::Proposals(arguments) => review::proposals(arguments).await,
            Command::Approve(arguments) => review::approve(arguments).await,
            Command::Reject(arguments) => review::reject(arguments).await,
            Command::Promote(arguments) => promote::promote(arguments).await,
            Command::Rollback(arguments) => promote::roll_back(arguments).await,
            Command::Policy(arguments) => policy::run(arguments).await,
            Command::Evaluate(arguments) => evaluate::run(arguments).await,
            Command::Rollout(command) => rollout::run(command).await,
            Command::Usage(arguments) => usage::run(arguments).await,
            Command::Store(command) => store::run(command).await,
            Command::Install(arguments) => install::install(arguments).await,
            Command::Uninstall(arguments) => install::uninstall(arguments),
            Command::Sync(arguments) => sync::run(arguments).await,
            Command::Lsp(arguments) => lsp::run(arguments),
            Command::Resources(arguments) => resources::run(arguments).await,
            Command::Use(arguments) => chat::chat(arguments).await,
            Command::SignIn(arguments) => sign_in::sign_in(arguments).await,
            Command::SignOut(arguments) => sign_in::sign_out(arguments),
            Command::Help(arguments) => help::run(arguments),
            Command::Completions(arguments) => shell::completions(arguments),
            Command::Man(arguments) => shell::man(arguments),
        }
    }
}

/// `promptshelf --version --json`: prints the version, the protocol revisions, the platform and the commit of
/// the program; the last one is null for a build from a checkout.
pub(crate) fn version() -> Result<(), Failure> {
    let version = serde_json::json!({
        "name": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": promptshelf_mcp::Revision::ALL.map(promptshelf_mcp::Revision::as_str),
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "target": env!("PROMPTSHELF_TARGET"),
        "commit": option_env!("PROMPTSHELF_COMMIT"),
    });
    let mut stdout = io::stdout().lock();
    Ok(io::Write::write_all(&mut stdout, format!("{version}\n").as_bytes())?)
}
