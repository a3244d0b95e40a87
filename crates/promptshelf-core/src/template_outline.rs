//! A template as texts with places for arguments between them, for programs
//! that have nothing more than that. What does not fit is noted, at its place.
//!
//! Nothing is rendered here: a place stays a place, whatever its value will be.

use std::{collections::HashMap, ops::Range, sync::Arc};

use minijinja::machinery::{
    Span,
    ast::{Call, CallArg, Expr, Stmt},
    parse,
};

use crate::{
    content::Role,
    definition::{Body, BodyPiece},
    diagnostic::{Code, Diagnostic, Location, SourceText},
    prompt::Prompt,
    template::sent,
};

/// How deep partials and prompts are followed; the check has a bound of its own.
const MAX_DEPTH: usize = 32;

/// What a prompt says without a template language.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// Texts, places for arguments, roles and files, in order.
    pub pieces: Vec<BodyPiece>,
    /// What could not be kept.
    pub losses: Vec<Diagnostic>,
}

impl Prompt {
    /// What the prompt says, as far as it can be said without a template language.
    #[must_use]
    pub fn outline(&self) -> Outline {
        let mut outline = Outline::default();
        match &self.definition.body {
            Body::Function(_) => {
                let location = Location::file(self.source());
                let message = "a prompt in code says nothing before it is called";
                outline.losses.push(Diagnostic::error(Code::NotSupported, location, message));
            }
            Body::Pieces(pieces) => outline.pieces.clone_from(pieces),
            Body::Template { range } => {
                let mut walk = Walk {
                    prompt: self,
                    source: Arc::clone(self.source()),
                    base: range.start,
                    known: HashMap::new(),
                    speaker: Role::User,
                    depth: 0,
                    outline: &mut outline,
                };
                walk.text(self.source().text.get(range.clone()).unwrap_or_default());
            }
        }
        outline
    }
}

struct Walk<'p, 'o> {
    prompt: &'p Prompt,
    source: Arc<SourceText>,
    /// Where the template begins in its source.
    base: usize,
    /// What names stand for that the template defines itself.
    known: HashMap<String, Vec<BodyPiece>>,
    speaker: Role,
    depth: usize,
    outline: &'o mut Outline,
}

impl Walk<'_, '_> {
    fn text(&mut self, text: &str) {
        // The check has compiled it already.
        if let Ok(Stmt::Template(template)) = parse(text, "", Default::default()) {
            self.statements(&template.children);
        }
    }

    fn lose(&mut self, span: Span, message: impl Into<String>) {
        let span = self.place(span);
        let location = Location::new(&self.source, span);
        self.outline.losses.push(Diagnostic::warning(Code::NotSupported, location, message));
    }

    fn place(&self, span: Span) -> Range<usize> {
        self.base + span.start_offset as usize..self.base + span.end_offset as usize
    }

    fn push(&mut self, piece: BodyPiece) {
        match (self.outline.pieces.last_mut(), piece) {
            (Some(BodyPiece::Text(before)), BodyPiece::Text(text)) => before.push_str(&text),
            (_, BodyPiece::Text(text)) if text.is_empty() => {}
            (_, piece) => self.outline.pieces.push(piece),
        }
    }

    fn statements(&mut self, statements: &[Stmt<'_>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::EmitRaw(raw) => self.push(BodyPiece::Text(raw.raw.to_owned())),
            Stmt::EmitExpr(emit) => self.print(&emit.expr),
            Stmt::IfCond(condition) => {
                let otherwise =
                    if condition.false_body.is_empty() { "" } else { ", and what stands after `else` is left out" };
                let message = format!("the condition is dropped: its text is always there{otherwise}");
                self.lose(condition.expr.span(), message);
                self.statements(&condition.true_body);
            }
            Stmt::ForLoop(each) => {
                self.lose(each.span(), "the loop is dropped: what it goes through stands there as it is given");
                self.print(&each.iter);
            }
            Stmt::WithBlock(with) => {
                for (target, value) in &with.assignments {
                    self.set(target, value);
                }
                self.statements(&with.body);
            }
            Stmt::Set(set) => self.set(&set.target, &set.expr),
            Stmt::SetBlock(set) => {
                let before = std::mem::take(&mut self.outline.pieces);
                self.statements(&set.body);
                let body = std::mem::replace(&mut self.outline.pieces, before);
                if let Expr::Var(variable) = &set.target {
                    self.known.insert(variable.id.to_owned(), body);
                }
            }
            Stmt::FilterBlock(block) => {
                self.lose(block.span(), "the filter is dropped: its text stands there as it is");
                self.statements(&block.body);
            }
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::AutoEscape(block) => self.statements(&block.body),
            Stmt::Block(block) => self.statements(&block.body),
            Stmt::Include(include) => self.include(&include.name),
            Stmt::Extends(extends) => self.lose(extends.span(), "the template that this one extends is left out"),
            Stmt::CallBlock(block) => self.lose(block.span(), "the call is left out"),
            // A macro says nothing before it is called, and a call of one is noted.
            Stmt::Macro(_) | Stmt::Import(_) | Stmt::FromImport(_) => {}
            Stmt::Do(_) | Stmt::Continue(_) | Stmt::Break(_) => {}
        }
    }

