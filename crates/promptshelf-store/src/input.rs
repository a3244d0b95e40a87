//! Validation of everything that callers send: paths, sizes, names and texts.

use std::collections::HashMap;

use promptshelf_core::{
    identity,
    invisible::{hidden, is_invisible},
};
use promptshelf_source::{SamePath, check_file_path, folded_path};
use unicode_security::{MixedScript as _, skeleton};

use crate::{
    StoreError,
    evaluation::NewEvaluation,
    model::{Actor, Change, Policy, PolicyRoles},
};

/// The largest file in bytes.
pub const MAX_FILE_BYTES: usize = 64 << 20;
/// The largest sum of the files of a proposal in bytes.
pub const MAX_PROPOSAL_BYTES: usize = 256 << 20;
const MAX_FILES: usize = 100_000;
const MAX_TEXT: usize = 4_096;
const MAX_NAME: usize = 200;
const MAX_ROLES: usize = 100;
const MAX_EVALUATIONS: usize = 20;
/// The longest name of an evaluation in bytes.
const MAX_EVALUATION: usize = 64;
const MAX_SCORES: usize = 100;
const MAX_CASES: usize = 1_000;
/// The largest sum of the texts of a result's cases in bytes.
const MAX_CASE_BYTES: usize = 256 << 10;

pub(crate) fn changes(changes: &[Change]) -> Result<(), StoreError> {
    if changes.len() > MAX_FILES {
        return Err(StoreError::invalid(format!("{} changes: at most {MAX_FILES} are accepted", changes.len())));
    }
    let mut total = 0;
    for change in changes {
        path(&change.path)?;
        let size = change.after.as_ref().map_or(0, |bytes| bytes.len());
        if size > MAX_FILE_BYTES {
            let path = &change.path;
            return Err(StoreError::invalid(format!(
                "`{path}` has {size} bytes: at most {MAX_FILE_BYTES} are accepted"
            )));
        }
        total += size;
    }
    if total > MAX_PROPOSAL_BYTES {
        return Err(StoreError::invalid(format!(
            "the changes have {total} bytes: at most {MAX_PROPOSAL_BYTES} are accepted"
        )));
    }
    Ok(())
}

pub(crate) fn content(bytes: &[u8]) -> Result<(), StoreError> {
    size(bytes.len() as u64)
}

pub(crate) fn size(size: u64) -> Result<(), StoreError> {
    if size <= MAX_FILE_BYTES as u64 {
        return Ok(());
    }
    Err(StoreError::invalid(format!("a content has {size} bytes: at most {MAX_FILE_BYTES} are accepted")))
}

/// Validates that a tree can be written to a folder of any system: no two paths are equal there, and no file is the
/// folder of another one.
pub(crate) fn tree<'a>(paths: impl ExactSizeIterator<Item = &'a str>) -> Result<(), StoreError> {
    if paths.len() > MAX_FILES {
        return Err(StoreError::invalid(format!("{} files: a channel has at most {MAX_FILES}", paths.len())));
    }
    let mut seen: HashMap<String, &str> = HashMap::with_capacity(paths.len());
    for path in paths {
        if let Some(other) = seen.insert(folded_path(path), path) {
            let same = SamePath { present: other.to_owned(), new: path.to_owned() };
            return Err(StoreError::invalid(format!("{same}: rename one")));
        }
    }
    for (key, path) in &seen {
        for (end, _) in key.match_indices('/') {
            if let Some(file) = seen.get(&key[..end]) {
                return Err(StoreError::invalid(format!("`{file}` is a file and the folder of `{path}`: rename one")));
            }
        }
    }
    Ok(())
}

pub(crate) fn path(path: &str) -> Result<(), StoreError> {
    check_file_path(path).map_err(|problem| {
        let start: String = path.chars().take(200).flat_map(char::escape_debug).collect();
        StoreError::invalid(format!("the path `{start}` is not accepted: {problem}"))
    })
}

pub(crate) fn actor(actor: &Actor) -> Result<(), StoreError> {
    name("the name of a person", &actor.name)
}

fn name(what: &str, name: &str) -> Result<(), StoreError> {
    if name.trim().is_empty() || name.chars().count() > MAX_NAME {
        return Err(StoreError::invalid(format!("{what} has 1 to {MAX_NAME} characters")));
    }
    if name.trim() != name || name.chars().any(|c| c.is_control() || is_invisible(c)) {
        let problem = "no control characters, no invisible ones, and no space at its start or end";
        return Err(StoreError::invalid(format!("{what} has {problem}")));
    }
    Ok(())
}

pub(crate) fn policy(policy: &Policy) -> Result<(), StoreError> {
    if policy.evaluations.len() > MAX_EVALUATIONS {
        return Err(StoreError::invalid(format!("a policy requires at most {MAX_EVALUATIONS} evaluations")));
    }
    policy.evaluations.iter().try_for_each(|name| evaluation_name(name))?;
    roles(&policy.roles)
}

fn evaluation_name(name: &str) -> Result<(), StoreError> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    if begins && name.len() <= MAX_EVALUATION && name.chars().all(is_plain) {
        return Ok(());
    }
    let shown: String = name.chars().take(MAX_EVALUATION).flat_map(char::escape_debug).collect();
    Err(StoreError::invalid(format!(
        "`{shown}` is not the name of an evaluation: expected 1 to {MAX_EVALUATION} lower-case letters, digits, `-`, `_` \
         and `.`, starting with a letter or digit"
    )))
}

