//! `/name value name=value name='a value'`: what is typed becomes arguments.
//!
//! A value arrives exactly as it was typed. Words are split only between
//! values; where that could lose or misplace something, the line is refused
//! with what to do, as a shell would not.

use std::ops::Range;

use promptshelf_client::OfferedArgument;
use promptshelf_core::Variables;

/// One value of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where it stands, its name and quotes included.
    pub(super) at: Range<usize>,
    /// Where the value itself begins, its quote included.
    pub(super) value_at: usize,
    /// The name before `=`.
    pub(super) name: Option<String>,
    /// The value without its quotes.
    pub(super) value: String,
    /// Whether it stands in quotes.
    pub(super) quoted: bool,
    /// Whether the closing quote is missing.
    pub(super) open: bool,
}

/// The command of a line and what follows it.
pub(super) fn split(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start().strip_prefix('/')?;
    let end = line.find(char::is_whitespace).unwrap_or(line.len());
    Some((&line[..end], &line[end..]))
}

/// The values of a line, of which these names can stand before a `=`.
pub(super) fn pieces(text: &str, arguments: &[OfferedArgument]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let start = text.len() - rest.len();
        let name = rest.split_once('=').map(|(name, _)| name).filter(|name| arguments.iter().any(|a| a.name == *name));
        let value_at = start + name.map_or(0, |name| name.len() + 1);
        let from = &text[value_at..];
        let (value, length, quoted, open) = value(from);
        let end = value_at + length;
        pieces.push(Piece { at: start..end, value_at, name: name.map(str::to_owned), value, quoted, open });
        rest = text[end..].trim_start();
    }
    pieces
}

/// One value, how many bytes it takes, whether it is quoted and whether the quote is open.
fn value(text: &str) -> (String, usize, bool, bool) {
    let quote = match text.chars().next() {
        Some(quote @ ('"' | '\'')) => quote,
        _ => {
            let end = text.find(char::is_whitespace).unwrap_or(text.len());
            return (text[..end].to_owned(), end, false, false);
        }
    };
    let mut value = String::new();
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            // Only what would otherwise end the value is escaped; every other backslash is one.
            '\\' if quote == '"' => match characters.next_if(|(_, next)| matches!(next, '"' | '\\')) {
                Some((_, escaped)) => value.push(escaped),
                None => value.push('\\'),
            },
            c if c == quote => return (value, at + 1, true, false),
            c => value.push(c),
        }
    }
    (value, text.len(), true, true)
}

