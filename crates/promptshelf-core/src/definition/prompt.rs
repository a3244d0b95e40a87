//! The definition of a prompt, as its author wrote it.

use std::{future::Future, sync::Arc};

use super::{Access, Body, Origin, PromptFunction, RemotePrompt, argument::ArgumentDefinition};
use crate::{
    content::{Icon, Message, Meta, Role},
    diagnostic::SourceText,
    render_error::RenderError,
    value::{Bindings, Variables},
};

/// A prompt as its author wrote it.
#[derive(Clone, Debug)]
pub struct PromptDefinition {
    /// The unique key; [`PromptName`](crate::PromptName) has the rules.
    pub name: String,
    /// Former names, under which it is still served; lists have the present name only.
    pub aliases: Box<[String]>,
    /// The display name.
    pub title: Option<String>,
    /// The purpose of the prompt.
    pub description: Option<String>,
    /// Icons, in any number of sizes.
    pub icons: Vec<Icon>,
    /// The author's version of the prompt.
    pub version: Option<String>,
    /// The tags to group prompts by.
    pub tags: Vec<String>,
    /// What tells people about it, such as its owners.
    pub labels: Labels,
    /// The arguments, in the order in which a form shows them.
    pub arguments: Vec<ArgumentDefinition>,
    /// The template, the text, or the function that returns the messages.
    pub body: Body,
    /// The access rule of this prompt, if it has one.
    // Shared with the catalog.
    pub access: Option<Arc<Access>>,
    /// Whether models may find and use it through tools.
    pub tool: bool,
    /// Whether, and in favour of which other one, it should no longer be used.
    // Boxed, because most prompts have none.
    pub deprecated: Option<Box<Deprecation>>,
    /// The skill that it is also served as.
    pub skill: Option<SkillSource>,
    /// Members of `_meta`, for clients that know them.
    pub meta: Meta,
    /// The ids of the servers that have passed on the prompt, the first one first.
    pub via: Vec<Arc<str>>,
    /// Steps of a guided prompt that have a key, a message or a page of their own.
    pub steps: Vec<StepDefinition>,
    /// The author's tests.
    pub tests: Vec<TestDefinition>,
    /// The file it comes from.
    pub origin: Origin,
}

impl PromptDefinition {
    /// Creates a prompt in code: `function` receives the checked arguments and returns the messages. It may block: a service
    /// calls it in a thread of its own, and answers with an error if it has not returned after 50 seconds, or panics.
    ///
    /// ```
    /// use promptshelf_core::{ArgumentDefinition, Message, PromptDefinition};
    ///
    /// let prompt = PromptDefinition::new("git-commit", |arguments| {
    ///     Ok(vec![Message::user(format!("Write a commit message for:\n\n{}", arguments.text("changes")))])
    /// })
    /// .description("Writes a commit message")
    /// .argument(ArgumentDefinition::new("changes").required());
    /// assert_eq!(prompt.arguments.len(), 1);
    /// ```
    pub fn new<F>(name: impl Into<String>, function: F) -> PromptDefinition
    where
        F: Fn(&Bindings) -> Result<Vec<Message>, RenderError> + Send + Sync + 'static,
    {
        PromptDefinition::with_body(name, Body::Function(PromptFunction::Sync(Arc::new(function))))
    }

    /// Creates a prompt like [`new`](PromptDefinition::new), from an asynchronous function.
    pub fn new_async<F, R>(name: impl Into<String>, function: F) -> PromptDefinition
    where
        F: Fn(Bindings) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<Message>, RenderError>> + Send + 'static,
    {
        let function = PromptFunction::Async(Arc::new(move |arguments| Box::pin(function(arguments))));
        PromptDefinition::with_body(name, Body::Function(function))
    }

    /// Creates a prompt that another server has.
    pub fn remote(name: impl Into<String>, prompt: Arc<dyn RemotePrompt>) -> PromptDefinition {
        PromptDefinition::with_body(name, Body::Function(PromptFunction::Remote(prompt)))
    }

    /// Creates a prompt in code whose body is a template.
    ///
    /// ```
    /// use promptshelf_core::PromptDefinition;
    ///
    /// let prompt = PromptDefinition::template("hello", "Say hello to {{ name }}.");
    /// # assert_eq!(prompt.name, "hello");
    /// ```
    pub fn template(name: impl Into<String>, template: impl Into<Arc<str>>) -> PromptDefinition {
        let name = name.into();
        let source = SourceText::new(format!("<{name}>"), template);
        let range = 0..source.text.len();
        PromptDefinition::from_source(name, Body::Template { range }, Origin::new(source))
    }

