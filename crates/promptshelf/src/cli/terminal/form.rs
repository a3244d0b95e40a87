//! Forms of servers (elicitations) on a terminal.

use std::{
    io::{self, Write},
    pin::Pin,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use anstyle::{AnsiColor, Style};
use promptshelf_client::{
    Choice, Elicitation, ElicitationHandler, ElicitationMode, ElicitationResponse, FieldKind, FormField, FormValues,
};
use serde_json::{Number, Value};

use super::{Assist, Line, LineReader, Progress, Suggestion, suggestion};
use crate::output::{Output, visible, visible_line};

const MAX_PRINTED_CHOICES: usize = 50;

const TITLE: Style = AnsiColor::Cyan.on_default().bold();

const WARNING: Style = AnsiColor::Yellow.on_default().bold();

pub(crate) struct TerminalForms {
    progress: Progress,
    declined: AtomicBool,
    shown: AtomicUsize,
}

impl TerminalForms {
    pub(crate) fn new(progress: Progress) -> TerminalForms {
        TerminalForms { progress, declined: AtomicBool::new(false), shown: AtomicUsize::new(0) }
    }

    pub(crate) fn was_declined(&self) -> bool {
        self.declined.load(Ordering::Acquire)
    }

    pub(crate) fn shown(&self) -> usize {
        self.shown.load(Ordering::Acquire)
    }
}

impl ElicitationHandler for TerminalForms {
    fn elicit(&self, elicitation: Elicitation) -> Pin<Box<dyn Future<Output = ElicitationResponse> + Send + '_>> {
        Box::pin(async move {
            let _paused = self.progress.pause();
            self.shown.fetch_add(1, Ordering::AcqRel);
            let response = tokio::task::spawn_blocking(move || show(&elicitation)).await;
            let response = response.unwrap_or(ElicitationResponse::Cancel);
            if matches!(response, ElicitationResponse::Decline | ElicitationResponse::Cancel) {
                self.declined.store(true, Ordering::Release);
            }
            response
        })
    }
}

fn show(elicitation: &Elicitation) -> ElicitationResponse {
    let mut stderr = Output::stderr();
    let from = stderr.styled(TITLE, &format!("{} asks:", visible_line(&elicitation.from)));
    writeln!(stderr.out, "\n{from} {}", visible(&elicitation.message)).ok();
    if let Some(secret) = elicitation.requested_secret() {
        let warning = stderr.styled(WARNING, "warning:");
        writeln!(
            stderr.out,
            "{warning} this seems to request {secret}. Servers must not request secrets in a form; Ctrl-D declines."
        )
        .ok();
    }
    // Reading a line writes to the terminal as well.
    drop(stderr);
    match &elicitation.mode {
        ElicitationMode::Url { url } => visit(url),
        ElicitationMode::Form(fields) => fill(elicitation, fields),
        _ => ElicitationResponse::Decline,
    }
}

/// Shows the URL of a page. Opening it is the user's decision.
fn visit(url: &str) -> ElicitationResponse {
    let mut stderr = Output::stderr();
    writeln!(stderr.out, "The server requests that you visit this page:\n\n  {}\n", visible_line(url)).ok();
    drop(stderr);
    match read("Enter after your visit, Ctrl-D to decline: ", "", Vec::new()) {
        Line::Text(_) => ElicitationResponse::Accept(FormValues::new()),
        Line::End => ElicitationResponse::Decline,
        Line::Back => ElicitationResponse::Back,
        Line::Cancel => ElicitationResponse::Cancel,
    }
}

