//! `promptshelf proposals`, `approve` and `reject`.

use std::io::Write;

use clap::Args;
use promptshelf_store::{
    ChannelName, Digest, EffectImpact, NewReview, Proposal, ProposalState, Published, StoreError, Verdict,
};
use promptshelf_wire::{PublishBody, op};
use serde_json::json;

use super::{
    access::Place,
    connection::{CallError, Connection},
    diff::FileDifference,
    impact::{self, CountedDifference, CountedEffects},
    report,
};
use crate::{
    args::{
        Words,
        place::{ActorArguments, PlaceArguments},
        words::{OneProposal, OnlyProposal},
    },
    command_line::shell_word,
    exit::{Exit, Failure},
    output::{Output, count, list_json, shortened},
    terminal::{agree, is_interactive},
};

const PROPOSALS_EXAMPLES: &str = "\
Examples:
  promptshelf proposals sqlite:team.db
  promptshelf proposals sqlite:team.db 7";

const APPROVE_EXAMPLES: &str = "\
An approval is of exactly the changes that were read: --digest names them, as
`proposals NUMBER` shows it. It does not count any more once the author changes
the proposal. What opens something, and with `policy --breaking off` what breaks
calls, needs a --confirm each.

Examples:
  promptshelf proposals sqlite:team.db 7
  promptshelf approve sqlite:team.db 7 --digest 3f9a41c2
  promptshelf approve https://prompts.example.com 7 --digest 3f9a41c2 \\
    --confirm access-opened:payroll";

#[derive(Debug, Args)]
#[command(after_help = PROPOSALS_EXAMPLES)]
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
#[command(after_help = APPROVE_EXAMPLES)]
pub(crate) struct ApproveArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, OneProposal>,

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
    pub(crate) words: Words<PlaceArguments, OneProposal>,

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

/// The number of digits that stand for a digest in messages, and the least that identify one.
const SHORT: usize = 8;

const MAX_FINDINGS: usize = 20;

const MAX_PROPOSALS: usize = 100;

pub(crate) async fn proposals(arguments: &ProposalsArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, arguments.channel.as_ref())?;
    place.using(async |store| list(store, arguments, &place).await).await
}

