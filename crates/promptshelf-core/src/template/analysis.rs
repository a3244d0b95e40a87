//! A public summary of a template's calls and values, found without rendering it.
//!
//! For programs that inspect templates, such as lints and editors. Mistakes in a template are not
//! here; [`check`](crate::check) reports them.

use std::ops::Range;

use super::lint::{Lint, Use};

/// The calls of a template and the values that it inserts as they are.
///
/// ```
/// use promptshelf_core::TemplateAnalysis;
///
/// let analysis = TemplateAnalysis::of("{{ role('user') }}Review:\n{{ code }}");
/// assert_eq!(analysis.calls[0].name, "role");
/// assert_eq!(analysis.unenclosed[0].name, "code");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateAnalysis {
    /// Names that neither the template nor the engine defines, in the order of the text: its arguments.
    pub variables: Vec<TemplateUse>,
    /// Partials that are included, imported or extended; the span is the path's.
    pub partials: Vec<TemplateUse>,
    /// Calls of `role`, `attach`, `link` and `prompt`, in the order of the text.
    pub calls: Vec<TemplateUse>,
    /// Files and URIs that are attached by a literal; the span is the literal's.
    pub attached: Vec<TemplateUse>,
    /// Arguments that are inserted without a filter such as `fence`, `xml` or `quote` that shows
    /// where the value begins and ends; the span is the tag's.
    pub unenclosed: Vec<TemplateUse>,
}

/// A name in a template and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateUse {
    /// The function, file, URI or argument.
    pub name: String,
    /// Bytes of the template.
    pub span: Range<usize>,
}

impl TemplateAnalysis {
    /// Analyses a template. Where parts of it are malformed, the result covers the readable rest.
    #[must_use]
    pub fn of(text: &str) -> TemplateAnalysis {
        let lint = Lint::of(text);
        let public = |uses: Vec<Use>| uses.into_iter().map(|Use { name, span }| TemplateUse { name, span }).collect();
        TemplateAnalysis {
            variables: public(lint.variables),
            partials: public(lint.partials),
            calls: public(lint.structure),
            attached: public(lint.attached),
            unenclosed: public(lint.unenclosed),
        }
    }
}
