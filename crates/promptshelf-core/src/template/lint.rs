//! Static analysis of templates.
//!
//! Walks the engine's syntax tree and collects the names, filters, partials and files that a template uses, with
//! their positions.

mod computed;
mod expression;

use std::ops::Range;

use minijinja::machinery::{
    Span,
    ast::{Expr, Macro, Stmt},
    parse,
};

use super::{CompileError, bytes, depth, environment::fixed_globals, literal, operators, syntax};
use crate::diagnostic::Code;

pub(crate) use computed::NamePart;

const IMPLIED: &[&str] = &["loop", "self", "super", "caller", "varargs", "kwargs"];

const ENCLOSING: &[&str] = &["fence", "xml", "quote", "json"];

#[derive(Debug, Default)]
pub(crate) struct Lint {
    pub(crate) variables: Vec<Use>,
    pub(crate) called: Vec<Use>,
    /// Names that the template defines anywhere. Its partials may use them.
    pub(crate) bound: Vec<String>,
    pub(crate) partials: Vec<Use>,
    pub(crate) attached: Vec<Use>,
    pub(crate) linked: Vec<Use>,
    /// Computed names of files and URIs that are attached or linked, for each branch of their conditions.
    pub(crate) computed: Vec<Vec<NamePart>>,
    pub(crate) calls: Vec<PromptCall>,
    /// Names that are inserted neither fenced nor quoted, with the bytes of their tags.
    pub(crate) unenclosed: Vec<Use>,
    /// Calls of `role`, `attach`, `link` and `prompt`.
    pub(crate) structure: Vec<Use>,
    /// Names whose values are calculated with, and whether they have to be numbers, or otherwise texts.
    pub(crate) operands: Vec<(Use, bool)>,
    pub(crate) faults: Vec<Fault>,
    /// Parts that cannot be parsed. The other fields cover the rest.
    pub(crate) syntax: Vec<CompileError>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) name: String,
    /// Bytes of the template.
    pub(crate) span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromptCall {
    pub(crate) target: Use,
    pub(crate) named: Vec<(Use, Option<String>)>,
    /// Whether more arguments may be passed than are written as literals.
    pub(crate) is_open: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// Bytes of the template.
    pub(crate) span: Range<usize>,
}

impl Lint {
    pub(crate) fn of(text: &str) -> Lint {
        if let Some(lint) = depth::check(text).ok().and_then(|()| Lint::walk(text)) {
            return lint;
        }
        let Some(readable) = syntax::readable(text) else { return Lint::default() };
        let mut lint = Lint::walk(&readable.text).unwrap_or_default();
        // An unreadable tag may define and use any name.
        lint.variables.retain(|used| !readable.words.contains(&used.name));
        lint.called.retain(|used| !readable.words.contains(&used.name));
        lint.bound.extend(readable.words);
        lint.syntax = readable.mistakes;
        lint
    }

    fn walk(text: &str) -> Option<Lint> {
        let tree = parse(text, "", Default::default()).ok()?;
        let mut walker = Walker {
            text,
            scopes: vec![Vec::new()],
            macros: Vec::new(),
            blocks: Vec::new(),
            inserted: Vec::new(),
            extends: false,
            loops: 0,
            lint: Lint::default(),
        };
        walker.statement(&tree);
        for (block, span) in std::mem::take(&mut walker.inserted) {
            if !walker.blocks.contains(&block) {
                walker.fault(Code::InvalidCall, span, format!("this text has no block `{block}`"), None);
            }
        }
        walker.lint.syntax.extend(operators::check(text).err());
        Some(walker.lint)
    }
}

struct Walker<'t> {
    text: &'t str,
    scopes: Vec<Vec<&'t str>>,
    /// The macros of the text, with their parameters.
    macros: Vec<(&'t str, Vec<&'t str>)>,
    blocks: Vec<&'t str>,
    /// The names of the blocks that `self.name()` inserts.
    inserted: Vec<(&'t str, Range<usize>)>,
    extends: bool,
    loops: usize,
    lint: Lint,
}

