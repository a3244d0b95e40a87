//! Templates whose operators count their work and give nothing where the engine's fail: a template that the check accepts
//! renders for all values.
//!
//! The engine has no hook for operators. Filters bind more tightly than operators do, so a filter that returns its value
//! as it is can be written behind each operand of an operator that walks values: `a in b` becomes
//! `a|__walked in b|__container`. An operator that fails for some values is itself written as a filter: `a + b` becomes
//! `a |__add( b)`. So are slices, and filters stand behind what loops walk and what several names are assigned to. Only
//! tokens are read for that. Line numbers do not change.
//!
//! Authors cannot use the names of these filters: `check` reports unknown filters.

use std::{borrow::Cow, ops::Range, sync::Arc};

use minijinja::{
    Environment, Error, ErrorKind, State, Value, filters,
    machinery::{Span, Token, parse, tokenize},
    syntax::SyntaxConfig,
    value::{Kwargs, Object, Rest, ValueKind, ValueOrKwargs},
};

use super::{
    CompileError, bytes,
    depth::TOO_DEEP,
    meter::{CHARACTER, ITEM, SEARCHED, comparison, left, spend, spend_comparison, spend_deep},
};

/// Texts in templates that are used as they are: the work on them is small.
const SMALL_BYTES: usize = 256;

/// The largest index of an item that is read without counting the items before it.
const SMALL_INDEX: u64 = 64;

/// No template that doubles a value more often is quick.
const MAX_DOUBLINGS: usize = 30;

const NUMERIC: &[&str] = &["count", "length"];

const WALKING: &[&str] = &["dict", "namespace", "changed"];

/// Words of tags and filters whose work is not proportional to the size of the values.
const HEAVY: &str = "for macro call block import from extends range map select selectattr reject rejectattr batch slice zip \
                     chain sort dictsort groupby unique sum replace";

pub(super) struct Charged<'t> {
    pub(super) text: Cow<'t, str>,
    /// The number of tokens in tags, twice as many for each tag that can double a value; `None` if some of them may run, or
    /// walk a value, any number of times.
    pub(super) steps: Option<usize>,
    /// The longest text that a loop, a macro or a block can write with one step.
    pub(super) repeated: usize,
    pub(super) longest: usize,
    pub(super) repeats_includes: bool,
}

pub(super) fn charged(text: &str) -> Charged<'_> {
    let mut scanner = Scanner::new(text, false);
    let mut charged =
        Charged { text: Cow::Borrowed(text), steps: Some(0), repeated: 0, longest: 0, repeats_includes: false };
    let mut depth = 0_usize;
    while let Some((token, _)) = scanner.tokens.get(scanner.at) {
        scanner.at += 1;
        match token {
            Token::TemplateData(data) => {
                charged.longest = charged.longest.max(data.len());
                if depth > 0 {
                    charged.repeated = charged.repeated.max(data.len());
                }
            }
            Token::VariableStart => scanner.expressions(Part::Plain),
            Token::BlockStart => {
                match scanner.word(scanner.at) {
                    Some("for" | "macro" | "block" | "call") => depth += 1,
                    Some("endfor" | "endmacro" | "endblock" | "endcall") => depth = depth.saturating_sub(1),
                    Some("include" | "import" | "from" | "extends") => charged.repeats_includes |= depth > 0,
                    _ => {}
                }
                scanner.tag();
            }
            _ => {}
        }
    }
    for (token, _) in &scanner.tokens {
        match token {
            Token::TemplateData(_) => {}
            Token::Mul | Token::Pow => charged.steps = None,
            Token::Ident(word) if HEAVY.split(' ').any(|heavy| heavy == *word) => charged.steps = None,
            _ => charged.steps = charged.steps.map(|steps| steps + 1),
        }
    }
    let doublings = scanner.doublings();
    charged.steps = charged.steps.map(|steps| steps.saturating_mul(1 << doublings.min(MAX_DOUBLINGS)));
    charged.text = scanner.edited();
    charged
}

pub(super) fn charged_expression(text: &str) -> Cow<'_, str> {
    let mut scanner = Scanner::new(text, true);
    scanner.expressions(Part::Plain);
    scanner.edited()
}

