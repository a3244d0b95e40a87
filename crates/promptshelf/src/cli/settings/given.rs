//! A setting's value as it was written, in the environment or in TOML.

use toml::{Spanned, de::DeValue};

/// A value as it is written.
pub(super) enum Given<'a> {
    Text(&'a str),
    Toml(&'a Spanned<DeValue<'a>>),
}

impl Given<'_> {
    pub(super) fn text(&self) -> Result<String, String> {
        match self {
            Given::Text(text) => Ok((*text).to_owned()),
            Given::Toml(value) => match value.get_ref() {
                DeValue::String(text) => Ok(text.to_string()),
                _ => Err("this has to be a string in quotes".to_owned()),
            },
        }
    }

    pub(super) fn texts(&self) -> Result<Vec<String>, String> {
        match self {
            Given::Text(text) => Ok(text.split(',').map(|part| part.trim().to_owned()).collect()),
            Given::Toml(value) => match value.get_ref() {
                DeValue::Array(values) => values.iter().map(|value| Given::Toml(value).text()).collect(),
                _ => Err("this has to be a list of strings: [\"…\"]".to_owned()),
            },
        }
    }

    pub(super) fn boolean(&self) -> Result<bool, String> {
        match self {
            Given::Text("true" | "1" | "yes") => Ok(true),
            Given::Text("false" | "0" | "no") => Ok(false),
            Given::Toml(value) if let DeValue::Boolean(value) = value.get_ref() => Ok(*value),
            _ => Err("this has to be true or false".to_owned()),
        }
    }

    pub(super) fn number(&self, most: u64) -> Result<u64, String> {
        match self {
            Given::Text(text) => parse_number(text, most),
            Given::Toml(value) => match value.get_ref() {
                DeValue::Integer(number) if number.radix() == 10 => parse_number(number.as_str(), most),
                _ => Err(out_of_range(most)),
            },
        }
    }
}

pub(super) fn parse_number(text: &str, most: u64) -> Result<u64, String> {
    text.trim().parse().ok().filter(|number| (1..=most).contains(number)).ok_or_else(|| out_of_range(most))
}

fn out_of_range(most: u64) -> String {
    format!("this has to be a whole number from 1 to {most}")
}
