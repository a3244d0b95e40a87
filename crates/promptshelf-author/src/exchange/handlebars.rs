//! Translates Handlebars to our template language.
//!
//! Source: Handlebars' language guide. Expressions, `#if`, `#unless`, `#each`, `#with`, partials, comments and `~`;
//! the tag of a block that is alone on its line removes the line. dotprompt adds `role`, `media`, `history`, `json`,
//! `section`, `ifEquals` and `unlessEquals`, and does not escape for HTML. Tags without an equivalent are reported
//! and stay as text.

use std::ops::Range;

use promptshelf_core::{ArgumentDefinition, ArgumentType, Code, Role};
use promptshelf_source::syntax::Notes;

use super::template;

/// Translates a range of the notes' file. The types of the arguments decide what sections mean.
pub(super) fn translate(body: Range<usize>, arguments: &[ArgumentDefinition], notes: &mut Notes<'_>) -> String {
    let text = notes.source.text[body.clone()].to_owned();
    let (base, out, open) = (body.start, String::new(), Vec::new());
    let mut work = Work { text: &text, base, out, open, scopes: Scopes::new(), arguments, notes };
    work.run();
    work.out
}

struct Open {
    name: String,
    /// The closing tag; `None` for a block that stays as text.
    end: Option<&'static str>,
    is_scope: bool,
    at: Range<usize>,
}

struct Work<'t, 'n, 's> {
    text: &'t str,
    base: usize,
    out: String,
    open: Vec<Open>,
    scopes: Scopes,
    arguments: &'n [ArgumentDefinition],
    notes: &'n mut Notes<'s>,
}

struct Tag<'t> {
    inside: &'t str,
    span: Range<usize>,
    is_comment: bool,
    trims_before: bool,
    trims_after: bool,
}

impl<'t> Work<'t, '_, '_> {
    fn run(&mut self) {
        let (mut done, mut at) = (0, 0);
        while let Some(offset) = self.text[at..].find("{{") {
            let start = at + offset;
            if self.text[..start].ends_with('\\') {
                // A backslash escapes the braces.
                self.out.push_str(&template::literal(&self.text[done..start - 1]));
                let end = self.text[start..].find("}}").map_or(self.text.len(), |length| start + length + 2);
                self.out.push_str(&template::literal(&self.text[start..end]));
                (done, at) = (end, end);
                continue;
            }
            let Some(tag) = tag(self.text, start) else { break };
            let line = alone(self.text, &tag);
            let (before, after) = line.map_or((start, tag.span.end), |line| (line.start, line.end));
            self.out.push_str(&template::literal(&self.text[done..before.max(done)]));
            self.tag(&tag);
            (done, at) = (after, tag.span.end);
        }
        self.out.push_str(&template::literal(&self.text[done..]));
        while let Some(open) = self.open.pop() {
            self.lose(&open.at, &format!("`#{}` is never closed", open.name));
            if let Some(end) = open.end {
                self.out.push_str(&format!("{{% {end} %}}"));
            }
        }
    }

    fn lose(&mut self, span: &Range<usize>, message: &str) {
        let span = self.base + span.start..self.base + span.end;
        self.notes.warning(Code::NotSupported, &span, message);
    }

    fn keep(&mut self, tag: &Tag<'_>, message: &str) {
        self.lose(&tag.span, message);
        let written = template::literal(&self.text[tag.span.clone()]);
        self.out.push_str(&written);
    }

    fn statement(&mut self, tag: &Tag<'_>, statement: &str) {
        let (before, after) = (if tag.trims_before { "-" } else { "" }, if tag.trims_after { "-" } else { "" });
        self.out.push_str(&format!("{{%{before} {statement} {after}%}}"));
    }

    fn print(&mut self, tag: &Tag<'_>, expression: &str) {
        let (before, after) = (if tag.trims_before { "-" } else { "" }, if tag.trims_after { "-" } else { "" });
        self.out.push_str(&format!("{{{{{before} {expression} {after}}}}}"));
    }

    fn tag(&mut self, tag: &Tag<'t>) {
        if tag.is_comment {
            let text = tag.inside.trim().replace("#}", "# }");
            return self.out.push_str(&format!("{{# {text} #}}"));
        }
        let inside = tag.inside.trim();
        match inside.chars().next() {
            Some('#') => self.block(tag, inside[1..].trim()),
            Some('/') => self.close(tag, inside[1..].trim()),
            Some('>') => self.partial(tag, inside[1..].trim()),
            Some('^') if inside.len() == 1 => self.otherwise(tag, ""),
            Some('^') => self.section(tag, inside[1..].trim(), true),
            Some('&') => self.inline(tag, inside[1..].trim()),
            _ => match inside.strip_prefix("else") {
                Some(rest) if rest.is_empty() || rest.starts_with(char::is_whitespace) => {
                    self.otherwise(tag, rest.trim());
                }
                _ => self.inline(tag, inside),
            },
        }
    }

