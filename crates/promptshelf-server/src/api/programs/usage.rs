//! The use of prompts.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};
use promptshelf_core::{Prompt, cursor::ListKind, usage::UsageKey};
use promptshelf_service::{Caller, UNKNOWN_PROMPT};
use promptshelf_store::UsageQuery;
use promptshelf_wire::{NameUse, op};

use super::{
    super::{
        call::{Answer, Call},
        problem::Problem,
    },
    state::ProgramState,
};
use crate::usage::{Deprecated, ListedPrompts, overview_of, report_of};

pub(super) async fn get_usage(call: Call<op::GetUsage, ProgramState>) -> Answer {
    let (state, caller) = (&call.state, call.caller());
    let log = state.usage().ok_or_else(not_counted)?;
    let since = since(call.query.since.as_deref().unwrap_or("30d"))?;
    let prompt = call.query.prompt.as_ref().map(|name| counted(state, name));
    let selection = UsageQuery { since: Some(since), prompt };
    let mut figures = log.figures(&selection).await?;
    let is_seen = seen(state, caller);
    figures.retain(|key, _| is_seen(key));
    let report = report_of(whole_hour(since), &figures, call.query.detail.unwrap_or_default(), log.min_callers());
    let named = |deprecated: Option<Deprecated>| match deprecated {
        None => NameUse::Prompt,
        Some(Deprecated { replacement: Some(prompt), is_alias: true }) => NameUse::AliasOf(prompt),
        Some(_) => NameUse::Deprecated,
    };
    let listed = listed(state, caller).into_iter().map(|(name, deprecated)| (name, named(deprecated)));
    let report = report.marked(&listed.collect(), selection.prompt.as_deref()).with_sources(source_of(state));
    call.answer(&report)
}

pub(super) async fn get_usage_overview(call: Call<op::GetUsageOverview, ProgramState>) -> Answer {
    let (state, caller) = (&call.state, call.caller());
    let log = state.usage().ok_or_else(not_counted)?;
    let since = parsed(call.query.since.as_deref().unwrap_or("30d"))
        .and_then(|age| begin_of_days(age, Timestamp::now()))
        .ok_or_else(invalid_age)?;
    let prompt = call.query.prompt.as_ref().map(|name| counted(state, name));
    let selection = UsageQuery { since: Some(since), prompt };
    let mut days = log.daily(&selection).await?;
    let is_seen = seen(state, caller);
    days.values_mut().for_each(|figures| figures.retain(|key, _| is_seen(key)));
    let selected = selection.prompt.as_deref();
    let hour = whole_hour(since);
    let listed = listed(state, caller);
    let overview = overview_of(hour, &days, selected, &listed, source_of(state), log.min_callers());
    call.answer(&overview)
}

/// Returns the name under which a prompt is counted: one of a channel has its name there.
fn counted(state: &ProgramState, served: &str) -> String {
    let catalog = state.default_library().catalog();
    let prompt = catalog.find(served);
    prompt.map_or_else(|| served.to_owned(), |prompt| catalog.name_in_channel(prompt).to_owned())
}

fn source_of(state: &ProgramState) -> impl Fn(&str) -> Option<Arc<str>> {
    let catalog = state.default_library().service().catalog();
    move |name| catalog.source_of_name(name).cloned()
}

/// Returns whether a caller may see what was counted. The use of a prompt that is closed to the caller is not shown; requests
/// for its name that were refused are, as for a name that does not exist.
fn seen<'a>(state: &'a ProgramState, caller: &'a Caller) -> impl Fn(&UsageKey) -> bool + 'a {
    let mut closed: HashMap<&str, HashSet<String>> = HashMap::new();
    for channel in state.channels(caller) {
        let view = channel.library.service().view(caller);
        let prompts = view.catalog().prompts().iter().enumerate();
        let hidden = prompts.filter(|(index, _)| !view.shows(ListKind::Prompts, *index));
        let names = |prompt: &Arc<Prompt>| {
            prompt.aliases().chain([view.catalog().name_in_channel(prompt).to_owned()]).collect::<Vec<_>>()
        };
        let names = hidden.flat_map(|(_, prompt)| names(prompt)).collect();
        closed.insert(channel.name.as_deref().unwrap_or_default(), names);
    }
    move |key| {
        let is_closed = || closed.get(&*key.channel).is_some_and(|names| names.contains(&key.prompt));
        state.site.shows(caller, &key.channel) && (key.outcome == UNKNOWN_PROMPT || !is_closed())
    }
}

