//! `promptshelf policy`: the conditions of a publish to a channel.

use std::io::Write;

use http::header;
use promptshelf_store::{ChannelInfo, CheckLevel, Policy, Proposal, Published, StoreError};
use promptshelf_wire::{PolicyAnswer, PolicyBody, op};
use serde_json::{Value, json};

use super::{
    access::Place,
    connection::{CallError, Connection},
    evaluate::configured,
    report,
};
use crate::{
    args::channels::{PolicyArguments, PolicyChange, Verb},
    exit::Failure,
    output::Output,
};

pub(crate) async fn run(arguments: &PolicyArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.place, arguments.channel.as_ref())?.acting(&arguments.actor)?;
    let work = async |store: &Connection| shown(store, arguments, &place).await;
    let shown = match arguments.change.is_empty() {
        true => place.using(work).await?,
        false => place.changing(work).await?,
    };
    let channels = match shown {
        Shown::Channels(channels) => channels,
        Shown::Proposed(proposal) => return print_proposed(*proposal, &place, arguments.json),
    };
    if arguments.json {
        return report::print_json(&match place.named_channel() {
            Some(_) => channels.first().map(to_json).unwrap_or_default(),
            None => json!({ "channels": channels.iter().map(to_json).collect::<Value>() }),
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
        return Ok(Shown::Channels(store.get(&op::ListChannels {}).await?.channels));
    };
    let get = op::GetChannel { channel: channel.clone() };
    if arguments.change.is_empty() {
        return Ok(Shown::Channels(vec![store.get(&get).await?]));
    }
    let (present, condition) = match store.tagged(&op::GetPolicy { channel: channel.clone() }).await {
        Ok((policy, tag)) => (policy, (header::IF_MATCH, tag)),
        Err(CallError::Store(StoreError::NotFound { .. })) => {
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
