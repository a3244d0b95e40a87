//! The parts of a library that are needed to resolve references between its files.

use promptshelf_core::{ArgumentDefinition, Code, CompletionSource, Diagnostic, Location, Origin};

use super::globs::{GlobError, GlobIndex, Matches};
use crate::{confined_dir::ConfinedDir, format::GlobCompletion, manifest::Manifest, root_grants::RootGrants};

/// The folder, the manifest and the path patterns of one read.
pub(super) struct LibraryContext<'a> {
    pub(super) roots: &'a RootGrants,
    pub(super) root: &'a ConfinedDir,
    pub(super) manifest: &'a Manifest,
    pub(super) globs: &'a GlobIndex,
}

impl LibraryContext<'_> {
    /// Replaces patterns of completions by the matching paths; returns `false` if a pattern is invalid.
    pub(super) fn complete(
        &self,
        arguments: &mut [ArgumentDefinition],
        globs: &[GlobCompletion],
        origin: &Origin,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> bool {
        let mut is_good = true;
        for completion in globs {
            let location = Location::new(&origin.source, completion.span.clone());
            match self.globs.matches(completion.root.as_deref(), &completion.glob) {
                Ok(Matches { paths, is_cut }) => {
                    if let Some(message) = warning(&paths, is_cut, &completion.glob) {
                        diagnostics.push(Diagnostic::warning(Code::InvalidCompletion, location, message));
                    }
                    if let Some(argument) = arguments.get_mut(completion.argument) {
                        argument.completion = Some(CompletionSource::Paths(paths));
                    }
                }
                Err(error) => {
                    let message = match error {
                        GlobError::UnknownRoot => {
                            format!("unknown root `{}`", completion.root.as_deref().unwrap_or_default())
                        }
                        GlobError::Invalid(reason) => {
                            format!("invalid path pattern `{}`: {reason}", completion.glob)
                        }
                    };
                    let help = "declare roots under [roots] in promptshelf.toml";
                    diagnostics.push(Diagnostic::error(Code::InvalidCompletion, location, message).help(help));
                    is_good = false;
                }
            }
        }
        is_good
    }
}

fn warning(paths: &[String], is_cut: bool, glob: &str) -> Option<String> {
    match paths.len() {
        0 => Some(format!("no file matches `{glob}`")),
        most if is_cut => Some(format!("more than {most} files match `{glob}`; the others are left out")),
        _ => None,
    }
}
