//! Guided prompts: missing arguments are requested with forms, step by step.
//!
//! An argument with `ask: true` is requested when a call omits it and the client can show a form. Steps group such
//! arguments; a condition on known values decides whether an argument is requested at all. Everything here is a pure
//! function of the sent and answered values, so any server with the same library can continue with the next step.
//!
//! The form's wire format and the storage of answers are not here.

use std::collections::BTreeSet;

use crate::{
    argument::{Argument, Problem, RawArgumentValue, RawArguments, bind_leniently, check_before_forms},
    definition::{ArgumentDefinition, Decline, RemoteForm},
    interrupt::{Interrupt, bounded},
    invisible::InvisiblePolicy,
    prompt::Prompt,
    value::{Bindings, Variables},
};

/// All answers so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Values by argument, as a caller would send them.
    pub values: Variables,
    /// Finished steps: answered, or declined where the prompt continues anyway.
    pub passed: BTreeSet<u32>,
}

/// The next form.
#[derive(Clone, Debug)]
pub struct Form<'p> {
    /// The step.
    pub step: u32,
    /// The key of the form in the protocol.
    pub key: String,
    /// The text above the form.
    pub message: String,
    /// The requested arguments. Empty if a page is to be opened.
    pub fields: Vec<&'p Argument>,
    /// The page to open.
    pub url: Option<&'p str>,
    /// The consequence of declining.
    pub decline: Decline,
    /// Whether the prompt cannot be rendered without the answer.
    pub indispensable: bool,
}

impl Form<'_> {
    /// Validates the submitted values; an empty field counts as missing.
    ///
    /// # Errors
    ///
    /// Every problem of the form.
    pub fn check(&self, filled_in: &Variables, value_bytes: usize) -> Result<Variables, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut values = Variables::new();
        for field in &self.fields {
            let value = filled_in.get(field.name()).filter(|value| !value.is_empty());
            match value.map(|value| field.check(value, value_bytes).map(|()| value)) {
                Some(Ok(value)) => {
                    values.insert(field.name().to_owned(), value.clone());
                }
                Some(Err(problem)) => problems.push(problem),
                None if field.is_indispensable() => problems.push(field.missing()),
                None => {}
            }
        }
        if problems.is_empty() { Ok(values) } else { Err(problems) }
    }

    /// Describes the arguments that a caller can send instead of answering the form.
    #[must_use]
    pub fn alternatives(&self) -> Vec<Problem> {
        self.fields.iter().map(|field| field.described()).collect()
    }
}

impl RemoteForm {
    /// Returns the fields as arguments. Bounds and defaults of a field that contradict each other are left out: the other
    /// server checks its values.
    #[must_use]
    pub fn arguments(&self) -> Vec<Argument> {
        self.fields.iter().map(field).collect()
    }

    /// Returns the form as one of a guided prompt, with its fields.
    #[must_use]
    pub fn form<'a>(&'a self, fields: &'a [Argument]) -> Form<'a> {
        Form {
            step: 1,
            key: self.key.clone(),
            message: self.message.clone(),
            fields: fields.iter().collect(),
            url: self.url.as_deref(),
            decline: Decline::default(),
            indispensable: true,
        }
    }
}

fn field(definition: &ArgumentDefinition) -> Argument {
    let (argument, faults) = Argument::alone(definition.clone(), InvisiblePolicy::default());
    if faults.is_empty() {
        return argument;
    }
    let plain = ArgumentDefinition { default: None, constraints: None, ..definition.clone() };
    Argument::alone(plain, InvisiblePolicy::default()).0
}

impl Prompt {
    /// Returns whether it ever requests anything.
    #[must_use]
    pub fn is_guided(&self) -> bool {
        self.arguments().iter().any(Argument::is_asked) || self.steps().iter().any(|step| step.url.is_some())
    }

