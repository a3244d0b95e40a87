//! Guided prompts: what is still to be asked, one step after the other.
//!
//! An argument with `ask: true` is asked for when a call leaves it out and the
//! client can show a form. Steps group such arguments; a condition decides from
//! what is known already whether an argument is asked for at all. Everything
//! here is a pure function of what was sent and answered, so that any server
//! that holds the same library can take the next step.
//!
//! How a form looks on the wire, and who remembers the answers, is not here.

use std::collections::BTreeSet;

use crate::{
    argument::{Argument, Problem, RawArgumentValue, RawArguments},
    definition::Decline,
    prompt::Prompt,
    value::{Bindings, Variables},
};

/// What has been answered so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Values, by argument, as a caller would send them.
    pub values: Variables,
    /// Steps that are over: answered, or declined where that lets the prompt go on.
    pub passed: BTreeSet<u32>,
}

/// What is to be asked now.
#[derive(Clone, Debug)]
pub struct Form<'p> {
    /// The step.
    pub step: u32,
    /// The key under which the form travels.
    pub key: String,
    /// What the person reads above it.
    pub message: String,
    /// What is asked for. Empty where a page is to be opened.
    pub fields: Vec<&'p Argument>,
    /// The page to open.
    pub url: Option<&'p str>,
    /// What becomes of the prompt when the person declines.
    pub decline: Decline,
    /// Whether the prompt cannot be made without the answer.
    pub indispensable: bool,
}

impl Form<'_> {
    /// Checks what a person filled in; a field left blank is not given.
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
}

impl Prompt {
    /// Whether it ever asks anything.
    #[must_use]
    pub fn is_guided(&self) -> bool {
        self.arguments().iter().any(Argument::is_asked) || self.steps().iter().any(|step| step.url.is_some())
    }

    /// What is to be asked next, after what a caller sent and what has been
    /// answered; `None` when nothing is left to ask.
    #[must_use]
    pub fn next_form(&self, given: &RawArguments<'_>, answers: &Answers) -> Option<Form<'_>> {
        let numbers: BTreeSet<u32> = self
            .arguments()
            .iter()
            .filter(|argument| argument.is_asked())
            .map(Argument::step)
            .chain(self.steps().iter().filter(|step| step.url.is_some()).map(|step| step.number))
            .collect();
        let known = self.known(given, answers);
        numbers.into_iter().filter(|number| !answers.passed.contains(number)).find_map(|number| {
            let declared = self.steps().iter().find(|step| step.number == number);
            let url = declared.and_then(|step| step.url.as_deref());
            let wanted = |argument: &&Argument| {
                argument.is_asked()
                    && argument.step() == number
                    && !is_given(given, argument.name())
                    && argument.applies(&known)
            };
            let fields: Vec<&Argument> = self.arguments().iter().filter(wanted).collect();
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

    /// What a caller sent and what has been answered, together.
    #[must_use]
    pub fn with_answers<'a>(&self, given: &RawArguments<'a>, answers: &'a Answers) -> RawArguments<'a> {
        let mut together = given.clone();
        for (name, value) in &answers.values {
            // What a caller sends for itself counts more than what a form gave.
            if self.argument(name).is_some_and(Argument::is_asked) && !is_given(given, name) {
                together.push(name.as_str(), RawArgumentValue::Text(value.as_str().into()));
            }
        }
        together
    }

    /// Every value that is known and valid so far, with defaults: what
    /// conditions are decided by.
    fn known(&self, given: &RawArguments<'_>, answers: &Answers) -> Bindings {
        let together = self.with_answers(given, answers);
        let mut known = Bindings::default();
        self.arguments().iter().for_each(|argument| argument.bind_leniently(&together, &mut known));
        known
    }

    fn default_message(&self) -> String {
        format!("{} needs to know a little more.", self.title().unwrap_or(self.name().as_str()))
    }
}

fn is_given(given: &RawArguments<'_>, name: &str) -> bool {
    match given.get(name) {
        Some(RawArgumentValue::Text(text)) => !text.is_empty(),
        Some(RawArgumentValue::Other(_)) => true,
        None => false,
    }
}