/// Checks that a template can be parsed as it is run: its parentheses may be nested more deeply.
pub(super) fn check(text: &str) -> Result<(), CompileError> {
    match charged(text).text {
        Cow::Owned(made) if parse(&made, "", SyntaxConfig::default()).is_err() => {
            let end = text.find('\n').unwrap_or(text.len());
            Err(CompileError { message: TOO_DEEP.to_owned(), span: 0..end, help: None })
        }
        _ => Ok(()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Plain,
    Walked,
    /// Keys and values of a mapping. Keys are walked.
    Members,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    Number,
    Small,
    Any,
}

struct Operand {
    tokens: Range<usize>,
    size: Size,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    In,
    Compare,
    Join,
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

/// How tightly `~` binds: more than `+` and `-`, less than `*`.
const JOIN_LEVEL: u8 = 2;

impl Operator {
    fn level(self) -> u8 {
        match self {
            Operator::In | Operator::Compare => 0,
            Operator::Add | Operator::Subtract => 1,
            Operator::Join => JOIN_LEVEL,
            Operator::Multiply | Operator::Divide | Operator::FloorDivide | Operator::Remainder => 3,
            Operator::Power => 4,
        }
    }

    /// The filter that calculates, with its opening parenthesis.
    fn call(self) -> &'static str {
        match self {
            Operator::In | Operator::Compare | Operator::Join => "",
            Operator::Add => "|__add(",
            Operator::Subtract => "|__subtract(",
            Operator::Multiply => "|__multiply(",
            Operator::Divide => "|__divide(",
            Operator::FloorDivide => "|__floor(",
            Operator::Remainder => "|__remainder(",
            Operator::Power => "|__power(",
        }
    }
}

#[derive(Default)]
struct Chain {
    operands: Vec<Operand>,
    /// The operators between the operands, with their tokens.
    operators: Vec<(Operator, usize)>,
}

impl Chain {
    fn expects_operand(&self) -> bool {
        self.operands.len() == self.operators.len()
    }
}

#[derive(Default)]
struct Loop {
    /// Its names, as `shape` returns them.
    shape: String,
    is_recursive: bool,
}

struct Scanner<'t> {
    text: &'t str,
    tokens: Vec<(Token<'t>, Span)>,
    at: usize,
    /// New texts for bytes of the template.
    edits: Vec<(Range<usize>, Cow<'static, str>)>,
    /// The surrounding loops, with `None` for a condition, which may have an `{% else %}` too.
    loops: Vec<Option<Loop>>,
    /// Whether each of the surrounding `{% set x.y %}…{% endset %}` is in a condition of its own.
    captures: Vec<bool>,
    is_nesting: bool,
    /// Whether a namespace can carry values from one iteration of a loop to the next.
    keeps_values: bool,
}

impl<'t> Scanner<'t> {
    fn new(text: &'t str, is_expression: bool) -> Scanner<'t> {
        let tokens = tokenize(text, is_expression, SyntaxConfig::default()).map_while(Result::ok);
        let tokens: Vec<_> = tokens.collect();
        let keeps_values = tokens.iter().any(|(token, _)| matches!(token, Token::Ident("namespace")));
        let (edits, loops, captures) = (Vec::new(), Vec::new(), Vec::new());
        Scanner { text, tokens, at: 0, edits, loops, captures, is_nesting: false, keeps_values }
    }

    /// Returns the number of tags that can name a value with another one in it twice.
    fn doublings(&self) -> usize {
        let tags = self.tokens.split(|(token, _)| matches!(token, Token::BlockStart));
        let makes_value = |tag: &&[(Token<'_>, Span)]| {
            let [(Token::Ident("set" | "with"), _), rest @ ..] = tag else { return false };
            let is_filter = |at: usize| at > 1 && matches!(rest[at - 2].0, Token::Pipe);
            let is_block = !rest.iter().any(|(token, _)| matches!(token, Token::Assign));
            is_block
                || rest.iter().enumerate().any(|(at, (token, _))| match token {
                    Token::BracketOpen | Token::BraceOpen | Token::Tilde | Token::Plus => true,
                    Token::ParenOpen => !is_filter(at),
                    _ => false,
                })
        };
        tags.filter(makes_value).count()
    }

    fn edited(mut self) -> Cow<'t, str> {
        if self.edits.is_empty() {
            return Cow::Borrowed(self.text);
        }
        self.edits.sort_by_key(|(place, _)| (place.start, place.end));
        let mut out = String::with_capacity(self.text.len() + 16 * self.edits.len());
        let mut copied = 0;
        for (place, edit) in self.edits {
            out.push_str(&self.text[copied..place.start]);
            out.push_str(&edit);
            copied = place.end;
        }
        out.push_str(&self.text[copied..]);
        Cow::Owned(out)
    }

    fn token(&self, index: usize) -> Option<&Token<'t>> {
        self.tokens.get(index).map(|(token, _)| token)
    }

    fn word(&self, index: usize) -> Option<&'t str> {
        match self.token(index) {
            Some(Token::Ident(word)) => Some(word),
            _ => None,
        }
    }

    fn before(&mut self, token: usize, insertion: impl Into<Cow<'static, str>>) {
        if let Some((_, span)) = self.tokens.get(token) {
            let start = bytes(*span).start;
            self.edits.push((start..start, insertion.into()));
        }
    }

    fn behind(&mut self, token: usize, insertion: impl Into<Cow<'static, str>>) {
        if let Some((_, span)) = self.tokens.get(token) {
            let end = bytes(*span).end;
            self.edits.push((end..end, insertion.into()));
        }
    }

    fn replace(&mut self, token: usize, text: impl Into<Cow<'static, str>>) {
        if let Some((_, span)) = self.tokens.get(token) {
            self.edits.push((bytes(*span), text.into()));
        }
    }

    /// Writes a filter behind an expression.
    fn filter(&mut self, tokens: Range<usize>, filter: impl Into<Cow<'static, str>>) {
        let Some(last) = tokens.end.checked_sub(1).filter(|last| *last >= tokens.start) else { return };
        if last > tokens.start {
            self.before(tokens.start, "(");
            self.behind(last, ")");
        }
        self.behind(last, filter);
    }

    /// Returns the first of the tokens that is outside of inner brackets and fits; the end of the expressions otherwise.
    fn find(&self, from: usize, fits: impl Fn(&Token<'_>) -> bool) -> usize {
        let mut depth = 0_usize;
        for (index, (token, _)) in self.tokens.iter().enumerate().skip(from) {
            match token {
                _ if depth == 0 && fits(token) => return index,
                Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
                Token::ParenClose | Token::BracketClose | Token::BraceClose if depth > 0 => depth -= 1,
                _ if ends(token) => return index,
                _ => {}
            }
        }
        self.tokens.len()
    }

    fn tag(&mut self) {
        let word = self.word(self.at);
        self.at += 1;
        match word {
            Some("for") => {
                let target = self.at;
                self.at = self.find(target, |token| matches!(token, Token::Ident("in")));
                let shape = shape(&mut self.tokens[target..self.at].iter().map(|(token, _)| token));
                self.at += 1;
                let begin = self.at;
                let end = self.find(begin, |token| matches!(token, Token::Ident("if" | "recursive")));
                self.expressions(Part::Plain);
                self.filter(begin..end, each(&shape));
                self.loops.push(Some(Loop { shape, is_recursive: self.word(self.at - 1) == Some("recursive") }));
            }
            Some("if") => {
                self.expressions(Part::Plain);
                self.loops.push(None);
            }
            Some("else") => {
                if let Some(Some(of_loop)) = self.loops.last_mut() {
                    of_loop.is_recursive = false;
                }
            }
            Some("endfor" | "endif" | "endmacro" | "endcall") => {
                self.loops.pop();
            }
            Some("macro") => {
                // Its parameters are names.
                let keeps_values = std::mem::take(&mut self.keeps_values);
                self.at += 1;
                self.inside(Part::Plain, false);
                self.keeps_values = keeps_values;
                self.loops.push(Some(Loop::default()));
            }
            Some("call") => {
                if let Some(Token::ParenOpen) = self.token(self.at) {
                    let edits = self.edits.len();
                    self.inside(Part::Plain, false);
                    self.edits.truncate(edits);
                } else {
                    // So that the parentheses of the called value are none of names.
                    self.behind(self.at - 1, "()");
                }
                self.expressions(Part::Plain);
                self.loops.push(Some(Loop::default()));
            }
            Some("with") => {
                while !matches!(self.token(self.at), Some(Token::BlockEnd) | None) {
                    let target = self.at;
                    self.at = self.find(target, |token| matches!(token, Token::Assign)) + 1;
                    let begin = self.at;
                    self.expression(Part::Plain);
                    self.fitted(target..begin - 1, begin);
                    self.at += usize::from(matches!(self.token(self.at), Some(Token::Comma)));
                }
            }
            Some("set") => {
                let target = self.at;
                self.at = self.find(target, |token| matches!(token, Token::Assign | Token::Pipe));
                let is_assigned = matches!(self.token(self.at), Some(Token::Assign));
                let spaces = self.namespaces(target..self.at);
                let begin = self.at + 1;
                if let Some(Token::Pipe) = self.token(self.at) {
                    self.filters();
                }
                self.expressions(Part::Plain);
                if let Some(condition) = &spaces {
                    let open = self.tokens.get(target - 2).map_or("", |(_, span)| &self.text[bytes(*span)]);
                    self.before(target - 2, format!("{open} if {condition} %}}"));
                }
                if !is_assigned {
                    self.captures.push(spaces.is_some());
                    return;
                }
                if spaces.is_some() {
                    self.filter(begin..self.at, "|__stored");
                }
                self.fitted(target..begin - 1, begin);
                if spaces.is_some() {
                    self.end_condition();
                }
            }
            Some("filter") => {
                self.at -= 1;
                self.filters();
            }
            Some("endset") => {
                if self.captures.pop() == Some(true) {
                    self.end_condition();
                }
            }
            _ => self.expressions(Part::Plain),
        }
    }

    /// Returns the condition for a target with attributes, `a.b, c`: only namespaces can be assigned to.
    fn namespaces(&self, target: Range<usize>) -> Option<String> {
        let mut conditions = Vec::new();
        let mut begin = target.start;
        for index in target.clone() {
            let is_last =
                index + 1 == target.end || !matches!(self.token(index + 1), Some(Token::Dot | Token::Ident(_)));
            match self.token(index) {
                Some(Token::Ident(_)) if is_last && index > begin => {
                    let (from, to) = (bytes(self.tokens[begin].1).start, bytes(self.tokens[index - 2].1).end);
                    conditions.push(format!("{} is __namespace", &self.text[from..to]));
                }
                Some(Token::Ident(_) | Token::Dot) => {}
                _ => begin = index + 1,
            }
        }
        (!conditions.is_empty()).then(|| conditions.join(" and "))
    }

    fn end_condition(&mut self) {
        if let Some((_, span)) = self.tokens.get(self.at) {
            let end = format!("{{% endif {}", &self.text[bytes(*span)]);
            self.behind(self.at, end);
        }
    }

    /// Writes a filter behind an expression that is assigned to several names.
    fn fitted(&mut self, target: Range<usize>, begin: usize) {
        let shape = shape(&mut self.tokens[target].iter().map(|(token, _)| token));
        if shape != ONE_NAME {
            self.filter(begin..self.at, format!("|__fit({shape})"));
        }
    }

    fn expressions(&mut self, part: Part) {
        self.expression(part);
        while let Some(Token::Comma) = self.token(self.at) {
            self.at += 1;
            self.expression(part);
        }
    }

    /// Scans one of the expressions that commas separate.
    fn expression(&mut self, part: Part) {
        let splat = match self.token(self.at) {
            Some(Token::Mul) => Some("|__each"),
            Some(Token::Pow) => Some("|__map"),
            _ => None,
        };
        self.at += usize::from(splat.is_some());
        let is_walked = part == Part::Walked || splat.is_some();
        let mut begin = self.at;
        let mut chain = Chain::default();
        while let Some(token) = self.token(self.at) {
            let operator = match token {
                token if ends(token) || matches!(token, Token::Comma) => break,
                // A name, and no value.
                Token::Assign => {
                    chain = Chain::default();
                    self.at += 1;
                    begin = self.at;
                    continue;
                }
                Token::Colon | Token::Pipe | Token::Dot | Token::Ident("and" | "or" | "if" | "else") => {
                    let is_key = part == Part::Members && matches!(token, Token::Colon);
                    self.finish(std::mem::take(&mut chain), is_key || is_walked);
                    if is_key && !matches!((self.token(begin), self.at - begin), (Some(Token::Str(_)), 1)) {
                        self.filter(begin..self.at, "|__key");
                    }
                    self.at += 1;
                    continue;
                }
                Token::Ident("not") => match self.word(self.at + 1) {
                    Some("in") if !chain.operands.is_empty() => {
                        self.at += 1;
                        Operator::In
                    }
                    _ => {
                        self.at += 1;
                        continue;
                    }
                },
                Token::Ident("in") => Operator::In,
                Token::Eq | Token::Ne | Token::Lt | Token::Lte | Token::Gt | Token::Gte => Operator::Compare,
                Token::Tilde => Operator::Join,
                Token::Plus => Operator::Add,
                Token::Minus if !chain.expects_operand() => Operator::Subtract,
                Token::Mul => Operator::Multiply,
                Token::Div => Operator::Divide,
                Token::FloorDiv => Operator::FloorDivide,
                Token::Mod => Operator::Remainder,
                Token::Pow => Operator::Power,
                _ => {
                    if !chain.expects_operand() {
                        self.finish(std::mem::take(&mut chain), is_walked);
                    }
                    let operand = self.operand();
                    chain.operands.push(operand);
                    continue;
                }
            };
            chain.operators.push((operator, self.at));
            self.at += 1;
        }
        self.finish(chain, is_walked);
        if let Some(filter) = splat {
            self.filter(begin..self.at, filter);
        }
    }

    /// Scans a value with its sign, filters and tests.
    fn operand(&mut self) -> Operand {
        let begin = self.at;
        let mut size = self.signed();
        loop {
            match self.token(self.at) {
                Some(Token::Pipe) => {
                    let name = self.name();
                    if let Some(Token::ParenOpen) = self.token(self.at) {
                        self.inside(Part::Plain, true);
                    }
                    size = if name.is_some_and(|name| NUMERIC.contains(&name)) { Size::Number } else { Size::Any };
                }
                Some(Token::Ident("is")) => {
                    if self.word(self.at + 1) == Some("not") {
                        self.at += 1;
                    }
                    self.name();
                    match self.token(self.at) {
                        Some(Token::ParenOpen) => self.inside(Part::Plain, true),
                        Some(Token::Ident("and" | "or" | "else" | "is")) => {}
                        Some(
                            Token::Ident(_)
                            | Token::Str(_)
                            | Token::String(_)
                            | Token::Int(_)
                            | Token::Int128(_)
                            | Token::Float(_)
                            | Token::Minus
                            | Token::BracketOpen
                            | Token::BraceOpen,
                        ) => {
                            self.signed();
                        }
                        _ => {}
                    }
                    size = Size::Number;
                }
                _ => break,
            }
        }
        Operand { tokens: begin..self.at, size }
    }

    /// Scans a value with its sign, attributes, items and calls.
    fn signed(&mut self) -> Size {
        let begin = self.at;
        while let Some(Token::Minus) = self.token(self.at) {
            self.at += 1;
        }
        let signs = begin..self.at;
        let size = self.value();
        let is_literal = self.at == signs.end + 1
            && matches!(self.token(signs.end), Some(Token::Int(_) | Token::Int128(_) | Token::Float(_)));
        if signs.is_empty() || is_literal {
            return size;
        }
        for sign in signs {
            self.replace(sign, "");
            self.behind(self.at - 1, "|__minus");
        }
        Size::Number
    }

    fn value(&mut self) -> Size {
        let first = self.at;
        let mut size = match self.token(first) {
            Some(Token::Int(_) | Token::Int128(_) | Token::Float(_)) => Size::Number,
            Some(Token::Str(text)) if text.len() <= SMALL_BYTES => Size::Small,
            Some(Token::Ident("true" | "false" | "none" | "True" | "False" | "None")) => Size::Number,
            Some(Token::ParenOpen | Token::BracketOpen) if self.is_small_list(first) => Size::Small,
            _ => Size::Any,
        };
        match self.token(first) {
            Some(Token::ParenOpen | Token::BracketOpen) => self.inside(Part::Plain, true),
            Some(Token::BraceOpen) => self.inside(Part::Members, true),
            _ => self.at += 1,
        }
        let mut function = self.word(first);
        loop {
            match self.token(self.at) {
                Some(Token::Str(_) | Token::String(_))
                    if matches!(self.token(self.at - 1), Some(Token::Str(_) | Token::String(_))) =>
                {
                    self.at += 1;
                }
                Some(Token::Dot) => {
                    let is_of_loop = self.at == first + 1 && self.word(first) == Some("loop");
                    function = self.word(self.at + 1);
                    self.at += 2;
                    let is_number =
                        is_of_loop && !matches!(function, Some("changed" | "cycle" | "previtem" | "nextitem"));
                    size = if is_number { Size::Number } else { Size::Any };
                    continue;
                }
                Some(Token::BracketOpen) => {
                    self.subscript(first);
                    size = Size::Any;
                }
                Some(Token::ParenOpen) => {
                    self.call(first, function);
                    size = Size::Any;
                }
                _ => return size,
            }
            function = None;
        }
    }

    /// Scans filters behind a tag's word or a `|`.
    fn filters(&mut self) {
        loop {
            self.name();
            if let Some(Token::ParenOpen) = self.token(self.at) {
                self.inside(Part::Plain, true);
            }
            let Some(Token::Pipe) = self.token(self.at) else { return };
        }
    }

    /// Scans the call of a value that begins with `first`. A call that fails gives nothing.
    fn call(&mut self, first: usize, function: Option<&str>) {
        let (open, name) = (self.at, self.word(first));
        let is_walking = function.is_some_and(|name| WALKING.contains(&name));
        self.inside(if is_walking { Part::Walked } else { Part::Plain }, is_walking);
        let close = self.at - 1;
        let is_one_value = close > open + 1
            && self.find(open + 1, |token| matches!(token, Token::Comma | Token::Assign | Token::Mul | Token::Pow))
                == close;
        let is_recursive = self.innermost().is_some_and(|innermost| innermost.is_recursive);
        match name {
            Some("role" | "attach" | "link" | "prompt" | "super") if open == first + 1 => {}
            Some("self") if open == first + 3 => {}
            Some("loop") if open == first + 1 && is_recursive && is_one_value => {
                let each = self.innermost().map_or("".into(), |innermost| each(&innermost.shape));
                self.filter(open + 1..close, each);
            }
            Some("loop") if open == first + 3 => {
                self.before(first, "(");
                self.replace(first + 1, "|__method('");
                self.behind(first + 2, "'");
                self.replace(open, if close == open + 1 { "" } else { ", " });
                self.behind(close, ")");
            }
            _ => {
                self.before(first, "(");
                self.behind(open - 1, "|__callable)");
            }
        }
    }

    fn innermost(&self) -> Option<&Loop> {
        self.loops.iter().rev().flatten().next()
    }

    /// Moves behind the name of a filter or test that follows the current token, and returns its last part.
    fn name(&mut self) -> Option<&'t str> {
        self.at += 2;
        while let Some(Token::Dot) = self.token(self.at) {
            self.at += 2;
        }
        self.word(self.at - 1)
    }

    fn inside(&mut self, part: Part, is_nesting: bool) {
        self.at += 1;
        let around = std::mem::replace(&mut self.is_nesting, is_nesting);
        self.expressions(part);
        self.is_nesting = around;
        self.at += 1;
    }

    /// Scans `[…]` behind the value that begins with `first`.
    fn subscript(&mut self, first: usize) {
        let open = self.at;
        let is_near = match (self.token(open + 1), self.token(open + 2)) {
            (Some(Token::Int(index)), Some(Token::BracketClose)) => *index <= SMALL_INDEX,
            (Some(Token::Str(text)), Some(Token::BracketClose)) => text.len() <= SMALL_BYTES,
            _ => false,
        };
        if is_near {
            self.at = open + 3;
            return;
        }
        self.before(first, "(");
        let colon = |token: &Token<'_>| matches!(token, Token::Colon);
        let mut separator = self.find(open + 1, colon);
        if !self.token(separator).is_some_and(colon) {
            self.behind(open - 1, "|__base)");
            self.inside(Part::Plain, false);
            self.filter(open + 1..self.at - 1, "|__walked");
            return;
        }
        self.inside(Part::Plain, false);
        let close = self.at - 1;
        let none = |is_missing: bool| if is_missing { "none" } else { "" };
        self.replace(open, format!("|__cut({}", none(separator == open + 1)));
        while separator < close {
            let next = self.find(separator + 1, colon);
            self.replace(separator, format!(", {}", none(next == separator + 1)));
            separator = next;
        }
        self.replace(close, "))");
    }

    fn is_small_list(&self, open: usize) -> bool {
        let is_small = |token: &Token<'_>| match token {
            Token::Str(text) => text.len() <= SMALL_BYTES,
            Token::Int(_) | Token::Float(_) | Token::Comma | Token::Minus => true,
            _ => false,
        };
        let rest = self.tokens[open + 1..].iter().map(|(token, _)| token);
        let mut rest = rest.skip_while(|token| is_small(token));
        matches!(rest.next(), Some(Token::ParenClose | Token::BracketClose))
    }

    /// `is_walked`: whether all of it is walked, such as the values of `f(*values)`.
    fn finish(&mut self, chain: Chain, is_walked: bool) {
        let Chain { operands, operators } = chain;
        if operands.is_empty() || operators.len() + 1 != operands.len() {
            return;
        }
        // Comparisons bind less tightly than the other operators.
        let mut sides: Vec<Range<usize>> = Vec::new();
        let mut begin = 0;
        for (index, (operator, _)) in operators.iter().enumerate() {
            if operator.level() == 0 {
                sides.push(begin..index + 1);
                begin = index + 1;
            }
        }
        sides.push(begin..operands.len());
        let is_small = |side: &Range<usize>| operands[side.clone()].iter().all(|operand| operand.size != Size::Any);
        let follows_in = |side: &Range<usize>| side.start > 0 && operators[side.start - 1].0 == Operator::In;
        let is_compared = is_walked
            || sides.windows(2).any(|pair| !is_small(&pair[1]) && (follows_in(&pair[1]) || !is_small(&pair[0])));
        let is_pair = operators.len() == 1 && operators[0].0 == Operator::Compare && is_compared && !is_walked;
        if is_pair {
            self.behind(operands[0].tokens.end - 1, "|__left");
            self.behind(operands[1].tokens.end - 1, "|__compared");
        }
        for side in &sides {
            let is_joined = operators[side.start..side.end - 1].iter().any(|(operator, _)| *operator == Operator::Join);
            let is_container = side.len() == 1 && follows_in(side) && !is_walked;
            for operand in operands[side.clone()].iter().filter(|operand| operand.size == Size::Any) {
                if is_joined {
                    self.behind(operand.tokens.end - 1, "|__joined");
                }
                if is_compared && !is_pair && !is_container {
                    self.behind(operand.tokens.end - 1, "|__walked");
                }
            }
            self.arithmetic(&operands, &operators, side.clone(), 1);
            if follows_in(side) && !is_joined && operands[side.end - 1].size != Size::Small {
                self.behind(operands[side.end - 1].tokens.end - 1, "|__container");
            }
        }
        if self.keeps_values && self.is_nesting && operands.iter().any(|operand| operand.size == Size::Any) {
            self.filter(operands[0].tokens.start..operands[operands.len() - 1].tokens.end, "|__item");
        }
    }

    /// Writes filters for operators that fail for some values: `a - b * c` becomes `a|__subtract(b|__multiply(c))`.
    fn arithmetic(&mut self, operands: &[Operand], operators: &[(Operator, usize)], side: Range<usize>, level: u8) {
        if side.len() < 2 {
            return;
        }
        let is_split = |index: &usize| operators[*index].0.level() == level;
        let splits: Vec<usize> = (side.start..side.end - 1).filter(is_split).collect();
        let ends = splits.iter().map(|split| split + 1).chain([side.end]);
        let begins = [side.start].into_iter().chain(splits.iter().map(|split| split + 1));
        for (index, (begin, end)) in begins.zip(ends).enumerate() {
            self.arithmetic(operands, operators, begin..end, level + 1);
            let last = operands[end - 1].tokens.end - 1;
            if level == JOIN_LEVEL {
                continue;
            }
            if let Some((operator, token)) = index.checked_sub(1).map(|index| operators[splits[index]]) {
                self.replace(token, operator.call());
                self.behind(last, ")");
            } else if !splits.is_empty()
                && operators[begin..end - 1].iter().any(|(operator, _)| *operator == Operator::Join)
            {
                self.before(operands[begin].tokens.start, "(");
                self.behind(last, ")");
            }
        }
    }
}

/// Whether a token ends the expressions around it.
fn ends(token: &Token<'_>) -> bool {
    matches!(
        token,
        Token::VariableEnd
            | Token::BlockEnd
            | Token::ParenClose
            | Token::BracketClose
            | Token::BraceClose
            | Token::TemplateData(_)
    )
}

const ONE_NAME: &str = "0";

/// Returns the names that a value is assigned to, as a list of zeros and lists; a zero for one name.
fn shape<'a, 't: 'a>(target: &mut impl Iterator<Item = &'a Token<'t>>) -> String {
    let mut items = Vec::new();
    let (mut is_list, mut is_attribute) = (false, false);
    while let Some(token) = target.next() {
        match token {
            Token::Comma => is_list = true,
            Token::ParenOpen => items.push(shape(target)),
            Token::ParenClose => break,
            Token::Ident(_) if !is_attribute => items.push(ONE_NAME.to_owned()),
            _ => {}
        }
        is_attribute = matches!(token, Token::Dot);
    }
    match items.pop() {
        Some(item) if !is_list && items.is_empty() => item,
        last => format!("[{}]", items.into_iter().chain(last).collect::<Vec<_>>().join(",")),
    }
}

