//! Differences for callers in words, with the recent calls that they affect.

use std::{io::Write, sync::Arc};

use promptshelf_author::{AffectedCalls, Difference, Impact, differences};
use promptshelf_server::{
    TreePreview,
    usage::{IMPACT_WINDOW, recent_calls, recent_calls_of_effect},
};
use promptshelf_source::{MemoryFile, MemoryTree};
use promptshelf_store::{ChannelName, Effect, EffectImpact, Proposal, Published, RolloutReport};
use promptshelf_wire::{RecentCalls, UsageReport, op};
use serde_json::{Value, json};

use super::{access::Place, connection::Connection, report, usage::usage};
use crate::{exit::Failure, output::Output};

const MAX_EFFECTS: usize = 50;

/// A difference with the calls of the last 30 days that it affects; `None` if the figures do not decide it.
#[derive(Clone, Debug)]
pub(super) struct CountedDifference {
    difference: Difference,
    recent: Option<RecentCalls>,
}

/// Joins differences with the figures of a channel. Without them, the differences stand alone.
pub(super) async fn counted(
    site: Option<(&Connection, &ChannelName)>,
    differences: Vec<Difference>,
) -> Vec<CountedDifference> {
    let is_counted = |found: &Difference| found.affects != AffectedCalls::Unknown;
    let mut figures: Option<(&ChannelName, UsageReport)> = None;
    if let Some((store, channel)) = site.filter(|_| differences.iter().any(is_counted)) {
        match usage(store, None, IMPACT_WINDOW, true).await {
            Ok(report) => figures = Some((channel, report)),
            Err(error) => {
                let reason = Failure::from(error).message;
                crate::output::note(&[format!("the recent calls are unknown: {reason}")]);
            }
        }
    }
    let count = |difference: Difference| {
        let recent = figures.as_ref().and_then(|(channel, report)| recent_calls(&difference, channel.as_str(), report));
        CountedDifference { difference, recent }
    };
    differences.into_iter().map(count).collect()
}

/// Returns the differences that changed files make for the callers of a channel; none for a new channel.
pub(super) async fn of_changes(
    store: &Connection,
    channel: &ChannelName,
    changes: impl IntoIterator<Item = (String, Option<Arc<[u8]>>)>,
) -> Result<Vec<CountedDifference>, Failure> {
    let present = store.all(&op::ListChannels {}).await?.into_iter().find(|known| known.name == *channel);
    if present.is_none_or(|known| known.head.revision == 0) {
        return Ok(Vec::new());
    }
    let (_, before) = store.tree(channel, None).await?;
    let after = before.with(changes.into_iter().map(|(path, content)| (path, content.map(MemoryFile::new))));
    let found = tokio::task::block_in_place(|| between(before, after));
    Ok(counted(Some((store, channel)), found).await)
}

/// Returns the differences that a dry run of a promotion or a rollback makes for the callers of its channel. The new
/// contents are those of the revision `to` of the channel `from`.
pub(super) async fn of_copied(
    store: &Connection,
    published: &Published,
    (from, to): (&ChannelName, Option<u64>),
) -> Result<Vec<CountedDifference>, Failure> {
    let (_, source) = store.tree(from, to).await?;
    let changes = published.proposal.changes.iter().map(|change| {
        let copied = change.after.as_ref().and_then(|_| source.get(&change.path));
        (change.path.clone(), copied.map(MemoryFile::shared))
    });
    of_changes(store, &published.proposal.channel, changes).await
}

/// A tree that cannot be read has findings of the check instead.
fn between(before: MemoryTree, after: MemoryTree) -> Vec<Difference> {
    match (TreePreview::open(before), TreePreview::open(after)) {
        (Ok(before), Ok(after)) => differences(&before.catalog(), &after.catalog()),
        _ => Vec::new(),
    }
}

/// What a published proposal means for callers.
#[derive(Clone, Debug, Default)]
pub(super) struct CountedEffects {
    effects: Vec<(Effect, Option<RecentCalls>)>,
    /// The rollouts from the channel and to it that divide callers now, each with the command that ends it.
    rollouts: Vec<(RolloutReport, String)>,
}

