//! The use of prompts.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The most entries of a list.
pub const MAX_USAGE_ENTRIES: usize = 200;

/// The method that calls no prompt.
pub const COMPLETION: &str = "completion/complete";

/// The use of prompts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageReport {
    /// The start of the time that the figures are about, to the hour; null for all of them.
    pub since: Option<Timestamp>,
    /// One entry for each combination of prompt, channel, version, client, method and outcome.
    pub prompts: Vec<PromptUsage>,
    /// Prompts that were not called in this time, by name, at most 200; empty if one prompt is selected.
    #[serde(default)]
    pub unused: Vec<String>,
    /// The number of all of them.
    #[serde(default)]
    pub unused_total: usize,
}

/// The use of one version of a prompt by one client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptUsage {
    /// The name of the prompt.
    pub name: String,
    /// Whether the prompt is deprecated at present, as a former name is.
    #[serde(default)]
    pub deprecated: bool,
    /// The prompt whose former name it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub alias_of: Option<String>,
    /// The name of its source, in a server with several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<String>,
    /// The number of its version; null if the server serves a folder.
    pub version: Option<u64>,
    /// The channel, which counts its own versions; null if the server serves a folder.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub channel: Option<String>,
    /// The name of the client program; `unknown` if it declares none, `other` beyond a bound.
    pub client: String,
    /// The version of the client program. Only with `detail`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client_version: Option<String>,
    /// The revision of the protocol, or `http`. Only with `detail`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub protocol: Option<String>,
    /// The method: `prompts/get`, `completion/complete`, or `prompts/describe` for a template.
    pub method: String,
    /// `ok`, or the code of a refusal.
    pub outcome: String,
    /// The number of calls.
    pub count: u64,
    /// The number of distinct callers; null if there are so few that they could be identified.
    pub callers: Option<u64>,
    /// The latency that half of the calls did not exceed, in milliseconds.
    pub p50_ms: f64,
    /// The latency that 95 % of the calls did not exceed, in milliseconds.
    pub p95_ms: f64,
    /// The latency that 99 % of the calls did not exceed, in milliseconds.
    pub p99_ms: f64,
    /// For arguments that calls left out, the number of those calls. Rendered calls have every argument of this version.
    pub left_out: BTreeMap<String, u64>,
    /// For each argument whose value was one of its fixed suggestions in some calls, the number of those calls.
    #[serde(default)]
    pub taken: BTreeMap<String, u64>,
    /// The calls with an argument that the prompt does not have.
    #[serde(default)]
    pub unknown_arguments: u64,
    /// The size of all answers together, in bytes of text and data.
    #[serde(default)]
    pub bytes_out: u64,
    /// The forms of a guided prompt that users answered.
    #[serde(default)]
    pub forms: FormUsage,
}

/// How often users accepted, declined and cancelled forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FormUsage {
    /// The forms that were filled in.
    pub accepted: u64,
    /// The forms that users refused to fill in.
    pub declined: u64,
    /// The forms that were closed without a choice.
    pub cancelled: u64,
}

/// The use of prompts at a glance. Completions are not counted. Each list has at most 200 entries.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageOverview {
    /// The start of the time that the figures are about, to the hour.
    pub since: Option<Timestamp>,
    /// All calls.
    pub total: UsageGroup,
    /// The days with calls, in order, in UTC.
    pub days: Vec<UsageDay>,
    /// By client program, the most calls first.
    pub clients: Vec<UsageGroup>,
    /// By prompt, the most calls first.
    pub prompts: Vec<UsageGroup>,
    /// By source, the most calls first, in a server with several sources; otherwise empty.
    pub sources: Vec<UsageGroup>,
    /// By number of version, the most calls first, if one prompt is selected; otherwise empty.
    pub versions: Vec<UsageGroup>,
    /// By outcome, the most calls first.
    pub outcomes: Vec<UsageGroup>,
    /// Prompts that the caller sees and that were not called, by name; empty if one prompt is selected.
    pub unused: Vec<String>,
    /// The number of all of them.
    pub unused_total: usize,
    /// Deprecated prompts that were called, the most calls first.
    pub deprecated: Vec<UsedDeprecated>,
}

/// The calls of a group.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageGroup {
    /// The name: of a prompt, a client, a source or an outcome, or the number of a version. Empty for all calls.
    pub name: String,
    /// The number of calls.
    pub calls: u64,
    /// The calls among them that failed.
    pub failed: u64,
    /// The number of distinct callers; null if there are so few that they could be identified.
    pub callers: Option<u64>,
    /// The latency that half of the calls did not exceed, in milliseconds.
    pub p50_ms: f64,
    /// The latency that 95 % of the calls did not exceed, in milliseconds.
    pub p95_ms: f64,
    /// The latency that 99 % of the calls did not exceed, in milliseconds.
    pub p99_ms: f64,
}

