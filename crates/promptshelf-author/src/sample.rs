//! Sample values for the required arguments of a prompt, for previews.

use promptshelf_core::{Argument, ArgumentType, CompletionSource, Constraints, Prompt, Variables};
use regex_syntax::hir::{Class, ClassUnicodeRange, Hir, HirKind};

/// Adds a sample value for each required argument without a value, and returns the names of those arguments.
///
/// ```
/// use promptshelf_author::add_samples;
/// use promptshelf_core::{ArgumentDefinition, Definitions, PromptDefinition, Variables, check};
///
/// let name = ArgumentDefinition::new("name").required();
/// let hello = PromptDefinition::template("hello", "Hello, {{ name }}!").argument(name);
/// let catalog = check(Definitions { prompts: vec![hello.into()], ..Definitions::default() }, None).catalog;
/// let mut values = Variables::new();
/// assert_eq!(add_samples(catalog.find("hello").unwrap(), &mut values), ["name"]);
/// assert_eq!(values["name"], "‹name›");
/// ```
pub fn add_samples(prompt: &Prompt, values: &mut Variables) -> Vec<String> {
    let mut added = Vec::new();
    for argument in prompt.arguments().iter().filter(|argument| argument.required()) {
        if !values.contains_key(argument.name()) {
            values.insert(argument.name().to_owned(), sample(prompt, argument));
            added.push(argument.name().to_owned());
        }
    }
    added
}

/// The numbers of additional repetitions that are tried for a pattern, and the largest length that is tried.
const REPETITIONS: [u32; 9] = [0, 1, 2, 4, 8, 16, 32, 64, 128];
const MAX_LENGTH: usize = 10_000;

/// Returns the first value that the argument accepts: of its examples, tests, choices and completions, otherwise one made
/// from its bounds. If none is found, the value is a placeholder that the argument may refuse.
fn sample(prompt: &Prompt, argument: &Argument) -> String {
    let definition = argument.definition();
    let placeholder = format!("‹{}›", argument.name());
    let tests = prompt.definition().tests.iter().filter(|test| test.error.is_none());
    let tested = tests.filter_map(|test| test.arguments.get(argument.name()));
    let chosen = argument.choices().iter().map(|choice| &choice.value);
    let completed = match argument.completion() {
        Some(CompletionSource::Values(values)) => values.first(),
        Some(CompletionSource::Paths(paths) | CompletionSource::RootPaths { paths, .. }) => paths.first(),
        _ => None,
    };
    let written = argument.examples().iter().chain(tested).chain(chosen).chain(completed).cloned();
    let bounds = [definition.constraints().minimum, definition.constraints().maximum];
    let numbers = || [Some(1.0), bounds[0], bounds[1]].into_iter().flatten();
    let made: Vec<String> = match argument.kind() {
        ArgumentType::Integer => {
            numbers().flat_map(|it| [it.ceil(), it.floor()]).map(|it| format!("{it:.0}")).collect()
        }
        ArgumentType::Number => numbers().map(|it| it.to_string()).collect(),
        ArgumentType::Boolean => vec!["true".to_owned()],
        ArgumentType::Date => vec!["2026-07-28".to_owned()],
        ArgumentType::Json => vec!["{}".to_owned()],
        ArgumentType::String | ArgumentType::Text | ArgumentType::List => texts(definition.constraints(), &placeholder),
    };
    written.chain(made).find(|value| argument.parsed(value).is_some()).unwrap_or(placeholder)
}

fn texts(constraints: &Constraints, placeholder: &str) -> Vec<String> {
    let least = constraints.min_length.unwrap_or_default().min(MAX_LENGTH);
    let most = constraints.max_length.unwrap_or(usize::MAX);
    let filled = |word: &str| word.chars().cycle().take(least.max(word.chars().count()).min(most)).collect::<String>();
    let mut texts = vec![placeholder.to_owned(), filled(&format!("{placeholder} ")), filled("text ")];
    if let Some(pattern) = constraints.pattern.as_deref().and_then(|pattern| regex_syntax::parse(pattern).ok()) {
        for more in REPETITIONS {
            let mut text = String::new();
            write_match(&pattern, more, &mut text);
            // A pattern has to match somewhere in the value only.
            let missing = least.saturating_sub(text.chars().count());
            let padded = format!("{text}{}", "x".repeat(missing));
            texts.extend([text, padded]);
        }
    }
    texts
}

