//! Writes a prompt as a file of our format: front matter with the usual order of keys, and the text below it.

use std::fmt::Write as _;

use promptshelf_core::{ArgumentDefinition, ArgumentType, TestDefinition};

use super::{Foreign, ImportedFile};

pub(super) fn file(prompt: &Foreign) -> ImportedFile {
    let path = format!("{}.md", prompt.path);
    let body = prompt.template.trim_start_matches(['\n', '\r']).trim_end();
    if prompt.is_partial {
        return ImportedFile { path, text: format!("{body}\n") };
    }
    let mut text = "---\n".to_owned();
    let keys = [("title", &prompt.title), ("description", &prompt.description), ("version", &prompt.version)];
    for (key, value) in keys {
        if let Some(value) = value {
            line(&mut text, "", key, &scalar(value));
        }
    }
    if !prompt.tags.is_empty() {
        line(&mut text, "", "tags", &list(prompt.tags.iter().map(String::as_str)));
    }
    if !prompt.arguments.is_empty() {
        text.push_str("arguments:\n");
        prompt.arguments.iter().for_each(|argument| write_argument(&mut text, argument));
    }
    if !prompt.tests.is_empty() {
        text.push_str("tests:\n");
        prompt.tests.iter().for_each(|test| write_test(&mut text, test));
    }
    ImportedFile { path, text: format!("{text}---\n\n{body}\n") }
}

fn write_argument(text: &mut String, argument: &ArgumentDefinition) {
    line(text, "  - ", "name", &scalar(&argument.name));
    let mut put = |key: &str, value: &str| line(text, "    ", key, value);
    if let Some(title) = &argument.title {
        put("title", &scalar(title));
    }
    if let Some(description) = &argument.description {
        put("description", &scalar(description));
    }
    if argument.required {
        put("required", "true");
    }
    if argument.kind != ArgumentType::String {
        put("type", argument.kind.as_str());
    }
    if !argument.choices.is_empty() {
        put("enum", &list(argument.choices.iter().map(|choice| choice.value.as_str())));
    }
    if let Some(default) = &argument.default {
        put("default", &scalar(default));
    }
    if !argument.examples.is_empty() {
        put("examples", &list(argument.examples.iter().map(String::as_str)));
    }
    if let Some(pattern) = &argument.constraints().pattern {
        put("pattern", &scalar(pattern));
    }
    for (key, bound) in [("minimum", argument.constraints().minimum), ("maximum", argument.constraints().maximum)] {
        if let Some(bound) = bound {
            put(key, &bound.to_string());
        }
    }
}

/// Writes the parts of a test that other programs have, too: arguments and expected texts.
fn write_test(text: &mut String, test: &TestDefinition) {
    if test.arguments.is_empty() {
        line(text, "  - ", "arguments", "{}");
    } else {
        text.push_str("  - arguments:\n");
        for (name, value) in &test.arguments {
            line(text, "      ", name, &scalar(value));
        }
    }
    if !test.contains.is_empty() {
        line(text, "    ", "contains", &list(test.contains.iter().map(String::as_str)));
    }
}

fn line(text: &mut String, indent: &str, key: &str, value: &str) {
    // Writing to a string cannot fail.
    writeln!(text, "{indent}{key}: {value}").ok();
}

fn list<'v>(values: impl Iterator<Item = &'v str>) -> String {
    format!("[{}]", values.map(scalar).collect::<Vec<_>>().join(", "))
}

/// Returns a YAML scalar: plain if it is certainly read back as the same text, otherwise in double quotation marks.
/// Every JSON string is a YAML string.
pub(super) fn scalar(text: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '/' | '(' | ')' | ';' | '\'');
    let starts = text.starts_with(|c: char| c.is_alphabetic());
    let ends = text.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | ')'));
    let lower = text.to_ascii_lowercase();
    let is_other = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&&*lower);
    if starts && ends && !is_other && text.chars().all(is_word) {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_yaml_text_is_quoted() {
        for text in ["Fix it (now).", "a-b/c_d.e", "don't"] {
            assert_eq!(scalar(text), text);
        }
        for text in ["a: b", "true", "5", "#x", "", " a", "a ", "[x]", "a\nb", "{{ x }}", "\"", "x,y", "- a", "No"] {
            assert!(scalar(text).starts_with('"'), "{text}");
        }
    }
}
