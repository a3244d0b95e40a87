//! The steps of a guided prompt.

use promptshelf_core::{Code, Decline, Severity, StepDefinition, nearest};

use super::{
    keys::{Holds, Keys, key, keys},
    table::Table,
    tree::{Notes, Value},
};

pub(super) const KEYS: Keys = keys(&[
    key("step", Holds::Count(1), "Its number; by default the number after the previous step."),
    key("key", Holds::Text, "The key of the step in requests to clients."),
    key("message", Holds::Text, "The text above the form."),
    key("url", Holds::Text, "A page to open instead of a form."),
    key("decline", Holds::Word(&["stop", "continue"]), "The effect of declining the form."),
]);

/// Reads the steps under `steps`. A step without a number follows the one before it.
pub(super) fn steps(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> Vec<StepDefinition> {
    let Some(node) = table.node("steps", notes) else { return Vec::new() };
    let Value::List(items) = &node.value else {
        let message = format!("`steps`: expected a list, found {}", node.kind());
        notes.error(Code::WrongType, &node.span, message).help = Some("start each step with `- message:`".to_owned());
        return Vec::new();
    };
    let mut steps: Vec<StepDefinition> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let prefix = format!("steps.{index}.");
        notes.spans.insert(format!("steps.{index}"), item.span.clone());
        let Some(table) = Table::of(item, &prefix, "a step", notes) else { continue };
        table.expect(&KEYS, Severity::Warning, "in a step", notes);
        let written = table.count("step", 1, notes).and_then(|number| u32::try_from(number).ok());
        let number = written.unwrap_or_else(|| steps.last().map_or(1, |last| last.number.saturating_add(1)));
        steps.push(StepDefinition {
            number,
            key: table.text("key", notes),
            message: table.text("message", notes).map(|text| text.trim_end().to_owned()),
            url: table.text("url", notes),
            decline: decline(&table, notes),
        });
    }
    steps
}

fn decline(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> Decline {
    let Some(written) = table.text("decline", notes) else { return Decline::default() };
    match &*written {
        "stop" => Decline::Stop,
        "continue" => Decline::Continue,
        other => {
            let span = notes.spans.get(&table.path("decline")).cloned().unwrap_or_default();
            let help = match nearest(other, ["stop", "continue"]) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "expected `stop`, or `continue` to go on without an answer".to_owned(),
            };
            notes.error(Code::InvalidValue, &span, format!("`decline`: unknown value `{other}`")).help = Some(help);
            Decline::default()
        }
    }
}
