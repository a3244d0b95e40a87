//! The decision about each file of a promotion.

use super::*;

fn digest(text: &str) -> Option<Digest> {
    (!text.is_empty()).then(|| Digest::of(text.as_bytes()))
}

/// Contents as words; an empty one stands for a missing file. `source` and `target` list what each had before, too.
fn choose(base: Option<&str>, source: &[&str], target: &[&str]) -> Choice {
    let had = |words: &[&str]| words.iter().filter_map(|word| Some(("a.md".to_owned(), digest(word)?))).collect();
    let base = base.map(|word| digest(word).map(|digest| ("a.md".to_owned(), digest)).into_iter().collect());
    let history = History { base, source: had(source), target: had(target) };
    history.choose("a.md", digest(source[source.len() - 1]), digest(target[target.len() - 1]))
}

// req: S-294
#[test]
fn promotion_takes_what_the_source_has_changed() {
    use Choice::{Conflict, Keep, Take};
    for (base, source, target, expected, case) in [
        (Some("1"), &["1", "2"][..], &["1"][..], Take, "only the source has changed it"),
        (Some("1"), &["1", ""], &["1"], Take, "the source has removed it"),
        (Some(""), &["1"], &[""], Take, "new in the source"),
        (Some("1"), &["1"], &["1", "fix"], Keep, "only the target has changed it"),
        (Some("1"), &["1"], &["1", ""], Keep, "only the target has removed it"),
        (Some(""), &[""], &["own"], Keep, "only the target ever had it"),
        (Some("1"), &["1", "2"], &["1", "fix"], Conflict, "both have changed it"),
        (Some("1"), &["1", ""], &["1", "fix"], Conflict, "removed in the source, changed in the target"),
        (Some("1"), &["1", "2"], &["1", ""], Conflict, "changed in the source, removed in the target"),
        (Some("2"), &["1", "2", "3"], &["1", "2", "1"], Take, "the target was rolled back"),
        (None, &["1"], &[""], Take, "never promoted, missing in the target"),
        (None, &["1", "2"], &["1"], Take, "never promoted, the target has an older text of the source"),
        (None, &["1"], &["1", "fix"], Keep, "never promoted, the source has an older text of the target"),
        (None, &[""], &["own"], Keep, "never promoted, only in the target"),
        (None, &["1"], &["other"], Conflict, "never promoted, no common text"),
        (None, &["1", "2"], &["0", "1", ""], Conflict, "never promoted, removed in the target"),
    ] {
        assert_eq!(choose(base, source, target), expected, "{case}");
    }
}
