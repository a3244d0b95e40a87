//! Bodies without a template: attached files are looked up, and everything else stays.

use std::{collections::BTreeMap, sync::Arc};

use super::Scope;
use crate::{
    definition::{BodyPiece, LibraryFile, PromptDefinition},
    diagnostic::{Code, Diagnostic, Location, nearest},
};

/// Whether every attached file of a body was found; a missing one may exist by now.
pub(super) fn are_settled(pieces: &[BodyPiece], attachments: &BTreeMap<String, Arc<LibraryFile>>) -> bool {
    pieces.iter().all(|piece| match piece {
        BodyPiece::Attach { path, .. } => attachments.contains_key(path),
        _ => true,
    })
}

/// Returns the body, with text in place of missing files.
pub(super) fn check(
    definition: &PromptDefinition,
    pieces: &[BodyPiece],
    scope: &Scope<'_>,
    attachments: &mut BTreeMap<String, Arc<LibraryFile>>,
    found: &mut Vec<Diagnostic>,
) -> Option<Vec<BodyPiece>> {
    let says_nothing = pieces.iter().all(|piece| match piece {
        BodyPiece::Text(text) => text.trim().is_empty(),
        BodyPiece::Role(_) => true,
        BodyPiece::Argument(_) | BodyPiece::Words(_) | BodyPiece::Attach { .. } => false,
    });
    if says_nothing {
        let message = format!("the prompt `{}` has no text", definition.name);
        found.push(Diagnostic::error(Code::EmptyPrompt, Location::file(&definition.origin.source), message));
        return None;
    }
    let checked = pieces.iter().map(|piece| {
        let BodyPiece::Attach { path, otherwise, span } = piece else { return piece.clone() };
        if let Some(file) = scope.files.by_path.get(path) {
            scope.note_mismatch(path, Location::new(&definition.origin.source, span.clone()), found);
            attachments.insert(path.clone(), Arc::clone(file));
            return piece.clone();
        }
        if !is_file_like(path) {
            return BodyPiece::Text(otherwise.clone());
        }
        let location = Location::new(&definition.origin.source, span.clone());
        if let Some((message, help)) = scope.prompt_file(path) {
            let message = format!("{message}, so the text contains only its name");
            found.push(Diagnostic::warning(Code::MissingFile, location, message).help(help));
            return BodyPiece::Text(otherwise.clone());
        }
        let message = format!("file `{path}` not found in the library, so the text contains only its name");
        let known = scope.files.by_path.keys().map(String::as_str);
        let help = nearest(path, known).map_or_else(
            || "only files of the library can be attached; paths begin at its folder".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        found.push(Diagnostic::warning(Code::MissingFile, location, message).help(help));
        BodyPiece::Text(otherwise.clone())
    });
    Some(checked.collect())
}

/// Endings of names that are files without a folder before them.
const ENDINGS: &[&str] = &[
    "c", "cfg", "conf", "cpp", "cs", "css", "csv", "go", "h", "html", "ini", "java", "js", "json", "jsx", "kt", "lock",
    "md", "mdc", "mdx", "php", "png", "pdf", "py", "rb", "rs", "scss", "sh", "sql", "svelte", "svg", "swift", "toml",
    "ts", "tsx", "txt", "vue", "xml", "yaml", "yml",
];

/// Whether a word after `@` is meant as a file, and not as a decorator (`@app.route`), a package (`@scope/name`) or the end
/// of an address (`@example.com`).
fn is_file_like(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').map_or((None, path), |(folder, name)| (Some(folder), name));
    let Some((stem, ending)) = name.rsplit_once('.') else {
        return folder.is_some_and(|folder| folder.starts_with('.') || folder.contains('/'));
    };
    let is_ending = |ending: &str| ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending));
    is_ending(ending) || (folder.is_some() && !stem.is_empty() && ending.bytes().all(|byte| byte.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_distinguished_from_decorators_packages_and_addresses() {
        for path in
            ["src/a.rs", "README.md", "docs/x.adoc", "../secret.txt", "a/b/Makefile", ".github/CODEOWNERS", "a.TS"]
        {
            assert!(is_file_like(path), "{path}");
        }
        for path in ["app.route", "scope/name", "example.com", "pytest.mark.skip", "types/node@1.2", "mail.example.org"]
        {
            assert!(!is_file_like(path), "{path}");
        }
    }
}