    pub(crate) fn is_same(&self, other: &PromptDefinition) -> bool {
        if std::ptr::eq(self, other) {
            return true;
        }
        let body = match (&self.body, &other.body) {
            (Body::Template { range: a }, Body::Template { range: b }) => a == b,
            (Body::Pieces(a), Body::Pieces(b)) => a == b,
            (Body::Function(a), Body::Function(b)) => a.is_same(b),
            _ => false,
        };
        body && Arc::ptr_eq(&self.origin.source, &other.origin.source)
            && self.origin.modified == other.origin.modified
            && self.origin.linked_names == other.origin.linked_names
            && self.name == other.name
            && self.aliases == other.aliases
            && self.title == other.title
            && self.description == other.description
            && self.icons == other.icons
            && self.version == other.version
            && self.tags == other.tags
            && self.labels == other.labels
            && self.arguments == other.arguments
            && self.access == other.access
            && self.tool == other.tool
            && self.deprecated == other.deprecated
            && self.skill == other.skill
            && self.meta == other.meta
            && self.via == other.via
            && self.steps == other.steps
            && self.tests == other.tests
    }

    fn with_body(name: impl Into<String>, body: Body) -> PromptDefinition {
        let name = name.into();
        let origin = Origin::new(SourceText::new(format!("<{name}>"), ""));
        PromptDefinition::from_source(name, body, origin)
    }

    /// Creates a definition from a source, with only a name, a body and an origin.
    #[must_use]
    pub fn from_source(name: impl Into<String>, body: Body, origin: Origin) -> PromptDefinition {
        PromptDefinition {
            name: name.into(),
            aliases: Box::default(),
            title: None,
            description: None,
            via: Vec::new(),
            icons: Vec::new(),
            version: None,
            tags: Vec::new(),
            labels: Labels::default(),
            arguments: Vec::new(),
            body,
            access: None,
            tool: false,
            deprecated: None,
            skill: None,
            meta: Meta::new(),
            steps: Vec::new(),
            tests: Vec::new(),
            origin,
        }
    }

    /// Adds a former name.
    #[must_use]
    pub fn alias(mut self, name: impl Into<String>) -> PromptDefinition {
        self.aliases = std::mem::take(&mut self.aliases).into_iter().chain([name.into()]).collect();
        self
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> PromptDefinition {
        self.title = Some(title.into());
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> PromptDefinition {
        self.description = Some(description.into());
        self
    }

    /// Adds an icon.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> PromptDefinition {
        self.icons.push(icon);
        self
    }

    /// Lets models find and use it through tools.
    #[must_use]
    pub fn tool(mut self) -> PromptDefinition {
        self.tool = true;
        self
    }

    /// Marks it as deprecated.
    #[must_use]
    pub fn deprecated(mut self, deprecation: Deprecation) -> PromptDefinition {
        self.deprecated = Some(Box::new(deprecation));
        self
    }

    /// Serves it as a skill too.
    #[must_use]
    pub fn skill(mut self) -> PromptDefinition {
        self.skill = Some(SkillSource::Prompt);
        self
    }

    /// Sets the access rule.
    #[must_use]
    pub fn access(mut self, access: Access) -> PromptDefinition {
        self.access = Some(Arc::new(access));
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, argument: ArgumentDefinition) -> PromptDefinition {
        self.arguments.push(argument);
        self
    }
}

/// A key of prompt files that tells people about a prompt, and changes neither access nor messages.
///
/// A row of [`LABELS`] is all that another one needs: files are read and written with it, editors and the schema know it,
/// comparisons and exports name it, and clients, the HTTP API and the page see it if it is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Label {
    /// The key in files.
    pub key: &'static str,
    /// A description in one sentence.
    pub about: &'static str,
    /// Whether it has several values.
    pub is_list: bool,
    /// Whether clients see it in `_meta` of lists, as `dev.promptshelf/KEY`, and the HTTP API and the page with the prompt.
    pub is_listed: bool,
}

impl Label {
    /// Creates a key with one value, for authors and reviewers.
    #[must_use]
    pub const fn text(key: &'static str, about: &'static str) -> Label {
        Label { key, about, is_list: false, is_listed: false }
    }

    /// Creates a key with several values, for authors and reviewers.
    #[must_use]
    pub const fn list(key: &'static str, about: &'static str) -> Label {
        Label { is_list: true, ..Label::text(key, about) }
    }

