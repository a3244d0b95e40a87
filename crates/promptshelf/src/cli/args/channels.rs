//! Arguments of the commands for channels: versions, review, promotion and rollback.

mod rollout;
mod store;

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use clap::{
    Args, Subcommand, ValueEnum,
    builder::{PathBufValueParser, TypedValueParser},
};
use promptshelf_store::{ChannelName, CheckLevel, StoreUrl};

use super::{
    LibraryObject, help,
    time::{self, Moment},
    words::{Names, Nothing, OnlyPrompt, OnlyProposal, Prompts, Proposal, States, ToFolder, Words},
};

use crate::{
    exit::{Exit, Failure},
    source::is_url,
};

pub(crate) use self::{
    rollout::{
        RolloutChange, RolloutChangeArguments, RolloutCommand, RolloutFinishArguments, RolloutListArguments,
        RolloutSetArguments, RolloutShowArguments, RolloutStartArguments, stop,
    },
    store::{
        BackupArguments, CopyArguments, MaintenanceArguments, MigrateArguments, PruneArguments, RestoreArguments,
        StoreCommand,
    },
};

#[derive(Debug, Subcommand)]
pub(crate) enum ChannelsCommand {
    /// Create a library with example prompts, or a store of channels
    Init(InitArguments),
    /// Publish the changes of a folder to a channel
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
    #[arg(value_name = "LIBRARY", env = "PROMPTSHELF_STORE", hide_env_values = true)]
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

const DESTINATION: &str = "The store: sqlite:FILE or postgres://…, or the URL of a server with it; `#CHANNEL` names another \
                           channel than production";

#[derive(Debug, Args)]
#[command(after_help = help::PUBLISH_EXAMPLES)]
#[command(override_usage = "promptshelf publish [OPTIONS] [LIBRARY] --to <STORE>")]
#[command(mut_arg("store", |to| to.long("to").alias("store").hide(false).value_name("STORE").help(DESTINATION)))]
#[command(mut_arg("folder", |folder| folder.value_parser(published_folder())))]
pub(crate) struct PublishArguments {
    #[command(flatten)]
    pub(crate) library: LibraryObject,

    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    /// The channel [default: that of #CHANNEL, else production]
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<ChannelName>,

    /// Make the channel equal to the folder, whatever others have published since the folder was pulled; for checkouts of git
    #[arg(long)]
    pub(crate) replace: bool,

    /// Change this open proposal; its approvals no longer count
    #[arg(long, value_name = "NUMBER", value_parser = number::<u64>)]
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

fn published_folder() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        let is_store = path.to_str().is_some_and(|word| is_url(word) || StoreUrl::is_meant(word));
        if is_store && !path.is_dir() {
            Err("it is the store: write it after `--to`, and the folder before")
        } else {
            Ok(path)
        }
    })
}

#[derive(Debug, Args)]
#[command(after_help = help::PULL_EXAMPLES)]
pub(crate) struct PullArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, ToFolder>,

    /// The channel [default: that of #CHANNEL, else production]
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<ChannelName>,

    /// Write files that other programs obey, too: CLAUDE.md, AGENTS.md, .claude, .github, .cursor and others
    #[arg(long)]
    pub(crate) client_files: bool,

    /// Keep local changes, and merge them with those of the channel. Changes of the same lines are marked, for you to decide
    #[arg(long)]
    pub(crate) merge: bool,

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
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, OnlyPrompt>,

    /// The age of the oldest calls in weeks, days or hours
    #[arg(long, value_name = "AGE", default_value = "30d", value_parser = time::age)]
    pub(crate) since: Duration,

    /// Separate versions of clients and revisions of the protocol
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
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, OnlyPrompt>,

    /// The channel [default: that of #CHANNEL, else production]
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<ChannelName>,

    /// Only the revision that was served at the end of this day, minute or second, such as 2027-01-31 or
    /// 2027-01-31T14:05:00Z; in UTC without a zone
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<Moment>,

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
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, States>,

    /// The channel of plain revisions [default: that of #CHANNEL, else production]
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
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, OnlyProposal>,

    /// Only proposals for this channel
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<ChannelName>,

    /// Also those that were published, rejected or withdrawn
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::APPROVE_EXAMPLES)]
pub(crate) struct ApproveArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, Proposal>,

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
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, Proposal>,

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
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, Prompts>,

    /// The channel to copy from
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) from: ChannelName,

    /// The channel to copy to; it is created if it does not exist
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) to: ChannelName,

    /// The same as PROMPT
    #[arg(long = "prompt", value_name = "NAME", hide = true)]
    prompts: Vec<String>,

    /// Undo what only the target has or has changed: it becomes equal to the source, or these prompts do
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) change: ChangeArguments,
}

