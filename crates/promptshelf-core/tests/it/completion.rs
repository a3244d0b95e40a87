//! Completion: at most a hundred suggestions, best first, with the correct total.

use promptshelf_core::{
    ArgumentDefinition, CompletionSource, PromptDefinition, Variables,
    completion::{Completions, MAX_VALUES, complete},
};
use proptest::prelude::*;

use crate::checked;

fn suggest(argument: ArgumentDefinition, typed: &str) -> Completions {
    let catalog = checked([PromptDefinition::template("it", "x").argument(argument)]).catalog;
    complete(&catalog.find("it").expect("it is good").arguments()[0], &catalog, typed, &Variables::new())
}

fn from(values: Vec<String>, typed: &str) -> Completions {
    suggest(ArgumentDefinition::new("a").complete(CompletionSource::Values(values)), typed)
}

proptest! {
    // req: E3, E6, R-4
    #[test]
    fn suggestions_come_from_the_source_limited_and_counted(
        values in prop::collection::vec("[a-cA-C ./_é\\\\-]{0,6}|.{0,6}", 0..300),
        typed in "[a-cA-C ]{0,3}|.{0,4}|\\PC{0,2000}",
    ) {
        let found = from(values.clone(), &typed);
        prop_assert!(found.values.len() <= MAX_VALUES);
        prop_assert!(found.total >= found.values.len());
        prop_assert_eq!(found.has_more(), found.total > MAX_VALUES);
        prop_assert!(found.values.iter().all(|value| values.contains(value)));
        let mut unique = found.values.clone();
        unique.sort();
        unique.dedup();
        prop_assert_eq!(unique.len(), found.values.len());
    }

    // req: E4
    #[test]
    fn suggestions_contain_typed_letters_in_order(
        values in prop::collection::vec("[a-dA-D]{0,6}", 0..100),
        typed in "[a-dA-D]{0,3}",
    ) {
        let holds = |value: &str| {
            let mut letters = value.chars().map(|c| c.to_ascii_lowercase());
            typed.to_lowercase().chars().all(|expected| letters.any(|c| c == expected))
        };
        let found = from(values.clone(), &typed);
        prop_assert!(found.values.iter().all(|value| holds(value)));
        let mut matching: Vec<_> = values.iter().filter(|value| holds(value)).collect();
        matching.sort();
        matching.dedup();
        prop_assert_eq!(found.total, matching.len());
    }

    // req: E4
    #[test]
    fn exact_match_comes_first(
        values in prop::collection::vec("[a-c]{1,5}", 1..50),
        chosen in any::<prop::sample::Index>(),
    ) {
        let typed = chosen.get(&values).clone();
        let found = from(values, &typed).values;
        prop_assert_eq!(found.first(), Some(&typed));
    }

    // req: E4
    #[test]
    fn prefix_matches_precede_other_matches(values in prop::collection::vec("[ab]{1,6}", 1..60)) {
        let found = from(values, "ab").values;
        let begins: Vec<bool> = found.iter().map(|value| value.starts_with("ab")).collect();
        prop_assert!(begins.is_sorted_by_key(|begins| !begins));
    }
}

#[test]
fn empty_input_keeps_author_order() {
    let values: Vec<String> = (0..250).rev().map(|n| n.to_string()).collect();
    let found = from(values.clone(), " ");
    assert_eq!(found.values, values[..100]);
    assert_eq!((found.total, found.has_more()), (250, true));
}

// req: E8, X11
#[test]
fn typed_kilobyte_has_no_suggestions() {
    assert_eq!(from(vec!["a".repeat(2_000)], &"a".repeat(1_025)), Completions::default());
}

#[test]
fn very_long_values_are_matched() {
    let long = format!("{}b", "a".repeat(1 << 20));
    assert_eq!(from(vec![long], "ab").total, 1);
}
