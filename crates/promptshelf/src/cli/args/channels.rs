//! Arguments of the commands for channels: versions, review, promotion and rollback.

mod rollout;
mod store;

use std::{fmt, path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use promptshelf_store::{ChannelName, CheckLevel};

use super::help;

pub(crate) use self::{
    rollout::{RolloutCommand, RolloutListArguments, RolloutSetArguments, RolloutStopArguments},
    store::{
        BackupArguments, CopyArguments, MaintenanceArguments, MigrateArguments, PruneArguments, RestoreArguments,
        StoreCommand,
    },
};

#[derive(Debug, Subcommand)]
pub(crate) enum ChannelsCommand {
    /// Create a library with example prompts, or a store of channels
    Init(InitArguments),
    /// Make a channel equal to a folder
    Publish(PublishArguments),
    /// Copy a channel to a folder
    Pull(PullArguments),
    /// Show the revisions of a channel
    History(HistoryArguments),
    /// Compare revisions and folders, by their files or by what their prompts render
    Diff(DiffArguments),
    /// List the open proposals, or show one
    Proposals(ProposalsArguments),
    /// Approve a proposal, which publishes it once the policy is met
    Approve(ApproveArguments),
    /// Reject a proposal
    Reject(RejectArguments),
    /// Copy prompts from one channel to another
    Promote(PromoteArguments),
    /// Return a channel, or one prompt of it, to an earlier revision
    Rollback(RollbackArguments),
    /// Show the channels with their policies, or change one
    Policy(PolicyArguments),
    /// Run evaluations of prompts, and store their results for release gates
    Evaluate(EvaluateArguments),
    /// Serve a share of the callers of a channel another one, in steps
    #[command(subcommand)]
    Rollout(RolloutCommand),
    /// Show who uses which prompts how often
    Usage(UsageArguments),
    /// Maintain a store
    #[command(subcommand)]
    Store(StoreCommand),
}

#[derive(Debug, Args)]
#[command(after_help = help::INIT_EXAMPLES)]
pub(crate) struct InitArguments {
    /// The folder of a new library, or a store: `sqlite:PATH` or `postgres://…`, with `#CHANNEL` for another channel than
    /// production [default: the current folder]
    #[arg(value_name = "FOLDER|STORE", env = "PROMPTSHELF_STORE", hide_env_values = true)]
    pub(crate) place: Option<StoreText>,

    /// Publish this folder as the first revision of the store
    #[arg(long, value_name = "FOLDER")]
    pub(crate) from: Option<PathBuf>,

    /// Accept this file although it looks like a key, a token, a database or settings of an operator; repeatable
    #[arg(long, value_name = "FILE", requires = "from")]
    pub(crate) include: Vec<String>,

    /// A description of the first revision
    #[arg(short = 'm', long, value_name = "TEXT", default_value = "Initial import", requires = "from")]
    pub(crate) message: String,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::PUBLISH_EXAMPLES)]
pub(crate) struct PublishArguments {
    /// The folder of prompt files
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,

    #[command(flatten)]
    pub(crate) channel: ChannelArguments,

    /// Change this open proposal; its approvals no longer count
    #[arg(long, value_name = "NUMBER")]
    pub(crate) proposal: Option<u64>,

    /// Accept this file although it looks like a key, a token, a database or settings of an operator; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) include: Vec<String>,

    /// Publish at once, even if the policy requires more; the reason stands out in history
    #[arg(long, value_name = "REASON")]
    pub(crate) emergency: Option<String>,

    #[command(flatten)]
    pub(crate) change: ChangeArguments,
}

#[derive(Debug, Args)]
#[command(after_help = help::PULL_EXAMPLES, override_usage = help::PULL_USAGE)]
pub(crate) struct PullArguments {
    /// The channel as `STORE[#CHANNEL[@REVISION]]` [default: PROMPTSHELF_STORE], and the folder: a new or empty one, or
    /// one without local changes since the last pull
    #[arg(value_name = "STORE] [FOLDER", num_args = 1..=2, required = true)]
    pub(crate) words: Vec<StoreText>,

    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    /// Write files that other programs obey, too: CLAUDE.md, AGENTS.md, .claude, .github, .cursor and others
    #[arg(long)]
    pub(crate) client_files: bool,

