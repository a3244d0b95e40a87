//! Sources of an argument's completions, and their ranking.

use std::{borrow::Cow, cell::RefCell, collections::HashSet};

use nucleo_matcher::{
    Config, Matcher, Utf32Str,
    pattern::{AtomKind, CaseMatching, Normalization, Pattern},
};

use crate::{
    argument::Argument,
    catalog::Catalog,
    definition::{ArgumentType, CompletionSource},
    interrupt::spend_work,
    prompt::ContentName,
    resource::Resource,
    uri_template::expand_uri_template,
    value::Variables,
};

/// The most values that one answer holds (specification, *Utilities / Completion*).
pub const MAX_VALUES: usize = 100;

/// The longest input that is completed; people do not type more.
const MAX_TYPED_BYTES: usize = 1_024;

/// The most words of an input that rank values: each is searched for in every value.
const MAX_WORDS: usize = 8;

/// The longest word whose letters may be spread over a value, in characters. The search takes time in proportion to
/// the product of both lengths; a longer word has to occur as it is, which takes linear time.
const MAX_FUZZY_CHARS: usize = 32;

/// The work for each value and letter that is searched for, without the characters of the value.
const VALUE: u64 = 16;

/// The work of asking whether a caller may read what a value names, for each name.
const PERMISSION: u64 = 512;

/// Completions of an argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// The best values, best first, at most [`MAX_VALUES`].
    pub values: Vec<String>,
    /// The number of all matching values.
    pub total: usize,
}

impl Completions {
    /// Returns whether there are more values than are listed.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.total > self.values.len()
    }
}

/// Returns the values that another server suggests for an argument; `None` if its suggestions are known here.
pub async fn complete_remotely(argument: &Argument, typed: &str, known: &Variables) -> Option<Completions> {
    let Some(CompletionSource::Remote(function)) = argument.completion() else { return None };
    if typed.len() > MAX_TYPED_BYTES {
        return Some(Completions::default());
    }
    let (mut values, total) = function(typed.to_owned(), known.clone()).await;
    values.truncate(MAX_VALUES);
    Some(Completions { total: total.max(values.len()), values })
}

/// Returns values for an argument after the input `typed`, with the values of other arguments in `known`.
#[must_use]
pub fn complete(argument: &Argument, catalog: &Catalog, typed: &str, known: &Variables) -> Completions {
    complete_from(argument, catalog, typed, known, None)
}

/// Restricts completion to the contents that a caller may read.
pub struct Restriction<'a> {
    /// Returns whether the content of a path or URI may be read.
    pub may_read: &'a dyn Fn(ContentName<'_>) -> bool,
    /// The resource template whose variable is completed, if it is one.
    pub template: Option<&'a Resource>,
}

impl Restriction<'_> {
    fn may_read_path(&self, path: &str) -> bool {
        (self.may_read)(ContentName::Path(path))
    }

    /// Returns whether a value names no content that must not be read: neither by itself nor as a variable.
    fn shows(&self, value: &str, argument: &Argument, known: &Variables, catalog: &Catalog) -> bool {
        (!catalog.is_file_name(value) || self.may_read_path(value))
            && (catalog.content(value).is_none() || (self.may_read)(ContentName::Uri(value)))
            && self.template.is_none_or(|template| {
                let uris = uris_with(template, argument, value, known);
                uris.is_empty() || uris.iter().any(|uri| (self.may_read)(ContentName::Uri(uri)))
            })
    }
}

const MAX_URIS: usize = 64;

/// Returns URIs of a template with a value for one of its variables. A variable that is not known yet gets each of its
/// suggested values, or one that stands for any other, so that a rule for a whole folder applies.
fn uris_with(template: &Resource, argument: &Argument, value: &str, known: &Variables) -> Vec<String> {
    let mut all = vec![Variables::new()];
    for variable in template.variables() {
        let name = variable.name();
        let is_optional = template.query_variables().is_some_and(|query| query.iter().any(|known| known == name));
        let known = known.get(name).filter(|value| !value.is_empty()).map(String::as_str);
        let values = match known {
            _ if name == argument.name() => vec![value],
            Some(known) => vec![known],
            None if is_optional => continue,
            None => suggested(variable),
        };
        let with = |variables: &Variables, value: &str| {
            let mut variables = variables.clone();
            variables.insert(name.to_owned(), value.to_owned());
            variables
        };
        all = all.iter().flat_map(|known| values.iter().map(|value| with(known, value))).take(MAX_URIS).collect();
    }
    all.iter().filter_map(|variables| expand_uri_template(template.uri(), variables)).collect()
}

