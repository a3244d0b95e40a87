//! Patterns of access rules, and names with parts that can be any text.

use crate::glob::{Glob, GlobError};

/// Stands for any text in a name: a variable that a caller chooses. It is the percent-encoding of a control character,
/// which no URI of a library contains.
pub(super) const ANY: &str = "%01";

/// The value whose expansion in a URI template is [`ANY`].
pub(super) const ANY_VALUE: &str = "\u{1}";

/// A compiled glob. An invalid glob matches everything, so that a typo never opens access.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) text: String,
    is_literal: bool,
    is_any_case: bool,
    glob: Option<Glob>,
}

impl Pattern {
    /// Compiles a glob; returns the mistake in it too.
    pub(super) fn new(text: &str, is_any_case: bool) -> (Pattern, Option<GlobError>) {
        let (glob, error) = match Glob::made(text, false, is_any_case) {
            Ok(glob) => (Some(glob), None),
            Err(error) => (None, Some(error)),
        };
        let is_literal = glob.is_some() && !text.contains(['*', '?', '[', '{', '\\']);
        (Pattern { text: text.to_owned(), is_literal, is_any_case, glob }, error)
    }

    /// Returns whether a name matches, or could match with some text for [`ANY`].
    pub(super) fn fits(&self, name: &str) -> bool {
        let Some(glob) = &self.glob else { return true };
        glob.is_match(name) || (name.contains(ANY) && self.overlaps(name))
    }

    /// Returns whether the pattern has no wildcard, so that it means one name.
    pub(super) fn is_literal(&self) -> bool {
        self.is_literal
    }

    /// Returns whether some text for each [`ANY`] gives a name that matches. Alternatives and character classes count
    /// as any text and any character: the answer can be wrong in favour of a match only.
    pub(super) fn overlaps(&self, name: &str) -> bool {
        let fold = |text: &str| if self.is_any_case { text.to_lowercase() } else { text.to_owned() };
        let (glob, name) = (glob_tokens(&fold(&self.text)), name_tokens(&fold(name)));
        // Reachable positions in the glob, for each prefix of the name.
        let mut row = vec![false; glob.len() + 1];
        row[0] = true;
        spread(&mut row, &glob);
        for part in &name {
            let mut next = vec![false; glob.len() + 1];
            match part {
                Token::Any => {
                    // Any text can be empty, and it can pass any part of the glob.
                    let first = row.iter().position(|reached| *reached).unwrap_or(row.len());
                    next[first..].fill(true);
                }
                Token::One(_) | Token::AnyOne => {
                    for (index, token) in glob.iter().enumerate().filter(|(index, _)| row[*index]) {
                        match token {
                            Token::Any => next[index] = true,
                            Token::AnyOne => next[index + 1] = true,
                            Token::One(_) => next[index + 1] |= token == part,
                        }
                    }
                }
            }
            row = next;
            spread(&mut row, &glob);
        }
        row[glob.len()]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    One(char),
    AnyOne,
    Any,
}

/// Marks the positions behind any text that is empty.
fn spread(row: &mut [bool], glob: &[Token]) {
    for (index, token) in glob.iter().enumerate() {
        if row[index] && *token == Token::Any {
            row[index + 1] = true;
        }
    }
}

fn glob_tokens(glob: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = glob.chars();
    while let Some(next) = rest.next() {
        tokens.push(match next {
            '*' => Token::Any,
            '?' => Token::AnyOne,
            '\\' => rest.next().map_or(Token::One('\\'), Token::One),
            '[' => {
                // A `]` directly after the beginning belongs to the class.
                let text = rest.as_str();
                let start = text.trim_start_matches(['!', '^']);
                let start = text.len() - start.len() + usize::from(start.starts_with(']'));
                let end = text[start..].find(']').map_or(text.len(), |end| start + end + 1);
                rest = text[end..].chars();
                Token::AnyOne
            }
            '{' => {
                let mut depth = 1_usize;
                for inner in rest.by_ref() {
                    depth = match inner {
                        '{' => depth + 1,
                        '}' => depth - 1,
                        _ => depth,
                    };
                    if depth == 0 {
                        break;
                    }
                }
                Token::Any
            }
            other => Token::One(other),
        });
    }
    tokens
}

fn name_tokens(name: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (index, part) in name.split(ANY).enumerate() {
        if index > 0 {
            tokens.push(Token::Any);
        }
        tokens.extend(part.chars().map(Token::One));
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_found_for_any_text() {
        let overlaps = |glob: &str, name: &str| Pattern::new(glob, true).0.overlaps(name);
        for (glob, name) in [
            ("docs:///private/*", "docs:///%01"),
            ("docs:///private/a.md", "docs:///%01.md"),
            ("*", "x://a"),
            ("DOCS://?/x", "docs://%01/x"),
            ("docs://[ab]*", "docs://%01"),
            ("docs://{a,b}", "docs://%01"),
            ("a://x?v=1", "a://x?v=%01"),
            ("a://\\*", "a://%01"),
        ] {
            assert!(overlaps(glob, name), "{glob} {name}");
        }
        for (glob, name) in [
            ("docs:///private/*", "logs:///%01"),
            ("docs:///a.txt", "docs:///%01.md"),
            ("docs://x", "docs://%01y"),
            ("docs://ab", "docs://a"),
            ("docs://?", "docs://ab"),
        ] {
            assert!(!overlaps(glob, name), "{glob} {name}");
        }
    }
}
