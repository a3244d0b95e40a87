//! Output that the commands for channels share.

use std::io::{self, Write};

use jiff::Timestamp;
use promptshelf_core::Diagnostic;
use promptshelf_store::{
    ChannelName, CheckLevel, CheckSummary, FileChange, Policy, PolicyRoles, PromptChange, PromptChangeKind,
    ProposalState, Published, Reason, RevisionKind, StoreError,
};
use promptshelf_wire::op;
use serde_json::{Value, json};

use super::{access::Place, connection::CallError, connection::Connection};
use crate::{
    exit::{Exit, Failure},
    output::{Output, count, count_findings, pretty_json},
};

const MAX_ROWS: usize = 20;
const MAX_FINDINGS: usize = 20;

/// What a folder does not serve, and a publish leaves out: each path with the reason.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftOut(Vec<(String, String)>);

impl LeftOut {
    pub(super) fn of(found: &[Diagnostic]) -> LeftOut {
        let row = |found: &Diagnostic| (found.location.source.path.clone(), found.message.clone());
        LeftOut(found.iter().map(row).collect())
    }

    pub(super) fn add(&mut self, path: String, reason: &str) {
        self.0.push((path, reason.to_owned()));
    }

    /// Whether a path is one of these, or below one of them.
    pub(super) fn has(&self, path: &str) -> bool {
        let is_below =
            |above: &str| path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.0.iter().any(|(left_out, _)| is_below(left_out))
    }

    pub(super) fn print(&self) -> Result<(), Failure> {
        self.0.iter().try_for_each(|(path, reason)| print_line(&format!("left out {path}: {reason}")))
    }

    pub(super) fn add_to(&self, outcome: &mut Value) {
        if !self.0.is_empty() {
            let row = |(path, reason): &(String, String)| json!({ "path": path, "reason": reason });
            outcome["leftOut"] = self.0.iter().map(row).collect();
        }
    }
}

pub(super) fn print_json(value: &Value) -> Result<(), Failure> {
    let mut output = Output::stdout();
    writeln!(output.out, "{}", pretty_json(value))?;
    Ok(output.out.flush()?)
}

/// The JSON that scripts rely on: `{"channel","proposal","state","revision"}`.
pub(super) fn outcome(published: &Published) -> Value {
    let proposal = &published.proposal;
    json!({
        "channel": proposal.channel,
        "proposal": proposal.id,
        "state": proposal.state,
        "revision": proposal.revision,
    })
}

/// The JSON of an outcome with the affected prompts. A dry run also has the unmet conditions of the policy.
pub(super) fn outcome_with_prompts(published: &Published, is_dry_run: bool) -> Value {
    let mut outcome = outcome(published);
    outcome["prompts"] = json!(published.prompts);
    if is_dry_run {
        let proposal = &published.proposal;
        outcome["proposal"] = Value::Null;
        outcome["revision"] = Value::Null;
        outcome["state"] =
            json!(if proposal.lacks.is_empty() { ProposalState::Published } else { ProposalState::Open });
        outcome["dryRun"] = Value::Bool(true);
        outcome["lacks"] = json!(proposal.lacks);
        outcome["checks"] = json!(proposal.checks);
        outcome["findings"] = json!(published.findings);
        outcome["files"] =
            proposal.changes.iter().map(|change| json!({ "path": change.path, "change": word(change) })).collect();
    }
    outcome
}

pub(super) async fn print_unchanged(
    store: &Connection,
    channel: &ChannelName,
    is_json: bool,
    left_out: &LeftOut,
) -> Result<(), Failure> {
    let revision = match store.get(&op::GetChannel { channel: channel.clone() }).await {
        Ok(info) => info.head.revision,
        Err(CallError::Store(StoreError::NotFound { .. })) => 0,
        Err(error) => return Err(error.into()),
    };
    if is_json {
        let (state, proposal) = (ProposalState::Published, Value::Null);
        let mut outcome = json!({ "channel": channel, "proposal": proposal, "state": state, "revision": revision });
        left_out.add_to(&mut outcome);
        return print_json(&outcome);
    }
    left_out.print()?;
    print_line(&format!("no changes: {channel} stays at revision {revision}"))
}

