//! Refuses templates that are nested more deeply than the stack can bear.
//!
//! The engine's parser guards itself against nested blocks and parentheses. A
//! chain, such as `a|f|f|f`, `1+1+1` or one `{% elif %}` after the other,
//! becomes just as deep a tree and passes that guard.

use minijinja::{
    machinery::{Token, tokenize},
    syntax::SyntaxConfig,
};

use super::compile_error::{CompileError, bytes};

/// The longest chain of operators, calls and filters in one tag.
const MAX_CHAIN: usize = 100;

/// The most `{% elif %}` that stand inside each other's `else`.
const MAX_BRANCHES: usize = 100;

/// Looks at a template's tokens before its parser does. What is no token is
/// left to the parser, which says better what is wrong.
pub(super) fn check(text: &str) -> Result<(), CompileError> {
    let mut chain = Chain::default();
    let mut branches = Branches::default();
    for (token, span) in tokenize(text, false, SyntaxConfig::default()).map_while(Result::ok) {
        let too_deep = chain.is_too_long(&token) || branches.are_too_many(&token);
        if too_deep {
            let message = "this is nested too deeply; set parts of it apart with `{% set %}` or partials".to_owned();
            return Err(CompileError { message, span: bytes(span), help: None });
        }
    }
    Ok(())
}

/// How deep the tree of the present expression is at most.
#[derive(Default)]
struct Chain {
    depth: usize,
    /// For each open bracket, how deep what stands in it begins.
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

/// How many `{% elif %}` are open.
#[derive(Default)]
struct Branches {
    in_tag: bool,
    open: usize,
    /// For each open `{% if %}`, how many were open before it.
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
