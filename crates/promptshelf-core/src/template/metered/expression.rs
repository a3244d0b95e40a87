//! Expressions with counted operators, with as few parentheses as possible: the parser limits their depth.

use minijinja::machinery::ast::{BinOp, BinOpKind, Call, CallArg, CompareOpKind, Expr, Filter, GetItem, UnaryOpKind};

use super::{super::environment::GLOBALS, Writer};

/// How tightly an expression binds: as an operand that needs a tighter one, it is put into parentheses.
type Level = u8;

const IF: Level = 0;
pub(super) const OR: Level = 1;
const AND: Level = 2;
const NOT: Level = 3;
const COMPARE: Level = 4;
const SUM: Level = 5;
const CONCAT: Level = 6;
const PRODUCT: Level = 7;
const POWER: Level = 8;
pub(super) const FILTER: Level = 9;
pub(super) const POSTFIX: Level = 10;

/// Constants that are used as they are: the work on them is small.
const SMALL_BYTES: usize = 256;

/// The largest index of an item that is read without counting the items before it.
const SMALL_INDEX: i64 = 64;

const NUMERIC: &[&str] = &["abs", "count", "float", "int", "length", "round"];

fn level(expression: &Expr<'_>) -> Level {
    match expression {
        Expr::IfExpr(_) => IF,
        Expr::BinOp(operation) => match operation.op {
            BinOpKind::ScOr => OR,
            BinOpKind::ScAnd => AND,
            BinOpKind::Add | BinOpKind::Sub => SUM,
            BinOpKind::Concat => CONCAT,
            _ if is_counted(operation) => FILTER,
            BinOpKind::Mul | BinOpKind::Div | BinOpKind::FloorDiv | BinOpKind::Rem => PRODUCT,
            BinOpKind::Pow => POWER,
            _ => COMPARE,
        },
        Expr::UnaryOp(operation) => match operation.op {
            UnaryOpKind::Not => NOT,
            UnaryOpKind::Neg => FILTER,
        },
        Expr::Compare(_) => COMPARE,
        Expr::Call(call) if !makes_text(call) => POSTFIX,
        // The dot of an attribute would belong to a number.
        Expr::Filter(_) | Expr::Test(_) | Expr::Slice(_) | Expr::Call(_) | Expr::Const(_) => FILTER,
        Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) | Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => POSTFIX,
    }
}

fn is_counted(operation: &BinOp<'_>) -> bool {
    let (left, right) = (&operation.left, &operation.right);
    match operation.op {
        BinOpKind::In => !is_small_list(right),
        BinOpKind::Eq | BinOpKind::Ne | BinOpKind::Lt | BinOpKind::Lte | BinOpKind::Gt | BinOpKind::Gte => {
            !is_small(left) && !is_small(right) && !is_number(left) && !is_number(right)
        }
        BinOpKind::Mul => !is_number(left) || !is_number(right),
        _ => false,
    }
}

fn is_small(expression: &Expr<'_>) -> bool {
    match expression {
        Expr::Const(constant) => constant.value.as_str().is_none_or(|text| text.len() <= SMALL_BYTES),
        other => is_number(other),
    }
}

fn is_small_list(expression: &Expr<'_>) -> bool {
    let items = match expression {
        Expr::List(list) => &list.items,
        Expr::Tuple(tuple) => &tuple.items,
        _ => return false,
    };
    items.iter().all(|item| matches!(item, Expr::Const(_)) && is_small(item))
}

fn is_number(expression: &Expr<'_>) -> bool {
    match expression {
        Expr::Const(constant) => constant.value.is_number(),
        Expr::UnaryOp(operation) => matches!(operation.op, UnaryOpKind::Neg),
        Expr::BinOp(operation) => matches!(
            operation.op,
            BinOpKind::Sub | BinOpKind::Div | BinOpKind::FloorDiv | BinOpKind::Rem | BinOpKind::Pow
        ),
        Expr::GetAttr(attribute) => matches!(&attribute.expr, Expr::Var(variable) if variable.id == "loop"),
        Expr::Filter(filter) => NUMERIC.contains(&filter.name),
        _ => false,
    }
}

fn makes_text(call: &Call<'_>) -> bool {
    match &call.expr {
        Expr::Var(function) => !GLOBALS.contains(&function.id),
        Expr::GetAttr(method) => !matches!(&method.expr, Expr::Var(variable) if variable.id == "loop"),
        _ => true,
    }
}

impl<'t> Writer<'t> {
    /// Writes an expression, in parentheses if it binds less tightly than `least`.
    pub(super) fn operand(&mut self, expression: &Expr<'t>, least: Level) {
        if level(expression) >= least {
            return self.expression(expression);
        }
        self.push("(");
        self.expression(expression);
        self.push(")");
    }

