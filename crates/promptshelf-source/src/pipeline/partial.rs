//! Texts that templates include: front matter in them is left out, and reported.

use std::{ops::Range, sync::Arc};

use promptshelf_core::{Code, Diagnostic, Location, SourceText, nearest};
use smol_str::SmolStr;

use crate::{file_role, format};

/// Returns the text for templates that include a file, and diagnostics about its front matter. After an error, nobody may
/// read the file: its front matter demands an access rule that would not apply.
pub(super) fn of(path: &SmolStr, text: &Arc<str>) -> (Arc<SourceText>, Vec<Diagnostic>) {
    let whole = || SourceText::new(path.clone(), Arc::clone(text));
    let is_markdown =
        path.len() > 3 && path.to_ascii_lowercase().ends_with(".md") || file_role::is_other_markdown(path);
    if !(is_markdown || path.split('/').any(|part| part.starts_with('_')))
        || !text.trim_start_matches('\u{feff}').trim_start().starts_with("---")
    {
        return (whole(), Vec::new());
    }
    let closed = format::front_matter_range(text).map(|(keys, body)| (keys, body.start));
    let Some((keys, end)) = closed.or_else(|| unclosed(text)) else { return (whole(), Vec::new()) };
    let Some(first) = first_key(text, &keys) else { return (whole(), Vec::new()) };
    let source = whole();
    if let Some(rule) = access(text, &keys) {
        let message = "`access` protects prompts only, and this file is none, so that the rule would not apply";
        let help = "write the rule in promptshelf.toml, under [[access]] with `folders`; or rename the file so that it ends \
                    in `.md` and is a prompt";
        return (
            source.clone(),
            vec![Diagnostic::error(Code::NoEffect, Location::new(&source, rule), message).help(help)],
        );
    }
    if !path.split('/').any(|part| part.starts_with('_')) {
        return (source, Vec::new());
    }
    let message = "front matter has no effect in a file that is no prompt, and is left out where templates include it";
    let found = Diagnostic::warning(Code::NoEffect, Location::new(&source, first), message)
        .help("remove it; arguments are declared in the prompts that include this file");
    (SourceText::new(path.clone(), blanked(text, end)), vec![found])
}

/// Returns the range of front matter without a closing line, and where the text begins. It has a known key, since a line
/// of dashes may also divide a text.
fn unclosed(text: &str) -> Option<(Range<usize>, usize)> {
    let start = text.find('\n')? + 1;
    let is_key = |line: &Range<usize>| {
        let known =
            format::PROMPT.names().into_iter().any(|name| key(text, line).is_some_and(|key| text[key] == *name));
        known || text[line.clone()].starts_with([' ', '\t', '-'])
    };
    let rest = start..text.len();
    let end = lines(text, &rest).take_while(is_key).map(|line| line.end).last()?;
    first_key(text, &(start..end)).is_some().then_some((start..end, end))
}

/// Returns the text with a comment in place of its beginning, which keeps the lines and positions of the rest. The comment
/// takes the white space after it along: that of its last line has to stay.
fn blanked(text: &str, end: usize) -> String {
    let inside = &text[..end];
    let mut comment: Vec<u8> =
        inside.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { byte } else { b' ' }).collect();
    let close = inside.trim_end_matches(['\n', '\r']).len();
    comment[..2].copy_from_slice(b"{#");
    comment[close - 3..close].copy_from_slice(b"-#}");
    String::from_utf8_lossy(&comment).into_owned() + &text[end..]
}

fn first_key(text: &str, keys: &Range<usize>) -> Option<Range<usize>> {
    lines(text, keys).find_map(|line| key(text, &line))
}

fn access(text: &str, keys: &Range<usize>) -> Option<Range<usize>> {
    let keys = lines(text, keys).filter_map(|line| key(text, &line));
    keys.into_iter().find(|key| nearest(&text[key.clone()], format::PROMPT.names()) == Some("access"))
}

fn lines(text: &str, keys: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut at = keys.start;
    text[keys.clone()].split_inclusive('\n').map(move |line| {
        at += line.len();
        at - line.len()..at
    })
}

fn key(text: &str, line: &Range<usize>) -> Option<Range<usize>> {
    let (key, _) = text[line.clone()].split_once(':')?;
    let name = key.trim_matches(['"', '\'']);
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
    let start = line.start + key.find(name).unwrap_or_default();
    is_name.then(|| start..start + name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_of_partials_is_left_out() {
        let text = "---\ntitle: Tone\n---\nWrite {{ kindly }}.\n";
        let (source, found) = of(&"_shared/tone.md".into(), &text.into());
        assert_eq!(&*source.text, "{# \n           \n-#}\nWrite {{ kindly }}.\n");
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "_shared/tone.md:2:1: warning[no-effect]: front matter has no effect in a file that is no prompt, and is left out where templates include it (remove it; arguments are declared in the prompts that include this file)"
            ]
        );
        for (path, text) in
            [("_a.md", "---\nA line.\n---\n"), ("_a.md", "---\na: b\n"), ("note.md", text), ("_a.txt", "x")]
        {
            let (source, found) = of(&path.into(), &text.into());
            assert!(*source.text == *text && found.is_empty(), "{path} {text}");
        }
        for path in ["_a.md", "secret.markdown", "AGENTS.md"] {
            let (_, found) = of(&path.into(), &"---\nacces:\n  roles: [a]\n---\n".into());
            assert!(found.iter().any(Diagnostic::is_error), "{path}");
        }
    }
}
