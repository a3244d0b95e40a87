//! `promptshelf proposals`, `approve` and `reject`.

use std::io::Write;

use promptshelf_store::{Digest, Proposal, ProposalQuery, ProposalState, Published, StoreError, Verdict};
use serde_json::json;

use super::{
    access::Place,
    actor::actor,
    answer::BackendError,
    backend::Backend,
    impact::{self, CountedDifference},
    report,
    unified::FileDifference,
};
use crate::{
    args::channels::{ApproveArguments, ProposalsArguments, RejectArguments},
    exit::{Exit, Failure},
    output::{Output, count, shortened},
};

/// The number of digits that stand for a digest in messages, and the least that identify one.
const SHORT: usize = 8;

pub(crate) async fn proposals(arguments: &ProposalsArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.place, arguments.channel.as_ref())?;
    place.using(async |store| list(store, arguments, &place).await).await
}

async fn list(store: &Backend, arguments: &ProposalsArguments, place: &Place) -> Result<(), Failure> {
    if let Some(number) = arguments.number {
        return show(store, place, number, arguments.json).await;
    }
    let state = (!arguments.all).then_some(ProposalState::Open);
    let query = ProposalQuery { channel: place.named_channel().cloned(), state, ..ProposalQuery::default() };
    let proposals = place.waiting(store.proposals(&query)).await?;
    if arguments.json {
        return report::print_json(&json!({ "proposals": proposals }));
    }
    let mut output = Output::stdout();
    if proposals.is_empty() {
        writeln!(output.out, "{}", if arguments.all { "no proposals" } else { "no open proposals" })?;
    }
    for proposal in &proposals {
        print_summary(&mut output, proposal)?;
    }
    if let Some(first) = proposals.first() {
        writeln!(output.out, "next: {}", place.command(&format!("proposals {}", first.id)))?;
    }
    Ok(output.out.flush()?)
}

fn print_summary<W: Write>(output: &mut Output<W>, proposal: &Proposal) -> Result<(), Failure> {
    const MESSAGE_COLUMNS: usize = 100;
    let Proposal { id, channel, base, .. } = proposal;
    let message = shortened(&output.line(&proposal.message), MESSAGE_COLUMNS);
    let author = output.line(&proposal.author).into_owned();
    let (kind, state) = (report::kind(proposal.kind), report::state(proposal.state));
    writeln!(output.out, "{id}  {message}")?;
    writeln!(
        output.out,
        "    {state} {kind} to {channel} (base {base}) by {author}, {}; {}; {}",
        report::time(proposal.at),
        count(proposal.changes.len(), "file"),
        report::checks(&proposal.checks)
    )?;
    for lack in &proposal.lacks {
        let lack = output.line(lack).into_owned();
        writeln!(output.out, "    lacks: {lack}")?;
    }
    Ok(())
}

/// Shows a proposal with its changes and reviews.
async fn show(store: &Backend, place: &Place, number: u64, is_json: bool) -> Result<(), Failure> {
    let proposal = place.waiting(store.proposal(number)).await?;
    let contents = store.proposal_contents(number).await?;
    let differences: Vec<FileDifference<'_>> = contents
        .iter()
        .map(|(path, before, after)| FileDifference { path, before: before.as_deref(), after: after.as_deref() })
        .collect();
    let warned = if proposal.state == ProposalState::Open {
        let changes = contents.iter().map(|(path, _, after)| (path.clone(), after.clone()));
        impact::of_changes(store, &proposal.channel, changes).await?
    } else {
        Vec::new()
    };
    if is_json {
        let mut json = json!({ "proposal": proposal });
        json["differences"] = warned.iter().map(CountedDifference::to_json).collect();
        json["files"] = differences.iter().map(|difference| difference.to_json()).collect();
        return report::print_json(&json);
    }
    let mut output = Output::stdout();
    print_summary(&mut output, &proposal)?;
    for review in &proposal.reviews {
        let verdict = match (review.verdict, review.digest == proposal.digest) {
            (Verdict::Approve, true) => "approved",
            (Verdict::Approve, false) => "approved earlier changes",
            (Verdict::Reject, _) => "rejected",
        };
        let note = if review.note.is_empty() { String::new() } else { format!(": {}", review.note) };
        let line =
            output.line(&format!("{} {verdict}, {}{note}", review.reviewer, report::time(review.at))).into_owned();
        writeln!(output.out, "    {line}")?;
    }
    for difference in differences {
        writeln!(output.out)?;
        difference.print(&mut output)?;
    }
    if !warned.is_empty() {
        writeln!(output.out)?;
    }
    impact::print_warnings(&mut output, &warned)?;
    if proposal.state == ProposalState::Open {
        let digest = short(&proposal.digest);
        writeln!(output.out, "\nnext: {}", place.command(&format!("approve {number} --digest {digest}")))?;
    }
    Ok(output.out.flush()?)
}

