//! `promptshelf history`: the revisions of a channel.

use std::io::Write;

use clap::Args;
use jiff::Timestamp;
use promptshelf_store::{
    ChannelName, PolicyChange, PromptChange, PromptChangeKind, Revision, RevisionKind, Served, StoreError,
};
use promptshelf_wire::{Nothing, op};
use serde_json::{Value, json};

use super::{
    access::Place,
    connection::{CallError, Connection},
    report,
};
use crate::{
    args::{Words, place::PlaceArguments, time::Moment, words::OnlyPrompt},
    exit::{Exit, Failure},
    output::{Output, count, list_json, shortened},
};

const HISTORY_EXAMPLES: &str = "\
Examples:
  promptshelf history sqlite:team.db
  promptshelf history sqlite:team.db code_review
  promptshelf history sqlite:team.db --at 2027-01-31T14:05:00Z
  promptshelf history sqlite:team.db --json | jq '.items[0].number'";

#[derive(Debug, Args)]
#[command(after_help = HISTORY_EXAMPLES)]
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

pub(crate) async fn run(arguments: &HistoryArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, arguments.channel.as_ref())?.about(&arguments.words.names);
    let prompt = arguments.words.optional_name();
    let at = arguments.at.as_ref().map(|at| at.end);
    let channel = place.channel();
    let (query, limit) = (op::RevisionsQuery { prompt: prompt.map(str::to_owned), at }, usize::from(arguments.limit));
    let read = async |store: &Connection| {
        let revisions =
            place.waiting(store.items(&op::ListRevisions { channel: channel.clone() }, &query, limit)).await?;
        if revisions.is_empty() && (prompt.is_some() || at.is_some()) {
            return Err(nothing(arguments, &place, at.is_some() && is_pruned(store, channel).await));
        }
        let served = match (at, revisions.first()) {
            (Some(_), Some(revision)) => {
                let operation = op::GetServed { channel: channel.clone(), number: revision.number };
                let mut served: Vec<Served> = store.all(&operation).await?;
                served.retain(|version| prompt.is_none_or(|prompt| version.name == prompt));
                Some(served)
            }
            _ => None,
        };
        // Changes of the policy belong to the whole channel.
        let policies = match (prompt, at) {
            (None, None) => store.items(&op::PolicyHistory { channel: channel.clone() }, &Nothing {}, limit).await?,
            _ => Vec::new(),
        };
        Ok((revisions, policies, served))
    };
    let (revisions, policies, served) = place.using(read).await?;
    if arguments.json {
        let mut history = list_json(revisions.iter().map(to_json));
        if let Some(served) = served {
            history["served"] = json!(served);
        }
        if prompt.is_none() && at.is_none() {
            history["policies"] = json!(policies);
        }
        return report::print_json(&history);
    }
    let mut output = Output::stdout();
    if revisions.is_empty() {
        writeln!(output.out, "{channel} has no revisions")?;
    }
    // Older changes than the oldest revision that is shown belong to the next page.
    let oldest = revisions.last().filter(|_| revisions.len() >= usize::from(arguments.limit)).map(|last| last.at);
    let policies = policies.iter().filter(|change| oldest.is_none_or(|oldest| change.at >= oldest));
    let policies = policies.map(|change| (change.at, policy_row(change, &output)));
    let revisions = revisions.iter().map(|revision| (revision.at, row(revision, &output)));
    let rows = between(revisions.collect(), policies.collect());
    report::print_table(&mut output, "", &rows)?;
    if let Some(served) = served {
        print_served(&mut output, &served)?;
    }
    Ok(output.out.flush()?)
}

/// Puts other rows between rows of revisions, by time. Revisions stay in the order of their numbers, whatever the clock of
/// their authors was.
fn between<T>(revisions: Vec<(Timestamp, T)>, others: Vec<(Timestamp, T)>) -> Vec<T> {
    let mut rows = Vec::new();
    let mut others = others.into_iter().peekable();
    for (at, revision) in revisions {
        while let Some((_, other)) = others.next_if(|(time, _)| *time > at) {
            rows.push(other);
        }
        rows.push(revision);
    }
    rows.extend(others.map(|(_, other)| other));
    rows
}

/// Whether the first revisions of a channel were removed.
async fn is_pruned(store: &Connection, channel: &ChannelName) -> bool {
    let has_revisions = store.get(&op::GetChannel { channel: channel.clone() }).await;
    let first = store.get(&op::GetRevision { channel: channel.clone(), number: 1 }).await;
    has_revisions.is_ok_and(|info| info.head.revision > 0)
        && matches!(first, Err(CallError::Store(StoreError::NotFound { .. })))
}

fn nothing(arguments: &HistoryArguments, place: &Place, is_pruned: bool) -> Failure {
    let channel = place.channel();
    if let Some(at) = arguments.at.as_ref().filter(|_| is_pruned) {
        let what =
            format!("what {channel} served at {at} is not known: `store prune` has removed the revisions up to then");
        return Failure::new(Exit::NotFound, what)
            .help(place.command(&format!("history --channel {channel}")) + " lists those that are left");
    }
    let what = match (arguments.words.optional_name(), &arguments.at) {
        (Some(prompt), Some(at)) => format!("no revision of {channel} up to {at} has changed the prompt {prompt}"),
        (Some(prompt), None) => format!("no revision of {channel} has changed a prompt {prompt}"),
        _ => format!(
            "{channel} had no revision at {}",
            arguments.at.as_ref().map(ToString::to_string).unwrap_or_default()
        ),
    };
    Failure::new(Exit::NotFound, what)
        .help(place.command(&format!("history --channel {channel}")) + " lists all revisions")
}

