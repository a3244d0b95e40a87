//! Forms on a terminal: what servers ask in between.

use std::{
    io::{self, Write},
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
};

use anstyle::{AnsiColor, Style};
use promptshelf_client::{Answer, Answers, Asked, Choice, ElicitationHandler, Field, FieldKind, Question};
use serde_json::{Number, Value};

use super::{
    assist::OfChoices,
    reader::{Reader, Typed},
};
use crate::{
    commands::remote::waiting::Waiting,
    output::{Output, visible, visible_line},
};

const TITLE: Style = AnsiColor::Cyan.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// Puts a server's questions to the person at the terminal.
pub(crate) struct Asker {
    waiting: Waiting,
    declined: AtomicBool,
}

impl Asker {
    pub(crate) fn new(waiting: Waiting) -> Asker {
        Asker { waiting, declined: AtomicBool::new(false) }
    }

    /// Whether anything was not answered.
    pub(crate) fn was_declined(&self) -> bool {
        self.declined.load(Ordering::Acquire)
    }
}

impl ElicitationHandler for Asker {
    fn answer(&self, question: Question) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        Box::pin(async move {
            self.waiting.hush(true);
            let asked = tokio::task::spawn_blocking(move || ask(&question)).await;
            self.waiting.hush(false);
            let answer = asked.unwrap_or(Answer::Cancel);
            if matches!(answer, Answer::Decline | Answer::Cancel) {
                self.declined.store(true, Ordering::Release);
            }
            answer
        })
    }
}

/// Asks one question from its beginning to its answer.
fn ask(question: &Question) -> Answer {
    let mut paper = Output::stderr();
    let from = paper.styled(TITLE, &format!("{} asks:", visible_line(&question.from)));
    writeln!(paper.out, "\n{from} {}", visible(&question.message)).ok();
    if let Some(secret) = question.looks_secret() {
        let warning = paper.styled(WARNING, "warning:");
        writeln!(
            paper.out,
            "{warning} this looks like a question for {secret}. Servers must not ask for secrets in a form; \
             Ctrl-D declines."
        )
        .ok();
    }
    // Reading a line writes to the terminal as well.
    drop(paper);
    match &question.asked {
        Asked::Visit { url } => visit(url),
        Asked::Form(fields) => fill(question, fields),
        _ => Answer::Decline,
    }
}

/// A page is shown and never opened: where to go is the person's own decision.
fn visit(url: &str) -> Answer {
    let mut paper = Output::stderr();
    writeln!(paper.out, "It wants you to visit this page:\n\n  {}\n", visible_line(url)).ok();
    drop(paper);
    match read("Enter when you have been there, Ctrl-D to decline: ", "", Vec::new()) {
        Typed::Line(_) => Answer::Accept(Answers::new()),
        Typed::End => Answer::Decline,
        Typed::Back => Answer::Back,
        Typed::Cancel => Answer::Cancel,
    }
}

fn fill(question: &Question, fields: &[Field]) -> Answer {
    let mut values: Vec<Option<Value>> = fields
        .iter()
        .map(|field| question.before.as_ref().and_then(|before| before.get(&field.name)).cloned())
        .collect();
    let mut paper = Output::stderr();
    let back = if question.can_go_back || fields.len() > 1 { "Shift-Tab goes back, " } else { "" };
    writeln!(paper.out, "{}", paper.quiet(&format!("{back}Ctrl-D declines, Ctrl-C cancels"))).ok();
    drop(paper);
    let mut at = 0;
    loop {
        while let Some(field) = fields.get(at) {
            match one(field, values[at].as_ref()) {
                Given::Value(value) => {
                    values[at] = value;
                    at += 1;
                }
                Given::Back if at > 0 => at -= 1,
                Given::Back if question.can_go_back => return Answer::Back,
                Given::Back => {}
                Given::Decline => return Answer::Decline,
                Given::Cancel => return Answer::Cancel,
            }
        }
        // A line that was typed has been seen; several are seen together once more.
        if fields.len() < 2 && question.looks_secret().is_none() {
            break;
        }
        review(question, fields, &values);
        match read("Enter sends this, Shift-Tab goes back: ", "", Vec::new()) {
            Typed::Line(_) => break,
            Typed::Back => at = fields.len().saturating_sub(1),
            Typed::End => return Answer::Decline,
            Typed::Cancel => return Answer::Cancel,
        }
    }
    let filled = fields.iter().zip(values).filter_map(|(field, value)| Some((field.name.clone(), value?)));
    Answer::Accept(filled.collect())
}

fn review(question: &Question, fields: &[Field], values: &[Option<Value>]) {
    let mut paper = Output::stderr();
    writeln!(paper.out, "To {}:", visible_line(&question.from)).ok();
    for (field, value) in fields.iter().zip(values) {
        let value = value.as_ref().map_or_else(|| "(nothing)".to_owned(), text_of);
        writeln!(paper.out, "  {}: {}", visible_line(&field.name), visible_line(&value)).ok();
    }
}

/// What somebody does with one field.
enum Given {
    Value(Option<Value>),
    Back,
    Decline,
    Cancel,
}

