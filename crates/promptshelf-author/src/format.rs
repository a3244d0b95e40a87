//! The formatter of front matter.
//!
//! It works on lines, never on values: it reorders blocks of lines, changes their indentation, and normalises scalars
//! on a single line. Lines that it does not understand stay unchanged. At the end, the result must parse to the same
//! values with the same comments; otherwise the file stays unchanged.

mod lines;

use std::sync::Arc;

use promptshelf_core::{Diagnostic, SourceText};

use self::lines::{Block, blocks, dedented, is_comment, written};
use promptshelf_source::syntax::{Holds, Keys, Node, Notes, PROMPT_KEYS, Value, front_matter, parse_yaml};

/// The comment by which editors find a schema; it stays at the top.
const SCHEMA: &str = "# yaml-language-server:";

/// Formats a prompt file: keys in the usual order, lists indented by two, one kind of quotation mark.
///
/// The text below the front matter stays as it is, byte by byte, and so does everything that cannot be
/// moved without changing its meaning or its comments.
///
/// ```
/// use promptshelf_author::format;
/// use promptshelf_core::SourceText;
///
/// let file = SourceText::new("hello.md", "---\ndescription:   'Greets'\nname: hello\n---\nHello!\n");
/// let formatted = format(&file).unwrap();
/// assert_eq!(formatted, "---\nname: hello\ndescription: \"Greets\"\n---\nHello!\n");
/// ```
///
/// # Errors
///
/// The diagnostics of front matter that cannot be parsed.
pub fn format(source: &Arc<SourceText>) -> Result<String, Vec<Diagnostic>> {
    let text = &source.text;
    let Some((keys, _)) = front_matter(text) else { return Ok(text.to_string()) };
    let mut notes = Notes::new(source);
    parse_yaml(keys.clone(), &mut notes);
    if notes.has_errors() {
        return Err(notes.diagnostics);
    }
    let before = &text[keys.clone()];
    let is_crlf = before.contains('\r');
    let lines = before.replace("\r\n", "\n");
    // Mixed line endings are an accident whose intention is unknown; they stay as they are.
    let is_mixed = is_crlf && before.matches("\r\n").count() != lines.matches('\n').count();
    if is_mixed || lines.contains('\r') || lines.contains('\t') {
        return Ok(text.to_string());
    }
    let Some(laid_out) = mapping(&lines, &PROMPT_KEYS).filter(|after| is_same(&lines, after)) else {
        return Ok(text.to_string());
    };
    let laid_out = if is_crlf { laid_out.replace('\n', "\r\n") } else { laid_out };
    Ok(format!("{}{laid_out}{}", &text[..keys.start], &text[keys.end..]))
}

/// Parses a text by itself. Its mistakes have been reported before.
fn parse(text: &str) -> Option<Node> {
    let source = SourceText::new("", text);
    let mut notes = Notes::new(&source);
    let node = parse_yaml(0..text.len(), &mut notes)?;
    (!notes.has_errors()).then_some(node)
}

/// Formats a mapping whose keys are at the start of lines; `None` for other layouts.
fn mapping(text: &str, keys: &Keys) -> Option<String> {
    let Node { value: Value::Mapping(entries), .. } = parse(text)? else { return None };
    let (header, mut blocks, footer) = blocks(text, &entries)?;
    for (block, entry) in blocks.iter_mut().zip(&entries) {
        let holds = keys.find(&entry.key).map(|key| key.holds);
        block.body = match (&entry.node.value, holds) {
            (Value::List(_), Some(Holds::Tables(inner) | Holds::ListOfTextsOrTables(inner))) => {
                list(&block.body, inner).unwrap_or_else(|| block.body.clone())
            }
            _ => written(&block.body, text, entry).unwrap_or_else(|| block.body.clone()),
        };
        block.rank = keys.rank(&entry.key);
    }
    blocks.sort_by_key(|block| block.rank);
    let mut laid_out = header;
    for Block { lead, body, .. } in blocks {
        laid_out.push_str(&lead);
        laid_out.push_str(&body);
    }
    laid_out.push_str(&footer);
    Some(laid_out)
}