/// Prints the outcome of a publish, an approval, a promotion or a rollback, and the next command.
pub(super) fn print_outcome(published: &Published, place: &Place, is_dry_run: bool) -> Result<(), Failure> {
    let mut output = Output::stdout();
    let proposal = &published.proposal;
    let channel = &proposal.channel;
    match (proposal.state, proposal.revision) {
        _ if is_dry_run => {
            writeln!(output.out, "dry run: {} of {channel} would change", count(proposal.changes.len(), "file"))?;
            print_files(&mut output, &proposal.changes)?;
        }
        (ProposalState::Published, Some(revision)) => {
            let how = if proposal.kind == RevisionKind::Publish {
                String::new()
            } else {
                format!(", a {}", kind(proposal.kind))
            };
            let new = if revision == 1 { ", a new channel," } else { "" };
            writeln!(
                output.out,
                "published: {channel}{new} is at revision {revision} (proposal {}{how})",
                proposal.id
            )?;
        }
        (ProposalState::Published, None) => {
            writeln!(output.out, "the policy of {channel} is changed (proposal {})", proposal.id)?;
        }
        (state, _) => writeln!(output.out, "proposal {} for {channel} is {}", proposal.id, self::state(state))?,
    }
    print_prompts(&mut output, &published.prompts)?;
    match &proposal.policy {
        Some(proposed) => print_policy_changes(&mut output, &proposed.before, &proposed.after)?,
        None => writeln!(output.out, "checks: {}", checks(&proposal.checks))?,
    }
    for finding in published.findings.iter().take(MAX_FINDINGS) {
        let finding = output.line(finding).into_owned();
        writeln!(output.out, "  {finding}")?;
    }
    for lack in &proposal.lacks {
        let lack = output.line(lack).into_owned();
        writeln!(output.out, "lacks: {lack}")?;
    }
    for warning in &proposal.warnings {
        let warning = output.line(&warning.text).into_owned();
        writeln!(output.out, "warning: {warning}")?;
    }
    if !is_dry_run && place.is_server() && proposal.state == ProposalState::Open && proposal.lacks.is_empty() {
        writeln!(output.out, "lacks: a publish by a caller with the scope library:publish, or with more roles")?;
    }
    let next = match proposal.state {
        _ if is_dry_run => None,
        ProposalState::Open => Some(place.command(&format!("proposals {}", proposal.id))),
        ProposalState::Published => Some(place.command(&format!("history --channel {channel}"))),
        _ => None,
    };
    if let Some(next) = next {
        writeln!(output.out, "next: {next}")?;
    }
    Ok(output.out.flush()?)
}

/// What a reason ends with that no approval removes.
pub(super) fn refusal(reason: &Reason) -> Option<Exit> {
    match &*reason.code {
        "check-errors" | "check-warnings" | "tests-failed" => Some(Exit::Policy),
        "changed-since" | "policy-changed-since" | "rollout-stopped" => Some(Exit::Conflict),
        _ => None,
    }
}

/// Fails for changes that no approval can publish as they are: those that the policy refuses for their content, and those
/// that the channel has overtaken. A proposal that waits for approvals or evaluations is a success.
pub(super) fn verdict(published: &Published, place: &Place) -> Result<(), Failure> {
    let proposal = &published.proposal;
    let exit = |reason| Some((refusal(reason)?, reason));
    let Some((exit, reason)) = proposal.reasons.iter().find_map(exit) else {
        return Ok(());
    };
    let what = match proposal.id {
        0 => "these changes".to_owned(),
        id => format!("the changes of proposal {id}"),
    };
    let failure = Failure::new(exit, format!("{what} cannot be published as they are: {}", reason.text));
    Err(match proposal.id {
        0 => failure,
        _ if reason.code == "rollout-stopped" => failure,
        _ if proposal.policy.is_some() => {
            failure.help(place.command(&format!("policy --channel {}", proposal.channel)) + " shows the present one")
        }
        id => failure.help(format!(
            "correct the files, then {}",
            place.command(&format!("publish FOLDER -m TEXT --proposal {id}"))
        )),
    })
}

