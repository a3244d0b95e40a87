//! `promptshelf evaluate`: runs evaluations of prompts, and stores their results.
//!
//! - `version` finds the versions to evaluate, in a channel or a proposal, and their cases.
//! - `program` runs a program within its bounds; `verdict` validates its output.

mod program;
mod verdict;
mod version;

use std::{io::Write, path::Path};

use anstyle::{AnsiColor, Style};
use promptshelf_store::{ChannelName, Evaluation, NewEvaluation};
use promptshelf_wire::{EvaluationsQuery, op};
use serde_json::json;

use self::{
    verdict::Verdict,
    version::{Version, Versions},
};
use super::{access::Place, connection::Connection, report};
use crate::{
    args::channels::EvaluateArguments,
    exit::{Exit, Failure},
    output::{Output, count, visible_line},
    settings::{ConfiguredEvaluation, ServerFileLocation},
};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// An evaluation of a prompt without a result.
struct Failed {
    prompt: String,
    evaluation: String,
    error: String,
}

struct Outcome {
    channel: ChannelName,
    stored: Vec<Evaluation>,
    /// Earlier results below a threshold, which `--missing` does not repeat.
    red: Vec<Evaluation>,
    failed: Vec<Failed>,
}

pub(crate) async fn run(arguments: &EvaluateArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.channel.place, arguments.channel.channel.as_ref())?
        .acting(&arguments.actor)?
        .configured(arguments.config.as_deref());
    let mut evaluations = configured(arguments.config.as_deref(), &arguments.evaluations)?;
    evaluations.retain(|it| arguments.evaluations.is_empty() || arguments.evaluations.contains(&it.name));
    let outcome = place.changing(async |store| evaluate(store, arguments, &place, &evaluations).await).await?;
    let passes =
        outcome.failed.is_empty() && outcome.red.is_empty() && outcome.stored.iter().all(|result| result.passed);
    if arguments.json {
        let failed = outcome.failed.iter();
        let failed = failed.map(|it| json!({ "prompt": it.prompt, "evaluation": it.evaluation, "error": it.error }));
        report::print_json(&json!({
            "channel": outcome.channel,
            "proposal": arguments.proposal,
            "evaluations": outcome.stored,
            "earlier": outcome.red,
            "errors": failed.collect::<Vec<_>>(),
        }))?;
    } else {
        let bad = outcome.stored.iter().filter(|result| !result.passed).count();
        let mut line = format!("{} stored", count(outcome.stored.len(), "result"));
        if bad > 0 {
            line.push_str(&format!(", {bad} below a threshold"));
        }
        if !outcome.red.is_empty() {
            line.push_str(&format!(", {} below a threshold", count(outcome.red.len(), "earlier result")));
        }
        if !outcome.failed.is_empty() {
            line.push_str(&format!(", {} without a result", count(outcome.failed.len(), "evaluation")));
        }
        report::print_line(&line)?;
    }
    if passes { Ok(()) } else { Err(Failure::reported(Exit::Failed)) }
}

/// Returns the evaluations of `server.toml`, which has to have those with these names.
pub(super) fn configured(config: Option<&Path>, names: &[String]) -> Result<Vec<ConfiguredEvaluation>, Failure> {
    let mut file = ServerFileLocation::find(config, &crate::environment::variable).load()?;
    let evaluations = file.evaluations();
    file.check()?;
    let path = file.path().map_or_else(|| "server.toml".to_owned(), |path| path.display().to_string());
    if evaluations.is_empty() {
        let help = "write [[evaluation]] with a name and a program, or name the file: `--config FILE`";
        return Err(Failure::new(Exit::Settings, format!("{path} has no evaluations")).help(help));
    }
    if let Some(unknown) = names.iter().find(|name| !evaluations.iter().any(|it| it.name == **name)) {
        let known: Vec<String> = evaluations.iter().map(|it| format!("`{}`", it.name)).collect();
        let message = format!("{path} has no evaluation `{unknown}`");
        return Err(Failure::new(Exit::NotFound, message).help(format!("it has {}", known.join(", "))));
    }
    Ok(evaluations)
}