/// Formats a key with a list of mappings: items are indented by two spaces, their keys sorted.
fn list(body: &str, keys: &Keys) -> Option<String> {
    let (first, rest) = body.split_once('\n')?;
    let (_, behind) = first.split_once(':')?;
    if !(behind.trim().is_empty() || is_comment(behind)) {
        return None;
    }
    let mut laid_out = format!("{}\n", first.trim_end());
    let dash = rest.lines().find(|line| !line.trim().is_empty() && !is_comment(line))?;
    let column = dash.len() - dash.trim_start().len();
    let mut items: Vec<(String, String)> = vec![(String::new(), String::new())];
    for line in rest.split_inclusive('\n') {
        let indentation = line.len() - line.trim_start_matches(' ').len();
        let (lead, item) = items.last_mut()?;
        if indentation == column && line[column..].starts_with("- ") {
            // Blank lines and comments before an item belong to that item, not to the previous one.
            let own = lines::content(item);
            let lead_of_next = item.split_off(own);
            match item.is_empty() {
                true => {
                    lead.push_str(&lead_of_next);
                    item.push_str(line);
                }
                false => items.push((lead_of_next, line.to_owned())),
            }
        } else if indentation > column || line.trim().is_empty() || is_comment(line) {
            item.push_str(line);
        } else {
            return None;
        }
    }
    for (lead, item) in items {
        for line in lead.split_inclusive('\n') {
            laid_out.push_str(&if line.trim().is_empty() {
                "\n".to_owned()
            } else {
                format!("  {}", line.trim_start())
            });
        }
        laid_out.push_str(&self::item(&item, column, keys)?);
    }
    Some(laid_out)
}

/// Formats one item: its dash is indented by two spaces, its keys are sorted.
fn item(item: &str, column: usize, keys: &Keys) -> Option<String> {
    let behind = &item[column + 1..];
    let inside = column + 1 + (behind.len() - behind.trim_start_matches(' ').len());
    let without_dash = format!("{}{}", " ".repeat(inside), &item[inside..]);
    let text = dedented(&without_dash, inside)?;
    let laid_out = mapping(&text, keys).unwrap_or_else(|| text.clone());
    // A dash before a comment would change the meaning of the following lines.
    let lines = if is_comment(&laid_out) || laid_out.starts_with('\n') { text } else { laid_out };
    let indented = lines.split_inclusive('\n').enumerate().map(|(index, line)| match (index, line.trim().is_empty()) {
        (0, _) => format!("  - {line}"),
        (_, true) => line.trim_start_matches(' ').to_owned(),
        (_, false) => format!("    {line}"),
    });
    Some(indented.collect())
}

fn is_same(before: &str, after: &str) -> bool {
    let same = match (parse(before), parse(after)) {
        (Some(before), Some(after)) => means(&before, &after),
        _ => false,
    };
    let comments = |text: &str| {
        let mut comments: Vec<String> =
            text.lines().filter(|line| is_comment(line)).map(|line| line.trim().to_owned()).collect();
        comments.sort();
        comments
    };
    let marks = |text: &str| text.matches('#').count();
    same && comments(before) == comments(after) && marks(before) == marks(after)
}

