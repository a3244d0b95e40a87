//! One checked argument: its definition and the compiled parts of it.

use std::sync::Arc;

use super::{Parser, Pattern};
use crate::{
    definition::{ArgumentDefinition, ArgumentType, Choice, CompletionSource, PromptDefinition},
    invisible::InvisiblePolicy,
    template::Condition,
    value::{Bindings, Value},
};

/// One checked argument of a prompt, or variable of a URI template.
#[derive(Clone, Debug)]
pub struct Argument {
    declared: Declared,
    pattern: Option<Arc<Pattern>>,
    pub(super) default: Option<Box<Value>>,
    pub(crate) condition: Option<Arc<Condition>>,
    pub(crate) invisible: InvisiblePolicy,
}

#[derive(Clone, Debug)]
pub(crate) enum Declared {
    Prompt(Arc<PromptDefinition>, u32),
    Alone(Arc<ArgumentDefinition>),
}

impl Declared {
    fn definition(&self) -> &ArgumentDefinition {
        match self {
            Declared::Prompt(prompt, index) => &prompt.arguments[*index as usize],
            Declared::Alone(definition) => definition,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArgumentFault {
    /// The part of the definition, such as `pattern`.
    pub(crate) part: &'static str,
    pub(crate) code: crate::Code,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Argument {
    /// Checks a definition that belongs to no prompt.
    pub(crate) fn alone(definition: ArgumentDefinition, usual: InvisiblePolicy) -> (Argument, Vec<ArgumentFault>) {
        Argument::new(Declared::Alone(Arc::new(definition)), usual)
    }

    /// Checks a definition by itself and reports every mistake. `usual` is the policy for invisible characters if the
    /// definition has none.
    pub(crate) fn new(declared: Declared, usual: InvisiblePolicy) -> (Argument, Vec<ArgumentFault>) {
        use crate::Code;
        let definition = declared.definition();
        let mut faults = Vec::new();
        let mut fault = |part, code, message: String, help| faults.push(ArgumentFault { part, code, message, help });

        let pattern = definition.constraints().pattern.as_deref().and_then(|pattern| match Pattern::compile(pattern) {
            Ok(pattern) => Some(pattern),
            Err((message, help)) => {
                fault("pattern", Code::InvalidPattern, message, help);
                None
            }
        });
        if let (Some(least), Some(most)) = (definition.constraints().min_length, definition.constraints().max_length)
            && least > most
        {
            fault(
                "minLength",
                Code::InvalidValue,
                format!("`minLength` {least} is larger than `maxLength` {most}"),
                None,
            );
        }
        if let (Some(least), Some(most)) = (definition.constraints().minimum, definition.constraints().maximum)
            && least > most
        {
            fault("minimum", Code::InvalidValue, format!("`minimum` {least} is larger than `maximum` {most}"), None);
        }
        let numeric = matches!(definition.kind, ArgumentType::Integer | ArgumentType::Number);
        let kind = definition.kind.as_str();
        for (part, set) in [
            ("minimum", definition.constraints().minimum.is_some()),
            ("maximum", definition.constraints().maximum.is_some()),
        ] {
            if set && !numeric {
                fault(
                    part,
                    Code::InvalidValue,
                    format!("`{part}` is for numbers, and this argument's type is {kind}"),
                    None,
                );
            }
        }
        let textual = matches!(definition.kind, ArgumentType::String | ArgumentType::Text | ArgumentType::List);
        for (part, set) in [
            ("pattern", definition.constraints().pattern.is_some()),
            ("minLength", definition.constraints().min_length.is_some()),
            ("maxLength", definition.constraints().max_length.is_some()),
        ] {
            if set && !textual {
                fault(
                    part,
                    Code::InvalidValue,
                    format!("`{part}` is for text, and this argument's type is {kind}"),
                    None,
                );
            }
        }

        if definition.sensitive && definition.ask {
            // Specification, *Elicitation*: forms must not ask for secrets.
            fault("ask", Code::InvalidValue, "a sensitive argument cannot be asked for by a form".to_owned(), None);
        }
        if definition.sensitive && definition.audit {
            fault("audit", Code::InvalidValue, "a sensitive argument is never recorded".to_owned(), None);
        }

        let condition = definition.when.as_deref().and_then(|when| match Condition::parse(when) {
            Ok(condition) => Some(Arc::new(condition)),
            Err(error) => {
                fault("when", Code::InvalidCondition, format!("invalid condition: {}", error.message), error.help);
                None
            }
        });

        let invisible = definition.invisible.unwrap_or(usual);
        let mut argument = Argument { declared, pattern, default: None, condition, invisible };
        for choice in &argument.definition().choices {
            if let Err(reason) = argument.parser().check_type(&choice.value) {
                fault("enum", Code::InvalidValue, format!("the choice `{}` {reason}", choice.value), None);
            }
        }
        match argument.definition().default.as_deref().map(|default| argument.parser().parse(default)) {
            Some(Ok(value)) => argument.default = Some(Box::new(value)),
            Some(Err(reason)) => {
                let default = argument.definition().default.as_deref().unwrap_or_default();
                let message = format!("the default `{}` {reason}", shortened(default));
                fault("default", Code::InvalidDefault, message, argument.near(default));
            }
            None => {}
        }
        for example in &argument.definition().examples {
            if let Err(reason) = argument.parser().parse(example) {
                let message = format!("the example `{}` {reason}", shortened(example));
                fault("examples", Code::InvalidDefault, message, argument.near(example));
            }
        }
        (argument, faults)
    }

    pub(super) fn parser(&self) -> Parser<'_> {
        Parser { definition: self.definition(), pattern: self.pattern.as_deref() }
    }

    fn near(&self, value: &str) -> Option<String> {
        let choices = self.definition().choices.iter().map(|choice| choice.value.as_str());
        crate::nearest(value, choices).map(|near| format!("did you mean `{near}`?"))
    }

    /// The key; also the template's variable.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition().name
    }

    /// The display name.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.definition().title.as_deref()
    }

    /// The author's description.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.definition().description.as_deref()
    }

