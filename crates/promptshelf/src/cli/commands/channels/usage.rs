//! `promptshelf usage`: who uses which prompts how often.

use std::{borrow::Cow, collections::BTreeMap, io::Write, time::Duration};

use clap::Args;
use promptshelf_server::TreePreview;
use promptshelf_wire::{NameUse, PromptUsage, UsageReport, op};

use super::{access::Place, connection::Connection, report};
use crate::{
    args::{Words, place::PlaceArguments, time::age, words::OnlyPrompt},
    exit::Failure,
    output::Output,
};

const USAGE_EXAMPLES: &str = "\
A server counts calls by prompt, version, client, method and outcome, and keeps
no contents and no values. Fewer than 5 callers are not shown. Deprecated
prompts are marked; those without calls in this time are listed.

JSON: {\"items\":[{\"name\",\"version\",\"client\",\"method\",\"outcome\",
\"count\",\"callers\",\"p50Ms\",\"p95Ms\",\"leftOut\",\"taken\",\"bytesOut\",
\"forms\",\"deprecated\"}],\"unused\":[NAME],\"unusedTotal\"}; few callers are
null.

Examples:
  promptshelf usage sqlite:team.db
  promptshelf usage sqlite:team.db code_review --since 7d --detail
  promptshelf usage https://prompts.example.com --csv > usage.csv";

#[derive(Debug, Args)]
#[command(after_help = USAGE_EXAMPLES)]
pub(crate) struct UsageArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, OnlyPrompt>,

    /// The age of the oldest calls in weeks, days or hours
    #[arg(long, value_name = "AGE", default_value = "30d", value_parser = age)]
    pub(crate) since: Duration,

    /// Separate versions of clients and revisions of the protocol
    #[arg(long)]
    pub(crate) detail: bool,

    /// The least number of callers that is shown; a server has a setting for it
    #[arg(long, value_name = "NUMBER", default_value = "5", conflicts_with = "url", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) min_callers: u64,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
}

const COLUMNS: [&str; 22] = [
    "name",
    "version",
    "channel",
    "client",
    "clientVersion",
    "protocol",
    "method",
    "outcome",
    "count",
    "callers",
    "p50Ms",
    "p95Ms",
    "p99Ms",
    "leftOut",
    "taken",
    "unknownArguments",
    "bytesOut",
    "formsAccepted",
    "formsDeclined",
    "formsCancelled",
    "deprecated",
    "aliasOf",
];

/// The number of prompts without calls that are printed.
const MAX_UNUSED: usize = 20;

