//! What of a Rust file is code: no comments, no contents of strings, no tests.
//!
//! A small scanner and no parser. It keeps every line where it was, so that a
//! finding can say its number.

/// The code of a file, with comments and the contents of strings blanked and
/// everything from the module of tests on left out.
pub(super) fn code_of(text: &str) -> String {
    let blanked = blank(text);
    // A file's own tests stand at its end, after this attribute and in braces.
    let mut kept = String::with_capacity(blanked.len());
    let mut lines = blanked.lines().peekable();
    while let Some(line) = lines.next() {
        let opens_tests = lines.peek().is_some_and(|next| next.trim_start().starts_with("mod ") && next.contains('{'));
        if line.trim() == "#[cfg(test)]" && opens_tests {
            break;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    kept
}

/// The lines (from 1) in which `word` stands as a whole word.
pub(super) fn lines_with(code: &str, word: &str) -> Vec<usize> {
    let holds = |line: &str| {
        line.match_indices(word).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + word.len()..].chars().next();
            let open = |side: Option<char>| !side.is_some_and(|c| c.is_alphanumeric() || c == '_');
            open(before) && (open(after) || !word.ends_with(|c: char| c.is_alphanumeric()))
        })
    };
    code.lines().enumerate().filter(|(_, line)| holds(line)).map(|(at, _)| at + 1).collect()
}

fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (taken, shown) = match first {
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), false),
            '/' if rest.starts_with("/*") => (block_comment(rest), false),
            '"' => (string(rest), false),
            'r' | 'b' if !out.ends_with(|c: char| c.is_alphanumeric() || c == '_') => match raw_string(rest) {
                Some(length) => (length, false),
                None => (1, true),
            },
            '\'' => (character(rest), false),
            other => (other.len_utf8(), true),
        };
        let (token, after) = rest.split_at(taken);
        if shown {
            out.push_str(token);
        } else {
            out.extend(token.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        rest = after;
    }
    out
}

fn block_comment(text: &str) -> usize {
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

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of `r"…"`, `r#"…"#`, `br"…"` at the start of the text, if there is one.
fn raw_string(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = inner.len() - inner.trim_start_matches('#').len();
    let body = inner[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - body.len();
    Some(body.find(&end).map_or(text.len(), |at| start + at + end.len()))
}

/// The length of a character literal, or 1 for the quote of a lifetime.
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
    use super::{code_of, lines_with};

    #[test]
    fn comments_and_strings_are_no_code_and_lines_stay_where_they_were() {
        // Put together here, so that whoever searches for unfinished code does not find it in this file.
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
    fn lifetimes_are_no_characters() {
        let code = code_of("fn f<'a>(x: &'a str) -> &'a str { panic!(x) }\nlet escaped = '\\'';\nend();\n");
        assert_eq!(lines_with(&code, "panic!"), [1]);
        assert_eq!(lines_with(&code, "end"), [3]);
    }

    #[test]
    fn the_module_of_tests_is_left_out() {
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
