//! Templates whose operators count their work.
//!
//! The engine has no hook for operators. Filters bind more tightly than operators do, so a filter that returns its value
//! as it is can be written behind each operand of an operator that walks values, and the text stays the same otherwise:
//! `a in b` becomes `a|__walked in b|__container`. Only tokens are read for that. Line numbers do not change.
//!
//! Authors cannot use the names of these filters: `check` reports unknown filters.

use std::{borrow::Cow, ops::Range};

use minijinja::{
    Environment, Error, ErrorKind, State, Value,
    machinery::{Span, Token, parse, tokenize},
    syntax::SyntaxConfig,
    value::ValueKind,
};

use super::{
    compile_error::{CompileError, bytes},
    depth::TOO_DEEP,
    meter::{CHARACTER, ITEM, SEARCHED, comparison, left, spend, spend_comparison, spend_deep},
};

/// Texts in templates that are used as they are: the work on them is small.
const SMALL_BYTES: usize = 256;

/// The largest index of an item that is read without counting the items before it.
const SMALL_INDEX: u64 = 64;

const NUMERIC: &[&str] = &["abs", "count", "float", "int", "length", "round"];

const WALKING: &[&str] = &["dict", "namespace", "changed"];

/// Words of tags and filters whose work is not proportional to the size of the values.
const HEAVY: &str = "for macro call block import from extends range map select selectattr reject rejectattr batch slice zip \
                     chain sort dictsort groupby unique sum replace";

pub(super) struct Charged<'t> {
    pub(super) text: Cow<'t, str>,
    /// The number of tokens in tags; `None` if some of them may run, or walk a value, any number of times.
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
    charged.text = scanner.spliced();
    charged
}

pub(super) fn charged_expression(text: &str) -> Cow<'_, str> {
    let mut scanner = Scanner::new(text, true);
    scanner.expressions(Part::Plain);
    scanner.spliced()
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    In,
    Compare,
    Join,
    Add,
    Times,
    Divide,
    Power,
    Subtract,
}

#[derive(Default)]
struct Chain {
    operands: Vec<Operand>,
    operators: Vec<Operator>,
    /// Whether all of it is walked, such as the values of `f(*values)`.
    is_walked: bool,
    sign: Option<usize>,
}