fn suggested(variable: &Argument) -> Vec<&str> {
    let choices = variable.choices().iter().map(|choice| choice.value.as_str());
    let values = match variable.completion() {
        Some(CompletionSource::Values(values)) => &values[..],
        Some(CompletionSource::Paths(paths) | CompletionSource::RootPaths { paths, .. }) => paths,
        _ => &[],
    };
    let found: Vec<&str> = choices.chain(values.iter().map(String::as_str)).take(MAX_URIS).collect();
    if found.is_empty() { vec!["_"] } else { found }
}

/// Like [`complete`], without values that name a content that must not be read, and without those for which the
/// [`Interrupt`](crate::Interrupt) of the thread leaves no work.
#[must_use]
pub fn complete_from(
    argument: &Argument,
    catalog: &Catalog,
    typed: &str,
    known: &Variables,
    restriction: Option<&Restriction<'_>>,
) -> Completions {
    if typed.len() > MAX_TYPED_BYTES {
        return Completions::default();
    }
    let mut found = candidates(argument, catalog, typed, known, restriction);
    if let Some(restriction) = restriction {
        let names = if restriction.template.is_some() { MAX_URIS as u64 } else { 1 };
        found.retain(|value| spend_work(names * PERMISSION) && restriction.shows(value, argument, known, catalog));
    }
    rank(&found, typed)
}

/// Returns all values in the author's order, each once.
fn candidates<'c>(
    argument: &'c Argument,
    catalog: &'c Catalog,
    typed: &str,
    known: &Variables,
    restriction: Option<&Restriction<'_>>,
) -> Vec<Cow<'c, str>> {
    let may_see_path = |path: &str| restriction.is_none_or(|restriction| restriction.may_read_path(path));
    fn borrowed<'c>(values: impl IntoIterator<Item = &'c String>) -> Vec<Cow<'c, str>> {
        values.into_iter().map(|value| Cow::Borrowed(value.as_str())).collect()
    }
    let choices = argument.choices().iter().map(|choice| &choice.value);
    let mut is_distinct = false;
    let mut found = match argument.completion() {
        None => Vec::new(),
        Some(CompletionSource::Values(values)) => borrowed(values),
        Some(CompletionSource::Paths(paths)) => borrowed(paths.iter().filter(|path| may_see_path(path))),
        Some(CompletionSource::RootPaths { root, paths }) => {
            let path_of = |path: &str| if root.is_empty() { path.to_owned() } else { format!("{root}/{path}") };
            borrowed(paths.iter().filter(|path| restriction.is_none() || may_see_path(&path_of(path))))
        }
        Some(CompletionSource::File(path)) if !may_see_path(path) => Vec::new(),
        Some(CompletionSource::File(path)) => {
            is_distinct = true;
            catalog.values(path).into_iter().map(Cow::Borrowed).collect()
        }
        Some(CompletionSource::By { argument: other, cases }) => {
            match known.get(other).filter(|value| !value.is_empty()) {
                Some(value) => {
                    cases.iter().filter(|(case, _)| case == value).flat_map(|(_, values)| borrowed(values)).collect()
                }
                // Without a value of the other argument, all cases are possible.
                None => cases.iter().flat_map(|(_, values)| borrowed(values)).collect(),
            }
        }
        Some(CompletionSource::Resources(glob)) => catalog.uris_matching(glob).map(Cow::Borrowed).collect(),
        // Values of another server are not known here.
        Some(CompletionSource::Remote(_)) => Vec::new(),
        Some(CompletionSource::Function(function)) => function(typed, known).into_iter().map(Cow::Owned).collect(),
    };
    if argument.choices().is_empty() {
        is_distinct &= argument.examples().is_empty() && argument.default_value().is_none();
        found.extend(borrowed(argument.examples()));
        found.extend(argument.default_value().map(Cow::Borrowed));
    } else if found.is_empty() {
        found = borrowed(choices);
    } else {
        // A completion source can narrow the choices down, never widen them.
        let choices: HashSet<&str> = choices.map(String::as_str).collect();
        found.retain(|value| choices.contains(&**value));
    }
    if argument.kind() == ArgumentType::Boolean && argument.choices().is_empty() {
        is_distinct = false;
        found.extend([Cow::Borrowed("true"), Cow::Borrowed("false")]);
    }
    if is_distinct { found } else { each_once(found) }
}

