//! Suggested command lines, quoted so that a shell runs them as they are printed.

use std::{borrow::Cow, path::Path};

/// Quotes a word for a shell if it needs quotes.
pub(crate) fn shell_word(word: &str) -> String {
    // A NUL byte cannot be part of a command line.
    let word: Cow<'_, str> = if word.contains('\0') { word.replace('\0', "").into() } else { word.into() };
    shlex::try_quote(&word).map_or_else(|_| word.clone().into_owned(), Cow::into_owned)
}

/// Formats a path as a word that is not an option.
pub(crate) fn path(path: &Path) -> String {
    let text = path.display().to_string();
    if text.starts_with('-') { shell_word(&format!("./{text}")) } else { shell_word(&text) }
}
