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

/// The most `{% elif %}` that are nested in each other's `else`.
const MAX_BRANCHES: usize = 100;

pub(super) const TOO_DEEP: &str = "the template is nested too deeply; move parts of it into `{% set %}` or partials";

/// Checks a template's tokens before they are parsed. Lexical errors are left to the parser, whose messages are
/// better.
pub(super) fn check(text: &str) -> Result<(), CompileError> {
    let mut chain = Chain::default();
    let mut branches = Branches::default();
    for (token, span) in tokenize(text, false, SyntaxConfig::default()).map_while(Result::ok) {
        let too_deep = chain.is_too_long(&token) || branches.are_too_many(&token);
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
