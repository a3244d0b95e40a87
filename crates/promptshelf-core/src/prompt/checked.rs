//! A checked prompt: definition, arguments, and the text or code that makes its messages.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    argument::{self, Argument, Problem, RawArguments},
    content::{Annotations, Icon, Meta},
    definition::{BodyPiece, Deprecation, Labels, LibraryFile, PromptDefinition, PromptFunction, StepDefinition},
    diagnostic::{Diagnostic, SourceText},
    name::PromptName,
    render_error::RenderError,
    template::{Attach, Directive, Piece, Remaining, Template},
    value::Bindings,
};

/// A prompt that can be served.
#[derive(Debug)]
pub struct Prompt {
    pub(crate) name: PromptName,
    pub(crate) definition: Arc<PromptDefinition>,
    pub(crate) arguments: Box<[Argument]>,
    pub(crate) body: CheckedBody,
    /// `None` for the many prompts that need nothing else.
    uses: Option<Box<Uses>>,
}

/// The files and prompts that a prompt was built from. If they and the definition are the same, so is the prompt.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// Warnings of the check; errors keep a prompt from being served.
    pub(crate) warnings: Vec<Diagnostic>,
    pub(crate) partials: Vec<Arc<SourceText>>,
    pub(crate) attachments: BTreeMap<String, Arc<LibraryFile>>,
    pub(crate) globs: Vec<String>,
    pub(crate) computes_names: bool,
    pub(crate) resources: BTreeSet<String>,
    pub(crate) prompts: BTreeMap<String, Arc<Prompt>>,
    /// Whether the result of the check depends on more than these, such as the server's resources.
    pub(crate) depends_on_others: bool,
}

#[derive(Debug)]
pub(crate) enum CheckedBody {
    Template(Template),
    Pieces(Vec<BodyPiece>),
    Function(PromptFunction),
    Served {
        /// The index of the part.
        part: usize,
        /// The prompt under its own name.
        prompt: Arc<Prompt>,
    },
}

static NOTHING: Uses = Uses {
    warnings: Vec::new(),
    partials: Vec::new(),
    attachments: BTreeMap::new(),
    globs: Vec::new(),
    computes_names: false,
    resources: BTreeSet::new(),
    prompts: BTreeMap::new(),
    depends_on_others: false,
};

impl Uses {
    fn is_empty(&self) -> bool {
        let Uses { warnings, partials, attachments, globs, computes_names, resources, prompts, depends_on_others } =
            self;
        let has_parts = !partials.is_empty() || !attachments.is_empty() || !resources.is_empty() || !prompts.is_empty();
        warnings.is_empty() && !has_parts && globs.is_empty() && !computes_names && !depends_on_others
    }
}

impl Prompt {
    pub(crate) fn new(
        name: PromptName,
        definition: Arc<PromptDefinition>,
        arguments: Vec<Argument>,
        body: CheckedBody,
        uses: Uses,
    ) -> Prompt {
        let uses = (!uses.is_empty()).then(|| Box::new(uses));
        Prompt { name, definition, arguments: arguments.into(), body, uses }
    }

    /// Creates the entry of a joined catalog for a prompt of one of its parts.
    pub(crate) fn serve(name: PromptName, part: usize, prompt: Arc<Prompt>) -> Prompt {
        let (definition, arguments) = (Arc::clone(&prompt.definition), prompt.arguments.clone());
        Prompt { name, definition, arguments, body: CheckedBody::Served { part, prompt }, uses: None }
    }

    /// Returns the index of the part and the prompt there, for an entry of a joined catalog.
    pub(crate) fn served(&self) -> Option<(usize, &Arc<Prompt>)> {
        match &self.body {
            CheckedBody::Served { part, prompt } => Some((*part, prompt)),
            _ => None,
        }
    }

    pub(crate) fn uses(&self) -> &Uses {
        if let CheckedBody::Served { prompt, .. } = &self.body {
            return prompt.uses();
        }
        self.uses.as_deref().unwrap_or(&NOTHING)
    }

    /// The unique key.
    #[must_use]
    pub fn name(&self) -> &PromptName {
        &self.name
    }

    /// The former names under which it is still served, with the prefix of its source.
    pub fn aliases(&self) -> impl Iterator<Item = String> {
        let name = self.name.as_str();
        let prefix = name.strip_suffix(&*self.definition.name).unwrap_or_default();
        self.definition.aliases.iter().map(move |alias| format!("{prefix}{alias}"))
    }