fn each(shape: &str) -> Cow<'static, str> {
    if shape == ONE_NAME { "|__each".into() } else { format!("|__each({shape})").into() }
}

/// A sequence of `+` copies its items once in 32 times (see `MergeSeq` of the engine), and a copy takes half as long as
/// a visit.
const ADDED: u64 = 64;

/// A stored value is copied each time, so it counts a fraction.
const STORED: u64 = 8;

/// The most levels of a value that a namespace carries to the next iteration of a loop, which could nest it in itself
/// any number of times: more would overflow the stack when it is dropped.
const MAX_KEPT_DEPTH: usize = 100;

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_filter("__walked", walked);
    environment.add_filter("__container", container);
    environment.add_filter("__left", left_operand);
    environment.add_filter("__compared", compared);
    environment.add_filter("__joined", joined);
    environment.add_filter("__add", add);
    environment.add_filter("__multiply", multiply);
    use Operator::{Divide, FloorDivide, Power, Remainder, Subtract};
    for operator in [Subtract, Divide, FloorDivide, Remainder, Power] {
        let name = operator.call().trim_matches(['|', '(']);
        environment.add_filter(name, move |a: Value, b: Value| calculated(operator, &a, &b));
    }
    environment.add_filter("__minus", |value: Value| match value.kind() {
        ValueKind::Number => calculated(Subtract, &Value::from(0), &value),
        _ => Value::UNDEFINED,
    });
    environment.add_filter("__cut", cut);
    environment.add_filter("__each", each_of);
    environment.add_filter("__fit", |value: Value, shape: Value| fit(&value, &shape));
    environment.add_filter("__callable", |value: Value| Value::from_object(Callable(value)));
    environment.add_filter("__method", method);
    environment.add_test("__namespace", |value: Value| {
        value.as_object().is_some_and(|object| object.type_name().ends_with("::Namespace"))
    });
    environment.add_filter("__map", |value: Value| match value.kind() {
        ValueKind::Map => value,
        _ => Value::from_pairs(NO_NAMES),
    });
    // A mapping with other keys cannot be printed.
    environment.add_filter("__key", |value: Value| match value.kind() {
        ValueKind::String | ValueKind::Number | ValueKind::Bool => value,
        _ => Value::from(""),
    });
    environment.add_filter("__base", base);
    environment.add_filter("__item", item);
    environment.add_filter("__stored", stored);
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

