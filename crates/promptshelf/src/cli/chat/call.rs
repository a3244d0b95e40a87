//! Parses calls of prompts: `/name value name=value name='a value'`.
//!
//! A value arrives exactly as it was typed. A line is split only between values; an ambiguous line is rejected with a
//! hint.

use std::ops::Range;

use promptshelf_client::{Arguments, PromptArgument};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TypedValue {
    pub(super) range: Range<usize>,
    pub(super) value_at: usize,
    pub(super) name: Option<String>,
    /// The value without its quotes.
    pub(super) value: String,
    pub(super) is_quoted: bool,
    pub(super) is_open: bool,
}

pub(super) fn split(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start().strip_prefix('/')?;
    let end = line.find(char::is_whitespace).unwrap_or(line.len());
    Some((&line[..end], &line[end..]))
}

/// Parses the values of a line. Only names of arguments can precede a `=`.
pub(super) fn values(text: &str, arguments: &[PromptArgument]) -> Vec<TypedValue> {
    let mut values = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let start = text.len() - rest.len();
        let name = rest.split_once('=').map(|(name, _)| name).filter(|name| arguments.iter().any(|a| a.name == *name));
        let value_at = start + name.map_or(0, |name| name.len() + 1);
        let from = &text[value_at..];
        let (value, length, is_quoted, is_open) = value(from);
        let end = value_at + length;
        let name = name.map(str::to_owned);
        values.push(TypedValue { range: start..end, value_at, name, value, is_quoted, is_open });
        rest = text[end..].trim_start();
    }
    values
}

/// Parses one value. Returns it with its length in bytes, whether it is quoted, and whether the quote is open.
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
            // A backslash escapes only a quote or a backslash.
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

