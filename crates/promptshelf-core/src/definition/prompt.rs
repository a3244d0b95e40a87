//! A prompt, as its author wrote it.

use std::{
    future::Future,
    ops::{Deref, DerefMut},
    sync::{Arc, LazyLock},
};

use arcstr::{ArcStr, Substr};
use smol_str::SmolStr;

use super::{ArgumentDefinition, Body, Origin, PromptFunction, Seldom, Silent, TestDefinition};
use crate::{
    access::Access,
    argument::Bindings,
    content::{Icon, Message, Meta},
    diagnostic::SourceText,
    template::RenderError,
    workflow::StepDefinition,
};

/// A prompt as its author wrote it. Clones share what it says until one of them
/// is changed.
#[derive(Clone, Debug)]
pub struct PromptDefinition(Arc<PromptParts>);

/// What a [`PromptDefinition`] says. What it says of few prompts is read and
/// written as if it stood here, too.
#[derive(Clone, Debug)]
pub struct PromptParts {
    /// The unique key. [`PromptName`](crate::PromptName) says what it can be.
    pub name: SmolStr,
    /// The name for people.
    pub title: Option<Substr>,
    /// What the prompt does.
    pub description: Option<Substr>,
    /// What the prompt asks for, in the order in which people are asked.
    pub arguments: Vec<ArgumentDefinition>,
    /// What it says.
    pub body: Body,
    /// Where it comes from.
    pub origin: Origin,
    /// Everything else.
    pub details: Seldom<PromptDetails>,
}

/// What a [`PromptDefinition`] says of few prompts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptDetails {
    /// Pictures for it.
    pub icons: Vec<Icon>,
    /// The author's version of it.
    pub version: Option<String>,
    /// Words to group prompts by.
    pub tags: Vec<String>,
    /// What it asks of its callers.
    pub access: Option<Access>,
    /// Extra members for clients that know them.
    pub meta: Meta,
    /// What is said about the steps of a guided prompt.
    pub steps: Vec<StepDefinition>,
    /// What its author expects of it.
    pub tests: Vec<TestDefinition>,
}

impl Silent for PromptDetails {
    fn silent() -> &'static PromptDetails {
        static SILENT: LazyLock<PromptDetails> = LazyLock::new(PromptDetails::default);
        &SILENT
    }

    fn is_silent(&self) -> bool {
        self == PromptDetails::silent()
    }
}

impl Deref for PromptParts {
    type Target = PromptDetails;

    fn deref(&self) -> &PromptDetails {
        &self.details
    }
}

impl DerefMut for PromptParts {
    fn deref_mut(&mut self) -> &mut PromptDetails {
        &mut self.details
    }
}

impl Deref for PromptDefinition {
    type Target = PromptParts;

    fn deref(&self) -> &PromptParts {
        &self.0
    }
}

impl DerefMut for PromptDefinition {
    fn deref_mut(&mut self) -> &mut PromptParts {
        Arc::make_mut(&mut self.0)
    }
}

impl PromptDefinition {
    /// A prompt that is defined in code: `function` gets the checked arguments
    /// and returns the messages.
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
    pub fn new<F>(name: impl Into<SmolStr>, function: F) -> PromptDefinition
    where
        F: Fn(&Bindings) -> Result<Vec<Message>, RenderError> + Send + Sync + 'static,
    {
        PromptDefinition::with_body(
            name,
            Body::Function(PromptFunction(Arc::new(move |arguments| {
                let messages = function(&arguments);
                Box::pin(std::future::ready(messages))
            }))),
        )
    }

    /// Like [`new`](PromptDefinition::new), for a function that has to wait for something.
    pub fn new_async<F, R>(name: impl Into<SmolStr>, function: F) -> PromptDefinition
    where
        F: Fn(Bindings) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<Message>, RenderError>> + Send + 'static,
    {
        PromptDefinition::with_body(
            name,
            Body::Function(PromptFunction(Arc::new(move |arguments| Box::pin(function(arguments))))),
        )
    }