fn short(digest: &Digest) -> String {
    digest.to_string().chars().take(SHORT).collect()
}

pub(crate) async fn approve(arguments: &ApproveArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.place, None)?;
    let actor = actor(&arguments.actor, &place)?;
    if arguments.emergency.as_ref().is_some_and(|reason| reason.trim().is_empty()) {
        return Err(Failure::new(Exit::Usage, "`--emergency` expects a reason"));
    }
    let approve = async |store: &Backend| {
        let proposal = seen(store, arguments.number, arguments.digest.as_deref(), &place).await?;
        let published = match &arguments.emergency {
            Some(reason) => place.waiting(store.publish_proposal(proposal.id, reason.clone(), &actor)).await,
            None => {
                let (digest, note) = (proposal.digest, &arguments.message);
                place.waiting(store.review(proposal.id, Verdict::Approve, note, digest, &actor)).await
            }
        };
        Ok((proposal, published.map_err(|error| reviewing(error, arguments.number, &place))?))
    };
    let (proposal, published) = place.changing(approve).await?;
    finish(&published, &place, arguments.json, &format!("approved changes {}", short(&proposal.digest)))
}

pub(crate) async fn reject(arguments: &RejectArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.place, None)?;
    let actor = actor(&arguments.actor, &place)?;
    let reject = async |store: &Backend| {
        let proposal = seen(store, arguments.number, arguments.digest.as_deref(), &place).await?;
        let outcome = match arguments.withdraw {
            true => {
                let withdrawn = store.withdraw(proposal.id, &actor).await;
                withdrawn.map(|proposal| Published { proposal, prompts: Vec::new(), findings: Vec::new() })
            }
            false => store.review(proposal.id, Verdict::Reject, &arguments.message, proposal.digest, &actor).await,
        };
        outcome.map_err(|error| reviewing(error, arguments.number, &place))
    };
    let outcome = place.changing(reject).await?;
    if arguments.json {
        return report::print_json(&report::outcome(&outcome));
    }
    let Proposal { id, channel, state, .. } = &outcome.proposal;
    report::print_line(&format!("proposal {id} for {channel} is {}", report::state(*state)))
}

/// Returns the proposal, with the changes that the reviewer has seen.
async fn seen(store: &Backend, number: u64, digest: Option<&str>, place: &Place) -> Result<Proposal, Failure> {
    let proposal = place.waiting(store.proposal(number)).await?;
    let Some(digest) = digest else { return Ok(proposal) };
    if digest.len() < SHORT || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let message = format!("expected at least {SHORT} hexadecimal digits of a digest, got \"{digest}\"");
        return Err(Failure::new(Exit::Usage, message));
    }
    match proposal.digest.to_string().starts_with(&digest.to_ascii_lowercase()) {
        true => Ok(proposal),
        false => {
            let message = format!("the changes of proposal {number} are not those with the digest {digest} any more");
            Err(Failure::new(Exit::Conflict, message).help(look(number, place)))
        }
    }
}

fn look(number: u64, place: &Place) -> String {
    format!("{} shows the present changes", place.command(&format!("proposals {number}")))
}

fn reviewing(error: BackendError, number: u64, place: &Place) -> Failure {
    match &error {
        BackendError::Store(StoreError::Conflict { .. }) => Failure::from(error).help(
            "the author has to pull the channel, merge these files, and change the proposal: \
             `publish FOLDER --proposal NUMBER`",
        ),
        BackendError::Store(StoreError::State { .. } | StoreError::Changed { .. }) => {
            Failure::from(error).help(look(number, place))
        }
        _ => error.into(),
    }
}

fn finish(published: &Published, place: &Place, is_json: bool, first: &str) -> Result<(), Failure> {
    if is_json {
        report::print_json(&report::outcome(published))?;
    } else {
        report::print_line(first)?;
        report::print_outcome(published, place, false)?;
    }
    report::verdict(published, place)
}
