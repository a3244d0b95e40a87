//! URI templates (RFC 6570): matching of URIs, extraction of variables, and expansion.
//!
//! The RFC does not define matching, so it is implemented here for the operators that name resources: `{x}`, `{+x}`,
//! `{/x}`, `{?x,y}` and `{&x}`. Other operators and modifiers are rejected instead of matched incorrectly. Expansion
//! is implemented next to it, because the two must be inverse to each other.

use std::fmt;

use iri_string::types::UriStr;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_decode_str, utf8_percent_encode};
use regex::bytes::Regex;

use crate::value::Variables;

/// Characters to encode in a simple variable: all except the unreserved ones of RFC 3986.
const SIMPLE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Characters to encode in `{+x}`: all that are not allowed in a path. In contrast to the RFC this includes `%`, `?`
/// and `#`, which are valid in file names.
const RESERVED: &AsciiSet = &SIMPLE
    .remove(b'/')
    .remove(b':')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// The longest URI that is matched. Each template of a server is compared with it.
const MAX_URI_BYTES: usize = 1 << 16;

pub(crate) struct UriTemplate {
    pattern: Regex,
    path: Vec<PathVariable>,
    query: Vec<String>,
}

struct PathVariable {
    name: String,
    reserved: bool,
}

impl fmt::Debug for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UriTemplate({})", self.pattern)
    }
}

/// Returns whether a string is an absolute URI with a scheme (RFC 3986).
pub(crate) fn is_uri(text: &str) -> bool {
    UriStr::new(text).is_ok()
}

pub(crate) fn scheme(uri: &str) -> Option<String> {
    UriStr::new(uri).ok().map(|uri| uri.scheme_str().to_ascii_lowercase())
}

/// Schemes that links and labels must not have: clients might execute their content.
const REFUSED_SCHEMES: &[&str] = &["javascript", "vbscript", "data", "blob", "about"];

/// Returns why a text cannot name something that is never fetched: the target of a link, or the displayed URI of an
/// attachment.
pub(crate) fn label_fault(uri: &str) -> Option<String> {
    match scheme(uri) {
        Some(scheme) if REFUSED_SCHEMES.contains(&scheme.as_str()) => {
            Some(format!("URIs of the scheme `{scheme}` are not allowed here"))
        }
        Some(_) => None,
        None => Some("expected a URI such as https://example.org/page".into()),
    }
}

/// A part of a template: literal text, or an operator with its variables.
enum Part<'t> {
    Literal(&'t str),
    Expression(char, Vec<&'t str>),
}

/// Splits a template into parts. The error is a sentence.
fn parts(template: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let close = rest[open..].find('}').ok_or("a `{` is not closed")? + open;
        parts.push(Part::Literal(&rest[..open]));
        parts.push(expression(&rest[open + 1..close])?);
        rest = &rest[close + 1..];
    }
    parts.push(Part::Literal(rest));
    for part in &parts {
        if let Part::Literal(text) = part
            && let Some(odd) = text.chars().find(|c| !c.is_ascii_graphic() || "\"<>\\^`{}|".contains(*c))
        {
            return Err(format!("a URI cannot contain {odd:?}"));
        }
    }
    Ok(parts)
}

fn expression(text: &str) -> Result<Part<'_>, String> {
    if text.contains([':', '*']) {
        return Err(format!("the modifiers `:` and `*` are not supported, as in `{{{text}}}`"));
    }
    let (operator, names) = match text.chars().next() {
        Some(operator @ ('+' | '/' | '?' | '&')) => (operator, &text[1..]),
        Some(other @ ('#' | '.' | ';')) => return Err(format!("the operator `{other}` is not supported")),
        _ => (' ', text),
    };
    let names: Vec<&str> = names.split(',').collect();
    let is_name = |name: &&str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match names.iter().find(|name| !is_name(name)) {
        Some(name) => Err(format!("invalid variable name `{name}`")),
        None => Ok(Part::Expression(operator, names)),
    }
}

impl UriTemplate {
    pub(crate) fn parse(template: &str) -> Result<UriTemplate, String> {
        let parts = parts(template)?;
        if !matches!(parts.first(), Some(Part::Literal(first)) if has_scheme(first)) {
            return Err("expected a URI template that begins with a scheme, as in `docs://{name}`".into());
        }
        // Byte patterns suffice: the delimiters of variables are ASCII, so no character is divided. Unicode patterns
        // take ten times as long to compile.
        let mut pattern = String::from("(?-u)^");
        let (mut path, mut query) = (Vec::<PathVariable>::new(), Vec::<String>::new());
        let mut query_begins = '?';
        for part in parts {
            let (operator, names) = match part {
                Part::Literal("") => continue,
                Part::Expression(operator, names) if query.is_empty() || matches!(operator, '?' | '&') => {
                    (operator, names)
                }
                Part::Literal(literal) if query.is_empty() => {
                    pattern.push_str(&regex::escape(literal));
                    continue;
                }
                _ => return Err("unexpected text after the variables of the query".into()),
            };
            if query.is_empty() {
                query_begins = operator;
            }
            for (index, name) in names.into_iter().enumerate() {
                let name = name.to_owned();
                if path.iter().any(|known| known.name == name) || query.contains(&name) {
                    return Err(format!("the variable `{name}` occurs twice in the template"));
                }
                match operator {
                    '?' | '&' => query.push(name),
                    _ => {
                        // A comma separates the values of one expression; a slash those of `{/x,y}`.
                        pattern.push_str(match (operator, index) {
                            ('/', _) => "/([^/?#]*)",
                            ('+', 0) => "(.*?)",
                            ('+', _) => ",(.*?)",
                            (_, 0) => "([^/?#,]*)",
                            (_, _) => ",([^/?#,]*)",
                        });
                        path.push(PathVariable { name, reserved: operator == '+' });
                    }
                }
            }
        }
        if path.is_empty() && query.is_empty() {
            return Err("expected at least one variable, as in `docs://{name}`".into());
        }
        if !query.is_empty() {
            pattern.push_str(&format!("(?:[{query_begins}]([^#]*))?"));
        }
        pattern.push('$');
        let pattern = Regex::new(&pattern).map_err(|error| error.to_string())?;
        Ok(UriTemplate { pattern, path, query })
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.path.iter().map(|variable| &*variable.name).chain(self.query.iter().map(String::as_str))
    }