/// Returns the prompts of all channels that the caller sees, and their former names that no prompt has. A prompt counts as
/// deprecated only if it is so in each of its channels.
fn listed(state: &ProgramState, caller: &Caller) -> ListedPrompts {
    let (mut listed, mut aliases) = (ListedPrompts::new(), ListedPrompts::new());
    for channel in state.channels(caller) {
        let view = channel.library.service().view(caller);
        let prompts = view.catalog().prompts().iter().enumerate();
        for (_, prompt) in prompts.filter(|(index, _)| view.shows(ListKind::Prompts, *index)) {
            let own = view.catalog().name_in_channel(prompt).to_owned();
            for alias in prompt.aliases() {
                aliases.insert(alias, Some(Deprecated { replacement: Some(own.clone()), is_alias: true }));
            }
            let deprecation = view.deprecation(prompt);
            let deprecated = deprecation.map(|notice| Deprecated { replacement: notice.replacement, is_alias: false });
            let known = listed.entry(own).or_insert_with(|| deprecated.clone());
            if deprecated.is_none() {
                *known = None;
            }
        }
    }
    for (alias, of_prompt) in aliases {
        listed.entry(alias).or_insert(of_prompt);
    }
    listed
}

fn not_counted() -> Problem {
    Problem::not_found("The count of usage ([usage] in server.toml turns it on)")
}

/// Returns the start of the hour, to which figures are exact: the tag of an answer stays the same while they do.
fn whole_hour(time: Timestamp) -> Option<Timestamp> {
    Timestamp::from_second(time.as_second().div_euclid(3_600) * 3_600).ok()
}

/// Returns the start of the period until now that is so long. A period of whole days ends with the present one, in UTC: the
/// days of a chart are whole.
fn begin_of_days(age: SignedDuration, now: Timestamp) -> Option<Timestamp> {
    const DAY: i64 = 24 * 3_600;
    let begin = now.checked_sub(age).ok()?;
    if age.as_secs() % DAY != 0 {
        return Some(begin);
    }
    Timestamp::from_second((begin.as_second().div_euclid(DAY) + 1) * DAY).ok()
}

/// Returns the time that lies so far back, with days of 24 hours.
fn since(age: &str) -> Result<Timestamp, Problem> {
    parsed(age).and_then(|age| Timestamp::now().checked_sub(age).ok()).ok_or_else(invalid_age)
}

fn parsed(age: &str) -> Option<SignedDuration> {
    let age = age.parse::<Span>().ok()?.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    (age > SignedDuration::ZERO).then_some(age)
}

fn invalid_age() -> Problem {
    Problem::invalid("The age `since` is invalid: expected days or hours, such as 30d or 12h")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_of_days_end_with_the_present_day() {
        for (age, now, begin) in [
            ("7d", "2026-11-24T03:50:01Z", "2026-11-18T00:00:00Z"),
            ("7d", "2026-11-24T00:00:00Z", "2026-11-18T00:00:00Z"),
            ("1d", "2026-11-24T23:59:59Z", "2026-11-24T00:00:00Z"),
            ("24h", "2026-11-24T12:00:00Z", "2026-11-24T00:00:00Z"),
            ("12h", "2026-11-24T03:50:01Z", "2026-11-23T15:50:01Z"),
            ("36h", "2026-11-24T12:00:00Z", "2026-11-23T00:00:00Z"),
        ] {
            let found = begin_of_days(parsed(age).expect("an age"), now.parse().expect("a time"));
            assert_eq!(found, Some(begin.parse().expect("a time")), "{age} before {now}");
        }
    }
}