    /// Whether a call without it is rejected at once. A default makes an argument optional, and so does `ask`.
    #[must_use]
    pub fn required(&self) -> bool {
        self.is_indispensable() && !self.is_asked()
    }

    /// Whether the prompt cannot be rendered without it.
    #[must_use]
    pub fn is_indispensable(&self) -> bool {
        self.definition().required && self.definition().default.is_none()
    }

    /// Whether a form asks for it when a call leaves it out.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.definition().ask
    }

    /// The step of a guided prompt that asks for it.
    #[must_use]
    pub fn step(&self) -> u32 {
        self.definition().step.unwrap_or(1)
    }

    /// Whether it is asked for, as far as the known values decide its condition.
    #[must_use]
    pub fn applies(&self, known: &Bindings) -> bool {
        self.condition.as_ref().is_none_or(|condition| condition.holds(known))
    }

    /// Names of the arguments that its condition depends on; `None` without a condition.
    #[must_use]
    pub fn condition_names(&self) -> Option<Vec<String>> {
        self.condition.as_ref().map(|condition| condition.names().to_vec())
    }

    /// Whether its values are kept out of records, logs and errors.
    #[must_use]
    pub fn is_sensitive(&self) -> bool {
        self.definition().sensitive
    }

    /// Whether its values are part of the audit record.
    #[must_use]
    pub fn is_audited(&self) -> bool {
        self.definition().audit && !self.definition().sensitive
    }

    /// The type of its values.
    #[must_use]
    pub fn kind(&self) -> ArgumentType {
        self.definition().kind
    }

    /// The value of a call that leaves it out, as a caller would send it.
    #[must_use]
    pub fn default_value(&self) -> Option<&str> {
        self.definition().default.as_deref()
    }

    /// The only values allowed; empty allows all.
    #[must_use]
    pub fn choices(&self) -> &[Choice] {
        &self.definition().choices
    }

    /// Sample values for people.
    #[must_use]
    pub fn examples(&self) -> &[String] {
        &self.definition().examples
    }

    /// The source of suggestions, besides choices and examples.
    #[must_use]
    pub fn completion(&self) -> Option<&CompletionSource> {
        self.definition().completion.as_ref()
    }

    /// The definition, as its author wrote it.
    #[must_use]
    pub fn definition(&self) -> &ArgumentDefinition {
        self.declared.definition()
    }
}

fn shortened(value: &str) -> std::borrow::Cow<'_, str> {
    const SHOWN: usize = 40;
    match value.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &value[..end]).into(),
        None => value.into(),
    }
}