/// Writes a text that a pattern matches, with `more` repetitions than needed. Positions such as word boundaries are
/// ignored, so the text has to be checked.
fn write_match(pattern: &Hir, more: u32, text: &mut String) {
    if text.len() > MAX_LENGTH {
        return;
    }
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(class) => {
            let usual = ('a'..='z').chain('A'..='Z').chain('0'..='9');
            let is_in = |c: &char| match class {
                Class::Unicode(class) => class.iter().any(|range| (range.start()..=range.end()).contains(c)),
                Class::Bytes(class) => {
                    class.iter().any(|range| (range.start()..=range.end()).contains(&u8::try_from(*c).unwrap_or(0)))
                }
            };
            let first = match class {
                Class::Unicode(class) => class.iter().next().map(ClassUnicodeRange::start),
                Class::Bytes(class) => class.iter().next().map(|range| char::from(range.start())),
            };
            text.extend(usual.clone().find(is_in).or(first));
        }
        HirKind::Repetition(repetition) => {
            let times = repetition.min.saturating_add(more).min(repetition.max.unwrap_or(u32::MAX));
            // Repetitions inside repetitions would multiply.
            (0..times).for_each(|_| write_match(&repetition.sub, more.min(1), text));
        }
        HirKind::Capture(capture) => write_match(&capture.sub, more, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write_match(part, more, text)),
        HirKind::Alternation(ways) => ways.iter().take(1).for_each(|way| write_match(way, more, text)),
    }
}

#[cfg(test)]
mod tests {
    use promptshelf_core::{ArgumentDefinition, Definitions, PromptDefinition, check};

    use super::*;

    fn sample_of(argument: ArgumentDefinition) -> String {
        let prompt = PromptDefinition::template("p", "{{ a }}").argument(argument.required());
        let catalog = check(Definitions::from_iter([prompt]), None).catalog;
        let mut values = Variables::new();
        let prompt = catalog.find("p").expect("the prompt is valid");
        add_samples(prompt, &mut values);
        let sample = values.remove("a").expect("a sample");
        assert!(prompt.arguments()[0].parsed(&sample).is_some(), "{sample}");
        sample
    }

    #[test]
    fn samples_satisfy_the_bounds_of_their_argument() {
        let argument = |kind: ArgumentType| ArgumentDefinition { kind, ..ArgumentDefinition::new("a") };
        let text = |pattern: Option<&str>, min_length, max_length| {
            let pattern = pattern.map(str::to_owned);
            let bounds = Constraints { pattern, min_length, max_length, ..Constraints::default() };
            sample_of(argument(ArgumentType::String).constrained(bounds))
        };
        let number = |kind, minimum, maximum| {
            sample_of(argument(kind).constrained(Constraints { minimum, maximum, ..Constraints::default() }))
        };
        assert_eq!(text(None, None, None), "‹a›");
        assert_eq!(text(None, Some(20), None).chars().count(), 20);
        assert_eq!(text(None, None, Some(2)).chars().count(), 2);
        text(Some("^[A-Z]{2,5}-\\d+$"), None, None);
        text(Some("^[a-z]+(-[a-z]+)*$"), Some(12), Some(40));
        text(Some("https?://"), Some(30), None);
        text(Some("^(?:yes|no)\\b"), None, None);
        text(Some("^\\d{4}-\\d\\d$"), None, None);
        text(Some("^\\p{Greek}+$"), Some(3), None);
        assert_eq!(number(ArgumentType::Integer, Some(0.5), None), "1");
        number(ArgumentType::Integer, Some(7.2), Some(8.1));
        number(ArgumentType::Integer, None, Some(-3.5));
        number(ArgumentType::Number, Some(2.5), Some(2.6));
        let list = Constraints { min_length: Some(5), ..Constraints::default() };
        sample_of(argument(ArgumentType::List).constrained(list));
    }
}