/// Quotes a value, so that parsing returns it.
pub(super) fn quoted(value: &str) -> String {
    let plain = !value.is_empty() && !value.contains(char::is_whitespace) && !value.starts_with(['"', '\'', '@']);
    match (plain, value.contains('\'')) {
        (true, _) => value.to_owned(),
        (false, false) => format!("'{value}'"),
        (false, true) => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

pub(super) fn line(command: &str, values: &Arguments) -> String {
    let values = values.iter().map(|(name, value)| format!(" {name}={}", quoted(value)));
    format!("/{command}{}", values.collect::<String>())
}

/// Returns the call without the values of some arguments. Nothing but the command stays of a call that cannot be
/// assigned, because any part of it can belong to such a value.
pub(super) fn without(
    command: &str,
    text: &str,
    arguments: &[PromptArgument],
    is_left_out: impl Fn(&str) -> bool,
) -> String {
    let is_single = arguments.len() == 1;
    if is_single || !unknown_names(text, arguments).is_empty() || assign(text, arguments).is_err() {
        return format!("/{command}");
    }
    let mut line = format!("/{command}");
    for (index, value) in values(text, arguments).iter().enumerate() {
        let name = value.name.as_deref().or_else(|| arguments.get(index).map(|argument| argument.name.as_str()));
        if let Some(name) = name.filter(|name| !is_left_out(name)) {
            line.push_str(&format!(" {name}={}", &text[value.value_at..value.range.end]));
        }
    }
    line
}

pub(super) fn assign(text: &str, arguments: &[PromptArgument]) -> Result<Arguments, String> {
    let mut assigned = Arguments::new();
    let values = values(text, arguments);
    if let ([only], [first, ..]) = (arguments, values.as_slice())
        && first.name.is_none()
        && !first.is_quoted
    {
        // A single argument takes the whole rest, without quotes.
        reject_misspelled(&first.value, arguments)?;
        let value = text.strip_prefix(' ').unwrap_or(text);
        return Ok([(only.name.clone(), from_file(value, false)?)].into());
    }
    let mut has_names = false;
    let mut end = 0;
    for value in values {
        if end > 0 && end == value.range.start {
            return Err("a space is missing after a closing quote".to_owned());
        }
        end = value.range.end;
        if value.is_open {
            return Err("a closing quote is missing".to_owned());
        }
        let name = match value.name {
            Some(name) => {
                has_names = true;
                name
            }
            None if has_names && name_before_equals(&value.value).is_some() => {
                let name = name_before_equals(&value.value).unwrap_or_default();
                let names: Vec<&str> = arguments.iter().map(|argument| argument.name.as_str()).collect();
                return Err(format!("there is no argument `{name}`: the arguments are {}", names.join(", ")));
            }
            None if has_names => {
                return Err(format!("unexpected `{}`: quote values with spaces", value.value));
            }
            None => match arguments.get(assigned.len()) {
                Some(argument) => argument.name.clone(),
                None if arguments.is_empty() => return Err("this prompt has no arguments".to_owned()),
                None => {
                    let count = arguments.len();
                    return Err(format!(
                        "unexpected `{}`: the prompt has {count} arguments; quote values with spaces",
                        value.value
                    ));
                }
            },
        };
        if !value.is_quoted && value.value_at == value.range.start {
            reject_misspelled(&value.value, arguments)?;
        }
        let value = from_file(&value.value, value.is_quoted)?;
        if assigned.insert(name.clone(), value).is_some() {
            return Err(format!("`{name}` occurs twice"));
        }
    }
    Ok(assigned)
}

/// Returns the names before a `=` in unquoted values that are not arguments of the prompt. The values contain them.
pub(super) fn unknown_names(text: &str, arguments: &[PromptArgument]) -> Vec<String> {
    let values = values(text, arguments).into_iter().filter(|value| value.name.is_none() && !value.is_quoted);
    values.filter_map(|value| name_before_equals(&value.value).map(str::to_owned)).collect()
}

/// Returns the part of a value before `=` if it looks like the name of an argument.
fn name_before_equals(value: &str) -> Option<&str> {
    let (name, rest) = value.split_once('=')?;
    let is_name = name.starts_with(char::is_alphabetic)
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    (is_name && !rest.starts_with('=')).then_some(name)
}

fn reject_misspelled(value: &str, arguments: &[PromptArgument]) -> Result<(), String> {
    let Some(name) = name_before_equals(value) else { return Ok(()) };
    match promptshelf_core::nearest(name, arguments.iter().map(|argument| argument.name.as_str())) {
        Some(known) => {
            Err(format!("unknown argument `{name}`; did you mean `{known}`? Quotes make it a value: '{value}'"))
        }
        None => Ok(()),
    }
}

/// Replaces `@path` without quotes by the contents of the file.
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

    fn arguments(names: &[&str]) -> Vec<PromptArgument> {
        names.iter().map(|name| PromptArgument::new(name)).collect()
    }

    fn assigned(text: &str, names: &[&str]) -> Result<Vec<(String, String)>, String> {
        assign(text, &arguments(names)).map(|values| values.into_iter().collect())
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn values_arrive_exactly_as_typed() {
        let names = ["code", "language"];
        let code = pair("code", "fn main() {\n  \"hi\\n\";\n}");
        assert_eq!(
            assigned(" code='fn main() {\n  \"hi\\n\";\n}' language=rust", &names),
            Ok(vec![code, pair("language", "rust")])
        );
        assert_eq!(
            assigned(r#" "a \"b\" \\ \n" c"#, &names),
            Ok(vec![pair("code", r#"a "b" \ \n"#), pair("language", "c")])
        );
        assert_eq!(assigned(" '' x", &names), Ok(vec![pair("code", ""), pair("language", "x")]));
        assert_eq!(assigned(" a=b c", &names), Ok(vec![pair("code", "a=b"), pair("language", "c")]));
    }

    #[test]
    fn single_argument_takes_the_whole_line() {
        assert_eq!(
            assigned("  two  words 'and' \"quotes\" ", &["topic"]),
            Ok(vec![pair("topic", " two  words 'and' \"quotes\" ")])
        );
        assert_eq!(assigned(" 'in quotes'", &["topic"]), Ok(vec![pair("topic", "in quotes")]));
        assert_eq!(assigned(" topic=x", &["topic"]), Ok(vec![pair("topic", "x")]));
        assert_eq!(assigned(" ", &["topic"]), Ok(vec![]));
    }

    #[test]
    fn unassignable_values_are_rejected() {
        let names = ["code", "language"];
        for (line, part) in [
            (" code=fn main()", "quote values"),
            (" a b c", "has 2 arguments"),
            (" code='open", "closing quote is missing"),
            (" 'a'b", "space is missing"),
            (" a code=b", "occurs twice"),
            (" cod=b", "unknown argument `cod`; did you mean `code`?"),
            (" a lnguage=b", "did you mean `language`?"),
            (" code=a foo=1", "there is no argument `foo`: the arguments are code, language"),
        ] {
            assert!(assigned(line, &names).is_err_and(|error| error.contains(part)), "{line}");
        }
        assert!(assigned(" x", &[]).is_err_and(|error| error.contains("no arguments")));
    }

    // req: S-80
    #[test]
    fn sensitive_values_are_left_out_of_a_line() {
        let names = arguments(&["user", "password"]);
        let kept = |text: &str| without("login", text, &names, |name| name == "password");
        assert_eq!(kept(" user='a b' password='c d'"), "/login user='a b'");
        assert_eq!(kept(" ada secret"), "/login user=ada");
        assert_eq!(kept(" password=secret"), "/login");
        for unclear in [" passwrd=secret", " password=two words", " ada two words", " password='open", " ada 'x'y"] {
            assert_eq!(kept(unclear), "/login", "{unclear}");
        }
        assert_eq!(without("login", " hunter2", &arguments(&["password"]), |_| true), "/login");
    }

    #[test]
    fn unknown_names_are_found_but_stay_part_of_the_value() {
        assert!(assigned(" wh=Ada", &["who"]).is_err_and(|error| error.contains("did you mean `who`?")));
        assert_eq!(assigned(" 'wh=Ada'", &["who"]), Ok(vec![pair("who", "wh=Ada")]));
        assert_eq!(assigned(" x=Ada", &["who"]), Ok(vec![pair("who", "x=Ada")]));
        let unknown = |text: &str| unknown_names(text, &arguments(&["who"]));
        assert_eq!(unknown(" x=Ada"), ["x"]);
        for text in [" who=Ada", " 'x=Ada'", " a==b", " https://example.com/?a=b", " 1=2", " a <= b"] {
            assert!(unknown(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn quoting_round_trips() {
        for value in ["plain", "two words", "it's", "\"'\\", "", "@x", "a\nb", "tab\t"] {
            let line = format!(" {}", quoted(value));
            assert_eq!(assigned(&line, &["a", "b"]), Ok(vec![pair("a", value)]), "{line}");
            let values = [("a".to_owned(), value.to_owned()), ("b".to_owned(), "x".to_owned())];
            let line = super::line("p", &values.clone().into());
            let (command, text) = split(&line).expect("a call of a prompt");
            assert_eq!((command, assigned(text, &["a", "b"])), ("p", Ok(values.to_vec())), "{line}");
        }
    }
}