    /// Validates the arguments of a call before the first form, so that no answer is lost to a problem that was known.
    ///
    /// # Errors
    ///
    /// Every problem that no answer can solve: invalid values, and missing required arguments that are not requested
    /// with a form.
    pub fn check_before_forms(&self, raw: &RawArguments<'_>, value_bytes: usize) -> Result<(), Vec<Problem>> {
        check_before_forms(self.arguments(), raw, value_bytes)
    }

    /// Returns the required arguments that forms would request, as far as the known values decide it. A client without
    /// forms has to send them.
    #[must_use]
    pub fn missing_answers(&self, raw: &RawArguments<'_>, answers: &Answers) -> Vec<Problem> {
        bounded(Interrupt::brief, || self.missing_with(raw, answers))
    }

    fn missing_with(&self, raw: &RawArguments<'_>, answers: &Answers) -> Vec<Problem> {
        let known = self.known(raw, answers);
        let is_missing = |argument: &&Argument| {
            let is_answered = raw.has_value(argument.name()) || answers.values.contains_key(argument.name());
            argument.is_asked() && argument.is_indispensable() && !is_answered && argument.applies(&known)
        };
        self.arguments().iter().filter(is_missing).map(Argument::missing).collect()
    }

    /// Returns the next form, after the arguments of the call and all answers; `None` if nothing is missing.
    #[must_use]
    pub fn next_form(&self, raw: &RawArguments<'_>, answers: &Answers) -> Option<Form<'_>> {
        bounded(Interrupt::brief, || self.form_after(raw, answers))
    }

    fn form_after(&self, raw: &RawArguments<'_>, answers: &Answers) -> Option<Form<'_>> {
        let numbers: BTreeSet<u32> = self
            .arguments()
            .iter()
            .filter(|argument| argument.is_asked())
            .map(Argument::step)
            .chain(self.steps().iter().filter(|step| step.url.is_some()).map(|step| step.number))
            .collect();
        let known = self.known(raw, answers);
        numbers.into_iter().filter(|number| !answers.passed.contains(number)).find_map(|number| {
            let declared = self.steps().iter().find(|step| step.number == number);
            let url = declared.and_then(|step| step.url.as_deref());
            let is_requested = |argument: &&Argument| {
                argument.is_asked()
                    && argument.step() == number
                    && !raw.has_value(argument.name())
                    && argument.applies(&known)
            };
            let fields: Vec<&Argument> = self.arguments().iter().filter(is_requested).collect();
            if fields.is_empty() && url.is_none() {
                return None;
            }
            let decline = declared.map_or(Decline::default(), |step| step.decline);
            Some(Form {
                step: number,
                key: declared.and_then(|step| step.key.clone()).unwrap_or_else(|| format!("step_{number}")),
                message: declared.and_then(|step| step.message.clone()).unwrap_or_else(|| self.default_message()),
                indispensable: fields.iter().any(|field| field.is_indispensable())
                    || (url.is_some() && decline == Decline::Stop),
                fields,
                url,
                decline,
            })
        })
    }

    /// Returns the arguments of the call together with the answers.
    #[must_use]
    pub fn with_answers<'a>(&self, raw: &RawArguments<'a>, answers: &'a Answers) -> RawArguments<'a> {
        let mut together = raw.clone();
        for (name, value) in &answers.values {
            // Arguments of the call take precedence over answers.
            if self.argument(name).is_some_and(Argument::is_asked) && !raw.has_value(name) {
                together.push(name.as_str(), RawArgumentValue::Text(value.as_str().into()));
            }
        }
        together
    }

    /// Returns all known and valid values, with defaults; conditions are evaluated with them.
    fn known(&self, raw: &RawArguments<'_>, answers: &Answers) -> Bindings {
        bind_leniently(self.arguments(), &self.with_answers(raw, answers))
    }

    fn default_message(&self) -> String {
        format!("{} needs more information.", self.title().unwrap_or(self.name().as_str()))
    }
}
