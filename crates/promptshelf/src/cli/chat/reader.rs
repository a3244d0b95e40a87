//! A line that somebody types, with completion, hints and an editor for long ones.

use std::{
    borrow::Cow,
    fs,
    io::{self, IsTerminal},
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use rustyline::{
    Behavior, Cmd, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event, EventContext, EventHandler,
    ExternalPrinter, Helper, KeyCode, KeyEvent, Modifiers, RepeatCount,
    completion::{Completer, Pair},
    error::ReadlineError,
    highlight::Highlighter,
    hint::Hinter,
    history::FileHistory,
    validate::{ValidationContext, ValidationResult, Validator},
};

/// How many suggestions are listed without a question.
const LISTED: usize = 100;

/// Helps with one kind of line.
pub(super) trait Assist {
    /// Where the word under the cursor begins, and what it could become.
    fn suggestions(&self, line: &str, at: usize) -> (usize, Vec<Suggestion>);
    /// What could follow; shown dimmed behind the line.
    fn hint(&self, line: &str) -> Option<String>;
    /// Whether the line goes on after Enter.
    fn is_open(&self, line: &str) -> bool;
}

/// Something that a word could become.
pub(super) struct Suggestion {
    /// What is put into the line. Must be safe to show.
    pub(super) text: String,
    /// What is listed. Must be safe to show.
    pub(super) shown: String,
}

/// What somebody has typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// A line, exactly as it was typed.
    Line(String),
    /// Shift-Tab.
    Back,
    /// Ctrl-C.
    Cancel,
    /// Ctrl-D on an empty line, or the end of stdin.
    End,
}

/// Reads lines.
pub(super) struct Reader {
    editor: Editor<Assistant, FileHistory>,
    pressed: Arc<AtomicU8>,
}

const NOTHING: u8 = 0;
const BACK: u8 = 1;
const EDIT: u8 = 2;

/// A key that ends the line for a reason.
struct Key(Arc<AtomicU8>, u8);

impl ConditionalEventHandler for Key {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        self.0.store(self.1, Ordering::Release);
        Some(Cmd::AcceptLine)
    }
}

impl Reader {
    pub(super) fn new(assist: Box<dyn Assist>) -> Result<Reader, ReadlineError> {
        // Where stdout is a pipe, the line is typed on the terminal itself.
        let behavior = if io::stdout().is_terminal() { Behavior::Stdio } else { Behavior::PreferTerm };
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .completion_prompt_limit(LISTED)
            .behavior(behavior)
            .bracketed_paste(true)
            .build();
        let pressed = Arc::new(AtomicU8::new(NOTHING));
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Assistant { assist, pressed: Arc::clone(&pressed) }));
        let key = |what| EventHandler::Conditional(Box::new(Key(Arc::clone(&pressed), what)));
        editor.bind_sequence(KeyEvent(KeyCode::BackTab, Modifiers::NONE), key(BACK));
        editor.bind_sequence(Event::KeySeq(vec![KeyEvent::ctrl('X'), KeyEvent::ctrl('E')]), key(EDIT));
        Ok(Reader { editor, pressed })
    }

    /// Something that can be called while a line is being typed.
    pub(super) fn printer(&mut self) -> Option<Box<dyn ExternalPrinter + Send>> {
        let printer = self.editor.create_external_printer().ok()?;
        Some(Box::new(printer))
    }

    /// Lines that the arrow keys bring back.
    pub(super) fn remember(&mut self, line: &str) {
        self.editor.add_history_entry(line).ok();
    }

    pub(super) fn load(&mut self, history: &Path) {
        self.editor.load_history(history).ok();
    }

    pub(super) fn save(&mut self, history: &Path) {
        self.editor.save_history(history).ok();
    }

    /// Reads one line that begins with `initial`.
    pub(super) fn read(&mut self, prompt: &str, initial: &str) -> Result<Typed, ReadlineError> {
        let mut text = initial.to_owned();
        loop {
            self.pressed.store(NOTHING, Ordering::Release);
            // An editor can bring back what no line shows as it is. It is taken as it stands.
            let line = match self.editor.readline_with_initial(prompt, (&text, "")) {
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => return Ok(Typed::Cancel),
                Err(ReadlineError::Eof) => return Ok(Typed::End),
                Err(error) => return Err(error),
            };
            match self.pressed.load(Ordering::Acquire) {
                BACK => return Ok(Typed::Back),
                EDIT => text = edited(&line)?,
                _ => return Ok(Typed::Line(line)),
            }
        }
    }
}

/// The text after somebody has been at it with their editor.
fn edited(text: &str) -> io::Result<String> {
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|it| !it.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    let file = tempfile::Builder::new().prefix("promptshelf-").suffix(".md").tempfile()?;
    fs::write(file.path(), text)?;
    // People put options into $EDITOR, so it goes through their shell as in git.
    let status = shell(&format!("{editor} \"$0\"")).arg(file.path()).status()?;
    if !status.success() {
        return Ok(text.to_owned());
    }
    let mut edited = fs::read_to_string(file.path())?;
    // Editors end a file with a line break that nobody typed.
    if edited.ends_with('\n') && !text.ends_with('\n') {
        edited.pop();
    }
    Ok(edited)
}

/// A command line of the person's own.
pub(super) fn shell(line: &str) -> Command {
    let mut command = Command::new(if cfg!(windows) { "cmd" } else { "sh" });
    command.arg(if cfg!(windows) { "/C" } else { "-c" }).arg(line);
    command
}

struct Assistant {
    assist: Box<dyn Assist>,
    pressed: Arc<AtomicU8>,
}

impl Helper for Assistant {}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, suggestions) = self.assist.suggestions(line, at);
        let pair = |one: Suggestion| Pair { display: one.shown, replacement: one.text };
        Ok((start, suggestions.into_iter().map(pair).collect()))
    }
}

impl Hinter for Assistant {
    type Hint = String;

    fn hint(&self, line: &str, at: usize, _: &Context<'_>) -> Option<String> {
        if at == line.len() { self.assist.hint(line) } else { None }
    }
}

impl Highlighter for Assistant {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            return Cow::Borrowed(hint);
        }
        Cow::Owned(format!("\x1b[2m{hint}\x1b[0m"))
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let ends = self.pressed.load(Ordering::Acquire) != NOTHING || !self.assist.is_open(context.input());
        Ok(if ends { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}