    pub(super) fn expression(&mut self, expression: &Expr<'t>) {
        match expression {
            Expr::Var(variable) => {
                self.advance(variable.span().start_line);
                self.push(variable.id);
            }
            Expr::Const(constant) => self.verbatim(constant.span()),
            Expr::Slice(slice) => {
                self.operand(&slice.expr, FILTER);
                self.filter("__slice");
                for (index, part) in [&slice.start, &slice.stop, &slice.step].into_iter().enumerate() {
                    self.push(if index > 0 { ", " } else { "(" });
                    match part {
                        Some(part) => self.expression(part),
                        None => self.push("none"),
                    }
                }
                self.push(")");
            }
            Expr::UnaryOp(operation) => match operation.op {
                UnaryOpKind::Not => {
                    self.push("not ");
                    self.operand(&operation.expr, NOT);
                }
                UnaryOpKind::Neg => {
                    self.push("-");
                    // A constant is written as it is, unlike before a dot.
                    let least = if let Expr::Const(_) = operation.expr { FILTER } else { POSTFIX };
                    self.operand(&operation.expr, least);
                }
            },
            Expr::BinOp(operation) => self.operation(operation),
            Expr::Compare(comparison) => {
                self.compared(&comparison.expr);
                for operation in &comparison.ops {
                    self.push(match operation.op {
                        CompareOpKind::Eq => " == ",
                        CompareOpKind::Ne => " != ",
                        CompareOpKind::Lt => " < ",
                        CompareOpKind::Lte => " <= ",
                        CompareOpKind::Gt => " > ",
                        CompareOpKind::Gte => " >= ",
                        CompareOpKind::In => " in ",
                        CompareOpKind::NotIn => " not in ",
                    });
                    self.compared(&operation.expr);
                }
            }
            Expr::IfExpr(choice) => {
                self.operand(&choice.true_expr, OR);
                self.push(" if ");
                self.operand(&choice.test_expr, OR);
                if let Some(otherwise) = &choice.false_expr {
                    self.push(" else ");
                    self.expression(otherwise);
                }
            }
            Expr::Filter(filter) => {
                if let Some(value) = &filter.expr {
                    self.operand(value, FILTER);
                }
                self.push("|");
                self.push(filter.name);
                self.filter_arguments(&filter.args);
            }
            Expr::Test(test) => {
                self.operand(&test.expr, FILTER);
                self.push(" is ");
                self.push(test.name);
                self.filter_arguments(&test.args);
            }
            Expr::GetAttr(attribute) => {
                self.operand(&attribute.expr, POSTFIX);
                self.push(".");
                self.push(attribute.name);
            }
            Expr::GetItem(item) => self.item(item),
            Expr::Call(call) => {
                self.call(call);
                if makes_text(call) {
                    self.filter("__made");
                }
            }
            Expr::List(list) => {
                self.push("[");
                self.items(&list.items);
                self.push("]");
            }
            Expr::Tuple(tuple) => {
                self.push("(");
                self.items(&tuple.items);
                self.push(if tuple.items.len() == 1 { ",)" } else { ")" });
            }
            Expr::Map(map) => {
                self.push("{");
                for (index, (key, value)) in map.keys.iter().zip(&map.values).enumerate() {
                    self.push(if index > 0 { ", " } else { "" });
                    self.walked(key);
                    self.push(": ");
                    self.element(value);
                }
                self.push("}");
            }
        }
    }

    /// Adds a filter of `operators`.
    fn filter(&mut self, name: &str) {
        self.is_changed = true;
        self.push("|");
        self.push(name);
    }

    fn operation(&mut self, operation: &BinOp<'t>) {
        let (sign, level) = match operation.op {
            BinOpKind::Add if !is_number(&operation.left) && !is_number(&operation.right) => {
                return self.chain(operation, "+", "__term");
            }
            BinOpKind::Concat => return self.chain(operation, "~", "__text"),
            BinOpKind::Eq => ("==", COMPARE),
            BinOpKind::Ne => ("!=", COMPARE),
            BinOpKind::Lt => ("<", COMPARE),
            BinOpKind::Lte => ("<=", COMPARE),
            BinOpKind::Gt => (">", COMPARE),
            BinOpKind::Gte => (">=", COMPARE),
            BinOpKind::In => ("in", COMPARE),
            BinOpKind::ScAnd => ("and", AND),
            BinOpKind::ScOr => ("or", OR),
            BinOpKind::Add => ("+", SUM),
            BinOpKind::Sub => ("-", SUM),
            BinOpKind::Mul => ("*", PRODUCT),
            BinOpKind::Div => ("/", PRODUCT),
            BinOpKind::FloorDiv => ("//", PRODUCT),
            BinOpKind::Rem => ("%", PRODUCT),
            BinOpKind::Pow => ("**", POWER),
        };
        if is_counted(operation) {
            self.operand(&operation.left, FILTER);
            self.filter(match operation.op {
                BinOpKind::In => "__in(",
                BinOpKind::Eq => "__eq(",
                BinOpKind::Ne => "__ne(",
                BinOpKind::Lt => "__lt(",
                BinOpKind::Lte => "__le(",
                BinOpKind::Gt => "__gt(",
                BinOpKind::Gte => "__ge(",
                _ => "__times(",
            });
            self.expression(&operation.right);
            if let BinOpKind::Mul = operation.op {
                self.variable_names([&operation.left, &operation.right]);
            }
            self.push(")");
            return;
        }
        // Operators of the same level are evaluated from the left; comparisons are not nested at all.
        self.operand(&operation.left, if level == COMPARE { SUM } else { level });
        self.push(" ");
        self.push(sign);
        self.push(" ");
        self.operand(&operation.right, level + 1);
    }