pub(super) fn print_policy_changes<W: Write>(
    output: &mut Output<W>,
    before: &Policy,
    after: &Policy,
) -> Result<(), Failure> {
    for change in policy_changes(before, after) {
        let change = output.line(&change).into_owned();
        writeln!(output.out, "  {change}")?;
    }
    Ok(())
}

/// Returns the conditions of a policy, in the words of the options of `promptshelf policy`.
pub(super) fn conditions(policy: &Policy) -> Vec<(&'static str, String)> {
    let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
    let checks = match policy.checks {
        CheckLevel::Errors => "errors",
        CheckLevel::Warnings => "warnings",
        CheckLevel::Off => "off",
    };
    let names = |names: &[String], none: &str| if names.is_empty() { none.to_owned() } else { names.join(",") };
    let PolicyRoles { propose, review, publish, administer } = &policy.roles;
    vec![
        ("approvals", policy.approvals.to_string()),
        ("four-eyes", switch(policy.four_eyes)),
        ("checks", checks.to_owned()),
        ("tests", switch(policy.tests)),
        ("breaking", switch(!policy.no_breaking)),
        ("evaluations", names(&policy.evaluations, "none")),
        ("no-regression", switch(policy.no_regression)),
        ("propose", names(propose, "every role")),
        ("review", names(review, "every role")),
        ("publish", names(publish, "every role")),
        ("administer", names(administer, "every role")),
    ]
}

/// Describes the conditions of a policy that differ: `approvals 2 → 0`.
pub(super) fn policy_changes(before: &Policy, after: &Policy) -> Vec<String> {
    let pairs = conditions(before).into_iter().zip(conditions(after));
    let changed = pairs.filter(|((_, before), (_, after))| before != after);
    changed.map(|((name, before), (_, after))| format!("{name} {before} → {after}")).collect()
}

pub(super) fn print_prompts<W: Write>(output: &mut Output<W>, prompts: &[PromptChange]) -> Result<(), Failure> {
    let rows = prompts.iter().take(MAX_ROWS).map(|prompt| {
        let version = match prompt.change {
            PromptChangeKind::Removed => format!("was version {}", prompt.version),
            _ if prompt.version == 0 => "new version".to_owned(),
            PromptChangeKind::Changed if prompt.previous.is_some_and(|before| before != prompt.version) => {
                let before = prompt.previous.unwrap_or_default();
                let older = if before > prompt.version { " (older)" } else { "" };
                format!("version {before} → {}{older}", prompt.version)
            }
            _ => format!("version {}", prompt.version),
        };
        vec![change(prompt.change).to_owned(), output.line(&prompt.name).into_owned(), version]
    });
    let rows = rows.collect::<Vec<_>>();
    print_first(output, prompts.len(), &rows)
}

pub(super) fn print_files<W: Write>(output: &mut Output<W>, changes: &[FileChange]) -> Result<(), Failure> {
    let row = |change: &FileChange| vec![word(change).to_owned(), output.line(&change.path).into_owned()];
    let rows = changes.iter().take(MAX_ROWS).map(row).collect::<Vec<_>>();
    print_first(output, changes.len(), &rows)
}

/// Prints the first rows of a list, and the number of the others.
fn print_first<W: Write>(output: &mut Output<W>, all: usize, rows: &[Vec<String>]) -> Result<(), Failure> {
    print_table(output, "  ", rows)?;
    match all.checked_sub(rows.len()) {
        Some(more @ 1..) => Ok(writeln!(output.out, "  and {more} more (--json lists all)")?),
        _ => Ok(()),
    }
}

/// Prints rows in columns. On a terminal that is too narrow for them, the last cells of each row are on lines of their own.
pub(super) fn print_table<W: Write>(output: &mut Output<W>, indent: &str, rows: &[Vec<String>]) -> Result<(), Failure> {
    let table = |columns| {
        let kept: Vec<Vec<String>> = rows.iter().map(|row| row.iter().take(columns).cloned().collect()).collect();
        lines(indent, &kept)
    };
    let all = rows.iter().map(Vec::len).max().unwrap_or_default();
    let fits = |columns: &usize| table(*columns).iter().all(|line| line.chars().count() <= output.width);
    let columns = if output.terminal { (1..=all).rev().find(fits).unwrap_or(1) } else { all };
    let below = format!("{indent}    ");
    for (row, line) in rows.iter().zip(table(columns)) {
        writeln!(output.out, "{line}")?;
        // The last one is the longest: a message, or what was changed.
        let cells = row.get(columns..).unwrap_or_default();
        let (last, others) = cells.split_last().map_or(("", String::new()), |(last, others)| {
            let others: Vec<&str> = others.iter().map(String::as_str).filter(|cell| !cell.is_empty()).collect();
            (last.as_str(), others.join("  "))
        });
        for text in [others.as_str(), last].into_iter().filter(|text| !text.is_empty()) {
            let text = output.filled(&below, &below, text);
            writeln!(output.out, "{text}")?;
        }
    }
    Ok(())
}