fn each_once(values: Vec<Cow<'_, str>>) -> Vec<Cow<'_, str>> {
    let is_first: Vec<bool> = {
        let mut seen = HashSet::with_capacity_and_hasher(values.len(), foldhash::fast::RandomState::default());
        values.iter().map(|value| seen.insert(&**value)).collect()
    };
    values.into_iter().zip(is_first).filter_map(|(value, is_first)| is_first.then_some(value)).collect()
}

/// Orders values: exact matches, then prefixes, then fuzzy matches by score; ties keep the author's order.
fn rank(candidates: &[Cow<'_, str>], typed: &str) -> Completions {
    let typed = typed.trim();
    if typed.is_empty() {
        let values = candidates.iter().take(MAX_VALUES).map(|value| value.clone().into_owned()).collect();
        return Completions { values, total: candidates.len() };
    }
    let pattern = pattern(typed);
    let letters = letters(&pattern);
    let mut buffer = Vec::new();
    let mut ranked: Vec<(u8, u32, usize)> = Vec::new();
    MATCHER.with_borrow_mut(|matcher| {
        for (index, candidate) in candidates.iter().enumerate() {
            if !spend_work(letters * (VALUE + candidate.len() as u64)) {
                break;
            }
            if let Some(score) = pattern.score(Utf32Str::new(candidate, &mut buffer), matcher) {
                ranked.push((closeness(candidate, typed), score, index));
            }
        }
    });
    let total = ranked.len();
    let best_first = |(closeness, score, index): &(u8, u32, usize)| (*closeness, std::cmp::Reverse(*score), *index);
    if total > MAX_VALUES {
        ranked.select_nth_unstable_by_key(MAX_VALUES, best_first);
        ranked.truncate(MAX_VALUES);
    }
    ranked.sort_unstable_by_key(best_first);
    let values = ranked.into_iter().map(|(_, _, index)| candidates[index].clone().into_owned()).collect();
    Completions { values, total }
}

fn pattern(typed: &str) -> Pattern {
    let mut pattern = Pattern::new(typed, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy);
    pattern.atoms.truncate(MAX_WORDS);
    for word in &mut pattern.atoms {
        if word.needle_text().len() > MAX_FUZZY_CHARS {
            word.kind = AtomKind::Substring;
        }
    }
    pattern
}

/// Upper bound for the work on one character of a value: the letters to search for, by word.
fn letters(pattern: &Pattern) -> u64 {
    let of_word = |word: &nucleo_matcher::pattern::Atom| match word.kind {
        AtomKind::Fuzzy => word.needle_text().len() as u64,
        _ => 1,
    };
    pattern.atoms.iter().map(of_word).sum()
}

thread_local! {
    /// Creating a matcher costs more than matching a few values.
    static MATCHER: RefCell<Matcher> = RefCell::new(Matcher::new(Config::DEFAULT));
}

fn closeness(candidate: &str, typed: &str) -> u8 {
    match candidate.get(..typed.len()) {
        Some(start) if start.eq_ignore_ascii_case(typed) => u8::from(candidate.len() != typed.len()),
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(typed: &str) -> u64 {
        letters(&pattern(typed))
    }

    // req: S-275
    #[test]
    fn ranking_ends_with_the_work_that_is_left() {
        let values: Vec<String> = (0..200_000).map(|n| format!("value {n:06}")).collect();
        let candidates: Vec<Cow<'_, str>> = values.iter().map(|value| Cow::Borrowed(value.as_str())).collect();
        let brief = crate::Interrupt::brief();
        let found = brief.scope(|| rank(&candidates, "value"));
        assert!(brief.has_refused_work() && found.total < 100_000, "{}", found.total);
        assert_eq!(rank(&candidates, "value").total, values.len());
    }

    // req: S-57
    #[test]
    fn long_input_ranks_by_few_letters() {
        let words = vec!["a"; 512].join(" ");
        let (one, many_letters) = ("ab".repeat(512), vec!["abcdefghijklmnop"; 60].join(" "));
        for typed in [&*words, &one, &many_letters] {
            assert!(typed.len() <= 1_024, "longer input is not ranked at all");
            assert!(work(typed) <= 256, "{typed}");
        }
        assert_eq!(work("git commit"), 9);
    }

    #[test]
    fn long_word_must_occur_as_it_is() {
        let values = ["x".repeat(40), format!("y{}", "xy".repeat(40)), format!("yy{}", "x".repeat(41))];
        let candidates: Vec<Cow<'_, str>> = values.iter().map(|value| Cow::Borrowed(value.as_str())).collect();
        assert_eq!(rank(&candidates, &"x".repeat(32)).total, 3);
        let found = rank(&candidates, &"x".repeat(40));
        assert_eq!(found.values, [&*values[0], &*values[2]]);
    }
}
