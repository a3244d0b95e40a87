//! Rejects templates whose nesting would overflow the stack.
//!
//! The engine's parser limits nested blocks and parentheses. A chain such as `a|f|f|f`, `1+1+1` or a sequence of `{%
//! elif %}` becomes an equally deep tree and passes that limit.

use minijinja::{
    machinery::{Token, tokenize},
    syntax::SyntaxConfig,
};

use super::{CompileError, bytes};

const MAX_CHAIN: usize = 100;

/// The most levels of lists and mappings that all tags of a text build together. A value that is set from itself, such as
/// `{% set x = [x] %}` many times over, is as deep as they are, and the engine drops it level by level on the stack.
const MAX_LEVELS: usize = 1_000;

/// Filters and functions whose result contains their value.
const NESTING: [&str; 10] =
    ["batch", "chain", "dict", "dictsort", "groupby", "items", "list", "namespace", "slice", "zip"];

/// The most `{% elif %}` that are nested in each other's `else`.
const MAX_BRANCHES: usize = 100;

pub(super) const TOO_DEEP: &str = "the template is nested too deeply; move parts of it into `{% set %}` or partials";

/// Checks a template's tokens before they are parsed. Lexical errors are left to the parser, whose messages are
/// better.
pub(super) fn check(text: &str) -> Result<(), CompileError> {
    check_tokens(text, false)
}

/// Checks a condition like [`check`].
pub(super) fn check_expression(text: &str) -> Result<(), CompileError> {
    check_tokens(text, true)
}

fn check_tokens(text: &str, is_expression: bool) -> Result<(), CompileError> {
    let mut chain = Chain::default();
    let mut branches = Branches::default();
    let mut levels = Levels::default();
    for (token, span) in tokenize(text, is_expression, SyntaxConfig::default()).map_while(Result::ok) {
        let too_deep = chain.is_too_long(&token) || branches.are_too_many(&token) || levels.are_too_many(&token);
        if too_deep {
            return Err(CompileError { message: TOO_DEEP.to_owned(), span: bytes(span), help: None });
        }
    }
    Ok(())
}

#[derive(Default)]
struct Chain {
    depth: usize,
    opened: Vec<usize>,
}

impl Chain {
    fn is_too_long(&mut self, token: &Token<'_>) -> bool {
        match token {
            Token::VariableStart | Token::BlockStart => {
                self.depth = 0;
                self.opened.clear();
            }
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => {
                self.depth += 1;
                self.opened.push(self.depth);
            }
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                self.depth = self.opened.pop().unwrap_or_default();
            }
            Token::Comma => self.depth = self.opened.last().copied().unwrap_or_default(),
            Token::Dot
            | Token::Pipe
            | Token::Tilde
            | Token::Plus
            | Token::Minus
            | Token::Mul
            | Token::Div
            | Token::FloorDiv
            | Token::Pow
            | Token::Mod
            | Token::Ident("and" | "or" | "not" | "is" | "if" | "else") => self.depth += 1,
            _ => {}
        }
        self.depth > MAX_CHAIN
    }
}

/// The levels of values that the tags so far can build.
#[derive(Default)]
struct Levels {
    /// Of the tags before.
    before: usize,
    /// Of this tag, outside of its open brackets.
    here: usize,
    open: Vec<Open>,
    /// Whether a bracket would be an index or a call.
    follows_value: bool,
    last: Last,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Last {
    Nesting,
    Tag,
    #[default]
    Other,
}

struct Open {
    /// Whether it is the bracket of a list, mapping or tuple: of a tuple as soon as it has a comma.
    nests: bool,
    is_group: bool,
    deepest: usize,
}

impl Levels {
    fn are_too_many(&mut self, token: &Token<'_>) -> bool {
        let follows_value = std::mem::take(&mut self.follows_value);
        let last = std::mem::take(&mut self.last);
        match token {
            Token::VariableStart | Token::BlockStart => {
                self.before += self.here + self.open.drain(..).map(|open| open.deepest + 1).sum::<usize>();
                self.here = 0;
                self.last = if matches!(token, Token::BlockStart) { Last::Tag } else { Last::Other };
            }
            Token::BracketOpen | Token::BraceOpen => self.open(!follows_value, false),
            Token::ParenOpen => self.open(last == Last::Nesting, !follows_value),
            Token::BracketClose | Token::BraceClose | Token::ParenClose => {
                if let Some(open) = self.open.pop() {
                    let deepest = open.deepest + usize::from(open.nests);
                    let around = self.open.last_mut().map_or(&mut self.here, |around| &mut around.deepest);
                    *around = deepest.max(*around);
                }
                self.follows_value = true;
            }
            Token::Comma => {
                if let Some(open) = self.open.last_mut() {
                    open.nests |= open.is_group;
                }
            }
            // A macro keeps what it can see.
            Token::Ident("macro") if last == Last::Tag => self.here += 1,
            Token::Ident("in" | "if" | "else" | "elif" | "and" | "or" | "not" | "is" | "set") => {}
            Token::Ident(word) => {
                self.follows_value = true;
                self.add(word);
                self.last = if NESTING.contains(word) { Last::Nesting } else { Last::Other };
            }
            // `map("batch", 1)`.
            Token::Str(word) => {
                self.follows_value = true;
                self.add(word);
            }
            Token::String(word) => {
                self.follows_value = true;
                self.add(word);
            }
            _ => {}
        }
        self.before + self.here > MAX_LEVELS
    }

    fn open(&mut self, nests: bool, is_group: bool) {
        self.open.push(Open { nests, is_group, deepest: 0 });
    }

    fn add(&mut self, word: &str) {
        self.here += usize::from(NESTING.contains(&word));
    }
}

#[derive(Default)]
struct Branches {
    in_tag: bool,
    open: usize,
    /// For each open `{% if %}`, the number that was open before it.
    before: Vec<usize>,
}

impl Branches {
    fn are_too_many(&mut self, token: &Token<'_>) -> bool {
        match token {
            Token::Ident("if") if self.in_tag => self.before.push(self.open),
            Token::Ident("elif") if self.in_tag => self.open += 1,
            Token::Ident("endif") if self.in_tag => self.open = self.before.pop().unwrap_or_default(),
            _ => {}
        }
        self.in_tag = matches!(token, Token::BlockStart);
        self.open > MAX_BRANCHES
    }
}
