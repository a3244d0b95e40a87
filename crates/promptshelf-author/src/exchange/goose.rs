//! Imports recipes of goose, in YAML or JSON.
//!
//! Source: goose's documentation, *Recipe Reference Guide*. `title`, `description`, `instructions` and `prompt` in
//! Jinja syntax, and `parameters` with `key`, `input_type`, `requirement`, `default` and `options`.

use promptshelf_core::{ArgumentDefinition, ArgumentType, Choice, Code, Constraints, Role, TemplateAnalysis};

use super::{Foreign, get, lose_others, slug, stem, template, text_of};
use promptshelf_source::syntax::{Node, Notes, parse_yaml};

const NUMBER: &str = r"^-?\d+(\.\d+)?$";

pub(super) fn read(notes: &mut Notes<'_>) -> Vec<Foreign> {
    let Some(recipe) = parse_yaml(0..notes.source.text.len(), notes) else { return Vec::new() };
    lose_others(&recipe, &["title", "description", "instructions", "prompt", "parameters", "version"], notes);
    let instructions = text_of(&recipe, "instructions");
    let prompt = text_of(&recipe, "prompt");
    let template = match (&instructions, prompt) {
        (Some(instructions), Some(prompt)) => format!("{instructions}\n{}{prompt}\n", template::role(Role::User)),
        (Some(one), None) => one.clone(),
        (None, Some(one)) => one,
        (None, None) => {
            notes.error(Code::MissingKey, &(0..0), "a recipe needs `instructions` or `prompt`");
            return Vec::new();
        }
    };
    if let Some(node) = get(&recipe, "instructions") {
        super::lose_role("system", &node.span.clone(), notes);
    }
    let parameters = get(&recipe, "parameters").map(Node::items).unwrap_or_default();
    let mut arguments: Vec<ArgumentDefinition> =
        parameters.iter().filter_map(|parameter| argument(parameter, notes)).collect();
    arguments.iter_mut().for_each(|argument| keep_text(argument, &template));
    let path = stem(&notes.source.path, ".yaml").trim_end_matches(".yml").trim_end_matches(".json");
    vec![Foreign {
        path: slug(path),
        title: text_of(&recipe, "title"),
        description: text_of(&recipe, "description"),
        arguments,
        template,
        ..Foreign::default()
    }]
}

/// Keeps the meaning of conditions: all parameters of goose are text, so a condition compares them with texts.
fn keep_text(argument: &mut ArgumentDefinition, template: &str) {
    let is_plain =
        |before: &str, after: &str| before.trim_end().ends_with("{{") && after.trim_start().starts_with("}}");
    let analysis = TemplateAnalysis::of(template);
    let mut uses = analysis.variables.iter().filter(|used| used.name == argument.name);
    if uses.all(|used| is_plain(&template[..used.span.start], &template[used.span.end..])) {
        return;
    }
    match argument.kind {
        ArgumentType::Boolean => {
            let choice = |value: &str| Choice { value: value.to_owned(), title: None };
            argument.choices = vec![choice("true"), choice("false")];
        }
        ArgumentType::Number => {
            argument.constraints =
                Some(Box::new(Constraints { pattern: Some(NUMBER.to_owned()), ..Constraints::default() }));
        }
        _ => return,
    }
    argument.kind = ArgumentType::String;
}

fn argument(parameter: &Node, notes: &mut Notes<'_>) -> Option<ArgumentDefinition> {
    let Some(key) = text_of(parameter, "key") else {
        notes.warning(Code::MissingKey, &parameter.span, "a parameter without `key` is omitted");
        return None;
    };
    let input = get(parameter, "input_type");
    let kind = match input.and_then(Node::text).unwrap_or("string") {
        "number" => ArgumentType::Number,
        "boolean" => ArgumentType::Boolean,
        "date" => ArgumentType::Date,
        "file" => {
            let span = input.map_or(parameter.span.clone(), |node| node.span.clone());
            let message = format!("`{key}` was the path of a file to read; now it is the text itself");
            notes.warning(Code::NotSupported, &span, message);
            ArgumentType::Text
        }
        _ => ArgumentType::String,
    };
    let options = get(parameter, "options").map(Node::items).unwrap_or_default();
    let choice = |node: &Node| node.text().map(|value| Choice { value: value.to_owned(), title: None });
    let default = text_of(parameter, "default").filter(|default| !default.is_empty());
    Some(ArgumentDefinition {
        description: text_of(parameter, "description"),
        required: text_of(parameter, "requirement").is_none_or(|it| it != "optional") && default.is_none(),
        kind,
        choices: options.iter().filter_map(choice).collect(),
        default,
        ..ArgumentDefinition::new(key)
    })
}