fn means(one: &Node, other: &Node) -> bool {
    match (&one.value, &other.value) {
        (Value::Scalar(one), Value::Scalar(other)) => one.kind == other.kind && one.text == other.text,
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| means(one, other))
        }
        (Value::Mapping(one), Value::Mapping(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|entry| other.iter().any(|twin| twin.key == entry.key && means(&entry.node, &twin.node)))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn laid_out(text: &str) -> String {
        format(&SourceText::new("a.md", text)).expect("it can be read")
    }

    const MESSY: &str = "\
---
# yaml-language-server: $schema=a.json
# what people read
description:   'Greets'   # in one line

arguments:
- description: Whom
  # the person
  name: who
  enum:
  - Ada   # the first
  - Grace

# the tone
- type: string
  name:  tone
  description: |
    How,
      in short.
name: hello
---
  Hello   {{ who }}, 'now'
";

    const NEAT: &str = "\
---
# yaml-language-server: $schema=a.json
name: hello
# what people read
description: \"Greets\"   # in one line

arguments:
  - description: Whom
    # the person
    name: who
    enum:
    - Ada   # the first
    - Grace

  # the tone
  - name: tone
    description: |
      How,
        in short.
    type: string
---
  Hello   {{ who }}, 'now'
";

    #[test]
    fn keys_are_sorted_with_comments() {
        assert_eq!(laid_out(MESSY), NEAT);
        assert_eq!(laid_out(NEAT), NEAT);
        assert_eq!(laid_out(&MESSY.replace('\n', "\r\n")), NEAT.replace('\n', "\r\n"));
    }

    #[test]
    fn doubtful_files_are_unchanged() {
        for text in [
            "no front matter\n",
            "---\n{ description: Greets, name: a }\n---\nHello\n",
            "---\n  description: Greets\n  name: a\n---\nHello\n",
            "---\ndescription: |+\n  Greets\n\n\nname: a\n---\nHello\n",
            "---\n---\nHello\n",
            "---\ntitle:  x\r\nname: y\n---\nHello\n",
        ] {
            assert_eq!(laid_out(text), text);
        }
        assert!(format(&SourceText::new("a.md", "---\na: b: c\n---\n")).is_err());
    }

    #[test]
    fn quotes_change_only_without_effect() {
        let quoted = |value: &str| laid_out(&format!("---\ntitle: {value}\n---\nx")).lines().nth(1).map(str::to_owned);
        assert_eq!(quoted("'it''s'").as_deref(), Some("title: 'it''s'"));
        assert_eq!(quoted("'a\\b'").as_deref(), Some("title: 'a\\b'"));
        assert_eq!(quoted("'say \"x\"'").as_deref(), Some("title: 'say \"x\"'"));
        assert_eq!(quoted("'true'").as_deref(), Some("title: \"true\""));
        assert_eq!(quoted("plain # comment").as_deref(), Some("title: plain # comment"));
        assert_eq!(quoted("  [ a,'b' , \"c\" ]  # d").as_deref(), Some("title: [a, \"b\", \"c\"]  # d"));
        assert_eq!(quoted("  {a:  b}").as_deref(), Some("title: {a:  b}"));
    }

    fn line() -> impl Strategy<Value = String> {
        let key = prop_oneof![Just("name"), Just("title"), Just("description"), Just("tags"), Just("x")];
        let value = prop_oneof![
            Just("a".to_owned()),
            Just("'a # b'".to_owned()),
            Just("\"a\\\\n\"".to_owned()),
            Just("1.10".to_owned()),
            Just("|\n  # no comment\n  a\n".to_owned()),
            Just(">-\n    a\n\n    b".to_owned()),
            Just("\n- a\n- 'b'".to_owned()),
            Just("[a, 'b'] # c".to_owned()),
            Just("   [ a b,'b' , \"c, d\",[x], ]".to_owned()),
            Just("[ a,1.10 , '#' ]   # c".to_owned()),
            Just("  {a: b,  c: [d]}".to_owned()),
            Just("".to_owned()),
            Just("a\n  b".to_owned()),
            Just("\"a\n  b\"".to_owned()),
        ];
        prop_oneof![
            4 => (key, value).prop_map(|(key, value)| format!("{key}: {value}")),
            1 => Just("# a comment".to_owned()),
            1 => Just(String::new()),
            1 => Just("arguments:\n  - title: 'b'\n    name: a\n    # c\n  # d\n  - plain\n\n  - name: c\n    enum: [x]\n    type: string".to_owned()),
        ]
    }

    proptest! {
        #[test]
        fn formatting_is_idempotent_and_keeps_meaning(lines in prop::collection::vec(line(), 0..8), body in ".{0,40}") {
            let text = format!("---\n{}\n---\n{body}", lines.join("\n"));
            if let Ok(once) = format(&SourceText::new("a.md", &*text)) {
                let twice = format(&SourceText::new("a.md", &*once)).expect("it can be read still");
                prop_assert_eq!(&once, &twice);
                let end = format!("---\n{body}");
                prop_assert!(once.ends_with(&end));
                if once != text {
                    let keys = |text: &str| front_matter(text).map(|(keys, _)| text[keys].to_owned()).unwrap_or_default();
                    prop_assert!(is_same(&keys(&text), &keys(&once)));
                }
            }
        }
    }
}
