//! Names of files that a template computes, as far as its text determines them.

use minijinja::machinery::ast::{BinOpKind, Expr};

use super::constant_text;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NamePart {
    Literal(String),
    Variable(String),
    Any,
}

/// The names with the largest number of alternatives and parts that are analysed; more are "any".
const MOST: usize = 32;

pub(super) fn names(expression: &Expr<'_>) -> Vec<Vec<NamePart>> {
    if let Some(text) = constant_text(expression) {
        return vec![vec![NamePart::Literal(text)]];
    }
    let names = match expression {
        Expr::Var(variable) => vec![vec![NamePart::Variable(variable.id.to_owned())]],
        Expr::BinOp(operation) if matches!(operation.op, BinOpKind::Concat | BinOpKind::Add) => {
            let ends = names(&operation.right);
            let joined = |start: Vec<NamePart>| ends.iter().map(move |end| [&*start, end].concat());
            names(&operation.left).into_iter().flat_map(joined).collect()
        }
        Expr::IfExpr(condition) => {
            let otherwise = condition.false_expr.as_ref().map(names).unwrap_or_default();
            [names(&condition.true_expr), otherwise].concat()
        }
        _ => vec![vec![NamePart::Any]],
    };
    if names.len() <= MOST && names.iter().all(|name| name.len() <= MOST) { names } else { vec![vec![NamePart::Any]] }
}
