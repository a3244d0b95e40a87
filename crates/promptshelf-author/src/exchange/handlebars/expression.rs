//! Resolves names of Handlebars. `#each` and `#with` change the current value that names are relative to; our
//! templates use absolute names.

pub(super) struct Scope {
    variable: String,
    /// Block parameters: names that the block defines.
    params: Vec<String>,
    is_loop: bool,
}

impl Scope {
    pub(super) fn of(variable: String, params: &[&str], is_loop: bool) -> Scope {
        Scope { variable, params: params.iter().map(|name| (*name).to_owned()).collect(), is_loop }
    }
}

#[derive(Default)]
pub(super) struct Scopes(Vec<Scope>);

impl Scopes {
    pub(super) fn new() -> Scopes {
        Scopes::default()
    }

    pub(super) fn push(&mut self, scope: Scope) {
        self.0.push(scope);
    }

    pub(super) fn pop(&mut self) {
        self.0.pop();
    }

    pub(super) fn is_inner(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns a name that no surrounding block uses.
    pub(super) fn fresh(&self, name: &str) -> String {
        match self.0.len() {
            0 => name.to_owned(),
            depth => format!("{name}{}", depth + 1),
        }
    }

    /// Translates one word to an expression; `None` without an equivalent.
    pub(super) fn expression(&self, word: &str) -> Option<String> {
        if let Some(inside) = word.strip_prefix('(').and_then(|word| word.strip_suffix(')')) {
            return self.call(&words(inside));
        }
        if let Some(text) = ['"', '\''].iter().find_map(|q| word.strip_prefix(*q)?.strip_suffix(*q)) {
            return Some(super::super::template::string(text));
        }
        if word.parse::<f64>().is_ok() {
            return Some(word.to_owned());
        }
        match word {
            "true" | "false" => return Some(word.to_owned()),
            "null" | "undefined" => return Some("none".to_owned()),
            "@index" => return self.in_loop("loop.index0"),
            "@first" => return self.in_loop("loop.first"),
            "@last" => return self.in_loop("loop.last"),
            _ => {}
        }
        if let Some(path) = word.strip_prefix("@root.") {
            return parts(path);
        }
        let mut depth = self.0.len();
        let mut path = word;
        while let Some(above) = path.strip_prefix("../") {
            depth = depth.checked_sub(1)?;
            path = above;
        }
        let around = depth.checked_sub(1).and_then(|index| self.0.get(index));
        let path = match path.strip_prefix("./").or_else(|| path.strip_prefix("this.")) {
            Some(path) => path,
            None if path == "this" || path == "." || path == ".." => return around.map(|it| it.variable.clone()),
            None => {
                let first = path.split('.').next().unwrap_or(path);
                if self.0[..depth].iter().any(|scope| scope.params.iter().any(|name| name == first)) {
                    return parts(path);
                }
                path
            }
        };
        let path = parts(path)?;
        Some(match around {
            Some(scope) => format!("{}.{path}", scope.variable),
            None => path,
        })
    }

    fn in_loop(&self, expression: &str) -> Option<String> {
        self.0.last().filter(|scope| scope.is_loop).map(|_| expression.to_owned())
    }

    fn call(&self, all: &[&str]) -> Option<String> {
        let (name, rest) = all.split_first()?;
        let values: Vec<String> = rest.iter().map(|word| self.expression(word)).collect::<Option<_>>()?;
        let operator = match *name {
            "eq" => "==",
            "ne" | "neq" => "!=",
            "lt" => "<",
            "lte" => "<=",
            "gt" => ">",
            "gte" => ">=",
            "and" => "and",
            "or" => "or",
            "not" => return Some(format!("(not {})", values.first()?)),
            _ => return None,
        };
        (values.len() > 1).then(|| format!("({})", values.join(&format!(" {operator} "))))
    }
}

/// Translates `a.b.[0]` to `a.b[0]`; `None` if a part is not a name.
fn parts(path: &str) -> Option<String> {
    let mut out = String::new();
    // The number of items, which scripts know as a property.
    if let Some(list) = path.strip_suffix(".length") {
        return parts(list).map(|list| format!("({list} | length)"));
    }
    for part in path.split(['.', '/']) {
        let inner = part.strip_prefix('[').and_then(|part| part.strip_suffix(']')).unwrap_or(part);
        let is_name = inner.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && inner.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_name {
            out.push_str(if out.is_empty() { "" } else { "." });
            out.push_str(inner);
        } else if !out.is_empty() && !inner.is_empty() && inner.bytes().all(|byte| byte.is_ascii_digit()) {
            out.push_str(&format!("[{inner}]"));
        } else {
            return None;
        }
    }
    (!out.is_empty()).then_some(out)
}

/// Splits a text at white space, except inside quotation marks and parentheses.
pub(super) fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut depth, mut quote) = (None, 0_usize, None);
    for (at, c) in text.char_indices() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            ('(', None) => depth += 1,
            (')', None) => depth = depth.saturating_sub(1),
            (c, None) if c.is_whitespace() && depth == 0 => {
                words.extend(start.take().map(|start| &text[start..at]));
                continue;
            }
            _ => {}
        }
        start.get_or_insert(at);
    }
    words.extend(start.map(|start| &text[start..]));
    words
}

/// Splits `key=value`.
pub(super) fn pair(word: &str) -> Option<(&str, &str)> {
    let (key, value) = word.split_once('=')?;
    let is_key = key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !value.is_empty();
    is_key.then_some((key, value))
}