fn fill(elicitation: &Elicitation, fields: &[FormField]) -> ElicitationResponse {
    let mut values: Vec<Option<Value>> = fields
        .iter()
        .map(|field| elicitation.previous.as_ref().and_then(|previous| previous.get(&field.name)).cloned())
        .collect();
    let mut stderr = Output::stderr();
    let back = if elicitation.can_go_back || fields.len() > 1 { "Shift-Tab goes back, " } else { "" };
    writeln!(stderr.out, "{}", stderr.dimmed(&format!("{back}Ctrl-D declines, Ctrl-C cancels"))).ok();
    drop(stderr);
    let mut at = 0;
    loop {
        while let Some(field) = fields.get(at) {
            if fields.len() > 1 {
                let mut stderr = Output::stderr();
                writeln!(stderr.out, "{}", stderr.dimmed(&format!("{} of {}", at + 1, fields.len()))).ok();
            }
            match read_field(field, values[at].as_ref()) {
                FieldInput::Value(value) => {
                    values[at] = value;
                    at += 1;
                }
                FieldInput::Back if at > 0 => at -= 1,
                FieldInput::Back if elicitation.can_go_back => return ElicitationResponse::Back,
                FieldInput::Back => {}
                FieldInput::Decline => return ElicitationResponse::Decline,
                FieldInput::Cancel => return ElicitationResponse::Cancel,
            }
        }
        // A single typed line is visible already; several are shown together before they are sent.
        if fields.len() < 2 && elicitation.requested_secret().is_none() {
            break;
        }
        review(elicitation, fields, &values);
        match read("Enter sends this, Shift-Tab goes back: ", "", Vec::new()) {
            Line::Text(_) => break,
            Line::Back => at = fields.len().saturating_sub(1),
            Line::End => return ElicitationResponse::Decline,
            Line::Cancel => return ElicitationResponse::Cancel,
        }
    }
    let filled = fields.iter().zip(values).filter_map(|(field, value)| Some((field.name.clone(), value?)));
    ElicitationResponse::Accept(filled.collect())
}

fn review(elicitation: &Elicitation, fields: &[FormField], values: &[Option<Value>]) {
    let mut stderr = Output::stderr();
    writeln!(stderr.out, "To {}:", visible_line(&elicitation.from)).ok();
    for (field, value) in fields.iter().zip(values) {
        let value = value.as_ref().map_or_else(|| "(nothing)".to_owned(), text_of);
        writeln!(stderr.out, "  {}: {}", visible_line(&field.name), visible_line(&value)).ok();
    }
}

enum FieldInput {
    Value(Option<Value>),
    Back,
    Decline,
    Cancel,
}

fn read_field(field: &FormField, previous: Option<&Value>) -> FieldInput {
    let mut stderr = Output::stderr();
    let title = field.title.as_deref().unwrap_or(&field.name);
    let about = field.description.as_deref().map(|about| format!(" – {}", visible_line(about))).unwrap_or_default();
    writeln!(stderr.out, "{}{about}", visible_line(title)).ok();
    let choices = choices(&field.kind);
    for (number, choice) in choices.iter().enumerate().take(MAX_PRINTED_CHOICES) {
        let name = choice.title.as_deref().unwrap_or(&choice.value);
        writeln!(stderr.out, "  {}) {}", number + 1, visible_line(name)).ok();
    }
    if choices.len() > MAX_PRINTED_CHOICES {
        writeln!(stderr.out, "  … and {} more", choices.len() - MAX_PRINTED_CHOICES).ok();
    }
    drop(stderr);
    let prompt = format!("{}{}: ", visible_line(&field.name), expectation(field));
    let safe = |text: &str| visible_line(text) == text;
    let suggested: Vec<(String, String)> = choices
        .iter()
        .filter(|choice| safe(&choice.value))
        .map(|choice| (choice.value.clone(), choice.title.clone().unwrap_or_else(|| choice.value.clone())))
        .collect();
    // A default is inserted only if the line can show it unescaped.
    let mut initial = previous.or(field.default.as_ref()).map(text_of).filter(|text| safe(text)).unwrap_or_default();
    loop {
        match read(&prompt, &initial, suggested.clone()) {
            Line::Back => return FieldInput::Back,
            Line::End => return FieldInput::Decline,
            Line::Cancel => return FieldInput::Cancel,
            Line::Text(line) => match parse(field, &line) {
                Ok(value) => return FieldInput::Value(value),
                Err(problem) => {
                    let mut stderr = Output::stderr();
                    writeln!(stderr.out, "{} {}", stderr.styled(WARNING, "invalid:"), visible_line(&problem)).ok();
                    // A long text is corrected; a short value is typed again.
                    initial = if matches!(field.kind, FieldKind::Text(_)) { line } else { String::new() };
                }
            },
        }
    }
}

