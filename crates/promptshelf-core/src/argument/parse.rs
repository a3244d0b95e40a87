//! One string becomes one typed value, or a reason why not.

use std::sync::Arc;

use regex::Regex;

use crate::{
    definition::{ArgumentDefinition, ArgumentType, Choice},
    value::Value,
};

/// Parses values of one argument.
pub(super) struct Parser<'a> {
    pub(super) definition: &'a ArgumentDefinition,
    /// The compiled pattern of the definition.
    pub(super) pattern: Option<&'a Regex>,
}

impl Parser<'_> {
    /// Reads a value and checks it against everything the author asked for.
    /// The reason completes the sentence "`code` is …" or "`code` has to …".
    pub(super) fn parse(&self, text: &str) -> Result<Value, String> {
        let value = self.check_type(text)?;
        let definition = self.definition;
        match &value {
            Value::Integer(_) | Value::Number(_) => {
                #[expect(clippy::cast_precision_loss, reason = "bounds are floating-point numbers too")]
                let number = match value {
                    Value::Integer(integer) => integer as f64,
                    Value::Number(number) => number,
                    _ => 0.0,
                };
                if let Some(least) = definition.minimum.filter(|least| number < *least) {
                    return Err(format!("has to be {least} or more"));
                }
                if let Some(most) = definition.maximum.filter(|most| number > *most) {
                    return Err(format!("has to be {most} or less"));
                }
                self.check_choice(&value, text.trim())?;
            }
            Value::List(items) => {
                for item in items {
                    self.check_text(item)?;
                    self.check_choice(&Value::Text(Arc::from(item.as_str())), item)?;
                }
            }
            Value::Text(text) => {
                self.check_text(text)?;
                self.check_choice(&value, text)?;
            }
            Value::Boolean(_) | Value::Json(_) => self.check_choice(&value, text)?,
        }
        Ok(value)
    }

    fn check_text(&self, text: &str) -> Result<(), String> {
        let definition = self.definition;
        if definition.min_length.is_some() || definition.max_length.is_some() {
            let length = text.chars().count();
            if let Some(least) = definition.min_length.filter(|least| length < *least) {
                return Err(format!("has to have {} or more, and has {length}", characters(least)));
            }
            if let Some(most) = definition.max_length.filter(|most| length > *most) {
                return Err(format!("has to have {} or fewer, and has {length}", characters(most)));
            }
        }
        match self.pattern {
            Some(pattern) if !pattern.is_match(text) => Err(format!("has to match the pattern {pattern}")),
            _ => Ok(()),
        }
    }

    /// A value is a choice when it reads the same or means the same: `1.0` is `1` for a number.
    fn check_choice(&self, value: &Value, text: &str) -> Result<(), String> {
        let choices = &self.definition.choices;
        let means = |choice: &Choice| {
            !matches!(value, Value::Text(_)) && self.check_type(&choice.value).is_ok_and(|meant| meant == *value)
        };
        if choices.is_empty() || choices.iter().any(|choice| choice.value == text || means(choice)) {
            return Ok(());
        }
        Err(format!("has to be one of {}", self.choice_list()))
    }

    /// The choices as people read them, cut where there are very many.
    pub(super) fn choice_list(&self) -> String {
        const SHOWN: usize = 20;
        let choices = &self.definition.choices;
        let mut list = choices.iter().take(SHOWN).map(|choice| &*choice.value).collect::<Vec<_>>().join(", ");
        if choices.len() > SHOWN {
            list.push_str(&format!(" and {} others", choices.len() - SHOWN));
        }
        list
    }

    /// Reads a value as the argument's type, without its other constraints.
    pub(super) fn check_type(&self, text: &str) -> Result<Value, String> {
        let trimmed = text.trim();
        match self.definition.kind {
            ArgumentType::String | ArgumentType::Text => Ok(Value::Text(Arc::from(text))),
            ArgumentType::Integer => {
                trimmed.parse().map(Value::Integer).map_err(|_| "has to be a whole number, such as 42".into())
            }
            ArgumentType::Number => trimmed
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite())
                .map(Value::Number)
                .ok_or_else(|| "has to be a number, such as 4.2".into()),
            ArgumentType::Boolean => match trimmed.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => Ok(Value::Boolean(true)),
                "false" | "no" | "off" | "0" => Ok(Value::Boolean(false)),
                _ => Err("has to be true or false".into()),
            },
            ArgumentType::Date => trimmed
                .parse::<jiff::civil::Date>()
                .ok()
                .filter(|_| trimmed.len() == 10)
                .map(|_| Value::Text(Arc::from(trimmed)))
                .ok_or_else(|| "has to be a day, such as 2026-07-28".into()),
            ArgumentType::List => parse_list(trimmed),
            ArgumentType::Json => {
                serde_json::from_str(trimmed).map(Value::Json).map_err(|error| format!("has to be JSON: {error}"))
            }
        }
    }
}

/// A JSON array, one item a line, or items between commas.
fn parse_list(text: &str) -> Result<Value, String> {
    if text.starts_with('[') {
        let items: Vec<serde_json::Value> =
            serde_json::from_str(text).map_err(|error| format!("has to be a list: {error}"))?;
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