    /// The name for people.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.definition.title.as_deref()
    }

    /// The author's description.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.definition.description.as_deref()
    }

    /// The icons.
    #[must_use]
    pub fn icons(&self) -> &[Icon] {
        &self.definition.icons
    }

    /// The author's version of it.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.definition.version.as_deref()
    }

    /// The tags to group prompts by.
    #[must_use]
    pub fn tags(&self) -> &[String] {
        &self.definition.tags
    }

    /// What tells people about it, such as its owners.
    #[must_use]
    pub fn labels(&self) -> &Labels {
        &self.definition.labels
    }

    /// The deprecation, if it should no longer be used.
    #[must_use]
    pub fn deprecation(&self) -> Option<&Deprecation> {
        self.definition.deprecated.as_deref()
    }

    /// Additional members for clients that know them (MCP `_meta`).
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.definition.meta
    }

    /// The arguments, in the order in which forms request them.
    #[must_use]
    pub fn arguments(&self) -> &[Argument] {
        &self.arguments
    }

    /// The described steps of a guided prompt.
    #[must_use]
    pub fn steps(&self) -> &[StepDefinition] {
        &self.definition.steps
    }

    /// Returns an argument by name.
    #[must_use]
    pub fn argument(&self, name: &str) -> Option<&Argument> {
        self.arguments.iter().find(|argument| argument.name() == name)
    }

    /// The text that the definition was read from.
    #[must_use]
    pub fn source(&self) -> &Arc<SourceText> {
        &self.definition.origin.source
    }

    /// The definition, as its author wrote it.
    #[must_use]
    pub fn definition(&self) -> &PromptDefinition {
        &self.definition
    }

    /// The texts that it includes.
    pub fn includes(&self) -> impl Iterator<Item = &Arc<SourceText>> {
        self.uses().partials.iter()
    }

    /// The library files that its text attaches, by the path written in the template.
    pub fn attachments(&self) -> impl Iterator<Item = (&str, &Arc<LibraryFile>)> {
        self.uses().attachments.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// The library file that its text attaches by this path.
    #[must_use]
    pub fn attachment(&self, path: &str) -> Option<&Arc<LibraryFile>> {
        self.uses().attachments.get(path)
    }

    /// Validates the arguments of a call and fills in defaults.
    ///
    /// # Errors
    ///
    /// Every problem of the call; see [`bind`](argument::bind).
    pub fn bind(&self, raw: &RawArguments<'_>, value_bytes: usize) -> Result<Bindings, Vec<Problem>> {
        argument::bind(&self.arguments, raw, value_bytes)
    }

    /// Returns a problem for each name of a call that is not an argument of the prompt, at most 20.
    #[must_use]
    pub fn unknown_arguments(&self, raw: &RawArguments<'_>) -> Vec<Problem> {
        argument::unknown(&self.arguments, raw)
    }

    /// Renders its own text or function for these arguments; calls of other prompts are left as pieces.
    pub(super) fn pieces(&self, bindings: &Bindings, left: &mut Remaining) -> Result<Vec<Piece>, RenderError> {
        match &self.body {
            CheckedBody::Template(template) => template.render(bindings, left),
            CheckedBody::Pieces(pieces) => filled_in(pieces, bindings, left),
            CheckedBody::Function(_) | CheckedBody::Served { .. } => {
                Err(RenderError::Failed("a prompt written in code cannot be called from a template".into()))
            }
        }
    }

    pub(crate) fn depth(&self) -> usize {
        1 + self.uses().prompts.values().map(|prompt| prompt.depth()).max().unwrap_or(0)
    }

    /// Returns whether `prompts/list` shows the same for both.
    pub(crate) fn is_listed_like(self: &Arc<Self>, other: &Arc<Prompt>) -> bool {
        let shown = |p: &Prompt| {
            let arguments = p.arguments.iter().map(|argument| {
                (
                    argument.name().to_owned(),
                    argument.definition().title.clone(),
                    argument.definition().description.clone(),
                    argument.required(),
                )
            });
            arguments.collect::<Vec<_>>()
        };
        Arc::ptr_eq(self, other)
            || (self.name == other.name
                && self.title() == other.title()
                && self.description() == other.description()
                && self.icons() == other.icons()
                && self.meta() == other.meta()
                && self.labels().listed().eq(other.labels().listed())
                && self.deprecation() == other.deprecation()
                && self.definition.via == other.definition.via
                && shown(self) == shown(other))
    }
}

fn filled_in(pieces: &[BodyPiece], bindings: &Bindings, left: &mut Remaining) -> Result<Vec<Piece>, RenderError> {
    let mut filled: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let text = match piece {
            BodyPiece::Text(text) => std::borrow::Cow::Borrowed(text.as_str()),
            BodyPiece::Argument(name) => bindings.text(name),
            BodyPiece::Words(words) => words.of(bindings.text(&words.argument)),
            BodyPiece::Role(role) => {
                filled.push(Piece::Directive(Directive::Role { role: *role, annotations: Annotations::default() }));
                continue;
            }
            BodyPiece::Attach { path, .. } => {
                let target = path.clone();
                let annotations = Annotations::default();
                filled.push(Piece::Directive(Directive::Attach(Attach { target, uri: None, mime: None, annotations })));
                continue;
            }
        };
        within(text.len(), left.output_bytes, "bytes of text")?;
        left.output_bytes -= text.len();
        match filled.last_mut() {
            Some(Piece::Text(before)) => before.push_str(&text),
            _ => filled.push(Piece::Text(text.into_owned())),
        }
    }
    Ok(filled)
}

pub(super) fn within(found: usize, limit: usize, what: &str) -> Result<(), RenderError> {
    if found > limit {
        return Err(RenderError::OverBudget(format!("{limit} {what}")));
    }
    Ok(())
}
