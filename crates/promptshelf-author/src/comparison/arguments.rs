//! Arguments of prompts, and variables of resource templates, in words.

use promptshelf_core::{Argument, ArgumentType};

use super::{AffectedCalls, Difference, Impact, Notes, changed_text, enumerated, listed, short};

const FAILS: &str = ": callers that send other values will fail";

pub(super) fn compare(notes: &mut Notes<'_>, before: &[Argument], after: &[Argument]) {
    for old in before {
        match after.iter().find(|new| new.name() == old.name()) {
            Some(new) => Arguments { notes, old, new }.compare(),
            None => {
                let text = format!("`{}` is gone: values that callers send are ignored", old.name());
                let gone = notes.add(Impact::Notice, "argument-gone", text).with("argument", old.name());
                gone.affecting(AffectedCalls::Sending(old.name().to_owned()));
            }
        }
    }
    for new in after.iter().filter(|new| !before.iter().any(|old| old.name() == new.name())) {
        let name = new.name();
        let added = if new.required() {
            let text = format!("`{name}` is new and required: callers that do not send it will fail");
            notes.add(Impact::Breaking, "argument-new-required", text).affecting(AffectedCalls::All)
        } else {
            notes.add(Impact::Notice, "argument-new", format!("`{name}` is new and optional"))
        };
        added.with("argument", name);
    }
}

struct Arguments<'n, 'a> {
    notes: &'n mut Notes<'a>,
    old: &'n Argument,
    new: &'n Argument,
}

impl Arguments<'_, '_> {
    fn compare(mut self) {
        let (old, new) = (self.old, self.new);
        let name = new.name();
        match (old.required(), new.required()) {
            (false, true) => {
                let text = format!("`{name}` became required: callers that leave it out will fail");
                let required = self.add(Impact::Breaking, "argument-required", text);
                required.affecting(AffectedCalls::Omitting(name.to_owned()));
            }
            (true, false) => {
                self.add(Impact::Notice, "argument-optional", format!("`{name}` became optional"));
            }
            _ => {}
        }
        self.kind();
        self.choices();
        self.constraints();
        if old.default_value() != new.default_value() {
            match new.default_value() {
                Some(value) => {
                    let text = format!("the default of `{name}` is now {}", short(value));
                    self.add(Impact::Notice, "argument-default", text).with("text", short(value));
                }
                None => {
                    self.add(Impact::Notice, "argument-default-none", format!("`{name}` has no default any more"));
                }
            }
        }
        match (old.is_asked(), new.is_asked()) {
            (false, true) => {
                self.add(Impact::Notice, "argument-asked", format!("`{name}` is now asked for in a form"));
            }
            (true, false) => {
                self.add(Impact::Notice, "argument-not-asked", format!("`{name}` is no longer asked for in a form"));
            }
            _ => {}
        }
        match (old.is_sensitive(), new.is_sensitive()) {
            (true, false) => {
                let text = format!("`{name}` is no longer sensitive: its values can appear in logs, errors and links");
                self.add(Impact::Opening, "argument-not-sensitive", text);
            }
            (false, true) => {
                self.add(Impact::Notice, "argument-sensitive", format!("`{name}` is sensitive now"));
            }
            _ => {}
        }
        let codes = ["argument-text-gone", "argument-text-new", "argument-text-changed"];
        let what = format!("description of `{name}`");
        if let Some((code, text, value)) = changed_text(codes, &what, old.description(), new.description()) {
            self.add(Impact::Notice, code, text).with("text", value);
        }
    }

    fn add(&mut self, impact: Impact, code: &'static str, text: impl Into<String>) -> &mut Difference {
        self.notes.add(impact, code, text).with("argument", self.new.name())
    }

    fn fails(&mut self, code: &'static str, text: &str) -> &mut Difference {
        let sending = AffectedCalls::Sending(self.new.name().to_owned());
        self.add(Impact::Breaking, code, format!("{text}{FAILS}")).affecting(sending)
    }

