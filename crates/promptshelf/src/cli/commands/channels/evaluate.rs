//! `promptshelf evaluate`: runs evaluations of prompts, and stores their results.
//!
//! - `version` finds the versions to evaluate, in a channel or a proposal, and their cases.
//! - `program` runs a program within its bounds; `verdict` validates its output.

mod program;

use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
};

use anstyle::{AnsiColor, Style};
use clap::Args;
use promptshelf_author::{add_samples, testing::TestSuite};
use promptshelf_core::{RawArguments, Variables, nearest};
use promptshelf_mcp::messages_json;
use promptshelf_server::Library;
use promptshelf_service::Caller;
use promptshelf_source::{Files, MemoryFile, MemoryTree};
use promptshelf_store::{
    CaseResult, ChannelName, Checker as _, Digest, Evaluation, NewEvaluation, ProposalState, StoreError,
};
use promptshelf_wire::op;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{access::Place, checker_with, connection::Connection, report};
use crate::{
    args::{
        Words,
        place::{ActorArguments, PlaceArguments, number},
        words::OnlyPrompt,
    },
    exit::{Exit, Failure},
    library::granted_roots,
    output::{Output, count, visible_line},
    settings::{ConfiguredEvaluation, ServerFileLocation},
};

const EVALUATE_EXAMPLES: &str = "\
An evaluation is a program of [[evaluation]] in server.toml. It reads JSON from
stdin: {\"prompt\",\"version\",\"digest\",\"cases\":[{\"name\",\"arguments\",
\"messages\"}]}; a version that is not published can be null. The cases are the
tests of the prompt that expect messages, otherwise one with sample arguments.
It prints JSON: {\"scores\":{\"score\":0.93},\"cases\":[{\"score\",\"passed\",
\"reason\"}],\"model\",\"cost\"}. Only the scores are required; higher is better.

Every result is stored with the digest of the version, also one below a
threshold; the exit code is 1 then. A program that fails stores nothing.

Examples:
  promptshelf evaluate sqlite:team.db --proposal 7 --config server.toml
  promptshelf evaluate sqlite:team.db code_review --config server.toml
  promptshelf evaluate https://prompts.example.com --missing";

#[derive(Debug, Args)]
#[command(after_help = EVALUATE_EXAMPLES)]
pub(crate) struct EvaluateArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, OnlyPrompt>,

    /// The channel [default: that of #CHANNEL, else production]
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<ChannelName>,

    /// The versions that this open proposal would publish, instead of the served ones
    #[arg(long, value_name = "NUMBER", conflicts_with = "channel", value_parser = number::<u64>)]
    pub(crate) proposal: Option<u64>,

    /// Only this evaluation; can be repeated [default: all of server.toml]
    #[arg(long = "evaluation", value_name = "NAME")]
    pub(crate) evaluations: Vec<String>,

    /// Only versions that have no result of the evaluation
    #[arg(long)]
    pub(crate) missing: bool,

    /// The operator's settings with the evaluations [env: PROMPTSHELF_CONFIG] [default:
    /// ~/.config/promptshelf/server.toml, else /etc/promptshelf/server.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

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
    let place = Place::new(&arguments.words.library, arguments.channel.as_ref())?
        .about(&arguments.words.names)
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
    for version in versions.selected(arguments.words.optional_name())? {
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
        "cases": cases.iter().map(Case::to_json).collect::<Vec<_>>(),
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
    let query = op::EvaluationsQuery {
        prompt: Some(version.name.clone()),
        evaluation: Some(name.to_owned()),
        digest: Some(version.digest),
    };
    let found = store.items(&op::ListEvaluations { channel: channel.clone() }, &query, 1).await?;
    Ok(found.into_iter().next())
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

const FORM: &str = "expected one JSON object on stdout such as {\"scores\":{\"score\":0.93}}";

const MAX_REASON: usize = 4_096;

#[derive(Debug, PartialEq)]
struct Verdict {
    scores: BTreeMap<String, f64>,
    cases: Vec<CaseResult>,
    model: Option<String>,
    cost: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    scores: BTreeMap<String, f64>,
    #[serde(default)]
    cases: Vec<PrintedCase>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    cost: Option<f64>,
}

/// The result of a case. Other members are the program's own.
#[derive(Deserialize)]
struct PrintedCase {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    score: Option<f64>,
    #[serde(default)]
    passed: Option<bool>,
    #[serde(default)]
    reason: Option<String>,
}

impl Verdict {
    /// Parses the output. The results of cases are in the order of the cases, whose names they get unless they have one.
    fn parse(output: &[u8], cases: &[Case]) -> Result<Verdict, String> {
        if output.iter().all(u8::is_ascii_whitespace) {
            return Err(format!("the program printed nothing: {FORM}"));
        }
        let printed: Printed = serde_json::from_slice(output).map_err(|error| format!("{FORM}: {error}"))?;
        if printed.scores.is_empty() {
            return Err(format!("the program printed no scores: {FORM}"));
        }
        if printed.cases.len() > cases.len() {
            let (found, sent) = (printed.cases.len(), cases.len());
            return Err(format!("the program printed results of {found} cases, and got {sent}"));
        }
        let named = printed.cases.into_iter().zip(cases).map(|(printed, case)| CaseResult {
            name: printed.name.unwrap_or_else(|| case.name.clone()),
            score: printed.score,
            passed: printed.passed,
            reason: cleaned(&printed.reason.unwrap_or_default()),
        });
        Ok(Verdict { scores: printed.scores, cases: named.collect(), model: printed.model, cost: printed.cost })
    }

    fn check(&self, thresholds: &BTreeMap<String, f64>) -> Result<(), String> {
        match thresholds.keys().find(|name| !self.scores.contains_key(*name)) {
            None => Ok(()),
            Some(missing) => {
                let found: Vec<String> = self.scores.keys().map(|name| format!("`{name}`")).collect();
                let found = found.join(", ");
                Err(format!(
                    "the score `{missing}` has a threshold, and the program did not print it: it printed {found}"
                ))
            }
        }
    }
}

/// Returns a reason as it can be stored: often it is the answer of a model.
fn cleaned(reason: &str) -> String {
    let is_kept = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    reason.chars().filter(is_kept).take(MAX_REASON).collect()
}

/// The name of the case of a prompt without tests.
const SAMPLE: &str = "sample";

struct Version {
    name: String,
    /// The number; `None` if the version is not published and its number may be another one.
    number: Option<u64>,
    digest: Digest,
}

struct Case {
    name: String,
    arguments: Variables,
    /// As `prompts/get` returns them.
    messages: Value,
}

impl Case {
    fn to_json(&self) -> Value {
        json!({ "name": self.name, "arguments": self.arguments, "messages": self.messages })
    }
}

struct Versions {
    channel: ChannelName,
    library: Library,
    versions: Vec<Version>,
    of: String,
}

impl Versions {
    async fn of_channel(store: &Connection, place: &Place, config: Option<&Path>) -> Result<Versions, Failure> {
        let channel = place.channel().clone();
        let (head, tree) = place.waiting(store.tree(&channel, None)).await?;
        let served = store.all(&op::GetServed { channel: channel.clone(), number: head.revision }).await?.into_iter();
        let version = served.map(|it| Version { name: it.name, number: Some(it.version), digest: it.digest });
        let (versions, of) = (version.collect(), format!("the channel `{channel}`"));
        Ok(Versions { library: open(&tree, config)?, channel, versions, of })
    }

    /// Returns the versions that an open proposal adds or changes, on top of the newest revision.
    async fn of_proposal(
        store: &Connection,
        place: &Place,
        id: u64,
        config: Option<&Path>,
    ) -> Result<Versions, Failure> {
        let proposal = place.waiting(store.get(&op::GetProposal { id })).await?;
        if proposal.state != ProposalState::Open {
            let state = proposal.state.as_str();
            return Err(StoreError::State { reason: format!("proposal {id} is not open: it is {state}") }.into());
        }
        let channel = proposal.channel;
        let (head, tree) = store.tree(&channel, None).await?;
        let mut changes = Vec::new();
        let mut conflicts = Vec::new();
        for (path, before, after) in store.proposal_contents(id).await? {
            let present = tree.get(&path).map(MemoryFile::bytes);
            if present != before.as_deref() && present != after.as_deref() {
                conflicts.push(path.clone());
            }
            changes.push((path, after.map(MemoryFile::new)));
        }
        if !conflicts.is_empty() {
            let failure = Failure::from(StoreError::Conflict { paths: conflicts, revision: head.revision });
            return Err(failure.help("the author has to change the proposal: `publish FOLDER --proposal NUMBER`"));
        }
        let changed = tree.with(changes.iter().map(|(path, file)| (path.as_str(), file.clone())));
        let report = tokio::task::block_in_place(|| checker_with(config).check(&changed, false));
        let served = store.all(&op::GetServed { channel: channel.clone(), number: head.revision }).await?;
        let is_served = |name: &str, digest| served.iter().any(|it| it.name == name && it.digest == digest);
        let known = store.get(&op::ProposalEvaluations { id }).await?.prompts;
        let number = |name: &str, digest| known.iter().find(|it| it.name == name && it.after == digest);
        let changed_prompts = report.prompts.iter().filter(|prompt| !is_served(&prompt.name, prompt.digest));
        let version = changed_prompts.map(|prompt| Version {
            name: prompt.name.clone(),
            // A version gets its number when it is published.
            number: number(&prompt.name, prompt.digest).map(|it| it.version).filter(|number| *number > 0),
            digest: prompt.digest,
        });
        let mut versions: Vec<Version> = version.collect();
        versions.sort_by(|a, b| a.name.cmp(&b.name));
        let of = format!("proposal {id}");
        Ok(Versions { library: open(&changed, config)?, channel, versions, of })
    }

    fn selected(&self, prompt: Option<&str>) -> Result<Vec<&Version>, Failure> {
        let Some(name) = prompt else { return Ok(self.versions.iter().collect()) };
        if let Some(version) = self.versions.iter().find(|version| version.name == name) {
            return Ok(vec![version]);
        }
        let failure = Failure::new(Exit::NotFound, format!("{} has no new or changed prompt `{name}`", self.of));
        let failure = if self.of.starts_with("the channel") {
            Failure::new(Exit::NotFound, format!("{} has no prompt `{name}`", self.of))
        } else {
            failure
        };
        let names = self.versions.iter().map(|version| version.name.as_str());
        Err(match nearest(name, names) {
            Some(near) => failure.help(format!("did you mean `{near}`?")),
            None => failure,
        })
    }

    /// Returns the cases of a version: its tests that expect messages, or sample arguments.
    async fn cases(&self, version: &Version) -> Result<Vec<Case>, String> {
        let catalog = self.library.catalog();
        let Some(prompt) = catalog.find(&version.name) else {
            return Err(format!("the prompt has errors; `promptshelf check` lists them in a copy of {}", self.of));
        };
        let suite = TestSuite::of_tree(&catalog, MemoryTree::default());
        let tests = suite.cases().filter(|test| test.prompt().name() == prompt.name());
        let mut arguments: Vec<(String, Variables)> =
            tests.filter_map(|test| Some((test.name(), test.rendered_arguments()?.clone()))).collect();
        if arguments.is_empty() {
            let mut values = Variables::new();
            add_samples(prompt, &mut values);
            arguments.push((SAMPLE.to_owned(), values));
        }
        let mut cases = Vec::with_capacity(arguments.len());
        for (name, arguments) in arguments {
            let values = RawArguments::from(&arguments);
            let answer = self.library.service().get(&Caller::local(), &version.name, &values).await;
            let answer =
                answer.map_err(|rejection| format!("the case `{name}` cannot be rendered: {}", rejection.lines()))?;
            let messages = messages_json(&answer.into_value().messages);
            let messages = serde_json::from_str(messages.get()).map_err(|error| error.to_string())?;
            cases.push(Case { name, arguments, messages });
        }
        Ok(cases)
    }
}

fn open(tree: &MemoryTree, config: Option<&Path>) -> Result<Library, Failure> {
    let source = Files::tree(tree.clone());
    source.grant_roots(granted_roots(config));
    Ok(tokio::task::block_in_place(|| Library::builder().source(source).build())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str) -> Case {
        Case { name: name.to_owned(), arguments: BTreeMap::new(), messages: serde_json::Value::Null }
    }

    // req: S-196, S-198
    #[test]
    fn output_is_one_object_with_finite_scores() {
        let parse = |text: &str| Verdict::parse(text.as_bytes(), &[case("short"), case("long")]);
        for (text, expected) in [
            ("", "printed nothing"),
            ("\n \n", "printed nothing"),
            ("score: 1", "expected one JSON object"),
            ("{\"scores\":{\"score\":NaN}}", "line 1 column"),
            ("{\"scores\":{\"score\":1e999}}", "out of range"),
            ("{\"scores\":{\"score\":null}}", "invalid type: null"),
            ("{\"scores\":{\"score\":\"0.9\"}}", "invalid type: string"),
            ("{\"scores\":{}}", "no scores"),
            ("{\"score\":0.9}", "unknown field `score`"),
            ("{\"scores\":{\"score\":1}} {}", "trailing characters"),
            ("{\"scores\":{\"score\":1},\"scores\":{\"score\":0}}", "duplicate field"),
            ("{\"scores\":{\"score\":1},\"cases\":[{},{},{}]}", "3 cases, and got 2"),
            ("[1]", "expected"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(Verdict::parse(b"{\"scores\":{\"\xff\":1}}", &[]).is_err());
        let verdict =
            parse("{\"scores\":{\"a\":1},\"cases\":[{\"score\":1,\"reason\":\"x\\u001b[2J\",\"output\":[]}]}");
        let verdict = verdict.expect("it is accepted");
        assert_eq!((verdict.cases[0].name.as_str(), verdict.cases[0].reason.as_str()), ("short", "x[2J"));
        let error = verdict.check(&BTreeMap::from([("b".to_owned(), 0.5)])).expect_err("b is missing");
        assert!(error.contains("`b`") && error.contains("it printed `a`"), "{error}");
    }
}
