//! Parser of argument values: from a string to a typed value, or the reason for its rejection.

use std::{collections::HashSet, sync::Arc};

use super::pattern::{Match, Matcher, Pattern};
use crate::{
    definition::{ArgumentDefinition, ArgumentType, Choice},
    value::Value,
};

pub(super) struct Parser<'a> {
    pub(super) definition: &'a ArgumentDefinition,
    pub(super) pattern: Option<&'a Pattern>,
}

impl Parser<'_> {
    /// Parses a value and checks it against all constraints of the definition. An error completes a sentence that
    /// begins with the argument's name, such as "must be …".
    pub(super) fn parse(&self, text: &str) -> Result<Value, String> {
        let value = self.check_type(text)?;
        let definition = self.definition;
        let mut matcher = self.pattern.map(Pattern::matcher);
        match &value {
            Value::Integer(_) | Value::Number(_) => {
                #[expect(clippy::cast_precision_loss, reason = "bounds are floating-point numbers too")]
                let number = match value {
                    Value::Integer(integer) => integer as f64,
                    Value::Number(number) => number,
                    _ => 0.0,
                };
                if let Some(least) = definition.constraints().minimum.filter(|least| number < *least) {
                    return Err(format!("must be {least} or more"));
                }
                if let Some(most) = definition.constraints().maximum.filter(|most| number > *most) {
                    return Err(format!("must be {most} or less"));
                }
                self.check_choice(&value, text.trim())?;
            }
            Value::List(items) => {
                let choices: HashSet<&str> = definition.choices.iter().map(|choice| choice.value.as_str()).collect();
                for item in items {
                    self.check_text(item, matcher.as_mut())?;
                    if !choices.is_empty() && !choices.contains(item.as_str()) {
                        return Err(self.not_a_choice());
                    }
                }
            }
            Value::Text(text) => {
                self.check_text(text, matcher.as_mut())?;
                self.check_choice(&value, text)?;
            }
            Value::Boolean(_) | Value::Json(_) => self.check_choice(&value, text)?,
        }
        Ok(value)
    }

    fn check_text(&self, text: &str, matcher: Option<&mut Matcher<'_>>) -> Result<(), String> {
        let definition = self.definition;
        if definition.constraints().min_length.is_some() || definition.constraints().max_length.is_some() {
            let length = text.chars().count();
            if let Some(least) = definition.constraints().min_length.filter(|least| length < *least) {
                return Err(format!("must have {} or more, got {length}", characters(least)));
            }
            if let Some(most) = definition.constraints().max_length.filter(|most| length > *most) {
                return Err(format!("must have {} or fewer, got {length}", characters(most)));
            }
        }
        match matcher.map_or(Match::Found, |matcher| matcher.find(text)) {
            Match::Found => Ok(()),
            Match::Missing => Err(format!(
                "must match the pattern {}",
                definition.constraints().pattern.as_deref().unwrap_or_default()
            )),
            Match::Refused => Err("is too long for its pattern: comparing them would take too long".to_owned()),
        }
    }

    /// Checks that a value is one of the choices, by text or by value: `1.0` equals the choice `1` for a number.
    fn check_choice(&self, value: &Value, text: &str) -> Result<(), String> {
        let choices = &self.definition.choices;
        let means = |choice: &Choice| {
            !matches!(value, Value::Text(_)) && self.check_type(&choice.value).is_ok_and(|meant| meant == *value)
        };
        if choices.is_empty() || choices.iter().any(|choice| choice.value == text || means(choice)) {
            return Ok(());
        }
        Err(self.not_a_choice())
    }

    fn not_a_choice(&self) -> String {
        format!("must be one of {}", self.choice_list())
    }

    /// Lists the choices for people, shortened if there are very many.
    pub(super) fn choice_list(&self) -> String {
        const SHOWN: usize = 20;
        let choices = &self.definition.choices;
        let mut list = choices.iter().take(SHOWN).map(|choice| &*choice.value).collect::<Vec<_>>().join(", ");
        if choices.len() > SHOWN {
            list.push_str(&format!(" and {} others", choices.len() - SHOWN));
        }
        list
    }

    /// Describes the allowed values, as the rest of a sentence that begins with "it must be"; `None` for any text.
    pub(super) fn expectation(&self) -> Option<String> {
        let definition = self.definition;
        if !definition.choices.is_empty() {
            return Some(format!("one of {}", self.choice_list()));
        }
        let bounds = match (definition.constraints().minimum, definition.constraints().maximum) {
            (Some(least), Some(most)) => format!(" from {least} to {most}"),
            (Some(least), None) => format!(" of at least {least}"),
            (None, Some(most)) => format!(" of at most {most}"),
            (None, None) => String::new(),
        };
        match definition.kind {
            ArgumentType::Integer => Some(format!("a whole number{bounds}")),
            ArgumentType::Number => Some(format!("a number{bounds}")),
            ArgumentType::Boolean => Some("true or false".to_owned()),
            ArgumentType::Date => Some("a day, such as 2026-07-28".to_owned()),
            ArgumentType::String | ArgumentType::Text | ArgumentType::List | ArgumentType::Json => None,
        }
    }

    /// Parses a value as the argument's type, without the other constraints.
    pub(super) fn check_type(&self, text: &str) -> Result<Value, String> {
        let trimmed = text.trim();
        match self.definition.kind {
            ArgumentType::String | ArgumentType::Text => Ok(Value::Text(Arc::from(text))),
            ArgumentType::Integer => {
                trimmed.parse().map(Value::Integer).map_err(|_| "must be a whole number, such as 42".into())
            }
            ArgumentType::Number => trimmed
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite())
                .map(Value::Number)
                .ok_or_else(|| "must be a number, such as 4.2".into()),
            ArgumentType::Boolean => match trimmed.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => Ok(Value::Boolean(true)),
                "false" | "no" | "off" | "0" => Ok(Value::Boolean(false)),
                _ => Err("must be true or false".into()),
            },
            ArgumentType::Date => trimmed
                .parse::<jiff::civil::Date>()
                .ok()
                .filter(|_| trimmed.len() == 10)
                .map(|_| Value::Text(Arc::from(trimmed)))
                .ok_or_else(|| "must be a day, such as 2026-07-28".into()),
            ArgumentType::List => parse_list(trimmed),
            ArgumentType::Json => {
                serde_json::from_str(trimmed).map(Value::Json).map_err(|error| format!("must be JSON: {error}"))
            }
        }
    }
}

fn parse_list(text: &str) -> Result<Value, String> {
    if text.starts_with('[') {
        let items: Vec<serde_json::Value> =
            serde_json::from_str(text).map_err(|error| format!("must be a list: {error}"))?;
        let items = items.into_iter().map(|item| match item {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        });
        return Ok(Value::List(items.collect()));
    }
    let separator = if text.contains('\n') { '\n' } else { ',' };
    let items = text.split(separator).map(str::trim).filter(|item| !item.is_empty());
    Ok(Value::List(items.map(str::to_owned).collect()))
}

fn characters(count: usize) -> String {
    match count {
        1 => "1 character".to_owned(),
        other => format!("{other} characters"),
    }
}