/// A value as it has to be typed to arrive.
pub(super) fn quoted(value: &str) -> String {
    let plain = !value.is_empty() && !value.contains(char::is_whitespace) && !value.starts_with(['"', '\'', '@']);
    match (plain, value.contains('\'')) {
        (true, _) => value.to_owned(),
        (false, false) => format!("'{value}'"),
        (false, true) => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// The line that gives these values to a prompt.
pub(super) fn line(command: &str, values: &Variables) -> String {
    let values = values.iter().map(|(name, value)| format!(" {name}={}", quoted(value)));
    format!("/{command}{}", values.collect::<String>())
}

/// What a line gives to a prompt's arguments.
///
/// # Errors
///
/// A sentence, where a value has no place.
pub(super) fn assign(text: &str, arguments: &[OfferedArgument]) -> Result<Variables, String> {
    let mut given = Variables::new();
    let pieces = pieces(text, arguments);
    if let ([only], [first, ..]) = (arguments, pieces.as_slice())
        && first.name.is_none()
        && !first.quoted
    {
        // Nothing else can be meant, so nothing has to be quoted.
        let value = text.strip_prefix(' ').unwrap_or(text);
        return Ok([(only.name.clone(), from_file(value, false)?)].into());
    }
    let mut named = false;
    let mut ended = 0;
    for piece in pieces {
        if ended > 0 && ended == piece.at.start {
            return Err("a space is missing after a closing quote".to_owned());
        }
        ended = piece.at.end;
        if piece.open {
            return Err("a closing quote is missing".to_owned());
        }
        let name = match piece.name {
            Some(name) => {
                named = true;
                name
            }
            None if named => {
                return Err(format!("`{}` has no place: put quotes around a value with spaces", piece.value));
            }
            None => match arguments.get(given.len()) {
                Some(argument) => argument.name.clone(),
                None if arguments.is_empty() => return Err("this prompt takes no arguments".to_owned()),
                None => {
                    let many = arguments.len();
                    return Err(format!(
                        "`{}` has no place: there are {many} arguments; put quotes around a value with spaces",
                        piece.value
                    ));
                }
            },
        };
        let value = from_file(&piece.value, piece.quoted)?;
        if given.insert(name.clone(), value).is_some() {
            return Err(format!("`{name}` is given twice"));
        }
    }
    Ok(given)
}

/// `@path` without quotes is what the file holds.
fn from_file(value: &str, quoted: bool) -> Result<String, String> {
    match value.strip_prefix('@') {
        Some(path) if !quoted && !path.is_empty() => {
            std::fs::read_to_string(path).map_err(|error| format!("{path} cannot be read: {error}"))
        }
        _ => Ok(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(names: &[&str]) -> Vec<OfferedArgument> {
        names.iter().map(|name| OfferedArgument::named(name)).collect()
    }

    fn given(text: &str, names: &[&str]) -> Result<Vec<(String, String)>, String> {
        assign(text, &arguments(names)).map(|given| given.into_iter().collect())
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn values_arrive_exactly_as_typed() {
        let names = ["code", "language"];
        let code = pair("code", "fn main() {\n  \"hi\\n\";\n}");
        assert_eq!(
            given(" code='fn main() {\n  \"hi\\n\";\n}' language=rust", &names),
            Ok(vec![code, pair("language", "rust")])
        );
        assert_eq!(
            given(r#" "a \"b\" \\ \n" c"#, &names),
            Ok(vec![pair("code", r#"a "b" \ \n"#), pair("language", "c")])
        );
        assert_eq!(given(" '' x", &names), Ok(vec![pair("code", ""), pair("language", "x")]));
        assert_eq!(given(" a=b c", &names), Ok(vec![pair("code", "a=b"), pair("language", "c")]));
    }

    #[test]
    fn the_only_argument_takes_the_whole_line() {
        assert_eq!(
            given("  two  words 'and' \"quotes\" ", &["topic"]),
            Ok(vec![pair("topic", " two  words 'and' \"quotes\" ")])
        );
        assert_eq!(given(" 'in quotes'", &["topic"]), Ok(vec![pair("topic", "in quotes")]));
        assert_eq!(given(" topic=x", &["topic"]), Ok(vec![pair("topic", "x")]));
        assert_eq!(given(" ", &["topic"]), Ok(vec![]));
    }

    #[test]
    fn what_has_no_place_is_refused() {
        let names = ["code", "language"];
        for (line, part) in [
            (" code=fn main()", "put quotes"),
            (" a b c", "there are 2 arguments"),
            (" code='open", "closing quote is missing"),
            (" 'a'b", "space is missing"),
            (" a code=b", "given twice"),
        ] {
            assert!(given(line, &names).is_err_and(|error| error.contains(part)), "{line}");
        }
        assert!(given(" x", &[]).is_err_and(|error| error.contains("no arguments")));
    }

    #[test]
    fn what_is_quoted_comes_back() {
        for value in ["plain", "two words", "it's", "\"'\\", "", "@x", "a\nb", "tab\t"] {
            let line = format!(" {}", quoted(value));
            assert_eq!(given(&line, &["a", "b"]), Ok(vec![pair("a", value)]), "{line}");
            let values = [("a".to_owned(), value.to_owned()), ("b".to_owned(), "x".to_owned())];
            let line = super::line("p", &values.clone().into());
            let (command, text) = split(&line).expect("it names a prompt");
            assert_eq!((command, given(text, &["a", "b"])), ("p", Ok(values.to_vec())), "{line}");
        }
    }
}