    /// A prompt whose body is a template, defined in code.
    ///
    /// ```
    /// use promptshelf_core::PromptDefinition;
    ///
    /// let prompt = PromptDefinition::template("hello", "Say hello to {{ name }}.");
    /// # assert_eq!(prompt.name, "hello");
    /// ```
    pub fn template(name: impl Into<SmolStr>, template: impl Into<ArcStr>) -> PromptDefinition {
        let name = name.into();
        let source = SourceText::new(format!("<{name}>"), template);
        let range = 0..source.text.len();
        PromptDefinition::from_source(name, Body::Template { range }, Origin::new(source))
    }

    /// Whether another definition, made of the very same text, says the same.
    pub(crate) fn is_same(&self, other: &PromptDefinition) -> bool {
        let body = match (&self.body, &other.body) {
            (Body::Template { range: a }, Body::Template { range: b }) => a == b,
            (Body::Pieces(a), Body::Pieces(b)) => a == b,
            (Body::Function(a), Body::Function(b)) => Arc::ptr_eq(&a.0, &b.0),
            _ => false,
        };
        Arc::ptr_eq(&self.0, &other.0)
            || body
                && Arc::ptr_eq(&self.origin.source, &other.origin.source)
                && self.origin.modified == other.origin.modified
                && self.name == other.name
                && self.title == other.title
                && self.description == other.description
                && self.arguments == other.arguments
                && self.details == other.details
    }

    fn with_body(name: impl Into<SmolStr>, body: Body) -> PromptDefinition {
        let name = name.into();
        let origin = Origin::new(SourceText::new(format!("<{name}>"), ""));
        PromptDefinition::from_source(name, body, origin)
    }

    /// A prompt of which no more is known than its name, what it says, and
    /// where it comes from: what a source begins with.
    #[must_use]
    pub fn from_source(name: impl Into<SmolStr>, body: Body, origin: Origin) -> PromptDefinition {
        PromptDefinition(Arc::new(PromptParts {
            name: name.into(),
            title: None,
            description: None,
            arguments: Vec::new(),
            body,
            origin,
            details: Seldom::default(),
        }))
    }

    /// Gives back the room of what says nothing, and of what the file says
    /// word for word: it is a part of the file's text from here on.
    ///
    /// ```
    /// use promptshelf_core::{Body, Origin, PromptDefinition, SourceText};
    ///
    /// let file = SourceText::new("hello.md", "---\ntitle: A greeting\ndescription: >\n  Greets\n  somebody\n---\nHello");
    /// let mut prompt = PromptDefinition::from_source("hello", Body::Template { range: 59..64 }, Origin::new(file.clone()))
    ///     .title("A greeting")
    ///     .description("Greets somebody");
    /// prompt.settle();
    /// let stands_in_file = |text: &arcstr::Substr| arcstr::ArcStr::ptr_eq(text.parent(), &file.text);
    /// assert_eq!(prompt.title.as_ref().map(stands_in_file), Some(true));
    /// assert_eq!(prompt.description.as_deref(), Some("Greets somebody"));
    /// ```
    pub fn settle(&mut self) {
        let parts = Arc::make_mut(&mut self.0);
        parts.details.settle();
        parts.arguments.shrink_to_fit();
        let file = &parts.origin.source.text;
        let settle = |text: &mut Option<Substr>| {
            if let Some(text) = text
                && let Some(at) = file.find(text.as_str())
            {
                *text = file.substr(at..at + text.len());
            }
        };
        settle(&mut parts.title);
        settle(&mut parts.description);
        for argument in &mut parts.arguments {
            settle(&mut argument.description);
            // To be written to, a title would come to be.
            if argument.title.is_some() {
                settle(&mut argument.title);
            }
            argument.details.settle();
        }
    }

    /// Sets the name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<Substr>) -> PromptDefinition {
        self.title = Some(title.into());
        self
    }

    /// Says what the prompt does.
    #[must_use]
    pub fn description(mut self, description: impl Into<Substr>) -> PromptDefinition {
        self.description = Some(description.into());
        self
    }

    /// Adds a picture.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> PromptDefinition {
        self.icons.push(icon);
        self
    }

    /// Asks something of its callers.
    #[must_use]
    pub fn access(mut self, access: Access) -> PromptDefinition {
        self.access = Some(access);
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, argument: ArgumentDefinition) -> PromptDefinition {
        self.arguments.push(argument);
        self
    }
}