pub(crate) async fn run(arguments: &UsageArguments) -> Result<(), Failure> {
    let prompt = arguments.words.optional_name().map(str::to_owned);
    let UsageArguments { since, detail, min_callers, .. } = arguments;
    let place = Place::new(&arguments.words.library, None)?.showing_callers(*min_callers);
    let prompt = prompt.as_deref();
    let read = async |store: &Connection| {
        let found = place.waiting(usage(store, prompt, *since, *detail)).await?;
        match store {
            Connection::Store(_) => Ok(found.marked(&place.waiting(listed(store)).await?, prompt)),
            // A server marks the prompts that the caller sees.
            Connection::Server(_) => Ok(found),
        }
    };
    let found = place.using(read).await?;
    let mut output = Output::stdout();
    if arguments.json {
        let mut list = serde_json::to_value(&found).map_err(std::io::Error::from)?;
        list["items"] = list["prompts"].take();
        list["next"] = serde_json::Value::Null;
        list.as_object_mut().map(|list| list.remove("prompts"));
        return report::print_json(&list);
    }
    if arguments.csv {
        return print_csv(&found);
    }
    if found.prompts.is_empty() {
        writeln!(output.out, "no calls were counted in this time")?;
        print_unused(&mut output, &found)?;
        return Ok(output.out.flush()?);
    }
    let header =
        ["PROMPT", "CHANNEL", "VERSION", "CLIENT", "METHOD", "OUTCOME", "CALLS", "CALLERS", "P50 MS", "P95 MS"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(found.prompts.iter().map(|one| row(one, &output)));
    if found.prompts.iter().all(|one| one.channel.is_none()) {
        rows.iter_mut().for_each(|row| drop(row.remove(1)));
    }
    report::print_table(&mut output, "", &rows)?;
    print_unused(&mut output, &found)?;
    Ok(output.out.flush()?)
}

/// Prints the prompts without calls.
fn print_unused<W: Write>(output: &mut Output<W>, found: &UsageReport) -> Result<(), Failure> {
    let shown = &found.unused[..found.unused.len().min(MAX_UNUSED)];
    if shown.is_empty() {
        return Ok(());
    }
    let names: Vec<Cow<'_, str>> = shown.iter().map(|name| output.line(name)).collect();
    let rest = match found.unused_total.saturating_sub(shown.len()) {
        0 => String::new(),
        rest => format!(", and {rest} more"),
    };
    let line = format!("not called in this time: {}{rest}", names.join(", "));
    Ok(writeln!(output.out, "{line}")?)
}

/// Returns the present prompts of all channels, deprecated ones if they are so in each of their channels, and former names.
async fn listed(store: &Connection) -> super::connection::Answer<BTreeMap<String, NameUse>> {
    let (mut listed, mut aliases) = (BTreeMap::new(), BTreeMap::new());
    for channel in store.all(&op::ListChannels {}).await?.iter().filter(|channel| channel.head.revision > 0) {
        let (_, tree) = store.tree(&channel.name, None).await?;
        // A tree that cannot be read has findings of the check instead.
        let Ok(preview) = tokio::task::block_in_place(|| TreePreview::open(tree)) else { continue };
        for prompt in preview.catalog().prompts().iter() {
            let name = prompt.name().to_string();
            aliases.extend(prompt.aliases().map(|alias| (alias, NameUse::AliasOf(name.clone()))));
            let known = listed.entry(name).or_insert(NameUse::Deprecated);
            if prompt.deprecation().is_none() {
                *known = NameUse::Prompt;
            }
        }
    }
    for (alias, of_prompt) in aliases {
        listed.entry(alias).or_insert(of_prompt);
    }
    Ok(listed)
}

/// Reads the figures of a time until now.
pub(super) async fn usage(
    store: &Connection,
    prompt: Option<&str>,
    since: Duration,
    detail: bool,
) -> super::connection::Answer<UsageReport> {
    let since = Some(format!("{}s", since.as_secs()));
    let query = op::UsageParameters { since, prompt: prompt.map(str::to_owned), detail: Some(detail) };
    store.query(&op::GetUsage {}, &query).await
}

fn row<W: Write>(one: &PromptUsage, output: &Output<W>) -> Vec<String> {
    let line = |text: &str| output.line(text).into_owned();
    let client = match &one.client_version {
        Some(version) if !version.is_empty() => format!("{} {version}", one.client),
        _ => one.client.clone(),
    };
    let method = match &one.protocol {
        Some(protocol) => format!("{} ({protocol})", one.method),
        None => one.method.clone(),
    };
    let name = line(&one.name);
    vec![
        match &one.alias_of {
            Some(prompt) => format!("{name} (former name of {})", line(prompt)),
            None if one.deprecated => format!("{name} (deprecated)"),
            None => name,
        },
        one.channel.as_deref().map_or_else(|| "-".to_owned(), line),
        one.version.map_or_else(|| "-".to_owned(), |version| version.to_string()),
        line(&client),
        line(&method),
        line(&one.outcome),
        one.count.to_string(),
        one.callers.map_or_else(|| "few".to_owned(), |callers| callers.to_string()),
        format!("{:.3}", one.p50_ms),
        format!("{:.3}", one.p95_ms),
    ]
}

/// Prints CSV (RFC 4180) with a header.
fn print_csv(report: &UsageReport) -> Result<(), Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |error: csv::Error| std::io::Error::other(error);
    writer.write_record(COLUMNS).map_err(failed)?;
    for one in &report.prompts {
        let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
        let counts = |counts: &BTreeMap<String, u64>| {
            let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{name}={count}")).collect();
            Cow::Owned(counts.join(" "))
        };
        let cells = [
            cell(&one.name),
            number(one.version).into(),
            cell(one.channel.as_deref().unwrap_or_default()),
            cell(&one.client),
            cell(one.client_version.as_deref().unwrap_or_default()),
            cell(one.protocol.as_deref().unwrap_or_default()),
            cell(&one.method),
            cell(&one.outcome),
            one.count.to_string().into(),
            number(one.callers).into(),
            one.p50_ms.to_string().into(),
            one.p95_ms.to_string().into(),
            one.p99_ms.to_string().into(),
            counts(&one.left_out),
            counts(&one.taken),
            one.unknown_arguments.to_string().into(),
            one.bytes_out.to_string().into(),
            one.forms.accepted.to_string().into(),
            one.forms.declined.to_string().into(),
            one.forms.cancelled.to_string().into(),
            one.deprecated.to_string().into(),
            cell(one.alias_of.as_deref().unwrap_or_default()),
        ];
        writer.write_record(cells.iter().map(|cell| cell.as_bytes())).map_err(failed)?;
    }
    let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    let mut output = Output::stdout();
    output.out.write_all(&bytes)?;
    Ok(output.out.flush()?)
}

fn cell(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-187
    #[test]
    fn names_of_clients_are_no_formulas() {
        for formula in ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1"] {
            assert_eq!(cell(formula), format!("'{formula}"));
        }
        assert_eq!(cell("claude-code"), "claude-code");
    }
}
