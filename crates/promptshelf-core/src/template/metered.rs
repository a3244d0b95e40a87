//! Templates whose operators count their work.
//!
//! The engine has no hook for operators, so a template with operators that walk values is written anew from its
//! syntax tree, with filters of `operators` in their place. Line numbers do not change. Other templates stay as they
//! are.
//!
//! Elsewhere: expressions (`expression`).

use std::borrow::Cow;

use minijinja::machinery::{
    ast::{Expr, IfCond, Macro, Stmt},
    parse, parse_expr,
};

use super::{
    compile_error::{CompileError, bytes},
    depth::TOO_DEEP,
};

mod expression;
#[cfg(test)]
mod tests;

/// Returns the template with its operators replaced. A template that the engine cannot parse stays as it is.
pub(super) fn metered(text: &str) -> Cow<'_, str> {
    match parse(text, "", Default::default()) {
        Ok(tree) => rewritten(&tree, text),
        Err(_) => Cow::Borrowed(text),
    }
}

fn rewritten<'t>(tree: &Stmt<'t>, text: &'t str) -> Cow<'t, str> {
    let mut writer = Writer::new(text);
    writer.statement(tree);
    if !writer.is_changed {
        return Cow::Borrowed(text);
    }
    // The engine drops a line end at the end of a template, which the tree has no longer.
    writer.out.push_str("{##}");
    Cow::Owned(writer.out)
}

/// Returns an expression with its operators replaced. One that the engine cannot parse stays as it is.
pub(super) fn metered_expression(text: &str) -> Cow<'_, str> {
    let Ok(expression) = parse_expr(text) else { return Cow::Borrowed(text) };
    let mut writer = Writer::new(text);
    writer.expression(&expression);
    if writer.is_changed { Cow::Owned(writer.out) } else { Cow::Borrowed(text) }
}

/// Checks that the new form of a template can be parsed: its parentheses may be nested more deeply.
pub(super) fn check<'t>(tree: &Stmt<'t>, text: &'t str) -> Result<(), CompileError> {
    match rewritten(tree, text) {
        Cow::Owned(made) if parse(&made, "", Default::default()).is_err() => {
            let end = text.find('\n').unwrap_or(text.len());
            Err(CompileError { message: TOO_DEEP.to_owned(), span: 0..end, help: None })
        }
        _ => Ok(()),
    }
}

struct Writer<'t> {
    text: &'t str,
    out: String,
    /// The current line of `out`, counted from one.
    line: usize,
    is_changed: bool,
    is_stored: bool,
}

impl<'t> Writer<'t> {
    fn new(text: &'t str) -> Writer<'t> {
        Writer { text, out: String::with_capacity(2 * text.len()), line: 1, is_changed: false, is_stored: false }
    }

    fn push(&mut self, text: &str) {
        self.line += text.bytes().filter(|byte| *byte == b'\n').count();
        self.out.push_str(text);
    }

    /// Moves on to the line of the original. Only for places where white space has no meaning.
    fn advance(&mut self, line: u16) {
        while self.line < usize::from(line) {
            self.push("\n");
        }
    }

    fn tag(&mut self, line: u16, word: &str) {
        self.push("{% ");
        self.advance(line);
        self.push(word);
        self.push(" ");
    }

    fn statements(&mut self, statements: &[Stmt<'t>]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn body(&mut self, statements: &[Stmt<'t>], end: &str) {
        self.push(" %}");
        self.statements(statements);
        self.push(end);
    }

    fn statement(&mut self, statement: &Stmt<'t>) {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitRaw(raw) => self.raw(raw.raw),
            Stmt::EmitExpr(emit) => {
                self.push("{{ ");
                self.advance(emit.span().start_line);
                match &emit.expr {
                    // The printed result is counted, and the engine runs some of these calls in its own way.
                    Expr::Call(call) => self.call(call),
                    other => self.expression(other),
                }
                self.push(" }}");
            }
            Stmt::ForLoop(each) => {
                self.tag(each.span().start_line, "for");
                self.target(&each.target);
                self.push(" in ");
                self.operand(&each.iter, expression::OR);
                if let Some(filter) = &each.filter_expr {
                    self.push(" if ");
                    self.expression(filter);
                }
                if each.recursive {
                    self.push(" recursive");
                }
                self.push(" %}");
                self.statements(&each.body);
                if !each.else_body.is_empty() {
                    self.push("{% else %}");
                    self.statements(&each.else_body);
                }
                self.push("{% endfor %}");
            }
            Stmt::IfCond(condition) => self.condition(condition, condition.span().start_line),
            Stmt::WithBlock(with) => {
                self.tag(with.span().start_line, "with");
                for (index, (target, value)) in with.assignments.iter().enumerate() {
                    self.push(if index > 0 { ", " } else { "" });
                    match target {
                        Expr::Var(_) => self.target(target),
                        other => self.inner_target(other),
                    }
                    self.push(" = ");
                    self.expression(value);
                }
                self.body(&with.body, "{% endwith %}");
            }
            Stmt::Set(set) => {
                self.tag(set.span().start_line, "set");
                self.target(&set.target);
                self.push(" = ");
                self.assigned(&set.target, &set.expr);
                self.push(" %}");
            }
            Stmt::SetBlock(set) => {
                self.tag(set.span().start_line, "set");
                self.target(&set.target);
                self.push("|");
                self.captured(set.filter.as_ref());
                if let Expr::GetAttr(_) = set.target {
                    self.push("|__stored(none)");
                }
                self.body(&set.body, "{% endset %}");
            }
            Stmt::AutoEscape(block) => {
                self.tag(block.span().start_line, "autoescape");
                self.expression(&block.enabled);
                self.body(&block.body, "{% endautoescape %}");
            }
            Stmt::FilterBlock(block) => {
                self.tag(block.span().start_line, "filter");
                self.captured(Some(&block.filter));
                self.body(&block.body, "{% endfilter %}");
            }
            Stmt::Block(block) => {
                self.tag(block.span().start_line, "block");
                self.push(block.name);
                self.push(if block.required { " required" } else { "" });
                self.body(&block.body, "{% endblock %}");
            }
            Stmt::Import(import) => {
                self.tag(import.span().start_line, "import");
                self.expression(&import.expr);
                self.push(" as ");
                self.expression(&import.name);
                self.push(" %}");
            }
            Stmt::FromImport(import) => {
                self.tag(import.span().start_line, "from");
                self.expression(&import.expr);
                self.push(" import ");
                for (index, (name, alias)) in import.names.iter().enumerate() {
                    self.push(if index > 0 { ", " } else { "" });
                    self.target(name);
                    if let Some(alias) = alias {
                        self.push(" as ");
                        self.target(alias);
                    }
                }
                self.push(" %}");
            }
            Stmt::Extends(extends) => {
                self.tag(extends.span().start_line, "extends");
                self.expression(&extends.name);
                self.push(" %}");
            }
            Stmt::Include(include) => {
                self.tag(include.span().start_line, "include");
                self.expression(&include.name);
                self.push(if include.ignore_missing { " ignore missing %}" } else { " %}" });
            }
            Stmt::Macro(declared) => {
                self.tag(declared.span().start_line, "macro");
                self.push(declared.name);
                self.parameters(declared);
                self.body(&declared.body, "{% endmacro %}");
            }
            Stmt::CallBlock(block) => {
                self.tag(block.call.span().start_line, "call");
                self.parameters(&block.macro_decl);
                self.push(" ");
                self.call(&block.call);
                self.body(&block.macro_decl.body, "{% endcall %}");
            }
            Stmt::Do(statement) => {
                self.tag(statement.span().start_line, "do");
                self.call(&statement.call);
                self.push(" %}");
            }
            Stmt::Continue(_) => self.push("{% continue %}"),
            Stmt::Break(_) => self.push("{% break %}"),
        }
    }