    /// Print the changes without writing them
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::USAGE_EXAMPLES)]
pub(crate) struct UsageArguments {
    /// Only this prompt
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    /// The age of the oldest calls in weeks, days or hours
    #[arg(long, value_name = "AGE", default_value = "30d", value_parser = store::age)]
    pub(crate) since: Duration,

    /// Separate channels, versions of clients and revisions of the protocol
    #[arg(long)]
    pub(crate) detail: bool,

    /// The least number of callers that is shown; a server has a setting for it
    #[arg(long, value_name = "NUMBER", default_value = "5", conflicts_with = "url", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) min_callers: u64,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::HISTORY_EXAMPLES)]
pub(crate) struct HistoryArguments {
    /// Only revisions that changed this prompt
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    #[command(flatten)]
    pub(crate) channel: ChannelArguments,

    /// Only the revision that was served at this time, such as 2027-01-31T14:05:00Z; a date means the end of that day
    /// in UTC
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,

    /// The largest number of revisions
    #[arg(long, value_name = "NUMBER", default_value = "100", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::DIFF_EXAMPLES)]
pub(crate) struct DiffArguments {
    /// The state before: a revision such as `12`, a channel, `CHANNEL@REVISION`, or the path of a folder
    #[arg(value_name = "A")]
    pub(crate) before: String,

    /// The state after
    #[arg(value_name = "B")]
    pub(crate) after: String,

    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    /// The channel of plain revisions [default: that of STORE#CHANNEL, else production]
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<ChannelName>,

    /// Compare the messages of the changed prompts, rendered with sample arguments
    #[arg(long)]
    pub(crate) rendered: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::PROPOSALS_EXAMPLES)]
pub(crate) struct ProposalsArguments {
    /// Show this proposal with its changes
    #[arg(value_name = "NUMBER")]
    pub(crate) number: Option<u64>,

    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    /// Only proposals for this channel
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<ChannelName>,

    /// Also those that were published, rejected or withdrawn
    #[arg(long, conflicts_with = "number")]
    pub(crate) all: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::APPROVE_EXAMPLES)]
pub(crate) struct ApproveArguments {
    /// The proposal
    #[arg(value_name = "NUMBER")]
    pub(crate) number: u64,

    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,

    /// A note for the author
    #[arg(short = 'm', long, value_name = "NOTE", default_value = "", hide_default_value = true)]
    pub(crate) message: String,

    /// The digest of the changes that were read, or its first 8 digits or more; the approval is refused if they have
    /// changed since. At a terminal without it, the changes are shown before a question
    #[arg(long, value_name = "DIGEST")]
    pub(crate) digest: Option<String>,

    /// Confirm this effect of the changes, by the name that `proposals NUMBER` shows; can be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "emergency")]
    pub(crate) confirm: Vec<String>,

    /// Publish without the approvals that the policy requires; the reason stands out in history
    #[arg(long, value_name = "REASON", conflicts_with = "message")]
    pub(crate) emergency: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RejectArguments {
    /// The proposal
    #[arg(value_name = "NUMBER")]
    pub(crate) number: u64,

    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,

    /// The reason, for the author
    #[arg(short = 'm', long, value_name = "NOTE", default_value = "", hide_default_value = true)]
    pub(crate) message: String,

    /// The digest of the changes that were reviewed, or its first 8 digits or more
    #[arg(long, value_name = "DIGEST")]
    pub(crate) digest: Option<String>,

    /// Withdraw an own proposal
    #[arg(long, conflicts_with_all = ["message", "digest"])]
    pub(crate) withdraw: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::PROMOTE_EXAMPLES)]
