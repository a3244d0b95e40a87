//! Limits texts that grow from one iteration of a loop to the next.
//!
//! The engine counts steps, and one step can double a text. The values of an iteration are dropped at its end, unless
//! a namespace keeps them: `{% set all.text = all.text ~ x %}`. The engine has no hook for that assignment, so
//! counting filters are added around the assigned value and the items of its lists. Line numbers do not change.

use std::borrow::Cow;

use minijinja::{
    Environment, Error, State, Value,
    machinery::{Token, tokenize},
    syntax::SyntaxConfig,
    value::ValueKind,
};

use super::{compile_error::bytes, meter::spend};

/// The names of the filters. Authors cannot use them: `check` reports unknown filters.
const STORED: &str = "__stored";
const ITEM: &str = "__item";

/// A stored value is copied each time, so it counts a fraction even without growth; texts joined from ten thousand
/// pieces remain possible.
const COPIES: usize = 32;

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_filter(STORED, stored);
    environment.add_filter(ITEM, item);
}

/// Passes a stored value on and counts its growth.
fn stored(state: &mut State<'_, '_>, value: Value, before: &Value) -> Result<Value, Error> {
    let (now, before) = (size(&value), size(before));
    spend(state, now.saturating_sub(before).saturating_add(now / COPIES))?;
    Ok(value)
}

/// Passes on an item of a stored list or mapping.
fn item(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    spend(state, value.as_str().map_or(0, str::len))?;
    Ok(value)
}

fn size(value: &Value) -> usize {
    match value.kind() {
        ValueKind::String => value.as_str().map_or(0, str::len),
        ValueKind::Seq | ValueKind::Iterable => value.len().unwrap_or(0).saturating_mul(size_of::<Value>()),
        _ => 0,
    }
}

/// Returns the template with the filters added.
pub(super) fn counted(text: &str) -> Cow<'_, str> {
    let mut out = Rewritten { text, done: 0, out: String::new() };
    let mut tokens = tokenize(text, false, SyntaxConfig::default()).map_while(Result::ok);
    let mut next = || tokens.next().map(|(token, span)| (token, bytes(span)));
    while let Some((token, _)) = next() {
        if !matches!(token, Token::BlockStart) || !matches!(next(), Some((Token::Ident("set"), _))) {
            continue;
        }
        let mut target = Vec::new();
        let assign = loop {
            match next() {
                Some((Token::Assign, span)) => break Some(span.end),
                None | Some((Token::BlockEnd | Token::Pipe, _)) => break None,
                Some(found) => target.push(found),
            }
        };
        let Some(assign) = assign else { continue };
        // Multiple targets are counted one by one, like the items of a list.
        let (mut open, before) = match target.as_slice() {
            [(Token::Ident(_), from), (Token::Dot, _), (Token::Ident(_), to)] => {
                out.insert(assign, "(");
                (Vec::new(), Some(&text[from.start..to.end]))
            }
            several if several.iter().any(|(token, _)| matches!(token, Token::Dot)) => {
                (vec![Open::List { begun: false }], None)
            }
            _ => continue,
        };
        let mut last = (Token::Assign, assign);
        for (token, span) in std::iter::from_fn(&mut next) {
            out.item(&mut open, &last.0, &token, span.start, last.1);
            if matches!(token, Token::BlockEnd) {
                // Inserted before white space, and before the effect of `-%}` on it.
                before.inspect(|before| out.insert(last.1, &format!(")|{STORED}({before})")));
                break;
            }
            last = (token, span.end);
        }
    }
    if out.done == 0 {
        return Cow::Borrowed(text);
    }
    out.out.push_str(&text[out.done..]);
    Cow::Owned(out.out)
}

/// An open bracket: whether it contains items, and whether one has begun.
enum Open {
    List { begun: bool },
    Mapping { begun: bool, value: bool },
    Other,
}

/// A text, and the rewritten form of its beginning.
struct Rewritten<'t> {
    text: &'t str,
    done: usize,
    out: String,
}