    fn kind(&mut self) {
        let (old, new) = (self.old.kind(), self.new.kind());
        if old == new {
            return;
        }
        let text = format!("`{}` is of type {} now, before {}", self.new.name(), new.as_str(), old.as_str());
        let changed = match new {
            // Every value of the other types is a text.
            ArgumentType::String | ArgumentType::Text => self.add(Impact::Notice, "value-type", text),
            _ => self.fails("value-type", &text),
        };
        changed.with("before", old.as_str()).with("now", new.as_str());
    }

    fn choices(&mut self) {
        let values = |argument: &'_ Argument| -> Vec<String> {
            argument.choices().iter().map(|choice| choice.value.clone()).collect()
        };
        let (before, after) = (values(self.old), values(self.new));
        let name = self.new.name();
        let without = |one: &[String], other: &[String]| {
            one.iter().filter(|value| !other.contains(value)).cloned().collect::<Vec<String>>()
        };
        if before.is_empty() && !after.is_empty() {
            let text = format!("`{name}` only accepts {} now", listed(&after));
            self.fails("value-choices", &text).with("values", enumerated(&after));
            return;
        }
        if !before.is_empty() && after.is_empty() {
            self.add(Impact::Notice, "value-any", format!("`{name}` accepts any value now"));
            return;
        }
        let (gone, added) = (without(&before, &after), without(&after, &before));
        if !gone.is_empty() {
            let text = format!("`{name}` no longer accepts {}: callers that send it will fail", listed(&gone));
            let sending = AffectedCalls::Sending(name.to_owned());
            let removed = self.add(Impact::Breaking, "choices-gone", text).affecting(sending);
            removed.with("values", enumerated(&gone));
        }
        if !added.is_empty() {
            let text = format!("`{name}` also accepts {}", listed(&added));
            self.add(Impact::Notice, "choices-new", text).with("values", enumerated(&added));
        }
    }

    fn constraints(&mut self) {
        let (before, after) = (self.old.definition().constraints(), self.new.definition().constraints());
        let name = self.new.name();
        if before.pattern != after.pattern {
            match &after.pattern {
                Some(pattern) => {
                    let text = format!("`{name}` must match `{pattern}` now");
                    self.fails("value-pattern", &text).with("now", pattern);
                }
                None => {
                    let text = format!("`{name}` needs to match no pattern any more");
                    self.add(Impact::Notice, "value-pattern-none", text);
                }
            }
        }
        let number = |length: Option<usize>| length.map(|length| length as f64);
        // The codes of a limit and of its removal, the limit in words, whether a larger number is stricter, its unit.
        let limits = [
            (
                ["value-min-length", "value-min-length-none"],
                ("at least", true, " characters"),
                (number(before.min_length), number(after.min_length)),
            ),
            (
                ["value-max-length", "value-max-length-none"],
                ("at most", false, " characters"),
                (number(before.max_length), number(after.max_length)),
            ),
            (["value-minimum", "value-minimum-none"], ("at least", true, ""), (before.minimum, after.minimum)),
            (["value-maximum", "value-maximum-none"], ("at most", false, ""), (before.maximum, after.maximum)),
        ];
        for ([code, none], (word, is_lower_bound, unit), (before, after)) in limits {
            // Only counts are named `n`: their words depend on it.
            let (verb, value) = if unit.is_empty() { ("is", "number") } else { ("has", "n") };
            match (before, after) {
                _ if before == after => {}
                (_, Some(limit)) => {
                    let is_stricter =
                        before.is_none_or(|before| if is_lower_bound { limit > before } else { limit < before });
                    let text = format!("`{name}` {verb} {word} {limit}{unit} now");
                    let changed =
                        if is_stricter { self.fails(code, &text) } else { self.add(Impact::Notice, code, text) };
                    changed.with(value, limit.to_string());
                }
                (Some(limit), None) => {
                    let text = format!("`{name}` no longer needs to have {word} {limit}{unit}");
                    self.add(Impact::Notice, none, text).with(value, limit.to_string());
                }
                (None, None) => {}
            }
        }
    }
}