fn expectation(field: &FormField) -> String {
    let kind = match &field.kind {
        FieldKind::Text(Some(format)) => format!(" ({})", visible_line(format)),
        FieldKind::Integer => " (whole number)".to_owned(),
        FieldKind::Number => " (number)".to_owned(),
        FieldKind::Boolean => " (yes or no)".to_owned(),
        FieldKind::Any(_) => " (separated by commas)".to_owned(),
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

/// Parses the input for a field; `None` for an empty line.
fn parse(field: &FormField, line: &str) -> Result<Option<Value>, String> {
    let trimmed = line.trim();
    if line.is_empty() || trimmed.is_empty() && !matches!(field.kind, FieldKind::Text(_)) {
        return if field.required { Err("expected a value".to_owned()) } else { Ok(None) };
    }
    let value = match &field.kind {
        FieldKind::Integer => {
            let number: i64 = trimmed.parse().map_err(|_| format!("expected a whole number, got `{trimmed}`"))?;
            within(field, number as f64, "the number")?;
            Value::from(number)
        }
        FieldKind::Number => {
            let number: f64 = trimmed.parse().map_err(|_| format!("expected a number, got `{trimmed}`"))?;
            within(field, number, "the number")?;
            Value::Number(Number::from_f64(number).ok_or_else(|| format!("expected a number, got `{trimmed}`"))?)
        }
        FieldKind::Boolean => match trimmed.to_lowercase().as_str() {
            "y" | "yes" | "true" => Value::Bool(true),
            "n" | "no" | "false" => Value::Bool(false),
            _ => return Err("expected yes or no".to_owned()),
        },
        FieldKind::One(choices) => Value::from(chosen(choices, trimmed)?),
        FieldKind::Any(choices) => {
            let parts = trimmed.split(',').map(str::trim).filter(|part| !part.is_empty());
            let values = parts.map(|part| chosen(choices, part).map(Value::from)).collect::<Result<Vec<_>, _>>()?;
            within(field, values.len() as f64, "the number of choices")?;
            Value::Array(values)
        }
        _ => {
            within(field, line.chars().count() as f64, "the length")?;
            Value::from(line)
        }
    };
    Ok(Some(value))
}

fn within(field: &FormField, number: f64, what: &str) -> Result<(), String> {
    match (field.minimum, field.maximum) {
        (Some(minimum), _) if number < minimum => Err(format!("{what} must be at least {minimum}")),
        (_, Some(maximum)) if number > maximum => Err(format!("{what} must be at most {maximum}")),
        _ => Ok(()),
    }
}

/// Finds a choice by its value, its title or its number, in this order: a value can look like a number.
fn chosen(choices: &[Choice], typed: &str) -> Result<String, String> {
    let by = |fits: &dyn Fn(&Choice) -> bool| choices.iter().find(|choice| fits(choice));
    let titled = |choice: &Choice| choice.title.as_deref().is_some_and(|title| title.eq_ignore_ascii_case(typed));
    by(&|choice| choice.value == typed)
        .or_else(|| by(&titled))
        .or_else(|| typed.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?)))
        .map(|choice| choice.value.clone())
        .ok_or_else(|| format!("expected one of the choices, got `{typed}`"))
}

pub(crate) fn confirm(prompt: &str) -> bool {
    matches!(read(prompt, "", Vec::new()), Line::Text(_))
}

/// Asks a question that only `y` or `yes` agrees to.
pub(crate) fn agree(question: &str) -> bool {
    asked(question) == Some(true)
}

/// Asks a question like [`agree`]; `None` if the person interrupts it.
pub(crate) fn asked(question: &str) -> Option<bool> {
    match read(question, "", Vec::new()) {
        Line::Text(answer) => Some(matches!(answer.trim(), "y" | "yes")),
        Line::Cancel => None,
        Line::Back | Line::End => Some(false),
    }
}

/// Reads one line. An unreadable terminal cancels.
fn read(prompt: &str, initial: &str, choices: Vec<(String, String)>) -> Line {
    io::stderr().flush().ok();
    let line = LineReader::new(Box::new(ChoiceAssist(choices))).and_then(|mut reader| reader.read(prompt, initial));
    line.unwrap_or(Line::Cancel)
}

struct ChoiceAssist(Vec<(String, String)>);

impl Assist for ChoiceAssist {
    fn suggestions(&self, line: &str, at: usize) -> (usize, Vec<Suggestion>) {
        // Of several values, the last one is being typed.
        let start = line[..at].rfind(',').map_or(0, |comma| comma + 1);
        let start = start + line[start..at].len() - line[start..at].trim_start().len();
        let typed = line[start..at].to_lowercase();
        let fitting = self.0.iter().filter(|(value, title)| {
            value.to_lowercase().starts_with(&typed) || title.to_lowercase().starts_with(&typed)
        });
        (start, fitting.map(|(value, title)| suggestion(value.clone(), title)).collect())
    }

    fn hint(&self, _: &str) -> Option<String> {
        None
    }

    fn is_open(&self, _: &str) -> bool {
        false
    }
}
