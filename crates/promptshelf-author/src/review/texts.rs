//! Invisible characters in texts that models read.

use promptshelf_core::{
    Code, Diagnostic, Location, Prompt, SourceText,
    invisible::{describe, hidden},
};
use promptshelf_source::{ForeignSyntax, syntax::front_matter};
use std::sync::Arc;

use crate::fixes::dashes;

/// The most reported positions of one file; further ones are only counted.
const MAX_REPORTED: usize = 20;

pub(super) fn check(source: &Arc<SourceText>, found: &mut Vec<Diagnostic>) {
    if let Some(place) = conflict(&source.text) {
        let message = "a conflict of a merge is left here, and is sent to models with both versions";
        let help = "keep what is right, and remove the lines that begin with `<<<<<<<`, `=======` and `>>>>>>>`";
        found.push(Diagnostic::warning(Code::Syntax, Location::new(source, place), message).help(help));
    }
    if ForeignSyntax::for_path(&source.path).is_none() {
        other_formats(source, found);
    }
    let mut runs: Vec<(std::ops::Range<usize>, char)> = Vec::new();
    for (at, c) in hidden(&source.text) {
        let end = at + c.len_utf8();
        match runs.last_mut() {
            Some((run, _)) if run.end == at => run.end = end,
            _ => runs.push((at..end, c)),
        }
    }
    let others = runs.len().saturating_sub(MAX_REPORTED);
    for (run, first) in runs.into_iter().take(MAX_REPORTED) {
        let count = source.text[run.clone()].chars().count();
        let message = match count {
            1 => format!("invisible character U+{:04X}, {}", u32::from(first), describe(first)),
            _ => format!("{count} invisible characters, the first is U+{:04X}, {}", u32::from(first), describe(first)),
        };
        let help = "remove it: models read it, and people cannot see it";
        found.push(Diagnostic::warning(Code::InvisibleCharacter, Location::new(source, run), message).help(help));
    }
    if others > 0 {
        let message = format!("{others} more positions with invisible characters in this file");
        found.push(Diagnostic::warning(Code::InvisibleCharacter, Location::file(source), message));
    }
}

/// Returns the first line of a conflict that a merge has left.
fn conflict(text: &str) -> Option<std::ops::Range<usize>> {
    let begin = if text.starts_with("<<<<<<< ") { 0 } else { text.find("\n<<<<<<< ")? + 1 };
    let end = text[begin..].find('\n')? + begin;
    text[end..].contains("\n>>>>>>> ").then_some(begin..end)
}

/// Reports invisible characters in values that are written as escapes, such as `"\u202e"`.
pub(super) fn check_values(prompt: &Prompt, found: &mut Vec<Diagnostic>) {
    let of = |place: String, values: [Option<&str>; 2], found: &mut Vec<Diagnostic>| {
        let text = &prompt.source().text;
        let first = values.into_iter().flatten().flat_map(hidden).map(|(_, c)| c).find(|c| !text.contains(*c));
        if let Some(c) = first {
            let message = format!("this value has U+{:04X}, {}, written as an escape", u32::from(c), describe(c));
            let help = "remove it: models and terminals obey it, and people cannot see it";
            let place = prompt.definition().origin.locate(&place);
            found.push(Diagnostic::warning(Code::InvisibleCharacter, place, message).help(help));
        }
    };
    of("description".to_owned(), [prompt.title(), prompt.description()], found);
    for (index, argument) in prompt.arguments().iter().enumerate() {
        of(format!("arguments.{index}.description"), [argument.title(), argument.description()], found);
    }
}