    /// Shows it to clients.
    #[must_use]
    pub const fn listed(mut self) -> Label {
        self.is_listed = true;
        self
    }
}

/// All labels, in the order in which files are written.
pub const LABELS: &[Label] = &[
    Label::list("owners", "The people or teams in charge of the prompt, for authors and reviewers."),
    Label::list("collections", "Collections that the prompt belongs to, across folders, for authors and reviewers."),
];

/// The largest number of characters of one value of a label.
pub const MAX_LABEL_CHARS: usize = 200;

/// The values of a prompt's labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
// Not a `Vec`, because most prompts have none.
pub struct Labels(Box<[(&'static Label, Vec<String>)]>);

impl Labels {
    /// Returns the values of a key; empty without any.
    #[must_use]
    pub fn get(&self, key: &str) -> &[String] {
        self.iter().find(|(label, _)| label.key == key).map_or(&[], |(_, values)| values)
    }

    /// Iterates over the labels that have values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Label, &[String])> {
        self.0.iter().map(|(label, values)| (*label, values.as_slice()))
    }

    /// Iterates over those that clients see.
    pub fn listed(&self) -> impl Iterator<Item = (&'static Label, &[String])> {
        self.iter().filter(|(label, _)| label.is_listed)
    }
}

impl FromIterator<(&'static Label, Vec<String>)> for Labels {
    fn from_iter<I: IntoIterator<Item = (&'static Label, Vec<String>)>>(labels: I) -> Labels {
        Labels(labels.into_iter().filter(|(_, values)| !values.is_empty()).collect())
    }
}

/// Marks a prompt that should no longer be used. It is served as before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deprecation {
    /// The reason, or the date of its removal, for people who use the prompt.
    pub message: Option<String>,
    /// The name of the prompt to use instead, in the same library.
    pub replacement: Option<String>,
}

impl Deprecation {
    /// Creates a deprecation with a message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Deprecation {
        Deprecation { message: Some(message.into()), replacement: None }
    }

    /// Sets the name of the prompt to use instead.
    #[must_use]
    pub fn replaced_by(mut self, name: impl Into<String>) -> Deprecation {
        self.replacement = Some(name.into());
        self
    }
}

/// One step of a guided prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepDefinition {
    /// The number that arguments refer to as `step`. Steps are taken in this order.
    pub number: u32,
    /// The key of the form in requests and responses.
    pub key: Option<String>,
    /// The message above the form.
    pub message: Option<String>,
    /// A page to open instead of a form (`https:`).
    pub url: Option<String>,
    /// The effect on the prompt if the person declines or cancels.
    pub decline: Decline,
}

/// The effect on a prompt if the person does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decline {
    /// The prompt is cancelled.
    #[default]
    Stop,
    /// The prompt continues with defaults, and without values that have none.
    Continue,
}

/// The source of a skill (Agent Skills specification, agentskills.io).
#[derive(Clone, Debug, PartialEq)]
pub enum SkillSource {
    /// The folder of the prompt's file, which is its `SKILL.md`. Holds the front matter as JSON, with all keys; empty if
    /// the file has none.
    Folder(Arc<Meta>),
    /// The text of the prompt, with its arguments described in words.
    Prompt,
}

/// One test of a prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestDefinition {
    /// The name of the test.
    pub name: Option<String>,
    /// The values to fill in, as a caller would send them.
    pub arguments: Variables,
    /// Texts that the messages must contain.
    pub contains: Vec<String>,
    /// Texts that the messages must not contain.
    pub not_contains: Vec<String>,
    /// The complete text of the messages.
    pub equals: Option<String>,
    /// The roles of the messages; empty for any.
    pub roles: Vec<Role>,
    /// The kinds of the blocks, message by message, as the protocol's `type` member spells them; empty for any.
    pub kinds: Vec<String>,
    /// A text that the error for these values must contain.
    pub error: Option<String>,
    /// A file next to the prompt with the expected messages.
    pub golden: Option<String>,
    /// Suggestions to request instead of messages.
    pub complete: Option<CompletionTest>,
}

/// The expected completion of an argument.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompletionTest {
    /// The argument.
    pub argument: String,
    /// The text typed so far.
    pub value: String,
    /// The other arguments that are filled in.
    pub context: Variables,
    /// Values that must be suggested.
    pub contains: Vec<String>,
    /// Values that must not be suggested.
    pub not_contains: Vec<String>,
}