pub(crate) struct PromoteArguments {
    /// The channel to copy from
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) from: ChannelName,

    /// The channel to copy to; it is created if it does not exist
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) to: ChannelName,

    /// A prompt, with all files that it brings in; can be repeated [default: everything]
    #[arg(long = "prompt", value_name = "NAME")]
    pub(crate) prompts: Vec<String>,

    /// Undo what only the target has or has changed: it becomes equal to the source, or the prompts of --prompt do
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    #[command(flatten)]
    pub(crate) change: ChangeArguments,
}

#[derive(Debug, Args)]
#[command(after_help = help::ROLLBACK_EXAMPLES)]
pub(crate) struct RollbackArguments {
    /// The revision to return to
    #[arg(long, value_name = "REVISION")]
    pub(crate) to: u64,

    /// Only this prompt, with all files that it brings in
    #[arg(long, value_name = "NAME")]
    pub(crate) prompt: Option<String>,

    #[command(flatten)]
    pub(crate) channel: ChannelArguments,

    #[command(flatten)]
    pub(crate) change: ChangeArguments,
}

#[derive(Debug, Args)]
#[command(after_help = help::POLICY_EXAMPLES)]
pub(crate) struct PolicyArguments {
    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    /// The channel; a change of the policy creates it if it does not exist [default: show all channels]
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<ChannelName>,

    #[command(flatten)]
    pub(crate) change: PolicyChange,

    /// A description of the change, for the history
    #[arg(short = 'm', long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) message: String,

    /// The operator's settings, which have to have a new evaluation, unless a server with --url has its own
    /// [env: PROMPTSHELF_CONFIG] [default: ~/.config/promptshelf/server.toml, else /etc/promptshelf/server.toml]
    #[arg(long, value_name = "FILE", requires = "channel")]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The options that change a policy.
#[derive(Debug, Args)]
pub(crate) struct PolicyChange {
    /// The number of approvals that a proposal needs
    #[arg(long, value_name = "NUMBER", requires = "channel")]
    pub(crate) approvals: Option<u32>,

    /// Whether approvals of a proposal's author do not count
    #[arg(long, value_name = "SWITCH", requires = "channel")]
    pub(crate) four_eyes: Option<Switch>,

    /// The findings of `check` that prevent a publish
    #[arg(long, value_name = "LEVEL", requires = "channel")]
    pub(crate) checks: Option<Level>,

    /// Whether failed tests prevent a publish
    #[arg(long, value_name = "SWITCH", requires = "channel")]
    pub(crate) tests: Option<Switch>,

    /// Whether changes that break calls are published without an approval that confirms each by name
    #[arg(long, value_name = "SWITCH", requires = "channel")]
    pub(crate) breaking: Option<Switch>,

    /// An evaluation that each added or changed prompt has to pass, from results of `evaluate`; can be repeated, replaces
    /// all earlier ones, and an empty name requires none
    #[arg(long = "evaluation", value_name = "NAME", requires = "channel")]
    pub(crate) evaluations: Option<Vec<String>>,

    /// Whether results of these evaluations must not be worse than those of the served versions
    #[arg(long, value_name = "SWITCH", requires = "channel")]
    pub(crate) no_regression: Option<Switch>,

    /// The roles that permit callers of a server to propose, review, publish or administer, such as `review=lead,editor`;
    /// an empty list permits every role; can be repeated
    #[arg(long = "roles", value_name = "VERB=ROLES", requires = "channel", value_parser = roles)]
    pub(crate) roles: Vec<(Verb, Vec<String>)>,
}

/// An operation that can require a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verb {
    /// Proposals
    Propose,
    /// Reviews
    Review,
    /// Publishing proposals that meet the policy
    Publish,
    /// The policy, and emergencies
    Administer,
}

/// Parses `verb=role,role`.
fn roles(text: &str) -> Result<(Verb, Vec<String>), String> {
    let (verb, roles) = text.split_once('=').ok_or("expected a verb and roles, such as review=lead,editor")?;
    let roles = roles.split(',').map(str::trim).filter(|role| !role.is_empty()).map(str::to_owned).collect();
    Ok((Verb::from_str(verb, false)?, roles))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    /// Yes
    On,
    /// No
    Off,
}