    /// Writes the names of operands as arguments: an error names the undefined one.
    fn variable_names(&mut self, operands: [&Expr<'t>; 2]) {
        for operand in operands {
            match operand {
                Expr::Var(variable) => self.push(&format!(", '{}'", variable.id)),
                _ => self.push(", none"),
            }
        }
    }

    /// Writes a sequence of `+` or `~`, whose operands are copied once for each operator behind them.
    fn chain(&mut self, operation: &BinOp<'t>, sign: &str, filter: &str) {
        let mut operands = vec![&operation.right];
        let mut left = &operation.left;
        while let Expr::BinOp(inner) = left
            && inner.op as u8 == operation.op as u8
        {
            operands.push(&inner.right);
            left = &inner.left;
        }
        operands.push(left);
        let copies = operands.len() - 1;
        for (index, operand) in operands.into_iter().rev().enumerate() {
            if index > 0 {
                self.push(" ");
                self.push(sign);
                self.push(" ");
            }
            self.operand(operand, FILTER);
            if !is_small(operand) {
                self.filter(filter);
                self.push(&format!("({})", copies.min(copies + 1 - index)));
            }
        }
    }

    fn compared(&mut self, operand: &Expr<'t>) {
        match is_small(operand) || is_small_list(operand) {
            true => self.operand(operand, SUM),
            false => self.walked(operand),
        }
    }

    fn walked(&mut self, value: &Expr<'t>) {
        if is_small(value) {
            return self.operand(value, FILTER);
        }
        self.operand(value, FILTER);
        self.filter("__whole");
    }

    fn item(&mut self, item: &GetItem<'t>) {
        let is_near = match &item.subscript_expr {
            Expr::Const(index) => match index.value.as_i64() {
                Some(index) => (0..=SMALL_INDEX).contains(&index),
                None => is_small(&item.subscript_expr),
            },
            _ => false,
        };
        if is_near {
            self.operand(&item.expr, POSTFIX);
        } else {
            self.push("(");
            self.operand(&item.expr, FILTER);
            self.filter("__base");
            self.push(")");
        }
        self.push("[");
        self.walked(&item.subscript_expr);
        self.push("]");
    }

    fn items(&mut self, items: &[Expr<'t>]) {
        for (index, item) in items.iter().enumerate() {
            self.push(if index > 0 { ", " } else { "" });
            self.element(item);
        }
    }

    fn element(&mut self, item: &Expr<'t>) {
        if !self.is_stored || is_small(item) {
            return self.expression(item);
        }
        self.operand(item, FILTER);
        self.filter("__item");
    }

    pub(super) fn filters(&mut self, filter: &Filter<'t>) {
        if let Some(Expr::Filter(inner)) = &filter.expr {
            self.filters(inner);
        }
        self.push("|");
        self.push(filter.name);
        self.filter_arguments(&filter.args);
    }

    fn filter_arguments(&mut self, arguments: &[CallArg<'t>]) {
        if !arguments.is_empty() {
            self.arguments(arguments, false);
        }
    }

    pub(super) fn call(&mut self, call: &Call<'t>) {
        self.operand(&call.expr, POSTFIX);
        // These walk their arguments.
        let is_walking = match &call.expr {
            Expr::Var(function) => matches!(function.id, "dict" | "namespace"),
            Expr::GetAttr(method) => method.name == "changed",
            _ => false,
        };
        self.arguments(&call.args, is_walking);
    }

    fn arguments(&mut self, arguments: &[CallArg<'t>], is_walking: bool) {
        self.push("(");
        for (index, argument) in arguments.iter().enumerate() {
            self.push(if index > 0 { ", " } else { "" });
            match argument {
                CallArg::Pos(value) if is_walking => self.walked(value),
                CallArg::Pos(value) => self.expression(value),
                CallArg::Kwarg(name, value) => {
                    self.push(name);
                    self.push("=");
                    self.element(value);
                }
                CallArg::PosSplat(values) => {
                    self.push("*");
                    self.walked(values);
                }
                CallArg::KwargSplat(values) => {
                    self.push("**");
                    self.walked(values);
                }
            }
        }
        self.push(")");
    }
}
