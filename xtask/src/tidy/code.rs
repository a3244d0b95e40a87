//! Scanner for Rust: separates code from comments and string literals.
//!
//! A small scanner and not a parser. It keeps line numbers, so that a finding can name its line.

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Code,
    /// A comment with its marks, to the end of its line or block.
    Comment,
    /// A string literal with its quotes.
    Text,
}

/// Splits a text into its parts. Joined again they are the text.
fn split(text: &str) -> Vec<(Kind, &str)> {
    let mut parts = Vec::new();
    let (mut code, mut at) = (0, 0);
    while let Some(first) = text[at..].chars().next() {
        let (rest, before) = (&text[at..], &text[..at]);
        let (length, kind) = match first {
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), Kind::Comment),
            '/' if rest.starts_with("/*") => (nested_comment(rest), Kind::Comment),
            '"' => (quoted(rest, '"'), Kind::Text),
            'r' | 'b' if !before.ends_with(|c: char| c.is_alphanumeric() || c == '_') => {
                raw_string(rest).map_or((1, Kind::Code), |length| (length, Kind::Text))
            }
            '\'' => match character(rest) {
                1 => (1, Kind::Code),
                length => (length, Kind::Text),
            },
            other => (other.len_utf8(), Kind::Code),
        };
        if kind != Kind::Code {
            parts.extend((code < at).then(|| (Kind::Code, &text[code..at])));
            parts.push((kind, &rest[..length]));
            code = at + length;
        }
        at += length;
    }
    parts.extend((code < at).then(|| (Kind::Code, &text[code..at])));
    parts
}

/// Returns the code of a Rust file: comments and literals are blanked, and the module of tests at the end is cut off.
pub(super) fn code_of(text: &str) -> String {
    let mut blanked = String::with_capacity(text.len());
    for (kind, part) in split(text) {
        match kind {
            Kind::Code => blanked.push_str(part),
            Kind::Comment | Kind::Text => blanked.extend(part.chars().map(|c| if c == '\n' { '\n' } else { ' ' })),
        }
    }
    // A file's own tests are at its end, after this attribute and in braces.
    let mut code = String::with_capacity(blanked.len());
    let mut lines = blanked.lines().peekable();
    while let Some(line) = lines.next() {
        let opens_tests = lines.peek().is_some_and(|next| next.trim_start().starts_with("mod ") && next.contains('{'));
        if line.trim() == "#[cfg(test)]" && opens_tests {
            break;
        }
        code.push_str(line);
        code.push('\n');
    }
    code
}

/// Returns the lines (from 1) that contain `word` as a whole word.
pub(super) fn lines_with(code: &str, word: &str) -> Vec<usize> {
    let contains = |line: &str| {
        line.match_indices(word).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + word.len()..].chars().next();
            let open = |side: Option<char>| !side.is_some_and(|c| c.is_alphanumeric() || c == '_');
            open(before) && (open(after) || !word.ends_with(|c: char| c.is_alphanumeric()))
        })
    };
    code.lines().enumerate().filter(|(_, line)| contains(line)).map(|(at, _)| at + 1).collect()
}

fn nested_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Returns the length of a literal that ends with the next unescaped `quote`.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of `r"…"`, `r#"…"#` or `br"…"` at the start of the text.
fn raw_string(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = inner.len() - inner.trim_start_matches('#').len();
    let body = inner[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - body.len();
    Some(body.find(&end).map_or(text.len(), |at| start + at + end.len()))
}

/// Returns the length of a character literal, or 1 for the quote of a lifetime.
fn character(text: &str) -> usize {
    let mut inner = text.char_indices().skip(1);
    match inner.next() {
        Some((_, '\\')) => text[2..].char_indices().skip(1).find(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 3),
        Some(_) => match inner.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_blanked_and_lines_stay() {
        // Concatenated here, so that a search for unfinished code does not find this file.
        let text = concat!(
            "let a = \"dbg",
            "!(\\\"x\\\")\"; // todo!\n",
            "/* one /* two */\n */ let b = r#\"x\"y\"#;\nlet c = '\"'; call();\n"
        );
        let code = code_of(text);
        assert_eq!(code.lines().count(), 4);
        assert!(!code.contains("dbg") && !code.contains("todo") && !code.contains('x') && !code.contains("two"));
        assert!(code.contains("let b") && code.contains("call();"));
    }

    #[test]
    fn parts_join_to_the_text() {
        let text = "let a = \"x\"; // y\n'c' 'life b\"\" r#\"\"#";
        let joined: String = split(text).into_iter().map(|(_, part)| part).collect();
        assert_eq!(joined, text);
    }

    #[test]
    fn lifetimes_are_not_character_literals() {
        let code = code_of("fn f<'a>(x: &'a str) -> &'a str { panic!(x) }\nlet escaped = '\\'';\nend();\n");
        assert_eq!(lines_with(&code, "panic!"), [1]);
        assert_eq!(lines_with(&code, "end"), [3]);
    }

    #[test]
    fn module_of_tests_is_cut_off() {
        let code = code_of("fn one() {}\n#[cfg(test)]\nmod tests {\n    println!();\n}\n");
        assert!(code.contains("one") && !code.contains("println"));
        let code = code_of("#[cfg(test)]\nmod tests;\nfn two() {}\n");
        assert!(code.contains("two"));
    }

    #[test]
    fn only_whole_words_count() {
        assert_eq!(lines_with("eprintln!()\nprintln!()\nmy_print!()\n", "println!"), [2]);
        assert_eq!(lines_with("Instantly\nInstant::now()\n", "Instant"), [2]);
        assert_eq!(lines_with("cap_fs::x\nfs::read()\n", "fs::"), [2]);
    }
}