impl From<Switch> for bool {
    fn from(switch: Switch) -> bool {
        switch == Switch::On
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    /// Errors
    Errors,
    /// Errors and warnings
    Warnings,
    /// None
    Off,
}

impl From<Level> for CheckLevel {
    fn from(level: Level) -> CheckLevel {
        match level {
            Level::Errors => CheckLevel::Errors,
            Level::Warnings => CheckLevel::Warnings,
            Level::Off => CheckLevel::Off,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = help::EVALUATE_EXAMPLES)]
pub(crate) struct EvaluateArguments {
    /// Only this prompt [default: all prompts of the channel, or all that the proposal adds or changes]
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    #[command(flatten)]
    pub(crate) channel: ChannelArguments,

    /// The versions that this open proposal would publish, instead of the served ones
    #[arg(long, value_name = "NUMBER", conflicts_with = "channel")]
    pub(crate) proposal: Option<u64>,

    /// Only this evaluation; can be repeated [default: all of server.toml]
    #[arg(long = "evaluation", value_name = "NAME")]
    pub(crate) evaluations: Vec<String>,

    /// Only versions that have no result of the evaluation
    #[arg(long)]
    pub(crate) missing: bool,

    /// The operator's settings with the evaluations [env: PROMPTSHELF_CONFIG] [default:
    /// ~/.config/promptshelf/server.toml, else /etc/promptshelf/server.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The text of a store's URL. `Debug` does not show it, because it may contain a password.
#[derive(Clone)]
pub(crate) struct StoreText(pub(crate) String);

impl From<String> for StoreText {
    fn from(text: String) -> StoreText {
        StoreText(text)
    }
}

impl fmt::Debug for StoreText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreText")
    }
}

#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    /// The store: `sqlite:PATH` or `postgres://…`
    #[arg(long, value_name = "STORE", env = "PROMPTSHELF_STORE", hide_env_values = true)]
    pub(crate) store: StoreText,
}

/// The store of a command that a server can run too.
#[derive(Debug, Args)]
pub(crate) struct PlaceArguments {
    /// The store: `sqlite:PATH` or `postgres://…`
    #[arg(long, value_name = "STORE", env = "PROMPTSHELF_STORE", hide_env_values = true)]
    pub(crate) store: Option<StoreText>,

    /// The server with the store, in place of --store: its URL, with `#CHANNEL` for another channel than production; a
    /// token in PROMPTSHELF_TOKEN is sent to it
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<StoreText>,
}

impl PlaceArguments {
    /// Returns whether no store is named.
    pub(crate) fn is_missing(&self) -> bool {
        self.store.is_none() && self.url.is_none()
    }
}

#[derive(Debug, Args)]
pub(crate) struct ChannelArguments {
    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    /// The channel [default: that of STORE#CHANNEL, else production]
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<ChannelName>,
}

#[derive(Debug, Args)]
pub(crate) struct ActorArguments {
    /// The name of the author or reviewer in history [default: the user's name; with --url that of the sign-in]
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// The arguments of commands that change a channel.
#[derive(Debug, Args)]
pub(crate) struct ChangeArguments {
    /// A description of the change
    #[arg(short = 'm', long, value_name = "TEXT", required_unless_present = "dry_run")]
    pub(crate) message: Option<String>,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,

    /// Check and print the changes without storing them
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_have_a_verb() {
        assert_eq!(roles("review=lead, editor"), Ok((Verb::Review, vec!["lead".to_owned(), "editor".to_owned()])));
        assert_eq!(roles("publish="), Ok((Verb::Publish, Vec::new())));
        assert!(roles("lead").is_err() && roles("eat=lead").is_err());
    }
}

#[cfg(test)]
mod place_tests {
    use super::*;

    // req: S-94
    #[test]
    fn debug_output_of_arguments_has_no_password() {
        let text = StoreText::from("postgres://ada:secret@localhost/prompts".to_owned());
        let arguments = PlaceArguments { store: Some(text.clone()), url: Some(text.clone()) };
        assert!(!format!("{arguments:?}{:?}", StoreArguments { store: text }).contains("secret"));
    }
}
