//! `promptshelf policy`: the conditions of a publish to a channel.

use std::io::Write;

use promptshelf_store::{Actor, ChannelInfo, CheckLevel, Policy, PolicyGuard, PolicyRoles, StoreError};
use serde_json::{Value, json};

use super::{access::Place, actor::actor, answer::BackendError, backend::Backend, report};
use crate::{
    args::channels::{PolicyArguments, PolicyChange, Verb},
    exit::Failure,
    output::Output,
};

pub(crate) async fn run(arguments: &PolicyArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.place, arguments.channel.as_ref())?;
    let actor = actor(&arguments.actor, &place)?;
    let work = async |store: &Backend| channels(store, arguments, &place, &actor).await;
    let channels = match arguments.change.is_empty() {
        true => place.using(work).await?,
        false => place.changing(work).await?,
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

/// Returns the channels that are shown, after the change.
async fn channels(
    store: &Backend,
    arguments: &PolicyArguments,
    place: &Place,
    actor: &Actor,
) -> Result<Vec<ChannelInfo>, Failure> {
    let Some(channel) = place.named_channel() else { return Ok(store.channels().await?) };
    let present = store.channel(channel).await;
    if arguments.change.is_empty() {
        return Ok(vec![present?]);
    }
    let (policy, guard) = match present {
        Ok(info) => (info.policy.clone(), PolicyGuard::Is(info.policy)),
        Err(BackendError::Store(StoreError::NotFound { .. })) => (Policy::default(), PolicyGuard::Absent),
        Err(error) => return Err(error.into()),
    };
    Ok(vec![store.set_policy(channel, &arguments.change.applied(policy), &guard, actor).await?])
}

impl PolicyChange {
    fn is_empty(&self) -> bool {
        let PolicyChange { approvals, four_eyes, checks, tests, evaluations, no_regression, roles } = self;
        let is_judged = evaluations.is_some() || no_regression.is_some();
        !is_judged
            && approvals.is_none()
            && four_eyes.is_none()
            && checks.is_none()
            && tests.is_none()
            && roles.is_empty()
    }

    /// Returns the policy with these changes.
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
            roles,
        }
    }
}

fn to_json(info: &ChannelInfo) -> Value {
    json!({ "channel": info.name, "revision": info.head.revision, "policy": info.policy })
}

fn row(info: &ChannelInfo) -> Vec<String> {
    let ChannelInfo { name, head, policy, .. } = info;
    let switch = |on: bool| if on { "on" } else { "off" };
    let checks = match policy.checks {
        CheckLevel::Errors => "errors",
        CheckLevel::Warnings => "warnings",
        CheckLevel::Off => "off",
    };
    let mut row = vec![
        name.to_string(),
        format!("revision {}", head.revision),
        format!("approvals {}", policy.approvals),
        format!("four-eyes {}", switch(policy.four_eyes)),
        format!("checks {checks}"),
        format!("tests {}", switch(policy.tests)),
    ];
    if !policy.evaluations.is_empty() {
        row.push(format!("evaluations {}", policy.evaluations.join(",")));
        row.push(format!("no-regression {}", switch(policy.no_regression)));
    }
    let PolicyRoles { propose, review, publish, administer } = &policy.roles;
    let named = [("propose", propose), ("review", review), ("publish", publish), ("administer", administer)];
    row.extend(
        named.iter().filter(|(_, roles)| !roles.is_empty()).map(|(verb, roles)| format!("{verb}={}", roles.join(","))),
    );
    row
}