impl Rewritten<'_> {
    fn insert(&mut self, at: usize, what: &str) {
        self.out.push_str(&self.text[self.done..at]);
        self.out.push_str(what);
        self.done = at;
    }

    /// Adds the filter around items while the tokens are read: the current token begins at `start`, and the previous
    /// one ended at `end`.
    fn item(&mut self, open: &mut Vec<Open>, before: &Token<'_>, token: &Token<'_>, start: usize, end: usize) {
        let ends = matches!(
            token,
            Token::Comma | Token::BracketClose | Token::BraceClose | Token::ParenClose | Token::BlockEnd
        );
        match open.last_mut() {
            Some(Open::List { begun } | Open::Mapping { begun, .. }) if ends && *begun => {
                self.insert(end, &format!(")|{ITEM}"));
                *begun = false;
            }
            Some(Open::List { begun } | Open::Mapping { begun, value: true }) if !ends && !*begun => {
                self.insert(start, "(");
                *begun = true;
            }
            _ => {}
        }
        match (token, open.last_mut()) {
            (Token::Colon, Some(Open::Mapping { value, .. })) => *value = true,
            (Token::Comma, Some(Open::Mapping { value, .. })) => *value = false,
            (Token::BracketOpen, _) if !ends_operand(before) => open.push(Open::List { begun: false }),
            (Token::BraceOpen, _) => open.push(Open::Mapping { begun: false, value: false }),
            (Token::BracketOpen | Token::ParenOpen, _) => open.push(Open::Other),
            (Token::BracketClose | Token::BraceClose | Token::ParenClose, _) => drop(open.pop()),
            _ => {}
        }
    }
}

/// Returns whether a bracket after this token is a subscript instead of a list.
fn ends_operand(token: &Token<'_>) -> bool {
    match token {
        Token::Ident(word) => !matches!(*word, "and" | "or" | "not" | "in" | "is" | "if" | "else"),
        Token::Str(_) | Token::String(_) | Token::BracketClose | Token::BraceClose | Token::ParenClose => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_namespace_assignments_are_counted() {
        for same in [
            "",
            "x",
            "{% set a = b ~ [c] %}",
            "{{ a.b ~ 'set a.b = c' }}",
            "{% set a.b %}x{% endset %}",
            "{% raw %}{% set a.b = c %}{% endraw %}",
            "{% set a.b | replace(b, c=d) %}x{% endset %}",
            "{% set a, b = c, d %}",
        ] {
            assert_eq!(counted(same), same);
        }
        assert_eq!(
            counted("a{% set n.t = n.t ~ x -%} b\n{%- set n.u =\n n.u ~ '%}'\n+%}{% set n.v=1%}c"),
            "a{% set n.t =( n.t ~ x)|__stored(n.t) -%} b\n{%- set n.u =(\n n.u ~ '%}')|__stored(n.u)\n+%}{% set n.v=(1)|__stored(n.v)%}c"
        );
        assert_eq!(
            counted("{% set n.t, (b, c) = n.t ~ n.t, (1, f([x, y])) -%}"),
            "{% set n.t, (b, c) = (n.t ~ n.t)|__item, ((1, f([(x)|__item, (y)|__item])))|__item -%}"
        );
        assert_eq!(
            counted("{% set n.t = n.t + [ x ~ i, [n.t[0]], f(a, b), {'k': x, \"l\": y if [] else z,}] %}"),
            "{% set n.t =( n.t + [ (x ~ i)|__item, ([(n.t[0])|__item])|__item, (f(a, b))|__item, \
             ({'k': (x)|__item, \"l\": (y if [] else z)|__item,})|__item])|__stored(n.t) %}"
        );
    }

    #[test]
    fn rewritten_template_stays_valid() {
        let environment = super::super::environment::base();
        for text in [
            "{% set n.t = [] %}",
            "{% set n.t, n.u = 1, 2 %}",
            "{% set (n.t, u) = x %}",
            "{% set n.t, = [1], %}",
            "{% set n.t = [a, b,][0] %}",
            "{% set n.t = {} %}",
            "{% set n.t = {'a': {'b': [1, (2, 3)]}}['a'] %}",
            "{% set n.t = f(a=[1], *[2], **{'c': 3}) %}",
            "{% set n.t = x[1:2] ~ x[::2] ~ [x[:1]] ~ ([y] if z is in [1] else not [w]) %}",
            "{% set n.t = a | map('upper') | list + [-b, not c, d is defined, 'e' 'f'] %}",
        ] {
            let made = counted(text);
            let template = environment.template_from_str(text).err().map(|error| error.to_string());
            let counted = environment.template_from_str(&made).err().map(|error| error.to_string());
            assert_eq!(counted.is_some(), template.is_some(), "{made}: {counted:?}");
        }
    }
}