async fn list(store: &Connection, arguments: &ProposalsArguments, place: &Place) -> Result<(), Failure> {
    if let Some(number) = arguments.words.number()? {
        return show(store, place, number, arguments.json).await.map(drop);
    }
    let state = (!arguments.all).then_some(ProposalState::Open);
    let query = op::AllProposalsQuery { channel: place.named_channel().cloned(), state };
    let proposals = place.waiting(store.items(&op::ListAllProposals {}, &query, MAX_PROPOSALS)).await?;
    if arguments.json {
        return report::print_json(&list_json(proposals.iter().map(|proposal| json!(proposal))));
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
    let source = proposal.source.as_ref();
    let source = source.map_or_else(String::new, |it| format!(" of revision {} of {}", it.revision, it.channel));
    writeln!(output.out, "{id}  {message}")?;
    writeln!(
        output.out,
        "    {state} {kind}{source} to {channel} (base {base}) by {author}, {}; {}; {}",
        report::time(proposal.at),
        count(proposal.changes.len(), "file"),
        report::checks(&proposal.checks)
    )?;
    for lack in &proposal.lacks {
        let lack = output.line(lack).into_owned();
        writeln!(output.out, "    lacks: {lack}")?;
    }
    for warning in &proposal.warnings {
        let warning = output.line(&warning.text).into_owned();
        writeln!(output.out, "    warning: {warning}")?;
    }
    Ok(())
}

async fn show(store: &Connection, place: &Place, number: u64, is_json: bool) -> Result<Proposal, Failure> {
    let proposal = place.waiting(store.get(&op::GetProposal { id: number })).await?;
    let contents = store.proposal_contents(number).await?;
    let differences: Vec<FileDifference<'_>> = contents
        .iter()
        .map(|(path, before, after)| FileDifference { path, before: before.as_deref(), after: after.as_deref() })
        .collect();
    let warned = if proposal.state == ProposalState::Open && proposal.policy.is_none() {
        let changes = contents.iter().map(|(path, _, after)| (path.clone(), after.clone()));
        impact::of_changes(store, &proposal.channel, changes).await?
    } else {
        Vec::new()
    };
    if is_json {
        let mut json = json!({ "proposal": proposal });
        json["differences"] = warned.iter().map(CountedDifference::to_json).collect();
        json["files"] = differences.iter().map(|difference| difference.to_json()).collect();
        report::print_json(&json)?;
        return Ok(proposal);
    }
    let mut output = Output::stdout();
    print_summary(&mut output, &proposal)?;
    for review in &proposal.reviews {
        let verdict = match (review.verdict, review.digest == proposal.digest) {
            (Verdict::Approve, true) if review.lapsed => "approved before the roles that may review changed",
            (Verdict::Approve, true) => "approved",
            (Verdict::Approve, false) => "approved earlier changes",
            (Verdict::Reject, _) => "rejected",
        };
        let note = if review.note.is_empty() { String::new() } else { format!(": {}", review.note) };
        let line =
            output.line(&format!("{} {verdict}, {}{note}", review.reviewer, report::time(review.at))).into_owned();
        writeln!(output.out, "    {line}")?;
    }
    writeln!(output.out, "    digest {}", proposal.digest)?;
    if let Some(proposed) = &proposal.policy {
        writeln!(output.out, "\npolicy:")?;
        report::print_policy_changes(&mut output, &proposed.before, &proposed.after)?;
    }
    for difference in differences {
        writeln!(output.out)?;
        difference.print(&mut output)?;
    }
    if !warned.is_empty() {
        writeln!(output.out)?;
    }
    impact::print_warnings(&mut output, &warned)?;
    for effect in proposal.effects.iter().filter(|effect| effect.impact == EffectImpact::Opening) {
        let line = output.line(&format!("opening: {}", effect.text)).into_owned();
        writeln!(output.out, "{line}")?;
    }
    let findings: &[String] = if proposal.state == ProposalState::Open { &proposal.findings } else { &[] };
    if !findings.is_empty() {
        writeln!(output.out, "\nfindings:")?;
    }
    for finding in findings.iter().take(MAX_FINDINGS) {
        let finding = output.line(finding).into_owned();
        writeln!(output.out, "  {finding}")?;
    }
    if let Some(more @ 1..) = findings.len().checked_sub(MAX_FINDINGS) {
        writeln!(output.out, "  and {more} more")?;
    }
    if proposal.state == ProposalState::Open {
        let refusals: Vec<Exit> = proposal.reasons.iter().filter_map(report::refusal).collect();
        let work = if refusals.contains(&Exit::Conflict) {
            Some("joins these files with those of the channel (`pull … --merge`)")
        } else if refusals.is_empty() {
            None
        } else {
            Some("corrects the files")
        };
        let next = match work {
            Some(work) => {
                let command = place.command(&format!("publish FOLDER -m TEXT --proposal {number}"));
                format!("its author {work}, and replaces the changes: {command}")
            }
            None => place.command(&approval(&proposal)),
        };
        writeln!(output.out, "\nnext: {next}")?;
    }
    output.out.flush()?;
    Ok(proposal)
}

/// Returns the words of an approval of the present changes, with all that it has to confirm.
fn approval(proposal: &Proposal) -> String {
    let mut words = format!("approve {} --digest {}", proposal.id, short(&proposal.digest));
    for name in unconfirmed(proposal) {
        words.push_str(&format!(" --confirm {}", shell_word(name)));
    }
    words
}

/// Returns the names of the effects that an approval still has to confirm.
fn unconfirmed(proposal: &Proposal) -> impl Iterator<Item = &str> {
    let reasons = proposal.reasons.iter().filter(|reason| matches!(&*reason.code, "opening" | "breaking"));
    reasons.filter_map(|reason| reason.values.get("name").map(String::as_str))
}

fn short(digest: &Digest) -> String {
    digest.to_string().chars().take(SHORT).collect()
}

pub(crate) async fn approve(arguments: &ApproveArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, None)?.acting(&arguments.actor)?;
    if arguments.emergency.as_ref().is_some_and(|reason| reason.trim().is_empty()) {
        return Err(Failure::new(Exit::Usage, "`--emergency` expects a reason"));
    }
    let number = arguments.words.proposal()?;
    let approve = async |store: &Connection| {
        let (proposal, confirmed) = match &arguments.digest {
            Some(digest) => (seen(store, number, Some(digest), &place).await?, arguments.confirm.clone()),
            None => read_now(store, arguments, &place).await?,
        };
        let published = match &arguments.emergency {
            Some(reason) => {
                let body = PublishBody { digest: proposal.digest, emergency: Some(reason.clone()) };
                place.waiting(store.send(&op::PublishProposal { id: proposal.id }, &body)).await
            }
            None => {
                let (digest, note) = (proposal.digest, arguments.message.clone());
                let review = NewReview { verdict: Verdict::Approve, digest, note, confirmed };
                place.waiting(store.send(&op::ReviewProposal { id: proposal.id }, &review)).await
            }
        };
        let published = published.map_err(|error| reviewing(error, number, &place))?;
        let effects = match published.proposal.state {
            ProposalState::Published => CountedEffects::of(store, &published.proposal, &place).await,
            _ => CountedEffects::default(),
        };
        Ok((proposal, published, effects))
    };
    let (proposal, published, effects) = place.changing(approve).await?;
    finish(&published, &place, arguments.json, &effects, &format!("approved changes {}", short(&proposal.digest)))
}