fn walked(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    let value = settled(state, value)?;
    match value.as_str() {
        Some(text) => spend(state, text.len() as u64 / SEARCHED)?,
        None => spend_deep(state, &value, 1)?,
    }
    Ok(value)
}

/// The right operand of `in`. A mapping is not walked.
fn container(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Map | ValueKind::Plain => Ok(value),
        ValueKind::String | ValueKind::Seq | ValueKind::Iterable => walked(state, value),
        _ => Ok(Value::UNDEFINED),
    }
}

fn joined(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    match value.as_str() {
        Some(text) => spend(state, text.len() as u64)?,
        None => spend_deep(state, &value, 2)?,
    }
    Ok(value)
}

#[derive(Default)]
struct Lefts(Vec<Value>);

fn lefts<'s>(state: &'s mut State<'_, '_>) -> &'s mut Lefts {
    state.get_or_insert_extension_with(Lefts::default)
}

fn left_operand(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    let value = settled(state, value)?;
    lefts(state).0.push(value.clone());
    Ok(value)
}

/// The right operand of a comparison, which ends at the end of the smaller value.
fn compared(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    let value = settled(state, value)?;
    let one = lefts(state).0.pop().unwrap_or_default();
    spend_comparison(state, &one, &value)?;
    Ok(value)
}