/// The calls of a day.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageDay {
    /// The day in UTC, such as `2026-07-28`.
    pub day: String,
    /// The number of calls.
    pub calls: u64,
    /// The calls among them that failed.
    pub failed: u64,
    /// The latency that half of the calls did not exceed, in milliseconds.
    pub p50_ms: f64,
    /// The latency that 95 % of the calls did not exceed, in milliseconds.
    pub p95_ms: f64,
}

/// A deprecated prompt that was called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsedDeprecated {
    /// The name of the prompt.
    pub name: String,
    /// The number of calls.
    pub calls: u64,
    /// The number of client programs.
    pub clients: usize,
    /// The name of the prompt to use instead; null without one that the caller sees.
    pub replacement: Option<String>,
}

/// The recent calls that a difference concerns. Only names of arguments are known, never values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecentCalls {
    /// Which calls count as affected: `all`, or those that `omit` or `send` the argument.
    pub which: AffectedWord,
    /// The argument; null if all calls are affected.
    pub argument: Option<String>,
    /// The calls of the prompt that succeeded in the last 30 days.
    pub calls: u64,
    /// The affected ones among them.
    pub affected: u64,
    /// The number of client programs with affected calls.
    pub clients: u64,
}

/// The calls that a difference affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AffectedWord {
    /// All calls of the prompt.
    All,
    /// Calls that leave an argument out.
    Omit,
    /// Calls that send an argument.
    Send,
}

/// What a name stands for at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameUse {
    /// A prompt.
    Prompt,
    /// A deprecated prompt.
    Deprecated,
    /// The former name of this prompt.
    AliasOf(String),
}

impl UsageReport {
    /// Marks deprecated prompts and former names, and adds the prompts that were not called; completions do not count.
    /// `listed` has the present names. In a report about the prompt `selected`, no other one counts as not called.
    #[must_use]
    pub fn marked(mut self, listed: &BTreeMap<String, NameUse>, selected: Option<&str>) -> UsageReport {
        for one in &mut self.prompts {
            let known = listed.get(&one.name);
            one.deprecated = known.is_some_and(|known| *known != NameUse::Prompt);
            one.alias_of = match known {
                Some(NameUse::AliasOf(prompt)) => Some(prompt.clone()),
                _ => None,
            };
        }
        let calls = self.prompts.iter().filter(|one| one.method != COMPLETION);
        // A call of a former name is one of the prompt.
        let called: BTreeSet<&str> = calls.map(|one| one.alias_of.as_ref().unwrap_or(&one.name).as_str()).collect();
        let prompts = listed.iter().filter(|(_, known)| !matches!(known, NameUse::AliasOf(_))).map(|(name, _)| name);
        let unused = prompts.filter(|name| selected.is_none() && !called.contains(name.as_str()));
        self.unused_total = unused.clone().count();
        self.unused = unused.take(MAX_USAGE_ENTRIES).cloned().collect();
        self
    }

    /// Names the source of each prompt in a server with several sources.
    #[must_use]
    pub fn with_sources(mut self, source_of: impl Fn(&str) -> Option<Arc<str>>) -> UsageReport {
        for prompt in &mut self.prompts {
            prompt.source = source_of(&prompt.name).map(|source| source.to_string());
        }
        self
    }
}

impl fmt::Display for RecentCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RecentCalls { which, calls, affected, clients, .. } = self;
        let clients = if *clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") };
        let times = if *calls == 1 { "once".to_owned() } else { format!("{} times", grouped(*calls)) };
        let verb = match which {
            _ if *calls == 0 => return f.write_str("not called in the last 30 days"),
            AffectedWord::All => return write!(f, "called {times} by {clients} in the last 30 days"),
            AffectedWord::Omit => "leave it out",
            AffectedWord::Send => "send it",
        };
        let of = grouped(*calls);
        if *affected == 0 {
            return write!(f, "none of {of} calls in the last 30 days {verb}");
        }
        let percent = match affected * 100 / calls {
            0 => "less than 1".to_owned(),
            percent => percent.to_string(),
        };
        write!(f, "{percent} % of calls {verb} ({} of {of} in the last 30 days, {clients})", grouped(*affected))
    }
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