pub(crate) fn evaluation(new: &NewEvaluation) -> Result<(), StoreError> {
    evaluation_name(&new.evaluation)?;
    if new.scores.is_empty() || new.scores.len() > MAX_SCORES || new.thresholds.len() > MAX_SCORES {
        return Err(StoreError::invalid(format!("the result of an evaluation has 1 to {MAX_SCORES} scores")));
    }
    for (score, number) in new.scores.iter().chain(&new.thresholds) {
        name("the name of a score", score)?;
        if !number.is_finite() {
            return Err(StoreError::invalid(format!("the score `{score}` is not a finite number")));
        }
    }
    if let Some(missing) = new.thresholds.keys().find(|score| !new.scores.contains_key(*score)) {
        let found: Vec<String> = new.scores.keys().map(|score| format!("`{score}`")).collect();
        let found = found.join(", ");
        return Err(StoreError::invalid(format!(
            "the score `{missing}` has a threshold and is missing: found {found}"
        )));
    }
    let amounts = [("tolerance", Some(new.tolerance)), ("cost", new.cost), ("duration", Some(new.seconds))];
    for (what, amount) in amounts {
        if amount.is_some_and(|amount| !amount.is_finite() || amount < 0.0) {
            return Err(StoreError::invalid(format!("the {what} of an evaluation is not a number of at least 0")));
        }
    }
    new.model.iter().try_for_each(|model| name("the name of a model", model))?;
    if new.cases.len() > MAX_CASES {
        let found = new.cases.len();
        return Err(StoreError::invalid(format!("the result has {found} cases: at most {MAX_CASES} are accepted")));
    }
    let mut bytes = 0;
    for case in &new.cases {
        name("the name of a case", &case.name)?;
        note("the reason of a case", &case.reason)?;
        if case.score.is_some_and(|score| !score.is_finite()) {
            return Err(StoreError::invalid(format!("the score of the case `{}` is not a finite number", case.name)));
        }
        bytes += case.name.len() + case.reason.len();
    }
    if bytes > MAX_CASE_BYTES {
        return Err(StoreError::invalid(format!(
            "the cases have {bytes} bytes of text: at most {MAX_CASE_BYTES} are accepted"
        )));
    }
    Ok(())
}

fn roles(roles: &PolicyRoles) -> Result<(), StoreError> {
    for list in [&roles.propose, &roles.review, &roles.publish, &roles.administer] {
        if list.len() > MAX_ROLES {
            return Err(StoreError::invalid(format!("a policy has at most {MAX_ROLES} roles for an operation")));
        }
        for role in list {
            name("a role", role)?;
        }
    }
    Ok(())
}

/// Validates a text that may be empty; `what` names it in the error.
pub(crate) fn note(what: &str, text: &str) -> Result<(), StoreError> {
    if text.chars().count() > MAX_TEXT {
        return Err(StoreError::invalid(format!("{what} is too long: at most {MAX_TEXT} characters are accepted")));
    }
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r')) {
        return Err(StoreError::invalid(format!("{what} contains control characters")));
    }
    // Notes reach chats and e-mails, where such a character would show another text than was written.
    if let Some((_, c)) = hidden(text).next() {
        let number = u32::from(c);
        return Err(StoreError::invalid(format!("{what} contains the invisible character U+{number:04X}: remove it")));
    }
    Ok(())
}

/// Validates a text that must not be empty; `what` names it in the error.
pub(crate) fn text(what: &str, text: &str) -> Result<(), StoreError> {
    if text.trim().is_empty() {
        return Err(StoreError::invalid(format!("{what} is empty")));
    }
    note(what, text)
}

/// Whether two names are meant for the same person: differences in case and in Unicode's compatible forms do not count.
pub(crate) fn same_name(one: &str, other: &str) -> bool {
    identity(one) == identity(other)
}

/// Whether a name looks like another one, without being meant for the same person.
pub(crate) fn looks_like(one: &str, other: &str) -> bool {
    !same_name(one, other) && skeleton(&identity(one)).eq(skeleton(&identity(other)))
}

/// Whether letters of several scripts are in one word of a name, such as Latin and Cyrillic ones.
pub(crate) fn has_mixed_scripts(name: &str) -> bool {
    name.split(|c: char| !c.is_alphanumeric()).any(|word| !word.is_single_script())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_one_file_are_told_apart() {
        for (paths, said) in [
            (["a/B.md", "A/b.md"], "`a/B.md` and `A/b.md` are the same file on systems that ignore case: rename one"),
            (["caf\u{e9}.md", "CAFE\u{301}.md"], "are the same file on systems that ignore case: rename one"),
            (["caf\u{e9}.md", "cafe\u{301}.md"], "as `caf\\u{e9}.md` and as `cafe\\u{301}.md`"),
            (["\u{1e69}.md", "\u{1e63}\u{307}.md"], "as `\\u{1e69}.md` and as `\\u{1e63}\\u{307}.md`"),
        ] {
            let refusal = tree(paths.into_iter()).expect_err("one file").to_string();
            assert!(refusal.contains(said), "{refusal}");
        }
    }

    // req: S-271
    #[test]
    fn notes_with_invisible_characters_are_refused() {
        for text in ["Fine\u{202e}lavorppa", "a\u{200b}b", "\u{2066}x", "tag\u{e0041}", "soft\u{ad}hyphen"] {
            assert!(matches!(note("the note", text), Err(StoreError::InvalidInput { .. })), "{text:?}");
        }
        for text in ["Fine.\n\tTwo lines", "👩\u{200d}💻 #️⃣", "می\u{200c}خواهم", ""] {
            assert!(note("the note", text).is_ok(), "{text:?}");
        }
    }
}