fn lines(indent: &str, rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    let line = |row: &Vec<String>| {
        let cells: String = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}  ")).collect();
        format!("{indent}{}", cells.trim_end())
    };
    rows.iter().map(line).collect()
}

/// Describes the result of a check: `no findings; 12 tests passed`.
pub(super) fn checks(summary: &CheckSummary) -> String {
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let findings = count_findings(number(summary.errors), number(summary.warnings));
    match summary.tests {
        None => findings,
        Some((0, 0)) => format!("{findings}; no tests"),
        Some((passed, 0)) => format!("{findings}; {} passed", count(number(passed), "test")),
        Some((passed, failed)) => {
            format!("{findings}; {failed} of {} failed", count(number(passed.saturating_add(failed)), "test"))
        }
    }
}

/// Formats a time to the second.
pub(super) fn time(at: Timestamp) -> String {
    format!("{at:.0}")
}

pub(super) fn kind(kind: RevisionKind) -> &'static str {
    match kind {
        RevisionKind::Publish => "publish",
        RevisionKind::Promote => "promotion",
        RevisionKind::Rollback => "rollback",
        RevisionKind::Policy => "change of the policy",
    }
}

pub(super) fn state(state: ProposalState) -> &'static str {
    match state {
        ProposalState::Open => "open",
        ProposalState::Published => "published",
        ProposalState::Rejected => "rejected",
        ProposalState::Withdrawn => "withdrawn",
    }
}

pub(super) fn change(change: PromptChangeKind) -> &'static str {
    match change {
        PromptChangeKind::Added => "added",
        PromptChangeKind::Changed => "changed",
        PromptChangeKind::Removed => "removed",
    }
}

fn word(change: &FileChange) -> &'static str {
    match (change.before, change.after) {
        (None, _) => "added",
        (_, None) => "removed",
        _ => "changed",
    }
}

/// Returns the message of a change, which only a dry run can omit.
pub(super) fn message(message: Option<&String>, default: &str) -> Result<String, Failure> {
    match message {
        Some(message) if message.trim().is_empty() => {
            Err(Failure::new(Exit::Usage, "the description of the change is empty").help("describe it with `-m TEXT`"))
        }
        Some(message) => Ok(message.clone()),
        None => Ok(default.to_owned()),
    }
}

pub(super) fn print_line(line: &str) -> Result<(), Failure> {
    let mut output = Output::stdout();
    let line = output.line(line).into_owned();
    writeln!(output.out, "{line}")?;
    output.out.flush().map_err(|error: io::Error| error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_the_width_of_the_terminal() {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = [
            row(["1", "publish", "+hello, review v2", "a message of several words"]),
            row(["", "policy", "", "tests on"]),
        ];
        let table = |width, terminal| {
            let mut output = Output { out: Vec::new(), terminal, escapes: false, colours: false, width };
            print_table(&mut output, "", &rows).expect("memory");
            String::from_utf8(output.out).expect("text")
        };
        let wide =
            "1  publish  +hello, review v2  a message of several words\n   policy                      tests on\n";
        assert_eq!((table(10, false), table(80, true)), (wide.to_owned(), wide.to_owned()));
        assert_eq!(
            table(40, true),
            "1  publish  +hello, review v2\n    a message of several words\n   policy\n    tests on\n"
        );
        let narrow =
            "1  publish\n    +hello, review\n    v2\n    a message of\n    several words\n   policy\n    tests on\n";
        assert_eq!(table(18, true), narrow);
    }
}