struct Scanner<'t> {
    text: &'t str,
    tokens: Vec<(Token<'t>, Span)>,
    at: usize,
    inserted: Vec<(usize, &'static str)>,
    is_nesting: bool,
    /// Whether a namespace can carry values from one iteration of a loop to the next.
    keeps_values: bool,
}

impl<'t> Scanner<'t> {
    fn new(text: &'t str, is_expression: bool) -> Scanner<'t> {
        let tokens = tokenize(text, is_expression, SyntaxConfig::default()).map_while(Result::ok);
        let tokens: Vec<_> = tokens.collect();
        let keeps_values = tokens.iter().any(|(token, _)| matches!(token, Token::Ident("namespace")));
        Scanner { text, tokens, at: 0, inserted: Vec::new(), is_nesting: false, keeps_values }
    }

    fn spliced(mut self) -> Cow<'t, str> {
        if self.inserted.is_empty() {
            return Cow::Borrowed(self.text);
        }
        self.inserted.sort_by_key(|(at, _)| *at);
        let mut out = String::with_capacity(self.text.len() + 16 * self.inserted.len());
        let mut copied = 0;
        for (at, insertion) in self.inserted {
            out.push_str(&self.text[copied..at]);
            out.push_str(insertion);
            copied = at;
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

    fn before(&mut self, token: usize, insertion: &'static str) {
        if let Some((_, span)) = self.tokens.get(token) {
            self.inserted.push((bytes(*span).start, insertion));
        }
    }

    fn behind(&mut self, token: usize, insertion: &'static str) {
        if let Some((_, span)) = self.tokens.get(token) {
            self.inserted.push((bytes(*span).end, insertion));
        }
    }

    fn tag(&mut self) {
        let word = self.word(self.at);
        self.at += 1;
        match word {
            Some("for") => {
                while !matches!(self.token(self.at), Some(Token::Ident("in") | Token::BlockEnd) | None) {
                    self.at += 1;
                }
                self.at += 1;
                self.expressions(Part::Plain);
            }
            Some("macro") => {
                // Its parameters are names.
                let keeps_values = std::mem::take(&mut self.keeps_values);
                self.expressions(Part::Plain);
                self.keeps_values = keeps_values;
            }
            Some("call") => {
                if let Some(Token::ParenOpen) = self.token(self.at) {
                    let inserted = self.inserted.len();
                    self.inside(Part::Plain, false);
                    self.inserted.truncate(inserted);
                }
                self.expressions(Part::Plain);
            }
            Some("set") => {
                let target = self.at;
                while !matches!(self.token(self.at), Some(Token::Assign | Token::Pipe | Token::BlockEnd) | None) {
                    self.at += 1;
                }
                let is_stored = self.tokens[target..self.at].iter().any(|(token, _)| matches!(token, Token::Dot));
                let is_stored = is_stored && matches!(self.token(self.at), Some(Token::Assign));
                let begin = self.at + 1;
                self.expressions(Part::Plain);
                if is_stored && begin < self.at {
                    self.before(begin, "(");
                    self.behind(self.at - 1, ")|__stored");
                }
            }
            _ => self.expressions(Part::Plain),
        }
    }

    fn expressions(&mut self, part: Part) {
        let mut chain = Chain::default();
        while let Some(token) = self.token(self.at) {
            let operator = match token {
                Token::VariableEnd
                | Token::BlockEnd
                | Token::ParenClose
                | Token::BracketClose
                | Token::BraceClose
                | Token::TemplateData(_) => break,
                // A name, and no value.
                Token::Assign => {
                    chain = Chain::default();
                    self.at += 1;
                    continue;
                }
                Token::Comma | Token::Colon | Token::Pipe | Token::Dot | Token::Ident("and" | "or" | "if" | "else") => {
                    let is_key = part == Part::Members && matches!(token, Token::Colon);
                    chain.is_walked |= is_key || part == Part::Walked;
                    self.finish(std::mem::take(&mut chain));
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
                // A splat, and a sign.
                Token::Mul | Token::Pow if chain.expects_operand() => {
                    chain.is_walked = true;
                    self.at += 1;
                    continue;
                }
                Token::Minus | Token::Plus if chain.expects_operand() => {
                    chain.sign.get_or_insert(self.at);
                    self.at += 1;
                    continue;
                }
                Token::Ident("in") => Operator::In,
                Token::Eq | Token::Ne | Token::Lt | Token::Lte | Token::Gt | Token::Gte => Operator::Compare,
                Token::Tilde => Operator::Join,
                Token::Plus => Operator::Add,
                Token::Minus => Operator::Subtract,
                Token::Mul => Operator::Times,
                Token::Div | Token::FloorDiv | Token::Mod => Operator::Divide,
                Token::Pow => Operator::Power,
                _ => {
                    if !chain.expects_operand() {
                        self.finish(std::mem::take(&mut chain));
                    }
                    let sign = chain.sign.take();
                    let operand = self.operand();
                    chain.operands.push(match sign {
                        Some(sign) => Operand { tokens: sign..operand.tokens.end, size: Size::Number },
                        None => operand,
                    });
                    continue;
                }
            };
            chain.operators.push(operator);
            self.at += 1;
        }
        chain.is_walked |= part == Part::Walked;
        self.finish(chain);
    }

    fn operand(&mut self) -> Operand {
        let first = self.at;
        let mut size = match self.token(first) {
            Some(Token::Int(_) | Token::Int128(_) | Token::Float(_)) => Size::Number,
            Some(Token::Str(text)) if text.len() <= SMALL_BYTES => Size::Small,
            Some(Token::Ident("true" | "false" | "none" | "True" | "False" | "None")) => Size::Number,
            Some(Token::ParenOpen | Token::BracketOpen) if self.is_small_list(first) => Size::Small,
            _ => Size::Any,
        };
        match self.token(first) {
            Some(Token::ParenOpen | Token::BracketOpen) => {
                let inserted = self.inserted.len();
                self.inside(Part::Plain, true);
                // Targets, and no values.
                if let Some(Token::Assign) = self.token(self.at) {
                    self.inserted.truncate(inserted);
                }
            }
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
                }
                Some(Token::BracketOpen) => {
                    self.subscript(first);
                    size = Size::Any;
                }
                Some(Token::ParenOpen) => {
                    let is_walking = function.is_some_and(|name| WALKING.contains(&name));
                    self.inside(if is_walking { Part::Walked } else { Part::Plain }, is_walking);
                    size = Size::Any;
                }
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
                    if let Some(Token::ParenOpen) = self.token(self.at) {
                        self.inside(Part::Plain, true);
                    }
                    size = Size::Number;
                }
                _ => break,
            }
            if !matches!(self.token(self.at - 1), Some(Token::Ident(_))) {
                function = None;
            }
        }
        Operand { tokens: first..self.at, size }
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

    /// Scans `[…]` behind the operand that begins with `first`.
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
        let place = self.inserted.len();
        self.behind(open - 1, "");
        self.inside(Part::Plain, false);
        let is_slice = self.has_colon(open + 1..self.at - 1);
        self.inserted[place].1 = if is_slice { "|__sliced)" } else { "|__base)" };
        if !is_slice {
            self.before(open + 1, "(");
            self.behind(self.at - 2, ")|__walked");
        }
    }

    fn has_colon(&self, tokens: Range<usize>) -> bool {
        let mut depth = 0_usize;
        self.tokens[tokens].iter().any(|(token, _)| {
            match token {
                Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
                Token::ParenClose | Token::BracketClose | Token::BraceClose => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && matches!(token, Token::Colon)
        })
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

    fn finish(&mut self, chain: Chain) {
        let Chain { operands, operators, is_walked, .. } = chain;
        if operands.is_empty() || operators.len() + 1 != operands.len() {
            return;
        }
        // Comparisons bind less tightly than the other operators.
        let mut sides: Vec<Range<usize>> = Vec::new();
        let mut begin = 0;
        for (index, operator) in operators.iter().enumerate() {
            if matches!(operator, Operator::In | Operator::Compare) {
                sides.push(begin..index + 1);
                begin = index + 1;
            }
        }
        sides.push(begin..operands.len());
        let is_small = |side: &Range<usize>| operands[side.clone()].iter().all(|operand| operand.size != Size::Any);
        let is_compared = is_walked
            || sides.windows(2).any(|pair| match operators[pair[1].start - 1] {
                Operator::In => !is_small(&pair[1]),
                _ => !is_small(&pair[0]) && !is_small(&pair[1]),
            });
        let is_pair = operators.len() == 1 && operators[0] == Operator::Compare && is_compared && !is_walked;
        if is_pair {
            self.behind(operands[0].tokens.end - 1, "|__left");
            self.behind(operands[1].tokens.end - 1, "|__compared");
        }
        for side in &sides {
            let inner = &operators[side.start..side.end - 1];
            let is_number = operands[side.clone()].iter().any(|operand| operand.size == Size::Number);
            let filter = match () {
                () if inner.contains(&Operator::Join) => Some("|__joined"),
                () if inner.contains(&Operator::Add) && !is_number => Some("|__added"),
                () => None,
            };
            let is_container =
                side.len() == 1 && side.start > 0 && operators[side.start - 1] == Operator::In && !is_walked;
            for operand in operands[side.clone()].iter().filter(|operand| operand.size == Size::Any) {
                if let Some(filter) = filter {
                    self.behind(operand.tokens.end - 1, filter);
                }
                if is_compared && !is_pair {
                    self.behind(operand.tokens.end - 1, if is_container { "|__container" } else { "|__walked" });
                }
            }
        }
        self.products(&operands, &operators);
        if self.keeps_values && self.is_nesting && operands.iter().any(|operand| operand.size == Size::Any) {
            if operands.len() > 1 {
                self.before(operands[0].tokens.start, "(");
            }
            let last = operands[operands.len() - 1].tokens.end - 1;
            self.behind(last, if operands.len() > 1 { ")|__item" } else { "|__item" });
        }
    }

    fn products(&mut self, operands: &[Operand], operators: &[Operator]) {
        if operands.iter().all(|operand| operand.size == Size::Number) {
            return;
        }
        let is_tight = |operator: &Operator| matches!(operator, Operator::Times | Operator::Divide | Operator::Power);
        for (index, operator) in operators.iter().enumerate() {
            let (left, right) = (&operands[index], &operands[index + 1]);
            if *operator != Operator::Times {
                continue;
            }
            let powers = operators[index + 1..].iter().take_while(|operator| **operator == Operator::Power).count();
            let next = index + 1 + powers;
            // The filter behind a factor keeps the size of the product for the next one.
            let follows = operators[..index].iter().rev().find(|operator| **operator != Operator::Power);
            if follows != Some(&Operator::Times) {
                let first = index - operators[..index].iter().rev().take_while(|operator| is_tight(operator)).count();
                self.before(operands[first].tokens.start, "(");
                self.behind(left.tokens.end - 1, ")|__factor");
            }
            self.before(right.tokens.start, "(");
            let is_last = operators.get(next) != Some(&Operator::Times);
            self.behind(operands[next].tokens.end - 1, if is_last { ")|__times" } else { ")|__times(true)" });
        }
    }
}

impl Chain {
    fn expects_operand(&self) -> bool {
        self.operands.len() == self.operators.len()
    }
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
    environment.add_filter("__added", added);
    environment.add_filter("__factor", factor);
    environment.add_filter("__times", times);
    environment.add_filter("__sliced", sliced);
    environment.add_filter("__base", base);
    environment.add_filter("__item", item);
    environment.add_filter("__stored", stored);
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
    if value.kind() == ValueKind::Map { Ok(value) } else { walked(state, value) }
}

fn joined(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    match value.as_str() {
        Some(text) => spend(state, text.len() as u64)?,
        None => spend_deep(state, &value, 2)?,
    }
    Ok(value)
}

/// An operand of `+`. Lists are joined lazily.
fn added(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    let work = value.as_str().map_or_else(|| items_size(&value) / ADDED, |text| text.len() as u64);
    spend(state, work)?;
    Ok(value)
}

#[derive(Default)]
struct Lefts {
    compared: Vec<Value>,
    factors: Vec<Factor>,
}

fn lefts<'s>(state: &'s mut State<'_, '_>) -> &'s mut Lefts {
    state.get_or_insert_extension_with(Lefts::default)
}

fn left_operand(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    let value = settled(state, value)?;
    lefts(state).compared.push(value.clone());
    Ok(value)
}

/// The right operand of a comparison, which ends at the end of the smaller value.
fn compared(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    let value = settled(state, value)?;
    let one = lefts(state).compared.pop().unwrap_or_default();
    spend_comparison(state, &one, &value)?;
    Ok(value)
}

#[derive(Clone, Copy, Default)]
struct Factor {
    /// Bytes of a text or of a list's items.
    length: u64,
    count: u64,
}

impl Factor {
    fn of(value: &Value) -> Factor {
        // A repeated list is lazy, and walked slowly.
        let length = value.as_str().map_or_else(|| items_size(value).saturating_mul(2), |text| text.len() as u64);
        Factor { length, count: value.as_usize().unwrap_or(0) as u64 }
    }
}

fn factor(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    let value = settled(state, value)?;
    lefts(state).factors.push(Factor::of(&value));
    Ok(value)
}

/// The right operand of `*`. The engine repeats a text or list up to a hundred million times. The product is kept if it
/// is itself a left operand.
fn times(state: &mut State<'_, '_>, value: Value, is_kept: Option<bool>) -> Result<Value, Error> {
    let value = settled(state, value)?;
    let one = lefts(state).factors.pop().unwrap_or_default();
    let other = Factor::of(&value);
    let length = one.length.saturating_mul(other.count).max(other.length.saturating_mul(one.count));
    spend(state, length)?;
    if is_kept == Some(true) {
        let product = Factor { length, count: one.count.saturating_mul(other.count) };
        lefts(state).factors.push(product);
    }
    Ok(value)
}

/// The value before `[start:stop]`. The engine reads a list from its beginning, and only when the result is used.
fn sliced(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    let value = settled(state, value)?;
    let work = match value.as_str() {
        Some(text) => (text.len() as u64).saturating_mul(CHARACTER),
        None => items_size(&value),
    };
    spend(state, work)?;
    Ok(value)
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
                return Err(Error::new(ErrorKind::InvalidOperation, "a value is nested too deeply"));
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
        work = work.saturating_add(ITEM).saturating_add(comparison(value, &item, most)?);
        is_found = item == *value;
        if is_found || work > most {
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
        "{{ list[1:3] }}|{{ list[::-1] }}|{{ a[2:4] }}|{{ a[:-1] }}|{{ a[::2] }}|{{ nothing_known[1:] }}|{{ list[n-2:][0] }}",
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

    #[test]
    fn charged_template_renders_the_same() {
        let environment = base();
        let mut different = Vec::new();
        for text in TEMPLATES {
            let made = charged(text).text;
            let (ours, engines) = (rendered(&environment, &made), rendered(&environment, text));
            if ours != engines {
                different.push(format!("{text}\n{made}\n{ours:?}\n{engines:?}"));
            }
        }
        assert!(different.is_empty(), "{}", different.join("\n\n"));
    }

    #[test]
    fn only_operators_on_values_are_charged() {
        for text in [
            "{{ a }} {{ map.k[0] }} {{ list|upper }}{% if a == 'x' %}{{ n + 1 }}{% endif %}",
            "{% for x in list %}{{ loop.index0 * 2 }}{% if x in ['a', 'b'] %}{{ role('user') }}{% endif %}{% endfor %}",
            "{% set x = a %}{% macro m() %}{% endmacro %}{{ m() }}{{ -1 * 3 }}",
        ] {
            assert_eq!(charged(text).text, text);
        }
        for (text, made) in [
            ("{{ a in list }}", "{{ a|__walked in list|__container }}"),
            ("{{ a ~ '-' ~ b }}", "{{ a|__joined ~ '-' ~ b|__joined }}"),
            ("{{ (a or b) == c.d[1] }}", "{{ (a or b)|__left == c.d[1]|__compared }}"),
            ("{{ a < b < c }}", "{{ a|__walked < b|__walked < c|__walked }}"),
            ("{{ a * n * 2 }}", "{{ (a)|__factor * (n)|__times(true) * (2)|__times }}"),
            ("{{ f(a)[1:][n] }}", "{{ ((f(a)|__sliced)[1:]|__base)[(n)|__walked] }}"),
            (
                "{% set ns = namespace() %}{% set ns.x = [a, 1] %}",
                "{% set ns = namespace() %}{% set ns.x = ([a|__item, 1])|__stored %}",
            ),
            ("{{ {a: 1, 'b': a} }}{{ f(*a) }}", "{{ {a|__walked: 1, 'b': a} }}{{ f(*a|__walked) }}"),
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
