//! Analysis of expressions: names, filters, tests and calls.

use std::ops::Range;

use minijinja::{
    machinery::{
        Span,
        ast::{BinOpKind, Call, CallArg, Expr, UnaryOpKind},
    },
    value::{Kwargs, Value},
};

use super::{PromptCall, Use, Walker, computed, constant_text, use_at};
use crate::{
    content::Role,
    diagnostic::{Code, nearest},
    template::{
        bytes,
        environment::{self, Word},
        functions, literal, or_literally,
    },
};

impl<'t> Walker<'t> {
    pub(super) fn maybe(&mut self, expression: Option<&Expr<'t>>) {
        if let Some(expression) = expression {
            self.expression(expression);
        }
    }

    pub(super) fn expression(&mut self, expression: &Expr<'t>) {
        match expression {
            Expr::Var(variable) => {
                if self.is_free(variable.id) {
                    self.lint.variables.push(use_at(variable.id, variable.span()));
                }
            }
            Expr::Const(_) => {}
            Expr::Slice(slice) => {
                self.is_no_text(&slice.expr, bytes(slice.span()));
                self.expression(&slice.expr);
                for part in [&slice.start, &slice.stop, &slice.step] {
                    self.maybe(part.as_ref());
                }
            }
            Expr::UnaryOp(operation) => {
                if let UnaryOpKind::Neg = operation.op {
                    self.operand(&operation.expr, true);
                }
                self.expression(&operation.expr);
            }
            Expr::BinOp(operation) => {
                use BinOpKind::{Add, Div, FloorDiv, Pow, Rem, Sub};
                for (side, other) in [(&operation.left, &operation.right), (&operation.right, &operation.left)] {
                    match (&operation.op, other) {
                        (Sub | Div | FloorDiv | Rem | Pow, _) => self.operand(side, true),
                        (Add, Expr::Const(constant)) if constant.value.is_number() => self.operand(side, true),
                        (Add, Expr::Const(constant)) if constant.value.as_str().is_some() => self.operand(side, false),
                        _ => {}
                    }
                }
                self.expression(&operation.left);
                self.expression(&operation.right);
            }
            Expr::Compare(comparison) => {
                self.expression(&comparison.expr);
                comparison.ops.iter().for_each(|operand| self.expression(&operand.expr));
            }
            Expr::IfExpr(choice) => {
                self.expression(&choice.test_expr);
                self.expression(&choice.true_expr);
                self.maybe(choice.false_expr.as_ref());
            }
            Expr::Filter(filter) => {
                self.maybe(filter.expr.as_ref());
                let before = filter.expr.as_ref().map(Expr::span);
                let place = self.name_span(before, filter.span(), filter.name);
                self.filter_exists(filter.name, place.clone());
                if environment::FILTERS.contains(&filter.name) {
                    self.can_apply(Word::Filter, filter.name, &filter.args, place.clone());
                }
                if let Some(value) = &filter.expr {
                    self.is_no_text(value, place);
                }
                self.arguments(&filter.args);
            }
            Expr::Test(test) => {
                self.expression(&test.expr);
                let place = self.name_span(Some(test.expr.span()), test.span(), test.name);
                if environment::TESTS.contains(&test.name) {
                    self.can_apply(Word::Test, test.name, &test.args, place);
                } else {
                    let message = format!("unknown test `is {}`", test.name);
                    let help = did_you_mean(test.name, environment::TESTS);
                    self.fault(Code::UnknownFunction, place, message, help);
                }
                self.arguments(&test.args);
            }
            Expr::GetAttr(attribute) => {
                // The engine would print nothing: `{{ range .Values }}` of another language has an attribute here.
                if let Expr::Var(variable) = &attribute.expr
                    && environment::known_globals().any(|known| known == variable.id)
                    && !self.scopes.iter().flatten().any(|bound| *bound == variable.id)
                    && variable.id != "prompt"
                {
                    let message = format!("`{}` is a function and has no `{}`", variable.id, attribute.name);
                    self.fault(Code::UnknownFunction, bytes(variable.span()), message, Some(or_literally(None)));
                }
                self.expression(&attribute.expr);
            }
            Expr::GetItem(item) => {
                self.expression(&item.expr);
                self.expression(&item.subscript_expr);
            }
            Expr::Call(call) => self.call(call, call.span()),
            Expr::List(list) => list.items.iter().for_each(|item| self.expression(item)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.expression(item)),
            Expr::Map(map) => map.keys.iter().chain(&map.values).for_each(|part| self.expression(part)),
        }
    }

    /// Notes an operand that is the value of an argument.
    fn operand(&mut self, operand: &Expr<'t>, is_number: bool) {
        if let Expr::Var(variable) = operand
            && self.is_free(variable.id)
        {
            self.lint.operands.push((use_at(variable.id, variable.span()), is_number));
        }
    }