const NO_NAMES: [(&str, Value); 0] = [];

/// `a + b`. Lists are joined lazily.
fn add(state: &mut State<'_, '_>, a: Value, b: Value) -> Result<Value, Error> {
    let work = |value: &Value| value.as_str().map_or_else(|| items_size(value) / ADDED, |text| text.len() as u64);
    spend(state, work(&a).saturating_add(work(&b)))?;
    if is_list(&a) && is_list(&b) || a.as_str().is_some() && b.as_str().is_some() {
        // The engine's `+` is not public.
        let sum = filters::sum(state, Value::from(vec![b.clone()]), None, Some(a.clone()), Kwargs::from_iter(NO_NAMES));
        // It does not join a list and a tuple.
        return sum.or_else(|_| multiply(state, Value::from_iter(a.try_iter()?.chain(b.try_iter()?)), Value::from(1)));
    }
    Ok(calculated(Operator::Add, &a, &b))
}

/// `a * b`, which repeats a text or a list as often as a whole number says.
fn multiply(state: &mut State<'_, '_>, a: Value, b: Value) -> Result<Value, Error> {
    let is_repeated = |value: &Value| value.as_str().is_some() || is_list(value);
    let (value, count) = match (is_repeated(&a), is_repeated(&b)) {
        (true, false) => (a, b),
        (false, true) => (b, a),
        (true, true) => return Ok(Value::UNDEFINED),
        (false, false) => return Ok(calculated(Operator::Multiply, &a, &b)),
    };
    let Some(count) = whole(&count).and_then(|count| usize::try_from(count).ok()) else { return Ok(Value::UNDEFINED) };
    if let Some(text) = value.as_str() {
        spend(state, (text.len() as u64).saturating_mul(count as u64))?;
        return Ok(Value::from(text.repeat(count)));
    }
    let value = settled(state, value)?;
    spend(state, items_size(&value).saturating_mul(2).saturating_mul(count as u64))?;
    let items: Vec<Value> = value.try_iter()?.collect();
    Ok(Value::from_iter((0..count).flat_map(|_| items.iter().cloned())))
}

/// Returns a whole number. True and false count as 1 and 0, as in the engine.
fn whole(value: &Value) -> Option<i128> {
    match value.kind() {
        ValueKind::Bool => Some(i128::from(value.is_true())),
        ValueKind::Number if value.is_integer() => i128::try_from(value.clone()).ok(),
        _ => None,
    }
}

/// Returns the result of an operation with numbers; an undefined value if they are none, or have no such result.
fn calculated(operator: Operator, a: &Value, b: &Value) -> Value {
    let number = |value: &Value| match value.kind() {
        ValueKind::Number => f64::try_from(value.clone()).ok(),
        _ => whole(value).map(|number| number as f64),
    };
    let is_whole = operator != Operator::Divide && !(operator == Operator::Power && b < &Value::from(0));
    if let (Some(a), Some(b)) = (whole(a), whole(b))
        && is_whole
    {
        let result = match operator {
            Operator::Add => a.checked_add(b),
            Operator::Subtract => a.checked_sub(b),
            Operator::Multiply => a.checked_mul(b),
            Operator::Power => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
            _ => a.checked_rem(b).zip(a.checked_div(b)).map(|(rest, quotient)| {
                let is_lower = rest != 0 && (rest < 0) != (b < 0);
                match operator {
                    Operator::Remainder => rest + if is_lower { b } else { 0 },
                    _ => quotient - i128::from(is_lower),
                }
            }),
        };
        return result.map_or(Value::UNDEFINED, |result| i64::try_from(result).map_or(result.into(), Value::from));
    }
    let (Some(a), Some(b)) = (number(a), number(b)) else { return Value::UNDEFINED };
    let rest = a % b;
    let rest = if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest };
    Value::from(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Power if a != 0.0 || b >= 0.0 => a.powf(b),
        Operator::Divide if b != 0.0 => a / b,
        Operator::Remainder if b != 0.0 => rest,
        Operator::FloorDivide if b != 0.0 => ((a - rest) / b).round(),
        _ => return Value::UNDEFINED,
    })
}