impl CountedEffects {
    pub(super) async fn of(store: &Connection, proposal: &Proposal, place: &Place) -> CountedEffects {
        let mut report = None;
        if proposal.effects.iter().any(|effect| effect.calls.is_some()) {
            match usage(store, None, IMPACT_WINDOW, true).await {
                Ok(found) => report = Some(found),
                Err(error) => {
                    let reason = Failure::from(error).message;
                    crate::output::note(&[format!("the recent calls are unknown: {reason}")]);
                }
            }
        }
        let channel = proposal.channel.as_str();
        let count = |effect: &Effect| {
            let recent = report.as_ref().and_then(|report| recent_calls_of_effect(effect, channel, report));
            (effect.clone(), recent)
        };
        let effects = proposal.effects.iter().map(count).collect();
        // A caller may publish without the right to see them.
        let rollouts = match proposal.revision {
            Some(_) => store.all(&op::ListAllRollouts {}).await.unwrap_or_default(),
            None => Vec::new(),
        };
        let divides = |one: &RolloutReport| {
            one.percent > 0 && !one.phase.is_over() && [&one.channel, &one.target].contains(&&proposal.channel)
        };
        let stop = |one: RolloutReport| {
            let stop = place.command(&format!("rollout stop {}", one.channel));
            (one, stop)
        };
        CountedEffects { effects, rollouts: rollouts.into_iter().filter(divides).map(stop).collect() }
    }

    pub(super) fn print(&self) -> Result<(), Failure> {
        let mut output = Output::stdout();
        if !self.effects.is_empty() {
            writeln!(output.out, "for callers:")?;
        }
        for (effect, recent) in self.effects.iter().take(MAX_EFFECTS) {
            let impact = match effect.impact {
                EffectImpact::Opening => "opening: ",
                // The sentence begins with it.
                EffectImpact::Breaking => "",
            };
            let line = output.line(&format!("{impact}{}", effect.text)).into_owned();
            writeln!(output.out, "  {line}")?;
            if let Some(recent) = recent {
                writeln!(output.out, "      {recent}")?;
            }
        }
        if let Some(more) = self.effects.len().checked_sub(MAX_EFFECTS).filter(|more| *more > 0) {
            writeln!(output.out, "  and {more} more")?;
        }
        for (RolloutReport { channel, target, percent, .. }, stop) in &self.rollouts {
            writeln!(
                output.out,
                "rollout: {percent} % of the signed-in callers of {channel} are served {target}; {stop} ends it"
            )?;
        }
        Ok(output.out.flush()?)
    }

    pub(super) fn add_to(&self, outcome: &mut Value) {
        let effect = |(effect, recent): &(Effect, Option<RecentCalls>)| {
            let mut json = json!(effect);
            json["recent"] = json!(recent);
            json
        };
        if !self.effects.is_empty() {
            outcome["effects"] = self.effects.iter().map(effect).collect();
        }
        if !self.rollouts.is_empty() {
            let rollout = |(RolloutReport { channel, target, percent, .. }, _): &(RolloutReport, String)| json!({ "channel": channel, "to": target, "percent": percent });
            outcome["rollouts"] = self.rollouts.iter().map(rollout).collect();
        }
    }
}

pub(super) fn print_dry_run(
    published: &Published,
    place: &Place,
    differences: &[CountedDifference],
    left_out: &report::LeftOut,
    is_json: bool,
) -> Result<(), Failure> {
    if is_json {
        let mut outcome = report::outcome_with_prompts(published, true);
        outcome["differences"] = differences.iter().map(CountedDifference::to_json).collect();
        left_out.add_to(&mut outcome);
        report::print_json(&outcome)?;
        return report::verdict(published, place);
    }
    left_out.print()?;
    report::print_outcome(published, place, true)?;
    let mut output = Output::stdout();
    print_warnings(&mut output, differences)?;
    output.out.flush()?;
    report::verdict(published, place)
}

pub(super) fn print_warnings<W: Write>(output: &mut Output<W>, found: &[CountedDifference]) -> Result<(), Failure> {
    let mut warnings = found.iter().filter(|found| found.is_warning()).peekable();
    if warnings.peek().is_some() {
        writeln!(output.out, "for callers:")?;
    }
    warnings.try_for_each(|found| found.print(output, "  "))
}

impl CountedDifference {
    fn is_warning(&self) -> bool {
        self.difference.impact == Impact::Breaking || self.recent.as_ref().is_some_and(|recent| recent.affected > 0)
    }

    pub(super) fn print<W: Write>(&self, output: &mut Output<W>, indent: &str) -> Result<(), Failure> {
        let line = output.line(&self.difference.to_string()).into_owned();
        writeln!(output.out, "{indent}{line}")?;
        if let Some(recent) = &self.recent {
            writeln!(output.out, "{indent}    {recent}")?;
        }
        Ok(())
    }

    pub(super) fn to_json(&self) -> Value {
        let Difference { impact, subject, name, code, values, text, .. } = &self.difference;
        json!({
            "impact": impact.as_str(),
            "subject": subject.as_str(),
            "name": name,
            "code": code,
            "values": values,
            "text": text,
            "recent": self.recent,
        })
    }
}
