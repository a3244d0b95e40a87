//! `promptshelf policy`.

use std::{io::Write, path::PathBuf};

use clap::{Args, ValueEnum};
use http::header;
use promptshelf_core::nearest;
use promptshelf_store::{ChannelInfo, ChannelName, CheckLevel, Policy, Proposal, Published, StoreError};
use promptshelf_wire::{PolicyAnswer, PolicyBody, op};
use serde_json::{Value, json};

use super::{
    access::Place,
    connection::{CallError, Connection},
    evaluate::configured,
    report,
};
use crate::{
    args::{
        Words,
        place::{ActorArguments, PlaceArguments, number},
        words::Nothing,
    },
    exit::{Exit, Failure},
    output::{Output, list_json, note},
};

const POLICY_EXAMPLES: &str = "\
Every change is kept in the history. Through a server, a policy that is looser
than a present one with approvals is a proposal, and needs these approvals.

Examples:
  promptshelf policy sqlite:team.db
  promptshelf policy sqlite:team.db --channel production \\
    --approvals 1 --four-eyes on --checks warnings --tests on
  promptshelf policy sqlite:team.db --channel production \\
    --evaluation quality --no-regression on";

#[derive(Debug, Args)]
#[command(after_help = POLICY_EXAMPLES)]
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

pub(crate) async fn run(arguments: &PolicyArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, arguments.channel.as_ref())?.acting(&arguments.actor)?;
    let work = async |store: &Connection| shown(store, arguments, &place).await;
    let shown = if arguments.change.is_empty() { place.using(work).await? } else { place.changing(work).await? };
    let channels = match shown {
        Shown::Channels(channels) => channels,
        Shown::Proposed(proposal) => return print_proposed(*proposal, &place, arguments.json),
    };
    if arguments.json {
        return report::print_json(&match place.named_channel() {
            Some(_) => channels.first().map(to_json).unwrap_or_default(),
            None => list_json(channels.iter().map(to_json)),
        });
    }
    let mut output = Output::stdout();
    if channels.is_empty() {
        writeln!(output.out, "the store has no channels")?;
    }
    let rows: Vec<Vec<String>> = channels.iter().map(row).collect();
    report::print_table(&mut output, "", &rows)?;
    Ok(output.out.flush()?)
}

enum Shown {
    Channels(Vec<ChannelInfo>),
    Proposed(Box<Proposal>),
}

fn print_proposed(proposal: Proposal, place: &Place, is_json: bool) -> Result<(), Failure> {
    let published = Published { proposal, prompts: Vec::new(), findings: Vec::new(), kept: Vec::new() };
    if is_json {
        return report::print_json(&report::outcome(&published));
    }
    report::print_line("the new policy is looser than the present one, and needs its approvals")?;
    report::print_outcome(&published, place, false)
}

async fn shown(store: &Connection, arguments: &PolicyArguments, place: &Place) -> Result<Shown, Failure> {
    let Some(channel) = place.named_channel() else {
        return Ok(Shown::Channels(store.all(&op::ListChannels {}).await?));
    };
    let get = op::GetChannel { channel: channel.clone() };
    if arguments.change.is_empty() {
        return Ok(Shown::Channels(vec![store.get(&get).await?]));
    }
    let (present, condition) = match store.tagged(&op::GetPolicy { channel: channel.clone() }).await {
        Ok((policy, tag)) => (policy, (header::IF_MATCH, tag)),
        Err(CallError::Store(StoreError::NotFound { .. })) => {
            let channels = store.all(&op::ListChannels {}).await?;
            // Nothing removes a channel that was made by a typing mistake.
            if let Some(near) = nearest(channel.as_str(), channels.iter().map(|known| known.name.as_str())) {
                let message = format!("the channel {channel} does not exist; did you mean {near}?");
                return Err(Failure::new(Exit::NotFound, message)
                    .help("publish to it first, if a new one is meant: that makes it"));
            }
            note(&[format!("the channel {channel} is new")]);
            (Policy::default(), (header::IF_NONE_MATCH, "*".to_owned()))
        }
        Err(error) => return Err(error.into()),
    };
    let known = present.evaluations.clone();
    let policy = arguments.change.applied(present);
    // A server has settings of its own, and compares with them.
    let required: Vec<String> = policy.evaluations.iter().filter(|name| !known.contains(name)).cloned().collect();
    if !place.is_server() && !required.is_empty() {
        configured(arguments.config.as_deref(), &required)?;
    }
    let body = PolicyBody::new(policy, arguments.message.clone());
    let answer = store.send_if(&op::PutPolicy { channel: channel.clone() }, &body, Some(condition)).await;
    Ok(match answer.map_err(|error| error.about(format!("the policy of the channel `{channel}`")))? {
        PolicyAnswer::Changed(_) => Shown::Channels(vec![store.get(&get).await?]),
        PolicyAnswer::Proposed(proposal) => Shown::Proposed(proposal),
    })
}

impl PolicyChange {
    fn is_empty(&self) -> bool {
        let PolicyChange { approvals, four_eyes, checks, tests, breaking, evaluations, no_regression, roles } = self;
        let is_judged = evaluations.is_some() || no_regression.is_some();
        !is_judged
            && approvals.is_none()
            && four_eyes.is_none()
            && checks.is_none()
            && tests.is_none()
            && breaking.is_none()
            && roles.is_empty()
    }

    fn applied(&self, policy: Policy) -> Policy {
        let mut roles = policy.roles;
        for (verb, names) in &self.roles {
            let changed = match verb {
                Verb::Propose => &mut roles.propose,
                Verb::Review => &mut roles.review,
                Verb::Publish => &mut roles.publish,
                Verb::Administer => &mut roles.administer,
            };
            changed.clone_from(names);
        }
        Policy {
            approvals: self.approvals.unwrap_or(policy.approvals),
            four_eyes: self.four_eyes.map_or(policy.four_eyes, bool::from),
            checks: self.checks.map_or(policy.checks, CheckLevel::from),
            tests: self.tests.map_or(policy.tests, bool::from),
            evaluations: self
                .evaluations
                .as_ref()
                .map_or(policy.evaluations, |names| names.iter().filter(|name| !name.is_empty()).cloned().collect()),
            no_regression: self.no_regression.map_or(policy.no_regression, bool::from),
            no_breaking: self.breaking.map_or(policy.no_breaking, |switch| !bool::from(switch)),
            roles,
        }
    }
}

fn to_json(info: &ChannelInfo) -> Value {
    json!({ "channel": info.name, "revision": info.head.revision, "policy": info.policy })
}

fn row(info: &ChannelInfo) -> Vec<String> {
    let ChannelInfo { name, head, policy, .. } = info;
    let mut row = vec![name.to_string(), format!("revision {}", head.revision)];
    for (condition, value) in report::conditions(policy) {
        let is_shown = match condition {
            "breaking" => policy.no_breaking,
            "evaluations" | "no-regression" => !policy.evaluations.is_empty(),
            "propose" | "review" | "publish" | "administer" => value != "every role",
            _ => true,
        };
        if is_shown {
            row.push(format!("{condition} {value}"));
        }
    }
    row
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