/// The JSON that scripts rely on. `approvedBy`, `emergency` and `clockAhead` are there for the revisions that they concern.
fn to_json(revision: &Revision) -> Value {
    let mut json = json!({
        "number": revision.number,
        "digest": revision.digest,
        "kind": revision.kind,
        "author": revision.author,
        "message": revision.message,
        "at": revision.at,
        "prompts": revision.prompts,
        "policy": revision.policy,
    });
    if !revision.approved_by.is_empty() {
        json["approvedBy"] = json!(revision.approved_by);
    }
    if let Some(seconds) = revision.clock_ahead {
        json["clockAhead"] = json!(seconds);
    }
    if let Some(reason) = &revision.emergency {
        json["emergency"] = json!(reason);
    }
    json
}

fn row<W: Write>(revision: &Revision, output: &Output<W>) -> Vec<String> {
    const MESSAGE_COLUMNS: usize = 60;
    const AUTHOR_COLUMNS: usize = 20;

    let mut message = match &revision.emergency {
        Some(reason) => format!("EMERGENCY ({reason}): {}", revision.message),
        None => revision.message.clone(),
    };
    if !revision.approved_by.is_empty() {
        message.push_str(&format!(" (approved by {})", revision.approved_by.join(", ")));
    }
    if let Some(seconds) = revision.clock_ahead {
        let hours = seconds / 3_600;
        message.push_str(&format!(" (the revision before has a wrong time: the clock was {hours} hours ahead)"));
    }
    let kind = match revision.kind {
        RevisionKind::Publish => "publish",
        RevisionKind::Promote => "promote",
        RevisionKind::Rollback => "rollback",
        RevisionKind::Policy => "policy",
    };
    let under = revision.policy.as_ref().map(|policy| match (policy.approvals, policy.four_eyes) {
        (approvals, false) => format!("; published under: {}", count(approvals as usize, "approval")),
        (approvals, true) => format!("; published under: {}, four eyes", count(approvals.max(1) as usize, "approval")),
    });
    vec![
        revision.number.to_string(),
        revision.digest.map_or_else(|| "-".to_owned(), |digest| digest.short()),
        report::time(revision.at),
        kind.to_owned(),
        shortened(&output.line(&revision.author), AUTHOR_COLUMNS),
        shortened(&output.line(&summary(&revision.prompts)), MESSAGE_COLUMNS),
        shortened(&output.line(&message), MESSAGE_COLUMNS * 2) + &under.unwrap_or_default(),
    ]
}

fn policy_row<W: Write>(change: &PolicyChange, output: &Output<W>) -> Vec<String> {
    const AUTHOR_COLUMNS: usize = 20;

    let before = change.before.clone().unwrap_or_default();
    let mut told = vec![report::policy_changes(&before, &change.after).join(", ")];
    if let Some(reason) = &change.emergency {
        told.push(format!("EMERGENCY ({reason})"));
    }
    if !change.approved_by.is_empty() {
        told.push(format!("approved by {}", change.approved_by.join(", ")));
    }
    if change.by_operator {
        told.push("with access to the database".to_owned());
    }
    told.extend(Some(change.message.clone()).filter(|message| !message.is_empty()));
    vec![
        String::new(),
        String::new(),
        report::time(change.at),
        "policy".to_owned(),
        shortened(&output.line(&change.actor), AUTHOR_COLUMNS),
        String::new(),
        output.line(&told.join("; ")).into_owned(),
    ]
}

/// Summarizes changed prompts: `+hello, code_review v3`, or their number.
fn summary(prompts: &[PromptChange]) -> String {
    const NAMED: usize = 3;
    let one = |prompt: &PromptChange| match prompt.change {
        PromptChangeKind::Added => format!("+{}", prompt.name),
        PromptChangeKind::Changed => format!("{} v{}", prompt.name, prompt.version),
        PromptChangeKind::Removed => format!("-{}", prompt.name),
    };
    match prompts.len() {
        0 => "no prompts".to_owned(),
        number if number > NAMED => count(number, "prompt"),
        _ => prompts.iter().map(one).collect::<Vec<_>>().join(", "),
    }
}

fn print_served<W: Write>(output: &mut Output<W>, served: &[Served]) -> Result<(), Failure> {
    writeln!(output.out, "\nserved then:")?;
    let rows: Vec<Vec<String>> = served
        .iter()
        .map(|version| {
            let since = format!("since revision {}", version.since);
            vec![output.line(&version.name).into_owned(), format!("version {}", version.version), since]
        })
        .collect();
    report::print_table(output, "  ", &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_stay_in_the_order_of_their_numbers() {
        let at = |year: i64| Timestamp::from_second((year - 1970) * 31_556_952).expect("a time");
        // The third revision was made with a clock of the past, the second with one of the future.
        let revisions = vec![(at(2021), "3"), (at(2031), "2"), (at(2026), "1")];
        let policies = vec![(at(2027), "loose"), (at(2025), "strict")];
        assert_eq!(between(revisions, policies), ["loose", "strict", "3", "2", "1"]);
    }
}