    pub(crate) fn query(&self) -> &[String] {
        &self.query
    }

    /// Returns the decoded values of the variables if the URI matches. Query variables may be in any order and may be
    /// missing; an unknown one means that the URI does not match.
    pub(crate) fn matches(&self, uri: &str) -> Option<Variables> {
        if uri.len() > MAX_URI_BYTES {
            return None;
        }
        let captures = self.pattern.captures(uri.as_bytes())?;
        let mut variables = Variables::new();
        for (index, variable) in self.path.iter().enumerate() {
            let raw = captures.get(index + 1)?.as_bytes();
            let value = percent_decode(raw).decode_utf8().ok()?;
            // `%2F` in a simple variable would insert a path where the template allows a single segment.
            if value.is_empty() || (!variable.reserved && value.contains('/')) {
                return None;
            }
            variables.insert(variable.name.clone(), value.into_owned());
        }
        let query = captures.get(self.path.len() + 1).map_or(Some(""), |found| uri.get(found.range()))?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !self.query.iter().any(|known| known == name) {
                return None;
            }
            let value = percent_decode_str(value).decode_utf8().ok()?.into_owned();
            if variables.insert(name.to_owned(), value).is_some() {
                return None;
            }
        }
        Some(variables)
    }
}

fn has_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    })
}

/// Expands a URI template with values (RFC 6570, section 3); `None` for unsupported templates. In `{+x}`, all
/// characters that are not allowed in a path are encoded, so that any file's path gives a URI.
///
/// ```
/// use promptshelf_core::{Variables, expand_uri_template};
///
/// let variables = Variables::from([("path".to_owned(), "guide/a b.md".to_owned())]);
/// assert_eq!(expand_uri_template("docs:///{+path}", &variables).as_deref(), Some("docs:///guide/a%20b.md"));
/// ```
#[must_use]
pub fn expand_uri_template(template: &str, variables: &Variables) -> Option<String> {
    let mut uri = String::with_capacity(template.len());
    for part in parts(template).ok()? {
        let (operator, names) = match part {
            Part::Literal(literal) => {
                uri.push_str(literal);
                continue;
            }
            Part::Expression(operator, names) => (operator, names),
        };
        let known = names.into_iter().filter_map(|name| Some((name, variables.get(name)?)));
        for (index, (name, value)) in known.enumerate() {
            match (operator, index) {
                ('/', _) => uri.push('/'),
                ('?', 0) => uri.push('?'),
                ('?' | '&', _) => uri.push('&'),
                (_, 0) => {}
                (_, _) => uri.push(','),
            }
            if matches!(operator, '?' | '&') {
                uri.push_str(name);
                uri.push('=');
            }
            uri.extend(utf8_percent_encode(value, if operator == '+' { RESERVED } else { SIMPLE }));
        }
    }
    Some(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn matching_inverts_expansion() {
        let cases: &[(&str, &[(&str, &str)])] = &[
            ("test://template/{id}/data", &[("id", "123")]),
            ("logs://recent{?timeframe}", &[("timeframe", "1h & more")]),
            ("logs://recent{?timeframe,level}", &[("timeframe", "1h"), ("level", "warn")]),
            ("file:///{+path}", &[("path", "src/deep/main.rs")]),
            ("docs://{section}/{page}", &[("section", "a b"), ("page", "ü")]),
        ];
        for (template, pairs) in cases {
            let variables = variables(pairs);
            let uri = expand_uri_template(template, &variables).expect("expands");
            assert_eq!(UriTemplate::parse(template).expect("parses").matches(&uri), Some(variables), "{uri}");
        }
    }

    #[test]
    fn simple_variable_excludes_slashes() {
        let template = UriTemplate::parse("docs://page/{name}").expect("parses");
        for uri in ["docs://page/a/b", "docs://page/a%2Fb", "docs://page/", "docs://page/%FF", "docs://pages/a"] {
            assert_eq!(template.matches(uri), None, "{uri}");
        }
    }

    #[test]
    fn query_accepts_each_template_variable_once() {
        let template = UriTemplate::parse("logs://recent{?timeframe}").expect("parses");
        assert_eq!(template.matches("logs://recent"), Some(Variables::new()));
        assert_eq!(template.matches("logs://recent?other=1"), None);
        assert_eq!(template.matches("logs://recent?timeframe=1&timeframe=2"), None);
        assert_eq!(template.matches("logs://recentx"), None);
    }

    #[test]
    fn unsupported_templates_are_rejected() {
        for template in
            ["a://{x:3}", "a://{x*}", "a://{#x}", "a://{.x}", "a://{;x}", "a://{x}{x}", "a://{?x}/y", "a://x", "a://{"]
        {
            assert!(UriTemplate::parse(template).is_err(), "{template}");
        }
    }
}
