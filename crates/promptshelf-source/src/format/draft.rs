//! The result of reading one prompt file, before references to other files are resolved.

use std::{ops::Range, sync::Arc};

use promptshelf_core::{ArgumentDefinition, Body, BodyPiece, Code, Diagnostic, Origin, PromptDefinition, Seldom};

use super::tree::Notes;

/// The most mistakes that are named of one file. Nobody reads more at once.
const MAX_MISTAKES: usize = 100;

/// What a file's text becomes.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// `None` when the text cannot be understood.
    pub(crate) draft: Option<Draft>,
    /// What could be understood of it nevertheless, so that more mistakes can be found.
    pub(crate) broken: Option<BrokenDraft>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// A prompt whose references to other files have not been followed yet: icons
/// still hold paths, and globs have not been expanded.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) definition: PromptDefinition,
    pub(crate) globs: Seldom<Vec<GlobCompletion>>,
}

/// An argument that completes from paths.
#[derive(Clone, Debug)]
pub(crate) struct GlobCompletion {
    /// The argument's place in its list.
    pub(crate) argument: usize,
    pub(crate) glob: String,
    /// The declared root; the library itself without one.
    pub(crate) root: Option<String>,
    pub(crate) span: Range<usize>,
}

/// A prompt that cannot be served as it stands.
#[derive(Clone, Debug)]
pub(crate) struct BrokenDraft {
    pub(crate) draft: Draft,
    /// Whether it has every argument that its author declared.
    pub(crate) has_all_arguments: bool,
}

impl Draft {
    /// A prompt that is no template.
    pub(super) fn plain(name: &str, notes: &mut Notes<'_>) -> Draft {
        let definition =
            PromptDefinition::from_source(name, Body::Pieces(Vec::new()), Origin::new(Arc::clone(notes.source)));
        Draft { definition, globs: Seldom::default() }
    }

    /// Says it, and files where its parts stand.
    pub(super) fn saying(mut self, pieces: Vec<BodyPiece>, notes: &mut Notes<'_>) -> Draft {
        self.definition.body = Body::Pieces(pieces);
        self.definition.origin.spans = std::mem::take(&mut notes.spans).into();
        self
    }
}

impl BrokenDraft {
    fn of(draft: Draft, notes: &Notes<'_>) -> Option<BrokenDraft> {
        let Body::Template { range } = &draft.definition.body else { return None };
        // Without an end of the keys, nobody knows where the text begins.
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
    /// What is left of a draft when everything has been noted.
    pub(super) fn of(draft: Draft, mut notes: Notes<'_>) -> Parsed {
        let (draft, broken) = match notes.has_errors() {
            true => (None, BrokenDraft::of(draft, &notes)),
            false => (Some(draft), None),
        };
        notes.diagnostics.sort_by_key(|found| found.location.span().start);
        if notes.diagnostics.len() > MAX_MISTAKES {
            let more = notes.diagnostics.split_off(MAX_MISTAKES);
            if let Some(first) = more.first() {
                let span = first.location.span();
                notes.error(Code::TooMany, &span, format!("from here on, {} more mistakes are not named", more.len()));
            }
        }
        Parsed { draft, broken, diagnostics: notes.diagnostics }
    }
}