#[derive(Debug, Args)]
#[command(after_help = help::ROLLBACK_EXAMPLES)]
pub(crate) struct RollbackArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, OnlyPrompt>,

    /// The channel [default: that of #CHANNEL, else production]
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<ChannelName>,

    /// The revision to return to
    #[arg(long, value_name = "REVISION", value_parser = number::<u64>)]
    pub(crate) to: u64,

    /// The same as PROMPT
    #[arg(long, value_name = "NAME", hide = true)]
    prompt: Option<String>,

    #[command(flatten)]
    pub(crate) change: ChangeArguments,
}

#[derive(Debug, Args)]
#[command(after_help = help::POLICY_EXAMPLES)]
pub(crate) struct PolicyArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, Nothing>,

    /// The channel; a change of the policy creates it if it does not exist [default: show all channels]
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<ChannelName>,

    #[command(flatten)]
    pub(crate) change: PolicyChange,

    /// A description of the change, for the history
    #[arg(short = 'm', long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) message: String,

    /// The operator's settings, which have to have a new evaluation, unless a server has its own
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
    #[arg(long, value_name = "NUMBER", requires = "channel", value_parser = number::<u32>)]
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

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a number such as 12".to_owned())
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
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, OnlyPrompt>,

    /// The channel [default: that of #CHANNEL, else production]
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<ChannelName>,

    /// The versions that this open proposal would publish, instead of the served ones
    #[arg(long, value_name = "NUMBER", conflicts_with = "channel", value_parser = number::<u64>)]
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
    /// The same as LIBRARY
    #[arg(long, value_name = "STORE", env = "PROMPTSHELF_STORE", hide_env_values = true, hide = true)]
    pub(crate) store: Option<StoreText>,
}

/// The store of a command that a server can run too.
#[derive(Debug, Args)]
pub(crate) struct PlaceArguments {
    /// The same as LIBRARY
    #[arg(long, value_name = "LIBRARY", env = "PROMPTSHELF_STORE", hide_env_values = true, hide = true)]
    pub(crate) store: Option<StoreText>,

    /// The same as LIBRARY
    #[arg(long, value_name = "URL", hide = true)]
    pub(crate) url: Option<StoreText>,
}

impl<N: Names> Words<PlaceArguments, N> {
    /// Returns the number of a proposal.
    pub(crate) fn number(&self) -> Result<Option<u64>, Failure> {
        let word = self.optional_name();
        let expected = |word: &str| Failure::new(Exit::Usage, format!("`{word}` is not the number of a proposal"));
        let number = word.map(|word| word.parse().map_err(|_| expected(word))).transpose();
        number.map_err(|failure| failure.help("`promptshelf proposals` lists the open proposals"))
    }
}

impl Words<PlaceArguments, Proposal> {
    pub(crate) fn proposal(&self) -> Result<u64, Failure> {
        // The word is required.
        self.number().map(Option::unwrap_or_default)
    }
}

impl PromoteArguments {
    /// Returns the prompts of the words and of the option.
    pub(crate) fn prompts(&self) -> Vec<String> {
        self.words.names.iter().chain(&self.prompts).cloned().collect()
    }
}

impl RollbackArguments {
    /// Returns the prompt of the words or of the option.
    pub(crate) fn prompt(&self) -> Option<&str> {
        self.words.optional_name().or(self.prompt.as_deref())
    }
}

impl PlaceArguments {
    /// Returns whether no store is named.
    pub(crate) fn is_missing(&self) -> bool {
        self.store.is_none() && self.url.is_none()
    }
}

#[derive(Debug, Args)]
pub(crate) struct ActorArguments {
    /// The name of the author or reviewer in history [default: the user's name; on a server that of the sign-in]
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
        assert!(!format!("{arguments:?}{:?}", StoreArguments { store: Some(text) }).contains("secret"));
    }
}
