//! The release gate: the evaluations that a policy requires of each added or changed prompt.

use std::fmt::Write as _;

use crate::{
    StoreError,
    database::Transaction,
    evaluation::{EvaluatedPrompt, Evaluation},
    model::{Digest, Policy, Proposal},
    reason::Reason,
    tables::evaluation::{self, Newest},
};

const MAX_SENTENCES: usize = 10;

/// Returns the missing conditions of an open proposal. A prompt whose new version is served already needs
/// no result.
pub(crate) async fn lacks(
    transaction: &mut Transaction,
    policy: &Policy,
    proposal: &Proposal,
    prompts: &[EvaluatedPrompt],
) -> Result<Vec<Reason>, StoreError> {
    if policy.evaluations.is_empty() {
        return Ok(Vec::new());
    }
    let prompts: Vec<&EvaluatedPrompt> = prompts.iter().filter(|prompt| prompt.live != Some(prompt.new)).collect();
    let names: Vec<&str> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    let newest = evaluation::newest(transaction, &policy.evaluations, &names).await?;
    let gate = Gate { policy, proposal, newest: &newest };
    let required = prompts.iter().flat_map(|prompt| policy.evaluations.iter().map(move |name| (prompt, name)));
    let mut lacks: Vec<Reason> = required.filter_map(|(prompt, name)| gate.lack(prompt, name)).collect();
    let more = lacks.len().saturating_sub(MAX_SENTENCES);
    if more > 0 {
        lacks.truncate(MAX_SENTENCES);
        let mut sentence = format!("{more} more results of evaluations are missing or do not pass");
        if proposal.id > 0 {
            // Writing to a string cannot fail.
            let _ = write!(sentence, ": run `promptshelf evaluate --proposal {}`", proposal.id);
        }
        lacks.push(Reason::new("evaluations-more", sentence).with("n", more));
    }
    Ok(lacks)
}

struct Gate<'a> {
    policy: &'a Policy,
    proposal: &'a Proposal,
    newest: &'a Newest,
}

impl Gate<'_> {
    fn result(&self, evaluation: &str, prompt: &str, digest: Digest) -> Option<&Evaluation> {
        self.newest.get(&(evaluation.to_owned(), prompt.to_owned(), digest))
    }

    /// Returns the reason why a prompt does not pass an evaluation.
    fn lack(&self, prompt: &EvaluatedPrompt, evaluation: &str) -> Option<Reason> {
        let name = &prompt.name;
        let reason = |code, text: String| Reason::new(code, text).with("prompt", name).with("evaluation", evaluation);
        let command = match self.proposal.id {
            // The proposal of a dry run has no number.
            0 => String::new(),
            id => format!("`promptshelf evaluate {name} --evaluation {evaluation} --proposal {id}`"),
        };
        let Some(result) = self.result(evaluation, name, prompt.new) else {
            let mut sentence =
                format!("the new version of the prompt `{name}` has no result of the evaluation `{evaluation}`");
            if !command.is_empty() {
                let _ = write!(sentence, ": run {command}");
            }
            return Some(reason("evaluation-missing", sentence).with("command", command));
        };
        let again = || if command.is_empty() { String::new() } else { format!(", or run {command} again") };
        if !result.passed {
            let failures = result.failures().map(|(score, found, least)| bound(score, found, "at least", least));
            let failures = failures.collect::<Vec<_>>().join(", ");
            let sentence = format!(
                "the prompt `{name}` does not pass the evaluation `{evaluation}` ({failures}): change the prompt{}",
                again()
            );
            return Some(reason("evaluation-failed", sentence).with("scores", failures));
        }
        let live = prompt.live.filter(|_| self.policy.no_regression)?;
        let Some(live) = self.result(evaluation, name, live) else {
            let channel = &self.proposal.channel;
            let command = format!("`promptshelf evaluate {name} --evaluation {evaluation} --channel {channel}`");
            let sentence = format!(
                "the served version of the prompt `{name}` has no result of the evaluation `{evaluation}` to compare \
                 with: run {command}"
            );
            return Some(reason("evaluation-not-compared", sentence).with("command", command));
        };
        let regressions = result.regressions(live);
        if regressions.is_empty() {
            return None;
        }
        let worse = regressions.iter().map(|(score, found, before)| bound(score, *found, "served", *before));
        let worse = worse.collect::<Vec<_>>().join(", ");
        let sentence = format!(
            "the prompt `{name}` is worse than the served version in the evaluation `{evaluation}` ({worse}): change the \
             prompt{}",
            again()
        );
        Some(reason("evaluation-worse", sentence).with("scores", worse))
    }
}

fn bound(score: &str, found: Option<f64>, word: &str, number: f64) -> String {
    let found = found.map_or_else(|| "missing".to_owned(), |found| found.to_string());
    format!("{score} {found}, {word} {number}")
}
