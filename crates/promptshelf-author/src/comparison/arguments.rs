//! Arguments of prompts, and variables of resource templates, in words.

use promptshelf_core::{Argument, ArgumentType};

use super::{AffectedCalls, Impact, Notes, listed, short};

pub(super) fn compare(notes: &mut Notes<'_>, before: &[Argument], after: &[Argument]) {
    for old in before {
        match after.iter().find(|new| new.name() == old.name()) {
            Some(new) => argument(notes, old, new),
            None => {
                let text = format!("`{}` is gone: values that callers send are ignored", old.name());
                notes.affect(sending(old.name()), Impact::Notice, text);
            }
        }
    }
    for new in after.iter().filter(|new| !before.iter().any(|old| old.name() == new.name())) {
        if new.required() {
            let text = format!("`{}` is new and required: callers that do not send it will fail", new.name());
            notes.affect(AffectedCalls::All, Impact::Breaking, text);
        } else {
            notes.add(Impact::Notice, format!("`{}` is new and optional", new.name()));
        }
    }
}

fn sending(name: &str) -> AffectedCalls {
    AffectedCalls::Sending(name.to_owned())
}

fn argument(notes: &mut Notes<'_>, old: &Argument, new: &Argument) {
    let name = new.name();
    match (old.required(), new.required()) {
        (false, true) => {
            let text = format!("`{name}` became required: callers that leave it out will fail");
            notes.affect(AffectedCalls::Omitting(name.to_owned()), Impact::Breaking, text);
        }
        (true, false) => notes.add(Impact::Notice, format!("`{name}` became optional")),
        _ => {}
    }
    kind(notes, name, old.kind(), new.kind());
    choices(notes, old, new);
    constraints(notes, old, new);
    if old.default_value() != new.default_value() {
        notes.add(
            Impact::Notice,
            match new.default_value() {
                Some(value) => format!("the default of `{name}` is now {}", short(value)),
                None => format!("`{name}` has no default any more"),
            },
        );
    }
    if old.is_asked() != new.is_asked() {
        let text = if new.is_asked() { "is now asked for in a form" } else { "is no longer asked for in a form" };
        notes.add(Impact::Notice, format!("`{name}` {text}"));
    }
    match (old.is_sensitive(), new.is_sensitive()) {
        (true, false) => {
            let text = format!("`{name}` is no longer sensitive: its values can appear in logs, errors and links");
            notes.add(Impact::Opening, text);
        }
        (false, true) => notes.add(Impact::Notice, format!("`{name}` is sensitive now")),
        _ => {}
    }
    notes.text(&format!("description of `{name}`"), old.description(), new.description());
}

fn kind(notes: &mut Notes<'_>, name: &str, old: ArgumentType, new: ArgumentType) {
    if old == new {
        return;
    }
    let text = format!("`{name}` is of type {} now, before {}", new.as_str(), old.as_str());
    match new {
        // Every value of the other types is a text.
        ArgumentType::String | ArgumentType::Text => notes.add(Impact::Notice, text),
        _ => {
            let text = format!("{text}: callers that send other values will fail");
            notes.affect(sending(name), Impact::Breaking, text);
        }
    }
}

fn choices(notes: &mut Notes<'_>, old: &Argument, new: &Argument) {
    let values = |argument: &'_ Argument| -> Vec<String> {
        argument.choices().iter().map(|choice| choice.value.clone()).collect()
    };
    let (before, after) = (values(old), values(new));
    let name = new.name();
    let without = |one: &[String], other: &[String]| {
        one.iter().filter(|value| !other.contains(value)).cloned().collect::<Vec<String>>()
    };
    let list = |values: &[String]| listed(values.iter().map(String::as_str));
    if before.is_empty() && !after.is_empty() {
        let text = format!("`{name}` only accepts {} now: callers that send other values will fail", list(&after));
        return notes.affect(sending(name), Impact::Breaking, text);
    }
    if !before.is_empty() && after.is_empty() {
        return notes.add(Impact::Notice, format!("`{name}` accepts any value now"));
    }
    let (gone, added) = (without(&before, &after), without(&after, &before));
    if !gone.is_empty() {
        let text = format!("`{name}` no longer accepts {}: callers that send it will fail", list(&gone));
        notes.affect(sending(name), Impact::Breaking, text);
    }
    if !added.is_empty() {
        notes.add(Impact::Notice, format!("`{name}` also accepts {}", list(&added)));
    }
}

fn constraints(notes: &mut Notes<'_>, old: &Argument, new: &Argument) {
    let (before, after) = (old.definition().constraints(), new.definition().constraints());
    let name = new.name();
    if before.pattern != after.pattern {
        match &after.pattern {
            Some(pattern) => {
                let text = format!("`{name}` must match `{pattern}` now: callers that send other values will fail");
                notes.affect(sending(name), Impact::Breaking, text);
            }
            None => notes.add(Impact::Notice, format!("`{name}` needs to match no pattern any more")),
        }
    }
    let number = |length: Option<usize>| length.map(|length| length as f64);
    // The limit, whether a larger number is stricter, and its unit.
    let limits = [
        ("at least", true, " characters", number(before.min_length), number(after.min_length)),
        ("at most", false, " characters", number(before.max_length), number(after.max_length)),
        ("at least", true, "", before.minimum, after.minimum),
        ("at most", false, "", before.maximum, after.maximum),
    ];
    for (word, is_lower_bound, unit, before, after) in limits {
        let verb = if unit.is_empty() { "is" } else { "has" };
        match (before, after) {
            _ if before == after => {}
            (_, Some(limit)) => {
                let is_stricter =
                    before.is_none_or(|before| if is_lower_bound { limit > before } else { limit < before });
                let text = format!("`{name}` {verb} {word} {limit}{unit} now");
                if is_stricter {
                    let text = format!("{text}: callers that send other values will fail");
                    notes.affect(sending(name), Impact::Breaking, text);
                } else {
                    notes.add(Impact::Notice, text);
                }
            }
            (Some(limit), None) => {
                notes.add(Impact::Notice, format!("`{name}` no longer needs to have {word} {limit}{unit}"));
            }
            (None, None) => {}
        }
    }
}