    /// Reports what `attach` and the like return as a value that is changed.
    fn is_no_text(&mut self, value: &Expr<'t>, place: Range<usize>) {
        if let Expr::Call(call) = value
            && let Some(function) = structure_function(call).or_else(|| self.is_prompt(call).then_some("prompt"))
        {
            let message = format!("the result of `{function}` is not text and cannot be filtered");
            self.fault(Code::InvalidCall, place, message, None);
        }
    }

    fn filter_exists(&mut self, name: &str, place: Range<usize>) {
        if !environment::FILTERS.contains(&name) {
            let help = did_you_mean(name, environment::FILTERS).or_else(|| Some(or_literally(None)));
            self.fault(Code::UnknownFunction, place, format!("unknown filter `{name}`"), help);
        }
    }

    /// Reports a filter or test whose literal arguments fit no value.
    fn can_apply(&mut self, word: Word, name: &str, arguments: &[CallArg<'t>], place: Range<usize>) {
        let mut values = Vec::new();
        let mut named = Vec::new();
        let mut are_known = true;
        let mut constant = |value: &Expr<'t>| {
            literal(value).unwrap_or_else(|| {
                are_known = false;
                Value::from(1)
            })
        };
        for argument in arguments {
            match argument {
                CallArg::Pos(value) => values.push(constant(value)),
                CallArg::Kwarg(key, value) => named.push((*key, constant(value))),
                CallArg::PosSplat(_) | CallArg::KwargSplat(_) => return,
            }
        }
        if !named.is_empty() {
            values.push(Kwargs::from_iter(named).into());
        }
        if let Some(fault) = environment::fault(word, name, &values, are_known) {
            let what = if word == Word::Filter { "filter" } else { "test" };
            self.fault(
                Code::InvalidCall,
                place,
                format!("the {what} `{name}` cannot be used like this: {fault}"),
                None,
            );
        }
    }