    fn set(&mut self, target: &Expr<'_>, value: &Expr<'_>) {
        let Expr::Var(variable) = target else { return };
        match self.value(value) {
            Some(pieces) => {
                self.known.insert(variable.id.to_owned(), pieces);
            }
            None => {
                let message = format!("what `{}` is set to is computed, and is left out", variable.id);
                self.lose(value.span(), message);
                self.known.insert(variable.id.to_owned(), Vec::new());
            }
        }
    }

    /// What an expression stands for, where that is certain.
    fn value(&self, expression: &Expr<'_>) -> Option<Vec<BodyPiece>> {
        match expression {
            Expr::Var(variable) => match self.known.get(variable.id) {
                Some(pieces) => Some(pieces.clone()),
                None => self.prompt.argument(variable.id).map(|_| vec![BodyPiece::Argument(variable.id.to_owned())]),
            },
            other => {
                let constant = other.as_const()?;
                let text = sent(&constant)?;
                Some(vec![BodyPiece::Text(text)])
            }
        }
    }

    fn print(&mut self, expression: &Expr<'_>) {
        if let Some(pieces) = self.value(expression) {
            return pieces.into_iter().for_each(|piece| self.push(piece));
        }
        match expression {
            Expr::Call(call) => self.call(call, call.span()),
            Expr::Filter(filter) => {
                let Some(inner) = &filter.expr else { return };
                let first = filter.args.iter().find_map(|argument| match argument {
                    CallArg::Pos(value) => value.as_const().and_then(|value| sent(&value)),
                    _ => None,
                });
                let first = first.unwrap_or_default();
                let around = match filter.name {
                    "fence" => Some((format!("```{first}\n"), "\n```".to_owned())),
                    "xml" => Some((format!("<{first}>\n"), format!("\n</{first}>"))),
                    _ => None,
                };
                let message = match &around {
                    Some(_) => format!("`{}` can no longer keep a value from ending the block", filter.name),
                    None => format!("the filter `{}` is dropped: the value stands there as it is given", filter.name),
                };
                self.lose(filter.span(), message);
                let (before, after) = around.unwrap_or_default();
                self.push(BodyPiece::Text(before));
                self.print(inner);
                self.push(BodyPiece::Text(after));
            }
            other => self.lose(other.span(), "what is computed here is left out"),
        }
    }

    fn call(&mut self, call: &Call<'_>, span: Span) {
        let function = match &call.expr {
            Expr::Var(function) => function.id,
            _ => "",
        };
        let target = call.args.iter().find_map(|argument| match argument {
            CallArg::Pos(value) => value.as_const().and_then(|value| value.as_str().map(str::to_owned)),
            _ => None,
        });
        match (function, target) {
            ("role", Some(role)) => {
                self.speaker = Role::parse(&role).unwrap_or(Role::User);
                self.push(BodyPiece::Role(self.speaker));
            }
            ("attach", Some(path)) => {
                let span = self.place(span);
                self.push(BodyPiece::Attach { otherwise: path.clone(), path, span });
            }
            ("link", Some(target)) => {
                self.lose(span, "the link becomes the address alone");
                self.push(BodyPiece::Text(target));
            }
            ("prompt", Some(name)) => self.bring_in(&name, call, span),
            _ => self.lose(span, "what is called here is left out"),
        }
    }

    fn include(&mut self, name: &Expr<'_>) {
        let path = name.as_const().and_then(|path| path.as_str().map(str::to_owned)).unwrap_or_default();
        let partial = self.prompt.uses().partials.iter().find(|partial| partial.path == path).map(Arc::clone);
        let Some(partial) = partial.filter(|_| self.depth < MAX_DEPTH) else { return };
        let (source, base) =
            (std::mem::replace(&mut self.source, Arc::clone(&partial)), std::mem::take(&mut self.base));
        self.depth += 1;
        self.text(&partial.text);
        self.depth -= 1;
        (self.source, self.base) = (source, base);
    }

    fn bring_in(&mut self, name: &str, call: &Call<'_>, span: Span) {
        let Some(prompt) = self.prompt.uses().prompts.get(name).filter(|_| self.depth < MAX_DEPTH) else {
            return self.lose(span, format!("the prompt `{name}` is left out"));
        };
        let inner = prompt.outline();
        let mut given: HashMap<&str, Option<Vec<BodyPiece>>> = HashMap::new();
        for argument in &call.args {
            if let CallArg::Kwarg(key, value) = argument {
                given.insert(key, self.value(value));
            }
        }
        self.outline.losses.extend(inner.losses);
        self.push(BodyPiece::Role(Role::User));
        for piece in inner.pieces {
            let BodyPiece::Argument(argument) = &piece else {
                self.push(piece);
                continue;
            };
            match given.get(argument.as_str()) {
                Some(Some(pieces)) => pieces.iter().cloned().for_each(|piece| self.push(piece)),
                Some(None) => self.lose(span, format!("what is given for `{argument}` is computed, and is left out")),
                None => {
                    let default = prompt.argument(argument).and_then(|argument| argument.default_value());
                    self.push(BodyPiece::Text(default.unwrap_or_default().to_owned()));
                }
            }
        }
        self.push(BodyPiece::Role(self.speaker));
    }
}