fn one(field: &Field, before: Option<&Value>) -> Given {
    let mut paper = Output::stderr();
    let title = field.title.as_deref().unwrap_or(&field.name);
    let about = field.description.as_deref().map(|about| format!(" – {}", visible_line(about))).unwrap_or_default();
    writeln!(paper.out, "{}{about}", visible_line(title)).ok();
    let choices = choices(&field.kind);
    for (number, choice) in choices.iter().enumerate().take(50) {
        let name = choice.title.as_deref().unwrap_or(&choice.value);
        writeln!(paper.out, "  {}) {}", number + 1, visible_line(name)).ok();
    }
    if choices.len() > 50 {
        writeln!(paper.out, "  … and {} more", choices.len() - 50).ok();
    }
    drop(paper);
    let prompt = format!("{}{}: ", visible_line(&field.name), wants(field));
    let safe = |text: &str| visible_line(text) == text;
    let suggested: Vec<(String, String)> = choices
        .iter()
        .filter(|choice| safe(&choice.value))
        .map(|choice| (choice.value.clone(), choice.title.clone().unwrap_or_else(|| choice.value.clone())))
        .collect();
    // A default is put in only where the line can show it as it is.
    let mut initial = before.or(field.default.as_ref()).map(text_of).filter(|text| safe(text)).unwrap_or_default();
    loop {
        match read(&prompt, &initial, suggested.clone()) {
            Typed::Back => return Given::Back,
            Typed::End => return Given::Decline,
            Typed::Cancel => return Given::Cancel,
            Typed::Line(line) => match parse(field, &line) {
                Ok(value) => return Given::Value(value),
                Err(problem) => {
                    let mut paper = Output::stderr();
                    writeln!(paper.out, "{} {}", paper.styled(WARNING, "again:"), visible_line(&problem)).ok();
                    initial = line;
                }
            },
        }
    }
}

/// What a field takes, in a word or two.
fn wants(field: &Field) -> String {
    let kind = match &field.kind {
        FieldKind::Text(Some(format)) => format!(" ({})", visible_line(format)),
        FieldKind::Integer => " (whole number)".to_owned(),
        FieldKind::Number => " (number)".to_owned(),
        FieldKind::Boolean => " (yes or no)".to_owned(),
        FieldKind::Any(_) => " (with commas between)".to_owned(),
        _ => String::new(),
    };
    format!("{kind}{}", if field.required { "" } else { " [optional]" })
}

fn choices(kind: &FieldKind) -> &[Choice] {
    match kind {
        FieldKind::One(choices) | FieldKind::Any(choices) => choices,
        _ => &[],
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(values) => values.iter().map(text_of).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// What a line means for a field; nothing for an empty line.
fn parse(field: &Field, line: &str) -> Result<Option<Value>, String> {
    let trimmed = line.trim();
    if line.is_empty() || trimmed.is_empty() && !matches!(field.kind, FieldKind::Text(_)) {
        return if field.required { Err("this has to be filled in".to_owned()) } else { Ok(None) };
    }
    let value = match &field.kind {
        FieldKind::Integer => {
            let number: i64 = trimmed.parse().map_err(|_| format!("`{trimmed}` is no whole number"))?;
            within(field, number as f64, "it")?;
            Value::from(number)
        }
        FieldKind::Number => {
            let number: f64 = trimmed.parse().map_err(|_| format!("`{trimmed}` is no number"))?;
            within(field, number, "it")?;
            Value::Number(Number::from_f64(number).ok_or_else(|| format!("`{trimmed}` is no number"))?)
        }
        FieldKind::Boolean => match trimmed.to_lowercase().as_str() {
            "y" | "yes" | "true" => Value::Bool(true),
            "n" | "no" | "false" => Value::Bool(false),
            _ => return Err("write yes or no".to_owned()),
        },
        FieldKind::One(choices) => Value::from(chosen(choices, trimmed)?),
        FieldKind::Any(choices) => {
            let parts = trimmed.split(',').map(str::trim).filter(|part| !part.is_empty());
            let values = parts.map(|part| chosen(choices, part).map(Value::from)).collect::<Result<Vec<_>, _>>()?;
            within(field, values.len() as f64, "how many are chosen")?;
            Value::Array(values)
        }
        _ => {
            within(field, line.chars().count() as f64, "its length")?;
            Value::from(line)
        }
    };
    Ok(Some(value))
}

fn within(field: &Field, number: f64, what: &str) -> Result<(), String> {
    match (field.least, field.most) {
        (Some(least), _) if number < least => Err(format!("{what} must be at least {least}")),
        (_, Some(most)) if number > most => Err(format!("{what} must be at most {most}")),
        _ => Ok(()),
    }
}

/// A choice by its value, its title or its number, in this order: a value can
/// look like a number.
fn chosen(choices: &[Choice], typed: &str) -> Result<String, String> {
    let by = |fits: &dyn Fn(&Choice) -> bool| choices.iter().find(|choice| fits(choice));
    let titled = |choice: &Choice| choice.title.as_deref().is_some_and(|title| title.eq_ignore_ascii_case(typed));
    by(&|choice| choice.value == typed)
        .or_else(|| by(&titled))
        .or_else(|| typed.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?)))
        .map(|choice| choice.value.clone())
        .ok_or_else(|| format!("`{typed}` is none of the choices"))
}

/// Whether somebody presses Enter.
pub(crate) fn agrees(prompt: &str) -> bool {
    matches!(read(prompt, "", Vec::new()), Typed::Line(_))
}

/// Reads one line; a terminal that cannot be read cancels.
fn read(prompt: &str, initial: &str, choices: Vec<(String, String)>) -> Typed {
    io::stderr().flush().ok();
    let line = Reader::new(Box::new(OfChoices(choices))).and_then(|mut reader| reader.read(prompt, initial));
    line.unwrap_or(Typed::Cancel)
}