    fn block(&mut self, tag: &Tag<'t>, inside: &str) {
        let (inside, params) = match inside.split_once(" as |") {
            Some((inside, params)) => (inside, words(params.trim_end_matches('|'))),
            None => (inside, Vec::new()),
        };
        let all = words(inside);
        let (name, arguments) = all.split_first().map_or(("", &[][..]), |(name, rest)| (*name, rest));
        let translated: Vec<Option<String>> = arguments.iter().map(|word| self.scopes.expression(word)).collect();
        if arguments.is_empty() && self.scopes.expression(name).is_some() {
            return self.section(tag, name, false);
        }
        let condition = match (name, &*translated) {
            ("if", [Some(value)]) => Some((format!("if {value}"), "endif", None)),
            ("unless", [Some(value)]) => Some((format!("if not ({value})"), "endif", None)),
            ("ifEquals", [Some(a), Some(b)]) => Some((format!("if {a} == {b}"), "endif", None)),
            ("unlessEquals", [Some(a), Some(b)]) => Some((format!("if {a} != {b}"), "endif", None)),
            ("each", [Some(list)]) => {
                let item = params.first().map_or_else(|| self.scopes.fresh("item"), |name| (*name).to_owned());
                let statement = format!("for {item} in {list}");
                Some((statement, "endfor", Some(Scope::of(item, &params, true))))
            }
            ("with", [Some(value)]) => {
                let name = params.first().map_or_else(|| self.scopes.fresh("it"), |name| (*name).to_owned());
                Some((format!("with {name} = {value}"), "endwith", Some(Scope::of(name, &params, false))))
            }
            _ => None,
        };
        let (end, is_scope) = match condition {
            Some((statement, end, scope)) => {
                self.statement(tag, &statement);
                let is_scope = scope.is_some();
                scope.into_iter().for_each(|scope| self.scopes.push(scope));
                (Some(end), is_scope)
            }
            None => {
                self.keep(tag, &format!("the block `#{inside}` has no equivalent; its text stays unchanged"));
                (None, false)
            }
        };
        self.open.push(Open { name: name.to_owned(), end, is_scope, at: tag.span.clone() });
    }

    /// Translates a section: `{{#name}}` is a loop if `name` is a list or its text uses the current item, otherwise a
    /// condition; `{{^name}}` is the opposite condition.
    fn section(&mut self, tag: &Tag<'t>, name: &str, is_inverted: bool) {
        let Some(value) = self.scopes.expression(name) else {
            self.keep(tag, &format!("the section `{name}` has no equivalent; its text stays unchanged"));
            return self.open.push(Open { name: name.to_owned(), end: None, is_scope: false, at: tag.span.clone() });
        };
        let rest = &self.text[tag.span.end..];
        let inside = &rest[..rest.find(&format!("{{{{/{name}}}}}")).unwrap_or(rest.len())];
        let uses_item = ["{{.}}", "{{{.}}}", "{{this", "{{ . }}", "{{ this"].iter().any(|item| inside.contains(item));
        let argument = self.arguments.iter().find(|argument| argument.name == value);
        let starts = |bracket| argument.and_then(|it| it.examples.first()).is_some_and(|it| it.starts_with(bracket));
        let is_object = argument.is_some_and(|it| it.kind == ArgumentType::Json) && starts('{');
        let is_list =
            argument.is_some_and(|it| matches!(it.kind, ArgumentType::Json | ArgumentType::List)) && !is_object;
        let (statement, end, is_scope) = match (is_inverted, uses_item || is_list) {
            (true, _) => (format!("if not ({value})"), "endif", false),
            (false, _) if is_object => {
                let statement = format!("if {value}");
                self.scopes.push(Scope::of(value, &[], false));
                (statement, "endif", true)
            }
            (false, true) => {
                let item = self.scopes.fresh("item");
                let statement = format!("for {item} in {value}");
                self.scopes.push(Scope::of(item, &[], true));
                (statement, "endfor", true)
            }
            (false, false) => (format!("if {value}"), "endif", false),
        };
        self.statement(tag, &statement);
        self.open.push(Open { name: name.to_owned(), end: Some(end), is_scope, at: tag.span.clone() });
    }