/// Returns a whole number that can be a bound of a slice or a range.
pub(super) fn bound(value: &Value) -> Option<i64> {
    const MOST: i128 = 1 << 40;
    whole(value).and_then(|number| i64::try_from(number.clamp(-MOST, MOST)).ok())
}

/// `value[start:stop:step]`. A part that is not a whole number counts as missing, and so does a step of zero.
fn cut(
    state: &mut State<'_, '_>,
    value: Value,
    start: Value,
    stop: Value,
    step: Option<Value>,
) -> Result<Value, Error> {
    let step = step.as_ref().and_then(bound).filter(|step| *step != 0).unwrap_or(1);
    let value = settled(state, value)?;
    if let Some(text) = value.as_str() {
        spend(state, (text.len() as u64).saturating_mul(CHARACTER))?;
        let characters: Vec<char> = text.chars().collect();
        let chosen = places(characters.len(), bound(&start), bound(&stop), step).map(|at| characters[at]);
        return Ok(Value::from(chosen.collect::<String>()));
    }
    if !is_list(&value) {
        return Ok(Value::UNDEFINED);
    }
    spend(state, items_size(&value))?;
    let items: Vec<Value> = value.try_iter()?.collect();
    let chosen = places(items.len(), bound(&start), bound(&stop), step).map(|at| items[at].clone());
    Ok(Value::from(chosen.collect::<Vec<_>>()))
}

/// Returns the indexes of a slice, as Python counts them.
fn places(length: usize, start: Option<i64>, stop: Option<i64>, step: i64) -> impl Iterator<Item = usize> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let (least, most) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let inside = |at: i64| (if at < 0 { at + length } else { at }).clamp(least, most);
    let (first, end) = if step > 0 { (0, length) } else { (length - 1, -1) };
    let (start, stop) = (start.map_or(first, inside), stop.map_or(end, inside));
    let distance = if step > 0 { stop - start } else { start - stop };
    let count = distance.max(0).unsigned_abs().div_ceil(step.unsigned_abs());
    (0..count).filter_map(move |index| usize::try_from(start + i64::try_from(index).ok()? * step).ok())
}

/// Returns what a loop walks, with items that fit the shape of its names.
fn each_of(state: &mut State<'_, '_>, value: Value, shape: Option<Value>) -> Result<Value, Error> {
    let Ok(items) = value.try_iter() else { return Ok(Value::from(Vec::<Value>::new())) };
    let Some(shape) = shape else { return Ok(value) };
    let mut fitting = Vec::new();
    for item in items {
        spend(state, ITEM)?;
        fitting.push(fit(&item, &shape));
    }
    Ok(Value::from(fitting))
}

/// Returns a value that can be assigned to names of this shape: one with another number of items gives nothing.
fn fit(value: &Value, shape: &Value) -> Value {
    let names: Vec<Value> = shape.try_iter().into_iter().flatten().collect();
    let is_fitting = value.len() == Some(names.len());
    let items: Vec<Value> = value.try_iter().into_iter().flatten().filter(|_| is_fitting).collect();
    let fitted = names.iter().enumerate().map(|(index, shape)| {
        let item = items.get(index).cloned().unwrap_or(Value::UNDEFINED);
        if is_list(shape) { fit(&item, shape) } else { item }
    });
    Value::from(fitted.collect::<Vec<_>>())
}

/// A value whose calls give nothing if they fail.
#[derive(Debug)]
struct Callable(Value);

impl Object for Callable {
    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, arguments: &[Value]) -> Result<Value, Error> {
        or_nothing(self.0.call(state, arguments))
    }
}

/// A method of a loop. The engine panics for `loop.cycle()`.
fn method(state: &mut State<'_, '_>, value: Value, name: &str, arguments: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let arguments = arguments.into_values();
    if arguments.is_empty() { Ok(Value::UNDEFINED) } else { or_nothing(value.call_method(state, name, &arguments)) }
}

fn or_nothing(result: Result<Value, Error>) -> Result<Value, Error> {
    result.or_else(|error| if limit(&error).is_some() { Err(error) } else { Ok(Value::UNDEFINED) })
}

/// Returns the limit that a rendering has exceeded, if an error is about one.
pub(super) fn limit(error: &Error) -> Option<&str> {
    const RECURSION: &str = "recursion limit exceeded";
    match error.detail() {
        detail if error.kind() == ErrorKind::OutOfFuel => Some(detail.unwrap_or("too many steps")),
        Some(RECURSION) => Some("macros, loops and partials inside each other"),
        // Each `include` wraps the error of a partial once.
        _ => std::error::Error::source(error).and_then(|source| source.downcast_ref::<Error>()).and_then(limit),
    }
}

/// The value before `[…]`. Only lists know the place of an item; others are read from their beginning.
fn base(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    settled(state, value)
}

/// A value inside of brackets that make another value, which a namespace may carry to the next iteration.
fn item(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    match value.as_str() {
        Some(text) => spend(state, text.len() as u64)?,
        None => spend_deep(state, &value, 1)?,
    }
    Ok(value)
}

/// A value that a namespace stores. Its items were counted when they were made.
fn stored(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    spend(state, items_size(&value) / STORED)?;
    check_depth(&value)?;
    Ok(value)
}

/// Follows the first and the last items: filters nest all items alike. Those of brackets were checked by `item`.
fn check_depth(value: &Value) -> Result<(), Error> {
    for is_last in [false, true] {
        let mut inner = value.clone();
        for level in 0.. {
            let Some(next) = end_item(&inner, is_last) else { break };
            if level >= MAX_KEPT_DEPTH {
                return Err(Error::new(ErrorKind::OutOfFuel, "values inside each other"));
            }
            inner = next;
        }
    }
    Ok(())
}

fn end_item(value: &Value, is_last: bool) -> Option<Value> {
    let end = |value: &Value| match value.len() {
        // Other lists are read from their beginning; a long one joins literals, whose items were checked.
        Some(length) if is_last && (value.kind() == ValueKind::Seq || length <= SMALL_BYTES) => {
            value.try_iter().ok()?.nth(length.checked_sub(1)?)
        }
        _ => value.try_iter().ok()?.next(),
    };
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => end(value),
        ValueKind::Map => end(value).and_then(|key| value.get_item(&key).ok()),
        _ => None,
    }
}

/// `value is in(container)`, which is false where the operator fails. Visits the items of a list one by one, so that only
/// those before the found one count.
pub(super) fn is_in(state: &mut State<'_, '_>, value: &Value, container: &Value) -> Result<bool, Error> {
    if !matches!(container.kind(), ValueKind::Seq | ValueKind::Iterable) {
        spend_deep(state, value, 1)?;
        spend(state, container.as_str().map_or(0, str::len) as u64 / SEARCHED)?;
        return minijinja::tests::is_in(state, value, container);
    }
    let most = left(state);
    let (mut work, mut is_found) = (0_u64, false);
    for item in container.try_iter()? {
        work = work.saturating_add(ITEM).saturating_add(comparison(value, &item, most.saturating_sub(work))?);
        if work > most {
            break;
        }
        is_found = item == *value;
        if is_found {
            break;
        }
    }
    spend(state, work)?;
    Ok(is_found)
}

/// Turns a lazy result into a list: walking a chain of them would take unbounded time and stack.
pub(super) fn settled(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    if value.kind() != ValueKind::Iterable {
        return Ok(value);
    }
    let most = left(state);
    let mut work = 0_u64;
    let mut items = Vec::new();
    for item in value.try_iter()? {
        work += ITEM;
        if work > most {
            break;
        }
        items.push(item);
    }
    spend(state, work)?;
    Ok(Value::from(items))
}