/// Reports text that is meant for another program, or for the reader of front matter, and goes to models as it stands.
fn other_formats(source: &Arc<SourceText>, found: &mut Vec<Diagnostic>) {
    if let Some(first) = dashes(&source.text).into_iter().next() {
        let message = "this line is not one of three dashes, so the keys below it are sent to models as text";
        let help = "front matter starts and ends with a line of three dashes: `---`";
        found.push(Diagnostic::warning(Code::Syntax, Location::new(source, first), message).help(help));
    } else if let Some(key) = key_outside(&source.text) {
        let place = Location::new(source, key.clone());
        let message = format!("the key `{}` is not read, and is sent to models as text", &source.text[key]);
        let help = "keys stand at the beginning of the file, between two lines of three dashes: `---`";
        found.push(Diagnostic::warning(Code::Syntax, place, message).help(help));
    }
    if let Some(at) = source.text.find(ARGUMENTS) {
        let message = format!("`{ARGUMENTS}` is a placeholder of Claude Code, and is sent to models as it stands");
        let help = "declare an argument, and write its name as `{{ name }}`; `promptshelf import` converts commands of Claude Code";
        let place = Location::new(source, at..at + ARGUMENTS.len());
        found.push(Diagnostic::warning(Code::NotSupported, place, message).help(help));
    }
}

/// The most lines above a key that was meant for front matter.
const MAX_LINES_ABOVE: usize = 4;

/// Returns a key of prompt files in the first lines of a text that has no front matter.
fn key_outside(text: &str) -> Option<std::ops::Range<usize>> {
    // One that is not closed is an error already.
    if front_matter(text).is_some() || text.lines().next().is_some_and(|first| first.trim_end() == "---") {
        return None;
    }
    let mut at = 0;
    for line in text.split_inclusive('\n').take(MAX_LINES_ABOVE) {
        let key = line.split_once(':').map(|(key, _)| key.trim_end()).unwrap_or_default();
        if ["title", "description", "arguments", "tags"].iter().any(|known| known.eq_ignore_ascii_case(key)) {
            return Some(at..at + key.len());
        }
        at += line.len();
    }
    None
}

const ARGUMENTS: &str = "$ARGUMENTS";

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        check(&SourceText::new("a.md", text), &mut found);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn bidi_and_hidden_characters_are_located() {
        let shown = found("one\nallow\u{202e}wolla\u{200b}\u{200b}x\u{1b}[2J");
        assert!(shown[0].starts_with("a.md:2:6: warning[invisible-character]") && shown[0].contains("U+202E"));
        assert!(shown[1].contains("2 invisible characters") && shown[1].contains("U+200B"));
        assert!(shown[2].contains("U+001B, a control character"));
        assert!(found("hi\u{e0041}\u{e0042}")[0].contains("hide text from people"));
    }

    #[test]
    fn conflicts_of_merges_are_found() {
        let shown = found("Hi\n<<<<<<< this folder\none\n=======\ntwo\n>>>>>>> production, revision 3\n");
        assert!(shown.len() == 1 && shown[0].contains(":2:1: warning[syntax]: a conflict"), "{shown:?}");
        assert!(found("<<<<<<< alone\n").is_empty() && found("a <<<<<<< b\n>>>>>>> c\n").is_empty());
    }

    #[test]
    fn keys_outside_of_front_matter_are_named() {
        for before in ["—\n", "--\n", "—-\n", "-----\n"] {
            let shown = found(&format!("{before}description: Greets\n---\nHi\n"));
            assert!(shown.len() == 1 && shown[0].contains("is not one of three dashes"), "{before:?}: {shown:?}");
        }
        for before in ["```\n---\n", "# Title\n---\n", ""] {
            let shown = found(&format!("{before}description: Greets\n---\nHi\n"));
            assert!(
                shown.len() == 1 && shown[0].contains("the key `description` is not read"),
                "{before:?}: {shown:?}"
            );
        }
        assert!(found("---\ndescription: Greets\n---\ntitle: not a key\n").is_empty());
        assert!(found("Write a description: short.\n").is_empty());
    }

    #[test]
    fn hidden_character_reports_are_bounded() {
        assert_eq!(found(&"a\u{200b}".repeat(500)).len(), MAX_REPORTED + 1);
    }
}