/// Shows the changes of a proposal at a terminal and asks whether to approve them. A script has to name what was read.
async fn read_now(
    store: &Connection,
    arguments: &ApproveArguments,
    place: &Place,
) -> Result<(Proposal, Vec<String>), Failure> {
    let number = arguments.words.proposal()?;
    if !is_interactive() || arguments.json {
        let message = "an approval needs the digest of the changes that were read: `--digest DIGEST`";
        let look = place.command(&format!("proposals {number}"));
        return Err(Failure::new(Exit::Usage, message).help(format!("{look} shows the changes and their digest")));
    }
    let proposal = show(store, place, number, false).await?;
    let declined = || Failure::new(Exit::Failed, format!("proposal {number} was not approved"));
    let mut confirmed = arguments.confirm.clone();
    for name in unconfirmed(&proposal) {
        if !confirmed.iter().any(|known| known == name) {
            if !agree(&format!("Confirm `{name}`? [y/N] ")) {
                return Err(declined());
            }
            confirmed.push(name.to_owned());
        }
    }
    if agree(&format!("Approve proposal {number} with these changes? [y/N] ")) {
        Ok((proposal, confirmed))
    } else {
        Err(declined())
    }
}

pub(crate) async fn reject(arguments: &RejectArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, None)?.acting(&arguments.actor)?;
    let number = arguments.words.proposal()?;
    let reject = async |store: &Connection| {
        let proposal = seen(store, number, arguments.digest.as_deref(), &place).await?;
        let outcome = if arguments.withdraw {
            let operation = op::WithdrawProposal { id: proposal.id };
            let (_, tag) = store.tagged(&op::GetProposal { id: proposal.id }).await?;
            let withdrawn = store.delete(&operation, Some(tag)).await;
            withdrawn.map(|proposal| Published {
                proposal,
                prompts: Vec::new(),
                findings: Vec::new(),
                kept: Vec::new(),
            })
        } else {
            let (digest, note) = (proposal.digest, arguments.message.clone());
            let review = NewReview { verdict: Verdict::Reject, digest, note, confirmed: Vec::new() };
            store.send(&op::ReviewProposal { id: proposal.id }, &review).await
        };
        outcome.map_err(|error| reviewing(error, number, &place))
    };
    let outcome = place.changing(reject).await?;
    if arguments.json {
        return report::print_json(&report::outcome(&outcome));
    }
    let Proposal { id, channel, state, .. } = &outcome.proposal;
    report::print_line(&format!("proposal {id} for {channel} is {}", report::state(*state)))
}

async fn seen(store: &Connection, number: u64, digest: Option<&str>, place: &Place) -> Result<Proposal, Failure> {
    let proposal = place.waiting(store.get(&op::GetProposal { id: number })).await?;
    let Some(digest) = digest else { return Ok(proposal) };
    if digest.len() < SHORT || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let message = format!("expected at least {SHORT} hexadecimal digits of a digest, got \"{digest}\"");
        return Err(Failure::new(Exit::Usage, message));
    }
    if proposal.digest.to_string().starts_with(&digest.to_ascii_lowercase()) {
        Ok(proposal)
    } else {
        let message = format!("the changes of proposal {number} are not those with the digest {digest} any more");
        Err(Failure::new(Exit::Conflict, message).help(look(number, place)))
    }
}

fn look(number: u64, place: &Place) -> String {
    format!("{} shows the present changes", place.command(&format!("proposals {number}")))
}

fn reviewing(error: CallError, number: u64, place: &Place) -> Failure {
    let error = error.about(format!("proposal {number}"));
    match &error {
        CallError::Store(StoreError::Conflict { .. }) => Failure::from(error).help(
            "the author has to join these files with those of the channel (`pull … --merge`), and change the proposal: \
             `publish FOLDER --proposal NUMBER`",
        ),
        CallError::Store(StoreError::State { .. } | StoreError::Unchanged { .. } | StoreError::Changed { .. }) => {
            Failure::from(error).help(look(number, place))
        }
        _ => error.into(),
    }
}

fn finish(
    published: &Published,
    place: &Place,
    is_json: bool,
    effects: &CountedEffects,
    first: &str,
) -> Result<(), Failure> {
    if is_json {
        let mut outcome = report::outcome(published);
        effects.add_to(&mut outcome);
        report::print_json(&outcome)?;
    } else {
        report::print_line(first)?;
        report::print_outcome(published, place, false)?;
        effects.print()?;
    }
    report::verdict(published, place)
}