    fn raw(&mut self, text: &str) {
        if text.contains('{') {
            self.push("{% raw %}");
            self.push(text);
            self.push("{% endraw %}");
        } else {
            self.push(text);
        }
    }

    fn condition(&mut self, condition: &IfCond<'t>, line: u16) {
        self.tag(line, "if");
        let mut condition = condition;
        loop {
            self.operand(&condition.expr, expression::OR);
            self.push(" %}");
            self.statements(&condition.true_body);
            match condition.false_body.as_slice() {
                // Also the form that the parser gives to `elif`, which must not nest.
                [Stmt::IfCond(next)] => {
                    self.tag(next.expr.span().start_line, "elif");
                    condition = next;
                }
                [] => break,
                other => {
                    self.push("{% else %}");
                    self.statements(other);
                    break;
                }
            }
        }
        self.push("{% endif %}");
    }

    fn captured(&mut self, filter: Option<&Expr<'t>>) {
        self.is_changed = true;
        self.push("__made");
        if let Some(Expr::Filter(filter)) = filter {
            self.filters(filter);
        }
    }

    /// Writes the targets of an assignment or of `for`.
    fn target(&mut self, target: &Expr<'t>) {
        match target {
            Expr::List(list) => {
                for (index, item) in list.items.iter().enumerate() {
                    self.push(if index > 0 { ", " } else { "" });
                    self.inner_target(item);
                }
                // A list of one target.
                self.push(if list.items.len() == 1 { "," } else { "" });
            }
            other => self.place(other),
        }
    }

    fn inner_target(&mut self, target: &Expr<'t>) {
        if let Expr::List(_) = target {
            self.push("(");
            self.target(target);
            self.push(")");
        } else {
            self.place(target);
        }
    }

    fn place(&mut self, target: &Expr<'t>) {
        match target {
            Expr::GetAttr(attribute) => {
                self.place(&attribute.expr);
                self.push(".");
                self.push(attribute.name);
            }
            Expr::Var(variable) => self.push(variable.id),
            other => self.expression(other),
        }
    }

    /// Writes an assigned value. A namespace keeps it for the next iteration of a loop, where it can grow.
    fn assigned(&mut self, target: &Expr<'t>, value: &Expr<'t>) {
        match target {
            Expr::GetAttr(_) => {
                self.is_changed = true;
                self.is_stored = true;
                self.operand(value, expression::FILTER);
                self.is_stored = false;
                self.push("|__stored(");
                self.place(target);
                self.push(")");
            }
            Expr::List(list) if list.items.iter().any(|item| !matches!(item, Expr::Var(_))) => {
                self.is_changed = true;
                self.is_stored = true;
                self.expression(value);
                self.is_stored = false;
            }
            _ => self.expression(value),
        }
    }

    fn parameters(&mut self, declared: &Macro<'t>) {
        self.push("(");
        let first_default = declared.args.len() - declared.defaults.len();
        for (index, argument) in declared.args.iter().enumerate() {
            self.push(if index > 0 { ", " } else { "" });
            self.target(argument);
            if let Some(default) = index.checked_sub(first_default).and_then(|index| declared.defaults.get(index)) {
                self.push("=");
                self.expression(default);
            }
        }
        self.push(")");
    }

    fn verbatim(&mut self, span: minijinja::machinery::Span) {
        self.advance(span.start_line);
        let text = self.text.get(bytes(span)).unwrap_or_default();
        self.push(text);
    }
}
