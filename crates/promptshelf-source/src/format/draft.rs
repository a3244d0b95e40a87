//! The result of parsing one prompt file, before references to other files are resolved.

use std::{ops::Range, sync::Arc};

use promptshelf_core::{ArgumentDefinition, Body, BodyPiece, Code, Diagnostic, Origin, PromptDefinition};

use super::tree::Notes;

const MAX_MISTAKES: usize = 100;

#[derive(Debug)]
pub(crate) struct Parsed {
    /// `None` if the file has errors.
    pub(crate) draft: Option<Draft>,
    /// The valid parts of a file with errors, so that further mistakes can be found.
    pub(crate) broken: Option<BrokenDraft>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// A prompt with unresolved references: icons are paths, and path patterns are not expanded.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) definition: Arc<PromptDefinition>,
    pub(crate) globs: Vec<GlobCompletion>,
}

#[derive(Clone, Debug)]
pub(crate) struct GlobCompletion {
    pub(crate) argument: usize,
    pub(crate) glob: String,
    /// The declared root; `None` for the library itself.
    pub(crate) root: Option<String>,
    pub(crate) span: Range<usize>,
}

/// A prompt that cannot be served because of errors.
#[derive(Clone, Debug)]
pub(crate) struct BrokenDraft {
    pub(crate) draft: Draft,
    pub(crate) has_all_arguments: bool,
}

impl Draft {
    /// Creates a prompt without a template.
    pub(super) fn without_template(name: &str, notes: &mut Notes<'_>) -> Draft {
        let definition =
            PromptDefinition::from_source(name, Body::Pieces(Vec::new()), Origin::new(Arc::clone(notes.source)));
        Draft { definition: Arc::new(definition), globs: Vec::new() }
    }

    /// Returns the definition for changes; copies it if it is shared.
    pub(crate) fn edit(&mut self) -> &mut PromptDefinition {
        Arc::make_mut(&mut self.definition)
    }

    pub(super) fn with_body(mut self, pieces: Vec<BodyPiece>, notes: &mut Notes<'_>) -> Draft {
        let definition = self.edit();
        definition.body = Body::Pieces(pieces);
        definition.origin.spans = std::mem::take(&mut notes.spans).into();
        self
    }
}

impl BrokenDraft {
    fn of(draft: Draft, notes: &Notes<'_>) -> Option<BrokenDraft> {
        let Body::Template { range } = &draft.definition.body else { return None };
        // If the front matter is not closed, the beginning of the text is unknown.
        if range.end == 0 {
            return None;
        }
        let text = &notes.source.text;
        let is_about_arguments = |left_out: &Range<usize>| {
            let is_key = |line: &&str| line.starts_with(|c: char| !c.is_whitespace() && c != '-' && c != '#');
            let line = text[..left_out.end].lines().rev().find(is_key).unwrap_or_default();
            line.starts_with("arg") || !line.contains(':')
        };
        let is_named = |argument: &ArgumentDefinition| !argument.name.is_empty();
        let is_list = |found: &Diagnostic| {
            Some(&found.location.span()) != draft.definition.origin.spans.get("arguments").as_ref()
        };
        let has_all_arguments = !notes.left_out.iter().any(is_about_arguments)
            && draft.definition.arguments.iter().all(is_named)
            && notes.diagnostics.iter().filter(|found| found.is_error()).all(is_list);
        Some(BrokenDraft { draft, has_all_arguments })
    }
}

impl Parsed {
    pub(super) fn of(draft: Draft, mut notes: Notes<'_>) -> Parsed {
        let (draft, broken) =
            if notes.has_errors() { (None, BrokenDraft::of(draft, &notes)) } else { (Some(draft), None) };
        notes.diagnostics.sort_by_key(|found| found.location.span().start);
        if notes.diagnostics.len() > MAX_MISTAKES {
            let more = notes.diagnostics.split_off(MAX_MISTAKES);
            if let Some(first) = more.first() {
                let span = first.location.span();
                notes.error(
                    Code::TooMany,
                    &span,
                    format!("{} further mistakes from here on are not listed", more.len()),
                );
            }
        }
        Parsed { draft, broken, diagnostics: notes.diagnostics }
    }
}
