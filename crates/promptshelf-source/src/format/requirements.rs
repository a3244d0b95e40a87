//! The access requirements of a broken prompt file, read from the lines of its rule alone: an edit that restricts
//! access may break another line of the file.

use std::{ops::Range, sync::Arc};

use promptshelf_core::{Requirements, SourceText, nearest};

use super::{
    access::access,
    file_format::Format,
    front_matter::KEYS,
    markdown::{self, Split},
    table::Table,
    tree::Notes,
    yaml,
};

/// Returns the access requirements of a file; unknown in case of doubt.
pub(crate) fn requirements(source: &Arc<SourceText>) -> Requirements {
    let text = &source.text;
    // Only the native format has access rules.
    if !Format::is_native(&source.path) {
        return Requirements::Known(None);
    }
    // Not UTF-8, for instance UTF-16.
    if text.contains('\0') {
        return Requirements::Unknown;
    }
    let keys = match markdown::split(text) {
        Split::Body(_) => return Requirements::Known(None),
        Split::Both { keys, .. } => keys,
        Split::Unterminated(first) => first.end..text.len(),
    };
    let rules = rules(text, &keys);
    match &*rules {
        [] if text[keys.clone()].trim_start().starts_with('{') && text[keys].contains("access") => {
            Requirements::Unknown
        }
        [] => Requirements::Known(None),
        [block] => read(source, block.clone()),
        _ => Requirements::Unknown,
    }
}

/// Returns the lines of each key that is `access` or may be a misspelling of it.
fn rules(text: &str, keys: &Range<usize>) -> Vec<Range<usize>> {
    let mut rules: Vec<Range<usize>> = Vec::new();
    let (mut at, mut inside) = (keys.start, false);
    for line in text[keys.clone()].split_inclusive('\n') {
        let is_key = !line.starts_with([' ', '\t', '#', '\r', '\n']);
        if is_key {
            let key = line.trim_start_matches(['?', '-', ' ']).split(':').next().unwrap_or_default();
            let key = key.trim().trim_matches(['"', '\'']);
            inside = nearest(key, KEYS.names()) == Some("access") || key.eq_ignore_ascii_case("access");
            if inside {
                rules.push(at..at);
            }
        }
        at += line.len();
        if let Some(rule) = rules.last_mut().filter(|_| inside) {
            rule.end = at;
        }
    }
    rules
}

fn read(source: &Arc<SourceText>, block: Range<usize>) -> Requirements {
    let mut notes = Notes::new(source);
    let access_rule = yaml::parse(block, &mut notes).and_then(|node| {
        let table = Table::of(&node, "", "the front matter", &mut notes)?;
        table.has("access").then(|| access(&table, &mut notes)).flatten()
    });
    match access_rule {
        Some(access_rule) if !notes.has_errors() => Requirements::Known(Some(access_rule)),
        _ => Requirements::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use promptshelf_core::Access;

    use super::*;

    fn of(keys: &str) -> Requirements {
        requirements(&SourceText::new("a.md", keys))
    }

    #[test]
    fn rule_is_read_from_a_broken_file() {
        let roles =
            |role: &str| Requirements::Known(Some(Access { roles: vec![role.to_owned()], ..Access::default() }));
        assert_eq!(of("---\ndescription: [\naccess: { roles: [a] }\n---\nhello"), roles("a"));
        assert_eq!(of("---\naccess:\n  # why\n  roles:\n\n    - a\ndescription: a: b\n---\n"), roles("a"));
        assert_eq!(of("---\r\n\"access\":\r\n  roles: b\r\n"), roles("b"), "nothing closes the front matter");
        assert_eq!(of("---\ndescription: access: x\narguments: [\n---\naccess: no"), Requirements::Known(None));
        assert_eq!(of("access:\n  roles: b"), Requirements::Known(None), "a text");
    }

    #[test]
    fn possible_rule_with_mistakes_is_unknown() {
        for keys in [
            "---\naccess: { roles: [a }\n---\n",
            "---\naccess: editors\n---\n",
            "---\naccess: { role: [a] }\n---\n",
            "---\naccess:\n---\n",
            "---\nacess: { roles: [a] }\n---\n",
            "---\nAccess: { roles: [a] }\n---\n",
            "---\n? access\n: { roles: [a] }\n---\n",
            "---\n{ description: x, access: { roles: [a] }\n---\n",
            "---\naccess: { roles: [a] }\naccess: { roles: [b] }\n---\n",
            "-\0-\0-\0\n\0a\0",
        ] {
            assert_eq!(of(keys), Requirements::Unknown, "{keys}");
        }
    }
}