impl<'t> Walker<'t> {
    fn statements(&mut self, statements: &[Stmt<'t>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt<'t>) {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitExpr(emit) => {
                self.expression(&emit.expr);
                self.emitted(&emit.expr);
            }
            Stmt::EmitRaw(_) | Stmt::Continue(_) | Stmt::Break(_) => {}
            Stmt::ForLoop(each) => {
                self.expression(&each.iter);
                self.scoped(|walker| {
                    walker.bind(&each.target);
                    walker.maybe(each.filter_expr.as_ref());
                    walker.loops += 1;
                    walker.statements(&each.body);
                    walker.loops -= 1;
                });
                self.scoped(|walker| walker.statements(&each.else_body));
            }
            // A condition does not open a scope: assignments in it remain.
            Stmt::IfCond(condition) => {
                self.expression(&condition.expr);
                self.statements(&condition.true_body);
                self.statements(&condition.false_body);
            }
            Stmt::WithBlock(with) => self.scoped(|walker| {
                for (target, value) in &with.assignments {
                    walker.expression(value);
                    walker.bind(target);
                }
                walker.statements(&with.body);
            }),
            Stmt::Set(set) => {
                self.expression(&set.expr);
                self.bind(&set.target);
            }
            Stmt::SetBlock(set) => {
                self.maybe(set.filter.as_ref());
                self.statements(&set.body);
                self.bind(&set.target);
            }
            Stmt::AutoEscape(block) => {
                let span = bytes(block.span());
                self.fault(Code::UnknownFunction, span, "a prompt is plain text and needs no HTML escaping", None);
                self.statements(&block.body);
            }
            Stmt::FilterBlock(block) => {
                self.expression(&block.filter);
                let unenclosed = self.lint.unenclosed.len();
                self.statements(&block.body);
                self.lint.unenclosed.truncate(unenclosed);
            }
            Stmt::Block(block) => {
                self.blocks.push(block.name);
                self.scoped(|walker| walker.statements(&block.body));
            }
            Stmt::Import(import) => {
                self.partial(&import.expr);
                self.bind(&import.name);
            }
            Stmt::FromImport(import) => {
                self.partial(&import.expr);
                for (name, alias) in &import.names {
                    self.bind(alias.as_ref().unwrap_or(name));
                }
            }
            Stmt::Extends(extends) => {
                if self.extends || self.loops > 0 {
                    let message = "a text can extend one partial only, once";
                    self.fault(Code::InvalidCall, bytes(extends.span()), message, None);
                }
                self.extends = true;
                self.partial(&extends.name);
            }
            Stmt::Include(include) => self.partial(&include.name),
            Stmt::Macro(declared) => {
                let parameters = declared.args.iter().filter_map(|parameter| match parameter {
                    Expr::Var(variable) => Some(variable.id),
                    _ => None,
                });
                self.macros.push((declared.name, parameters.collect()));
                self.bind_name(declared.name);
                self.macro_body(declared);
            }
            Stmt::CallBlock(block) => {
                self.call(&block.call, block.call.span());
                self.macro_body(&block.macro_decl);
            }
            Stmt::Do(statement) => self.call(&statement.call, statement.call.span()),
        }
    }

    fn emitted(&mut self, value: &Expr<'t>) {
        let mut inner = value;
        while let Expr::Filter(filter) = inner
            && !ENCLOSING.contains(&filter.name)
            && let Some(value) = &filter.expr
        {
            inner = value;
        }
        if let Expr::Var(variable) = inner
            && self.is_free(variable.id)
        {
            self.lint.unenclosed.push(Use { name: variable.id.to_owned(), span: bytes(value.span()) });
        }
    }

    fn macro_body(&mut self, declared: &Macro<'t>) {
        declared.defaults.iter().for_each(|default| self.expression(default));
        self.scoped(|walker| {
            declared.args.iter().for_each(|argument| walker.bind(argument));
            walker.statements(&declared.body);
        });
    }

    fn scoped(&mut self, walk: impl FnOnce(&mut Self)) {
        self.scopes.push(Vec::new());
        walk(self);
        self.scopes.pop();
    }

    /// Defines the targets of an assignment or of `for`.
    fn bind(&mut self, target: &Expr<'t>) {
        match target {
            Expr::Var(variable) => self.bind_name(variable.id),
            Expr::List(list) => list.items.iter().for_each(|item| self.bind(item)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.bind(item)),
            // `ns.x = …` uses a name and defines none.
            other => self.expression(other),
        }
    }

    fn bind_name(&mut self, name: &'t str) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(name);
        }
        if !self.lint.bound.iter().any(|bound| bound == name) {
            self.lint.bound.push(name.to_owned());
        }
    }

    /// Returns whether no surrounding scope defines a name.
    fn is_free(&self, name: &str) -> bool {
        !self.scopes.iter().any(|scope| scope.contains(&name))
            && !IMPLIED.contains(&name)
            && !fixed_globals().any(|known| known == name)
    }

    fn partial(&mut self, name: &Expr<'t>) {
        match constant_text(name) {
            Some(partial) => self.lint.partials.push(Use { name: partial, span: bytes(name.span()) }),
            None => {
                let help = Some(
                    "write the path as a literal, with `{% if %}` around the include if it depends on a value"
                        .to_owned(),
                );
                let message = "the path of the included partial must be a literal";
                self.fault(Code::InvalidCall, bytes(name.span()), message, help);
            }
        }
    }

    fn fault(&mut self, code: Code, span: Range<usize>, message: impl Into<String>, help: Option<String>) {
        self.lint.faults.push(Fault { code, message: message.into(), help, span });
    }
}

fn constant_text(expression: &Expr<'_>) -> Option<String> {
    literal(expression).and_then(|value| value.as_str().map(str::to_owned))
}

fn use_at(name: &str, span: Span) -> Use {
    Use { name: name.to_owned(), span: bytes(span) }
}
