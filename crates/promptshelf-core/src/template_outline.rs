//! Outline of a prompt: texts and placeholders for arguments, for programs without a template language. Parts of the
//! template that an outline cannot express are reported at their location.
//!
//! Nothing is rendered here: a placeholder stays one, whatever its value would be.

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
    template::{literal, sent},
};

/// The maximum depth of partials and called prompts; the check has a limit of its own.
const MAX_DEPTH: usize = 32;

/// A prompt without the template language.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// Texts, placeholders for arguments, roles and files, in order.
    pub pieces: Vec<BodyPiece>,
    /// The parts of the template that were dropped or changed.
    pub losses: Vec<Diagnostic>,
}

impl Prompt {
    /// Returns the prompt as texts and placeholders, as far as that is possible without a template language.
    #[must_use]
    pub fn outline(&self) -> Outline {
        let mut outline = Outline::default();
        match &self.definition.body {
            Body::Function(_) => {
                let location = Location::file(self.source());
                let message = "a prompt written in code has no text before it is called";
                outline.losses.push(Diagnostic::error(Code::NotSupported, location, message));
            }
            Body::Pieces(pieces) => outline.pieces.clone_from(pieces),
            Body::Template { range } => {
                let mut walk = Walk {
                    prompt: self,
                    source: Arc::clone(self.source()),
                    base: range.start,
                    known: HashMap::new(),
                    role: Role::User,
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
    base: usize,
    known: HashMap<String, Vec<BodyPiece>>,
    role: Role,
    depth: usize,
    outline: &'o mut Outline,
}

impl Walk<'_, '_> {
    fn text(&mut self, text: &str) {
        // A template that does not parse was rejected by the check.
        if let Ok(Stmt::Template(template)) = parse(text, "", Default::default()) {
            self.statements(&template.children);
        }
    }

    fn note_loss(&mut self, span: Span, message: impl Into<String>) {
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
                    if condition.false_body.is_empty() { "" } else { ", and the text after `else` is left out" };
                let message = format!("the condition is dropped: its text is always included{otherwise}");
                self.note_loss(condition.expr.span(), message);
                self.statements(&condition.true_body);
            }
            Stmt::ForLoop(each) => {
                self.note_loss(each.span(), "the loop is dropped: its list is inserted unchanged");
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
                self.note_loss(block.span(), "the filter is dropped: its text is inserted unchanged");
                self.statements(&block.body);
            }
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::AutoEscape(block) => self.statements(&block.body),
            Stmt::Block(block) => self.statements(&block.body),
            Stmt::Include(include) => self.include(&include.name),
            Stmt::Extends(extends) => self.note_loss(extends.span(), "the template that this one extends is left out"),
            Stmt::CallBlock(block) => self.note_loss(block.span(), "the call is left out"),
            // The definition of a macro prints nothing, and each call is reported.
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
                let message = format!("the computed value of `{}` is left out", variable.id);
                self.note_loss(value.span(), message);
                self.known.insert(variable.id.to_owned(), Vec::new());
            }
        }
    }

    /// Returns the pieces of an expression: a placeholder, a constant or a known name; `None` for any other.
    fn value(&self, expression: &Expr<'_>) -> Option<Vec<BodyPiece>> {
        match expression {
            Expr::Var(variable) => match self.known.get(variable.id) {
                Some(pieces) => Some(pieces.clone()),
                None => self.prompt.argument(variable.id).map(|_| vec![BodyPiece::Argument(variable.id.to_owned())]),
            },
            other => {
                let constant = literal(other)?;
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
                    CallArg::Pos(value) => literal(value).and_then(|value| sent(&value)),
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
                    None => format!("the filter `{}` is dropped: the value is inserted unchanged", filter.name),
                };
                self.note_loss(filter.span(), message);
                let (before, after) = around.unwrap_or_default();
                self.push(BodyPiece::Text(before));
                self.print(inner);
                self.push(BodyPiece::Text(after));
            }
            other => self.note_loss(other.span(), "the computed value is left out"),
        }
    }

    fn call(&mut self, call: &Call<'_>, span: Span) {
        let function = match &call.expr {
            Expr::Var(function) => function.id,
            _ => "",
        };
        let target = call.args.iter().find_map(|argument| match argument {
            CallArg::Pos(value) => literal(value).and_then(|value| value.as_str().map(str::to_owned)),
            _ => None,
        });
        match (function, target) {
            ("role", Some(role)) => {
                self.role = Role::parse(&role).unwrap_or(Role::User);
                self.push(BodyPiece::Role(self.role));
            }
            ("attach", Some(path)) => {
                let span = self.place(span);
                self.push(BodyPiece::Attach { otherwise: path.clone(), path, span });
            }
            ("link", Some(target)) => {
                self.note_loss(span, "the link is reduced to its address");
                self.push(BodyPiece::Text(target));
            }
            ("prompt", Some(name)) => self.add_prompt(&name, call, span),
            _ => self.note_loss(span, "the call is left out"),
        }
    }

    fn include(&mut self, name: &Expr<'_>) {
        let path = literal(name).and_then(|path| path.as_str().map(str::to_owned)).unwrap_or_default();
        let partial = self.prompt.uses().partials.iter().find(|partial| partial.path == path).map(Arc::clone);
        let Some(partial) = partial.filter(|_| self.depth < MAX_DEPTH) else { return };
        let (source, base) =
            (std::mem::replace(&mut self.source, Arc::clone(&partial)), std::mem::take(&mut self.base));
        self.depth += 1;
        self.text(&partial.text);
        self.depth -= 1;
        (self.source, self.base) = (source, base);
    }

    fn add_prompt(&mut self, name: &str, call: &Call<'_>, span: Span) {
        let Some(prompt) = self.prompt.uses().prompts.get(name).filter(|_| self.depth < MAX_DEPTH) else {
            return self.note_loss(span, format!("the prompt `{name}` is left out"));
        };
        let inner = prompt.outline();
        let mut values: HashMap<&str, Option<Vec<BodyPiece>>> = HashMap::new();
        for argument in &call.args {
            if let CallArg::Kwarg(key, value) = argument {
                values.insert(key, self.value(value));
            }
        }
        self.outline.losses.extend(inner.losses);
        self.push(BodyPiece::Role(Role::User));
        for piece in inner.pieces {
            let Some(argument) = piece.argument() else {
                self.push(piece);
                continue;
            };
            match values.get(argument) {
                Some(Some(pieces)) => pieces.iter().cloned().for_each(|piece| self.push(piece)),
                Some(None) => {
                    self.note_loss(span, format!("the computed value of the argument `{argument}` is left out"));
                }
                None => {
                    let default = prompt.argument(argument).and_then(|argument| argument.default_value());
                    self.push(BodyPiece::Text(default.unwrap_or_default().to_owned()));
                }
            }
        }
        self.push(BodyPiece::Role(self.role));
    }
}