    fn otherwise(&mut self, tag: &Tag<'t>, condition: &str) {
        let Some(end) = self.open.last().and_then(|open| open.end) else {
            return self.keep(tag, "`else` outside of a translatable block");
        };
        let negated = condition.strip_prefix("unless ").map(|value| (value, true));
        match condition.strip_prefix("if ").map(|value| (value, false)).or(negated) {
            None if condition.is_empty() && end != "endwith" => self.statement(tag, "else"),
            Some((value, negated)) if end == "endif" => match self.scopes.expression(value.trim()) {
                Some(value) if negated => self.statement(tag, &format!("elif not ({value})")),
                Some(value) => self.statement(tag, &format!("elif {value}")),
                None => self.keep(tag, &format!("`else {condition}` has no equivalent")),
            },
            _ => self.keep(tag, &format!("`else {condition}` has no equivalent in this block")),
        }
    }

    fn close(&mut self, tag: &Tag<'t>, name: &str) {
        match self.open.pop() {
            Some(open) if open.name == name => {
                if open.is_scope {
                    self.scopes.pop();
                }
                match open.end {
                    Some(end) => self.statement(tag, end),
                    None => self.out.push_str(&template::literal(&self.text[tag.span.clone()])),
                }
            }
            other => {
                self.open.extend(other);
                self.keep(tag, &format!("`/{name}` has no opening tag"));
            }
        }
    }

    /// Translates `{{> name key=value}}`: a partial with parameters.
    fn partial(&mut self, tag: &Tag<'t>, inside: &str) {
        let all = words(inside);
        let (name, rest) = all.split_first().map_or(("", &[][..]), |(name, rest)| (*name, rest));
        if name.is_empty() || name.starts_with('(') {
            return self.keep(tag, "a partial whose name is computed has no equivalent");
        }
        let include = format!("include {}", template::string(&format!("_{}.md", super::slug(name.trim_matches('"')))));
        let mut given = Vec::new();
        for word in rest {
            let value = pair(word).and_then(|(key, value)| Some(format!("{key} = {}", self.scopes.expression(value)?)));
            match value {
                // A partial can use the variables around it.
                Some(value) if value.split_once(" = ").is_some_and(|(key, value)| key == value) => {}
                Some(value) => given.push(value),
                None => self.lose(&tag.span, &format!("`{word}` is not passed to the partial `{name}`")),
            }
        }
        if self.scopes.is_inner() {
            self.lose(
                &tag.span,
                &format!("in this block, the partial `{name}` gets the values of the prompt, not those of the block"),
            );
        }
        if given.is_empty() {
            return self.statement(tag, &include);
        }
        self.out.push_str(&format!("{{% with {} %}}{{% {include} %}}{{% endwith %}}", given.join(", ")));
    }

    fn inline(&mut self, tag: &Tag<'t>, inside: &str) {
        let all = words(inside);
        let (name, rest) = all.split_first().map_or(("", &[][..]), |(name, rest)| (*name, rest));
        let first = rest.iter().find(|word| pair(word).is_none()).and_then(|word| self.scopes.expression(word));
        let named = |key: &str| rest.iter().filter_map(|word| pair(word)).find(|(known, _)| *known == key);
        match (name, first) {
            ("role", Some(role)) => self.role(tag, role.trim_matches('"')),
            ("media", _) => match named("url").and_then(|(_, url)| self.scopes.expression(url)) {
                Some(url) => {
                    self.lose(&tag.span, "only files of the library and its resources can be attached");
                    self.print(tag, &format!("attach({url})"));
                }
                None => self.keep(tag, "`media` without a `url` has no equivalent"),
            },
            ("json", Some(value)) => {
                let indent = named("indent").map(|(_, indent)| format!("(indent={indent})")).unwrap_or_default();
                self.print(tag, &format!("{value} | json{indent}"));
            }
            ("lookup", Some(value)) => {
                let key = rest.get(1).and_then(|key| self.scopes.expression(key));
                match key {
                    Some(key) => self.print(tag, &format!("{value}[{key}]")),
                    None => self.keep(tag, "`lookup` needs two values"),
                }
            }
            ("history", _) if rest.is_empty() => {
                self.lose(
                    &tag.span,
                    "the messages of an earlier conversation have no equivalent in a prompt and are omitted",
                );
            }
            ("section", Some(name)) => {
                self.lose(&tag.span, &format!("the section {name} has no equivalent in a prompt and is omitted"));
            }
            ("log", _) => self.lose(&tag.span, "`log` has no equivalent in a prompt and is omitted"),
            _ if rest.is_empty() => match self.scopes.expression(name) {
                Some(value) => self.print(tag, &value),
                None => self.keep(tag, &format!("`{inside}` has no equivalent; its text stays unchanged")),
            },
            _ => self.keep(tag, &format!("unknown helper `{name}`; its text stays unchanged")),
        }
    }

