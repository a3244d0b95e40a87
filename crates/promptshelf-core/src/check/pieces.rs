//! Bodies without a template: attached files are looked up, and everything else stays.

use std::{collections::BTreeMap, sync::Arc};

use super::scope::Scope;
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
        BodyPiece::Argument(_) | BodyPiece::Attach { .. } => false,
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
        let message = format!("file `{path}` not found in the library, so the text contains only its name");
        let known = scope.files.by_path.keys().map(String::as_str);
        let help = nearest(path, known).map_or_else(
            || "only files of the library can be attached; paths begin at its folder".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        let location = Location::new(&definition.origin.source, span.clone());
        found.push(Diagnostic::warning(Code::MissingFile, location, message).help(help));
        BodyPiece::Text(otherwise.clone())
    });
    Some(checked.collect())
}