fn items_size(value: &Value) -> u64 {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => (value.len().unwrap_or(0) as u64).saturating_mul(ITEM),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use minijinja::{Environment, Value};
    use serde_json::json;

    use super::{super::environment::base, *};

    fn values() -> Value {
        Value::from(minijinja::value::Serde(json!({
            "a": "some text", "b": "text", "n": 3, "m": -2, "f": 1.5, "yes": true, "nothing": null,
            "list": ["x", "text", 3, "y"], "other": ["y", "z"], "rows": [[1, "one"], [2, "two"]],
            "map": { "text": 1, "k": [1, 2, 3], "inner": { "k": "v" } }, "empty": [],
        })))
    }

    fn rendered(environment: &Environment<'_>, text: &str) -> Result<String, String> {
        let mut environment = environment.clone();
        environment.set_fuel(Some(1_000_000));
        let place = |error: minijinja::Error| {
            format!(
                "{:?} {} in line {}",
                error.kind(),
                error.detail().unwrap_or_default(),
                error.line().unwrap_or_default()
            )
        };
        environment.add_template_owned("it", text.to_owned()).map_err(place)?;
        environment.get_template("it").and_then(|template| template.render(values())).map_err(place)
    }

    const TEMPLATES: &[&str] = &[
        "",
        "plain {{ a }}\n",
        "plain\n\n",
        "{{ b in a }}{{ b in list }}{{ 'k' in map }}{{ 'q' not in list }}{{ n in nothing_known }}",
        "{{ not b in list }} {{ b in list and n in list or yes }}",
        "{{ a in ['x', 'y'] }}{{ a == 'x' }}{{ 'x' == a }}",
        "{{ list[1:3] }}|{{ list[::-1] }}|{{ a[2:4] }}|{{ a[:-1] }}|{{ a[::2] }}|{{ list[n-2:][0] }}",
        "{{ a == b }}{{ a != b }}{{ a < b }}{{ a <= b }}{{ a > b }}{{ list >= other }}{{ list == list }}",
        "{{ 1 < n < 5 }}{{ a < b < a }}{{ b in list in rows }}{{ 1 < n not in list }}",
        "{{ a ~ b ~ n ~ '!' ~ list }}{{ a + b + a }}{{ list + other + other }}{{ n + 1 - 2 + m }}{{ (a + b)|length }}",
        "{{ a * 3 }}{{ n * n }}{{ f * 2 }}{{ list * 2 }}{{ 3 * b }}{{ '-' * 10 }}{{ (1,) * 3 }}{{ n * 2 + 1 }}{{ 0 * a }}",
        "{{ nothing_known * 2 }}",
        "{{ 'x' ~ n }}\n{{ 2 * nothing_known }}",
        "{{ n ** 2 ** 2 }}{{ -n ** 2 }}{{ 7 // 2 % 2 }}{{ (n - 1) - 1 }}{{ n - (1 - 1) }}{{ 2 * (n + 1) }}{{ -m }}{{ - -n }}",
        "{{ list[0] }}{{ list[n] }}{{ list[-1] }}{{ map['k'] }}{{ map[b] }}{{ map.k[n - 2] }}{{ map['inner'].k }}{{ rows[0][1] }}",
        "{{ range(9)[m] }}{{ (list + other)[5] }}{{ map.inner[('k')] }}{{ list.1 }}{{ (1.5)|int }}{{ a.x.y.z }}",
        "{{ a if b in list else b }}{{ a if not yes }}{{ (a if yes else b) ~ b }}{{ 'x' if yes else 'y' if n else 'z' }}",
        "{{ a|upper|replace('T', b)|length + 1 }}{{ -n|abs }}{{ (-n)|abs }}{{ [a, b]|join(', ') }}",
        "{{ b is in list }}{{ n is odd }}{{ n is not even }}{{ n is divisibleby 3 }}{{ a is upper or n is number }}{{ b is eq 'text' }}",
        "{{ list|select('string')|list }}{{ list|map('string')|join }}{{ list|select('in', other)|list }}{{ rows|map(attribute=1)|list }}",
        "{{ {'a': [1, (2,), ()], n: b in a} }}{{ [] }}{{ (1, 2, b in a) }}{{ {} }}",
        "{% for x in list if x in other %}{{ loop.index + 1 }}{{ loop.cycle('a', 'b') }}{{ x }}{% else %}none{% endfor %}",
        "{% for k, v in map|items %}{{ k ~ v }}{% endfor %}{% for (x, y), z in [((1, 2), 3)] %}{{ x * y * z }}{% endfor %}",
        "{% for x in empty %}{% else %}{{ a ~ b }}{% endfor %}{% for x, in [[1]] %}{{ x ~ '' }}{% endfor %}",
        "{% for x in rows recursive %}{% if x is iterable and x is not string %}<{{ loop(x) }}>{% else %}{{ x ~ '' }}{% endif %}{% endfor %}",
        "{% for x in rows recursive %}{{ loop.depth ~ '' }}{{ loop(x)|upper if x is sequence else x }}{% endfor %}",
        "{% for x in list %}{% if x == b %}{% continue %}{% elif x == a %}{% break %}{% else %}{{ x }}{% endif %}{{ loop.changed(x == n) }}{% endfor %}",
        "{% if a in list %}1{% elif b in list %}2{% else %}3{% endif %}{% if n %}{% if b in a %}4{% endif %}{% endif %}",
        "{% if n > 9 %}1{% else %}{% if b in a %}2{% endif %}3{% endif %}",
        "{% with x = b in a, y = n * 2, (p, q) = rows[0] %}{{ x }}{{ y }}{{ p ~ q }}{% endwith %}{% with %}{{ a ~ b }}{% endwith %}",
        "{% set x = a ~ b %}{% set x, y = a ~ b, n %}{{ x }}{{ y }}{% set x %}{{ a }} raw { {% endset %}{{ x ~ x }}",
        "{% filter replace(b, a + b)|upper %}text{% endfilter %}{% set x | join(a ~ b) %}a{{ a }}{% endset %}{{ x }}",
        "{% set x | upper | replace('A', 'b') %}a{{ a }}{% endset %}{{ x }}{% filter lower|title %}A {{ a ~ b }}{% endfilter %}",
        "{% set ns = namespace(t='', l=[], m={}) %}{% for i in range(5) %}{% set ns.t = ns.t ~ i %}{% set ns.l = ns.l + [i ~ a] %}\
         {% set ns.m = {'x': i, 'y': ns.t} %}{% set ns.t, ns.u = ns.t ~ 'x', (1, [ns.t]) %}{% endfor %}{{ ns.t }}{{ ns.l }}{{ ns.m }}{{ ns.u }}",
        "{% set ns = namespace() %}{% set ns.t %}{{ a ~ b }}{% endset %}{{ ns.t }}{% set ns.x = a if yes else b %}{{ ns.x }}",
        "{% macro m(x, y='d', z=n * 2) %}[{{ x ~ y }}{{ z }}{{ caller() if caller else '' }}]{% endmacro %}{{ m(a) }}{{ m(a, z=1) ~ m(y=b, x='') }}\
         {% call m('c') %}inside {{ b in a }}{% endcall %}{% call(q) m(*[a, b], **{'z': 0}) %}{{ q }}{% endcall %}{% set r = m(a)|upper %}{{ r }}",
        "{% macro deep(k) %}{{ k }}{% if k > 0 %}{{ deep(k - 1) ~ '.' }}{% endif %}{% endmacro %}{{ deep(n) }}{% do deep(b in a) %}",
        "{% raw %}{{ not }} {% a %}{% endraw %}{{ a ~ b }}{# comment #}{ {{ b }}} {'{{ b ~ '' }}",
        "  {%- if a ~ b -%}  x  {%- endif -%}  y {%+ if yes %} {{- a ~ b -}} z {% endif %}\n\n",
        "{{ dict(map, z=a in b) }}{{ dict(x=1) }}{{ namespace(map).k }}{{ list|chain(other)|list }}{{ map|chain({'q': 1})|dictsort }}",
        "{{ list|batch(2)|list }}{{ list|slice(2)|list }}{{ list|zip(other)|list }}{{ list|reverse|first }}{{ list|last }}{{ list|unique|list }}",
        "{{ rows|sum(attribute='0') }}{{ [[1], [2]]|sum(start=[]) }}{{ rows|groupby(1)|list }}{{ other|sort(reverse=true) }}{{ other|min ~ other|max }}",
        "{% block one %}{{ a ~ b }}{% endblock %}{{ self.one() }}{{ self.one() ~ '' }}",
        "{{ 'it''s' ~ \"a\\\"b\\n\" }}{{ a ~ 'multi\nline' }}{{ a ~ 1_000 ~ 0x1f ~ 1e3 ~ 2.50 ~ true ~ none }}",
        "{% set x = 'a' 'b' ~ a %}{{ x }}{{ (a ~ b).x }}{{ (a ~ b)[0:2] }}{{ [a, b][0] ~ (a, b)[1] }}{{ {'k': a ~ b}.k }}",
        "{% do list %}",
        "{{ a +",
        "{{ a + 1 }}",
        "\n{{ list\n+ 1 }}",
        "{{ a ~ b }}\n{#\n#}\n{{\nn\n*\nmap.k\n}}",
        "{{ a ~ b }}\n{{\nn\n+\nnothing_known.x\n}}",
        "{{ a ~ b }}\n{%- if yes -%}\n\n{{ n in n }}{% endif %}",
        "{{ a ~ b }}\n{% for x in list %}\n{{ x\n  | int\n }}{{ fail() }}{% endfor %}",
        "{% set x = 'two\nlines' ~ a %}\n{{ a - b }}",
        "{{ a ~ a|nothing_known }}",
        "{% include 'none' ignore missing %}{{ a ~ b }}",
        "{{ a ~ b }}{% include 'none' %}",
    ];

    /// Where the engine's operators fail, ours give nothing.
    #[test]
    fn charged_template_renders_the_same() {
        let environment = base();
        let mut different = Vec::new();
        for text in TEMPLATES {
            let made = charged(text).text;
            let (ours, engines) = (rendered(&environment, &made), rendered(&environment, text));
            if ours != engines && (engines.is_ok() || ours.is_err()) {
                different.push(format!("{text}\n{made}\n{ours:?}\n{engines:?}"));
            }
        }
        assert!(different.is_empty(), "{}", different.join("\n\n"));
    }

    #[test]
    fn only_operators_on_values_are_charged() {
        for text in [
            "{{ a }} {{ map.k[0] }} {{ list|upper }}{% if a == 'x' %}{{ n }}{% endif %}",
            "{% if loop.index0 > 2 %}{% if x in ['a', 'b'] %}{{ role('user') }}{% endif %}{% endif %}",
            "{% set x = a %}{% macro m() %}{% endmacro %}{{ -1 }}{{ self.one() }}",
        ] {
            assert_eq!(charged(text).text, text);
        }
        for (text, made) in [
            ("{{ a in list }}", "{{ a|__walked in list|__container }}"),
            ("{{ a ~ '-' ~ b }}", "{{ a|__joined ~ '-' ~ b|__joined }}"),
            ("{{ (a or b) == c.d[1] }}", "{{ (a or b)|__left == c.d[1]|__compared }}"),
            ("{{ a < b < c }}", "{{ a|__walked < b|__walked < c|__walked }}"),
            ("{{ a*n*2 }}", "{{ a|__multiply(n)|__multiply(2) }}"),
            (
                "{{ a+b*2-c ~ d }}",
                "{{ a|__joined|__add(b|__joined|__multiply(2))|__subtract(c|__joined ~ d|__joined) }}",
            ),
            ("{{ -a|abs }}{{ -2 ** n is odd }}", "{{ a|__minus|abs }}{{ -2 |__power( n is odd) }}"),
            ("{{ f(a)[1:][n] }}", "{{ (((f|__callable)(a)|__cut(1, none))|__base)[n|__walked] }}"),
            (
                "{% for x, (y, z) in list if x %}{% endfor %}",
                "{% for x, (y, z) in list|__each([0,[0,0]]) if x %}{% endfor %}",
            ),
            ("{% call m(a) %}{% endcall %}", "{% call() (m|__callable)(a) %}{% endcall %}"),
            (
                "{% set ns = namespace() %}{% set ns.x = [a, 1] %}",
                "{% set ns = (namespace|__callable)() %}{% if ns is __namespace %}{% set ns.x = ([a|__item, 1])|__stored %}{% endif %}",
            ),
            (
                "{{ {a: 1, 'b': a} }}{{ f(*a) }}",
                "{{ {a|__walked|__key: 1, 'b': a} }}{{ (f|__callable)(*a|__walked|__each) }}",
            ),
        ] {
            assert_eq!(charged(text).text, made);
        }
    }

    #[test]
    fn repeated_texts_and_steps_are_found() {
        let found = |text: &str| {
            let Charged { steps, repeated, longest, repeats_includes, .. } = charged(text);
            (steps, repeated, longest, repeats_includes)
        };
        assert_eq!(found("long text {{ a }} b"), (Some(3), 0, 10, false));
        assert_eq!(found("{% for x in y %}ab{% include 'c' %}{% endfor %}abcd"), (None, 2, 4, true));
        assert_eq!(found("{% if x %}{{ a * b }}{% endif %}"), (None, 0, 0, false));
        let steps = |text: &str| charged(text).steps.unwrap_or(usize::MAX);
        for doubled in ["[a, a]", "(a, a)", "{1: a, 2: a}", "a + a", "a ~ a", "dict(x=a, y=a)"] {
            let text = format!("{{% set a = {doubled} %}}").repeat(25);
            assert!(steps(&text) > 1 << 25, "{doubled}");
        }
        assert!(steps(&"{% set a %}{{ a }}{{ a }}{% endset %}".repeat(25)) > 1 << 25);
        assert!(steps(&"{% set b = a|default('x') %}{% set c = b.d %}".repeat(25)) < 1_000);
    }

    /// Chains as long as `depth` allows them.
    #[test]
    fn long_chains_render() {
        let environment = base();
        let chain = |first: &str, next: &str| format!("{{{{ {first}{} }}}}", next.repeat(95));
        for text in [
            chain("a", " ~ b"),
            chain("n", " + m"),
            chain("n", " * m * 0"),
            chain("a", "|upper"),
            chain("a", " and a in list"),
            chain("yes", " == yes == yes"),
            chain("a", " if n else a"),
            chain("", "not "),
        ] {
            let text = text.replace("not  }}", "not a in list }}");
            let made = charged(&text).text;
            assert_eq!(rendered(&environment, &made), rendered(&environment, &text), "{made}");
        }
    }

    #[test]
    fn form_that_cannot_be_parsed_is_reported() {
        let nested = |depth: usize| format!("{{{{ {}a{} }}}}", "(a ~ ".repeat(depth), ")".repeat(depth));
        assert!(check(&nested(20)).is_ok());
        let indexed = format!("{{{{ a{} }}}}", "[n]".repeat(95));
        let error = check(&indexed).expect_err("nested too deeply");
        assert_eq!((error.message.as_str(), error.span), (TOO_DEEP, 0..indexed.len()));
    }
}