async fn evaluate(
    store: &Connection,
    arguments: &EvaluateArguments,
    place: &Place,
    evaluations: &[ConfiguredEvaluation],
) -> Result<Outcome, Failure> {
    let versions = match arguments.proposal {
        Some(id) => Versions::of_proposal(store, place, id, arguments.config.as_deref()).await?,
        None => Versions::of_channel(store, place, arguments.config.as_deref()).await?,
    };
    let mut outcome =
        Outcome { channel: versions.channel.clone(), stored: Vec::new(), red: Vec::new(), failed: Vec::new() };
    for version in versions.selected(arguments.prompt.as_deref())? {
        for evaluation in evaluations {
            if arguments.missing
                && let Some(present) = present(store, &versions.channel, version, &evaluation.name).await?
            {
                if !present.passed {
                    if !arguments.json {
                        print(&present)?;
                    }
                    outcome.red.push(present);
                }
                continue;
            }
            let name = evaluation.name.clone();
            match judge(&versions, version, evaluation).await {
                Ok(new) => {
                    let new = NewEvaluation { proposal: arguments.proposal, ..new };
                    let operation = op::AddEvaluation { channel: versions.channel.clone() };
                    let stored = store.send(&operation, &new).await;
                    let stored = stored.map_err(|error| error.about(format!("the prompt `{}`", new.prompt)))?;
                    if !arguments.json {
                        print(&stored)?;
                    }
                    outcome.stored.push(stored);
                }
                Err(Stop::Interrupted) => return Err(Failure::new(Exit::Failed, "interrupted")),
                Err(Stop::Failed(error)) => {
                    let failed = Failed { prompt: version.name.clone(), evaluation: name, error };
                    if !arguments.json {
                        print_error(&failed)?;
                    }
                    outcome.failed.push(failed);
                }
            }
        }
    }
    Ok(outcome)
}

enum Stop {
    Interrupted,
    Failed(String),
}

async fn judge(
    versions: &Versions,
    version: &Version,
    evaluation: &ConfiguredEvaluation,
) -> Result<NewEvaluation, Stop> {
    let cases = versions.cases(version).await.map_err(Stop::Failed)?;
    let input = json!({
        "prompt": version.name,
        "version": version.number,
        "digest": version.digest,
        "cases": cases.iter().map(version::Case::to_json).collect::<Vec<_>>(),
    });
    let ran = program::run(evaluation, input.to_string().as_bytes()).await.map_err(|error| match error {
        program::ProgramError::Interrupted => Stop::Interrupted,
        error => Stop::Failed(error.to_string()),
    })?;
    let verdict = Verdict::parse(&ran.output, &cases).map_err(Stop::Failed)?;
    verdict.check(&evaluation.thresholds).map_err(Stop::Failed)?;
    let Verdict { scores, cases, model, cost } = verdict;
    Ok(NewEvaluation {
        evaluation: evaluation.name.clone(),
        prompt: version.name.clone(),
        digest: version.digest,
        proposal: None,
        scores,
        thresholds: evaluation.thresholds.clone(),
        tolerance: evaluation.tolerance,
        cases,
        model,
        cost,
        seconds: ran.took.as_secs_f64(),
    })
}

/// Returns the newest result of an evaluation of a version.
async fn present(
    store: &Connection,
    channel: &ChannelName,
    version: &Version,
    name: &str,
) -> Result<Option<Evaluation>, Failure> {
    let query = EvaluationsQuery {
        prompt: Some(version.name.clone()),
        evaluation: Some(name.to_owned()),
        digest: Some(version.digest),
        before: None,
        limit: Some(1),
    };
    let found = store.query(&op::ListEvaluations { channel: channel.clone() }, &query).await?;
    Ok(found.evaluations.into_iter().next())
}

fn print(result: &Evaluation) -> Result<(), Failure> {
    let mut output = Output::stdout();
    let word = if result.passed { output.styled(GOOD, "ok    ") } else { output.styled(BAD, "FAILED") };
    let score = |(name, score): (&String, &f64)| match result.thresholds.get(name) {
        Some(least) => format!("{name} {score} (at least {least})"),
        None => format!("{name} {score}"),
    };
    let scores: Vec<String> = result.scores.iter().map(score).collect();
    let mut line = format!("{} / {}  {}", result.prompt, result.evaluation, scores.join(", "));
    line.extend(result.model.iter().map(|model| format!("  {model}")));
    line.extend(result.cost.iter().map(|cost| format!("  cost {cost}")));
    let line = output.line(&format!("{line}  {:.1}s", result.seconds)).into_owned();
    writeln!(output.out, "{word} {line}")?;
    Ok(output.out.flush()?)
}

fn print_error(failed: &Failed) -> Result<(), Failure> {
    let mut output = Output::stdout();
    let word = output.styled(BAD, "error ");
    let Failed { prompt, evaluation, error } = failed;
    let mut lines = error.lines();
    let first = visible_line(lines.next().unwrap_or_default()).into_owned();
    writeln!(output.out, "{word} {} / {evaluation}: {first}", visible_line(prompt))?;
    for line in lines {
        writeln!(output.out, "    {}", visible_line(line))?;
    }
    Ok(output.out.flush()?)
}