    fn arguments(&mut self, arguments: &[CallArg<'t>]) {
        for argument in arguments {
            match argument {
                CallArg::Pos(value)
                | CallArg::Kwarg(_, value)
                | CallArg::PosSplat(value)
                | CallArg::KwargSplat(value) => {
                    self.expression(value);
                }
            }
        }
    }

    pub(super) fn call(&mut self, call: &Call<'t>, span: Span) {
        match &call.expr {
            Expr::Var(function) if structure_function(call).is_some() => {
                self.lint.structure.push(use_at(function.id, span));
                self.structure_call(function.id, call, span);
            }
            Expr::Var(function) if self.is_prompt(call) => {
                self.lint.structure.push(use_at(function.id, span));
                self.prompt_call(call, span);
            }
            Expr::Var(function) if self.is_free(function.id) => {
                self.lint.called.push(use_at(function.id, function.span()));
            }
            other => {
                if let Expr::GetAttr(block) = other
                    && matches!(&block.expr, Expr::Var(variable) if variable.id == "self")
                {
                    self.inserted.push((block.name, bytes(span)));
                }
                if let Some((message, help)) = self.misuse(call) {
                    self.fault(Code::InvalidCall, bytes(span), message, help);
                }
                self.expression(other);
            }
        }
        self.arguments(&call.args);
    }

    /// Returns why a call of what the template itself defines never gives anything.
    fn misuse(&self, call: &Call<'t>) -> Option<(String, Option<String>)> {
        let (name, parameters) = match &call.expr {
            Expr::Var(function) if function.id == "super" && !self.extends => {
                return Some(("`super()` needs `{% extends %}`".to_owned(), None));
            }
            Expr::Var(function) => self.macros.iter().rev().find(|(name, _)| *name == function.id)?,
            Expr::GetAttr(method) => {
                let Expr::Var(value) = &method.expr else { return None };
                let is_filter = environment::FILTERS.contains(&method.name);
                let written = if is_filter { method.name } else { "upper" };
                return self.is_free(value.id).then(|| {
                    let message = format!("a value has no methods, such as `{}`", method.name);
                    (message, Some(format!("write a filter: `{} | {written}`", value.id)))
                });
            }
            _ => return None,
        };
        let mut positional = 0;
        for argument in &call.args {
            match argument {
                CallArg::Pos(_) => positional += 1,
                CallArg::Kwarg(given, _) if *given != "caller" => {
                    match parameters.iter().position(|own| own == given) {
                        None => return Some((format!("the macro `{name}` has no parameter `{given}`"), None)),
                        Some(index) if index < positional => {
                            return Some((
                                format!("the parameter `{given}` of the macro `{name}` is given twice"),
                                None,
                            ));
                        }
                        Some(_) => {}
                    }
                }
                _ => {}
            }
        }
        let most = parameters.len();
        (positional > most)
            .then(|| (format!("the macro `{name}` has {most} parameters, and {positional} are given"), None))
    }

    fn structure_call(&mut self, function: &str, call: &Call<'t>, span: Span) {
        for argument in &call.args {
            if let CallArg::PosSplat(value) = argument {
                let message = format!("the arguments of `{function}` must be written one by one");
                self.fault(Code::InvalidCall, bytes(value.span()), message, None);
            }
            let CallArg::Kwarg(name, value) = argument else { continue };
            if !functions::keywords(function).contains(name) {
                let help = did_you_mean(name, functions::keywords(function));
                let message = format!("`{function}` has no parameter `{name}`");
                self.fault(Code::InvalidCall, bytes(value.span()), message, help);
            } else if let Some(message) = literal(value).and_then(|value| functions::fault(name, &value)) {
                self.fault(Code::InvalidCall, bytes(value.span()), message, None);
            }
        }
        let mut positional = call.args.iter().filter_map(|argument| match argument {
            CallArg::Pos(value) => Some(value),
            _ => None,
        });
        let Some(target) = positional.next() else {
            let expected = if function == "role" { "\"user\" or \"assistant\"" } else { "a file's path or a URI" };
            self.fault(Code::InvalidCall, bytes(span), format!("`{function}` requires {expected}"), None);
            return;
        };
        if let Some(extra) = positional.next() {
            let message = format!("`{function}` has one positional parameter; name the other ones");
            let names = functions::keywords(function).iter().map(|name| format!("`{name}=`")).collect::<Vec<_>>();
            let help = format!("write one of {} before it", names.join(", "));
            self.fault(Code::InvalidCall, bytes(extra.span()), message, Some(help));
        }
        let place = bytes(target.span());
        match (function, constant_text(target)) {
            ("role", Some(role)) if Role::parse(&role).is_none() => {
                let message = format!("unknown role `{role}`: expected \"user\" or \"assistant\"");
                let help =
                    (role == "system").then(|| "write it as the user, or in the server's `instructions`".to_owned());
                self.fault(Code::InvalidCall, place, message, help);
            }
            ("role", None) => {
                let help = Some("write role(\"user\") or role(\"assistant\"), with `{% if %}` around it".to_owned());
                let message = "a role must be a literal, so that no value can choose it";
                self.fault(Code::InvalidCall, place, message, help);
            }
            ("attach", Some(name)) => self.lint.attached.push(Use { name, span: place }),
            ("link", Some(name)) => self.lint.linked.push(Use { name, span: place }),
            ("attach" | "link", None) => self.lint.computed.extend(computed::names(target)),
            _ => {}
        }
    }

    /// Returns whether the function `prompt` is called, and not a macro of that name.
    fn is_prompt(&self, call: &Call<'t>) -> bool {
        matches!(&call.expr, Expr::Var(function) if function.id == "prompt") && self.is_free("prompt")
    }

    fn prompt_call(&mut self, call: &Call<'t>, span: Span) {
        let mut positional = call.args.iter().filter_map(|argument| match argument {
            CallArg::Pos(value) => Some(value),
            _ => None,
        });
        let target = match positional.next().map(|target| (constant_text(target), bytes(target.span()))) {
            Some((Some(name), span)) => Use { name, span },
            Some((None, span)) => {
                let help = Some(
                    "write the name as a literal, with `{% if %}` around the call if it depends on a value".into(),
                );
                return self.fault(Code::InvalidCall, span, "the name of the called prompt must be a literal", help);
            }
            None => return self.fault(Code::InvalidCall, bytes(span), "`prompt` requires the name of a prompt", None),
        };
        if let Some(further) = positional.next() {
            let help = Some("write `argument=value`".to_owned());
            let message = "the arguments of a prompt must be named";
            self.fault(Code::InvalidCall, bytes(further.span()), message, help);
        }
        if let Some(CallArg::PosSplat(list)) =
            call.args.iter().find(|argument| matches!(argument, CallArg::PosSplat(_)))
        {
            let message = "the arguments of a prompt must be named";
            self.fault(Code::InvalidCall, bytes(list.span()), message, None);
        }
        let named = call.args.iter().filter_map(|argument| match argument {
            CallArg::Kwarg(name, value) => {
                let constant = literal(value).and_then(|value| functions::sent(&value));
                Some((use_at(name, value.span()), constant))
            }
            _ => None,
        });
        let named = named.collect();
        let is_open =
            call.args.iter().any(|argument| matches!(argument, CallArg::PosSplat(_) | CallArg::KwargSplat(_)));
        self.lint.calls.push(PromptCall { target, named, is_open });
    }

    /// Returns the position of a filter's or test's name. The engine only reports the positions of the operand and of
    /// the whole expression.
    fn name_span(&self, before: Option<Span>, whole: Span, name: &str) -> Range<usize> {
        let whole = bytes(whole);
        let start = before.map_or(whole.start, |before| bytes(before).end.max(whole.start));
        match self.text.get(start..whole.end).and_then(|text| text.find(name)) {
            Some(offset) => start + offset..start + offset + name.len(),
            None => whole,
        }
    }
}

/// Returns the name of `role`, `attach` or `link` if one of them is called.
fn structure_function<'t>(call: &Call<'t>) -> Option<&'t str> {
    match &call.expr {
        Expr::Var(function) if matches!(function.id, "role" | "attach" | "link") => Some(function.id),
        _ => None,
    }
}

pub(super) fn did_you_mean(word: &str, known: &[&str]) -> Option<String> {
    nearest(word, known.iter().copied()).map(|near| format!("did you mean `{near}`?"))
}