    fn role(&mut self, tag: &Tag<'t>, role: &str) {
        let speaker = match role {
            "model" | "assistant" => Role::Assistant,
            "user" => Role::User,
            other => {
                let span = self.base + tag.span.start..self.base + tag.span.end;
                super::lose_role(other, &span, self.notes);
                Role::User
            }
        };
        self.out.push_str(template::role(speaker).trim_end());
    }
}

/// Returns the tag at `start`; `None` if it is not closed.
fn tag(text: &str, start: usize) -> Option<Tag<'_>> {
    let rest = &text[start..];
    if let Some(comment) = rest.strip_prefix("{{!--").or_else(|| rest.strip_prefix("{{~!--")) {
        let length = comment.find("--}}").or_else(|| comment.find("--~}}"))?;
        let from = text.len() - comment.len();
        let end = from + length + comment[length..].find("}}")? + 2;
        let inside = &text[from..from + length];
        return Some(Tag { inside, span: start..end, is_comment: true, trims_before: false, trims_after: false });
    }
    let (opening, closing) = if rest.starts_with("{{{") { (3, "}}}") } else { (2, "}}") };
    let length = rest[opening..].find(closing)?;
    let whole = &rest[opening..opening + length];
    let inside = whole.strip_prefix('~').unwrap_or(whole);
    let inside = inside.strip_suffix('~').unwrap_or(inside);
    let comment = inside.trim_start().strip_prefix('!');
    Some(Tag {
        inside: comment.unwrap_or(inside),
        span: start..start + opening + length + closing.len(),
        is_comment: comment.is_some(),
        trims_before: whole.starts_with('~'),
        trims_after: whole.len() > 1 && whole.ends_with('~'),
    })
}

/// Returns the whole line of a tag that prints nothing and is alone on its line.
fn alone(text: &str, tag: &Tag<'_>) -> Option<Range<usize>> {
    let inside = tag.inside.trim();
    let is_silent = tag.is_comment || inside.starts_with(['#', '/', '^']) || inside.split(' ').next() == Some("else");
    let line = text[..tag.span.start].rfind('\n').map_or(0, |newline| newline + 1);
    let rest = &text[tag.span.end..];
    let end = rest.find('\n').map_or(rest.len(), |newline| newline + 1);
    let is_blank = |part: &str| part.trim().is_empty();
    (is_silent && is_blank(&text[line..tag.span.start]) && is_blank(&rest[..end])).then(|| line..tag.span.end + end)
}

// Resolves names of Handlebars. `#each` and `#with` change the current value that names are relative to; our
// templates use absolute names.

struct Scope {
    variable: String,
    /// Block parameters: names that the block defines.
    params: Vec<String>,
    is_loop: bool,
}

impl Scope {
    fn of(variable: String, params: &[&str], is_loop: bool) -> Scope {
        Scope { variable, params: params.iter().map(|name| (*name).to_owned()).collect(), is_loop }
    }
}

#[derive(Default)]
struct Scopes(Vec<Scope>);

impl Scopes {
    fn new() -> Scopes {
        Scopes::default()
    }

    fn push(&mut self, scope: Scope) {
        self.0.push(scope);
    }

    fn pop(&mut self) {
        self.0.pop();
    }

    fn is_inner(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns a name that no surrounding block uses.
    fn fresh(&self, name: &str) -> String {
        match self.0.len() {
            0 => name.to_owned(),
            depth => format!("{name}{}", depth + 1),
        }
    }

    /// Translates one word to an expression; `None` without an equivalent.
    fn expression(&self, word: &str) -> Option<String> {
        if let Some(inside) = word.strip_prefix('(').and_then(|word| word.strip_suffix(')')) {
            return self.call(&words(inside));
        }
        if let Some(text) = ['"', '\''].iter().find_map(|q| word.strip_prefix(*q)?.strip_suffix(*q)) {
            return Some(super::template::string(text));
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
fn words(text: &str) -> Vec<&str> {
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
fn pair(word: &str) -> Option<(&str, &str)> {
    let (key, value) = word.split_once('=')?;
    let is_key = key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !value.is_empty();
    is_key.then_some((key, value))
}
