//! Input from a person at the terminal: lines with completion, forms, and the progress of waiting.

mod form;

use std::{
    borrow::Cow,
    fs,
    io::{self, IsTerminal, Write},
    path::Path,
    process::Command,
    sync::{
        Arc, LazyLock, Once,
        atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering},
    },
    time::Duration,
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
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior},
};

use crate::output::{is_quiet, shortened, visible_line};

pub(crate) use self::form::{TerminalForms, agree, asked, confirm};

pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Notices Ctrl-C, so that a file which is being written is written as a whole.
pub(crate) struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    /// From here on Ctrl-C does not end the program.
    pub(crate) fn noticed() -> Interrupted {
        let flag = Arc::new(AtomicBool::new(false));
        let noticed = Arc::clone(&flag);
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                noticed.store(true, Ordering::Release);
            }
        });
        Interrupted(flag)
    }

    pub(crate) fn is_so(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Ends the program as Ctrl-C does, if it was pressed.
    pub(crate) fn end(&self) {
        const OF_SIGNAL: i32 = 128 + 2;
        if self.is_so() {
            std::process::exit(OF_SIGNAL)
        }
    }
}

/// The number of the signal that ends the program once its connections are closed; 0 before.
static SIGNAL: LazyLock<watch::Sender<i32>> = LazyLock::new(|| watch::Sender::new(0));

static SIGNALS: Once = Once::new();

/// Leaves signals to the command, such as Ctrl-C that ends a request and not the program.
pub(crate) fn handles_signals() {
    SIGNALS.call_once(|| {});
}

/// From here on Ctrl-C and SIGTERM end the program only after its connections are closed: processes of servers would stay.
pub(crate) fn close_on_signals() {
    SIGNALS.call_once(|| {
        tokio::spawn(async {
            let number = signal().await;
            SIGNAL.send_replace(number);
            // The same again ends it at once, as does work that cannot be interrupted.
            tokio::time::timeout(Duration::from_secs(8), signal()).await.ok();
            std::process::exit(128 + number);
        });
    });
}

/// Returns the number of a signal that ends the program.
pub(crate) async fn signalled() -> i32 {
    let mut signal = SIGNAL.subscribe();
    let number = signal.wait_for(|number| *number != 0).await;
    number.map_or(0, |number| *number)
}

async fn signal() -> i32 {
    const SIGINT: i32 = 2;
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        const SIGTERM: i32 = 15;
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            return tokio::select! {
                _ = terminate.recv() => SIGTERM,
                _ = tokio::signal::ctrl_c() => SIGINT,
            };
        }
    }
    tokio::signal::ctrl_c().await.ok();
    SIGINT
}

const DELAY: Duration = Duration::from_secs(1);

/// Shows that the program waits for a server. Clones share their pauses.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    server: String,
    terminal: bool,
    pauses: Arc<AtomicUsize>,
}

/// Hides the progress until it is dropped.
pub(crate) struct Paused(Arc<AtomicUsize>);

impl Drop for Paused {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Progress {
    /// Creates the progress of a wait for `server`, which is printed verbatim and must be safe to print.
    pub(crate) fn new(server: String) -> Progress {
        Progress { server, terminal: io::stderr().is_terminal() && !is_quiet(), pauses: Arc::default() }
    }

    /// Hides the progress while the user types at the same terminal.
    pub(crate) fn pause(&self) -> Paused {
        self.pauses.fetch_add(1, Ordering::AcqRel);
        if self.terminal {
            clear();
        }
        Paused(Arc::clone(&self.pauses))
    }

    /// Waits for an answer, and shows it once it takes long.
    pub(crate) async fn during<T>(&self, answer: impl Future<Output = T>) -> T {
        if !self.terminal {
            return answer.await;
        }
        let mut answer = std::pin::pin!(answer);
        let start = Instant::now();
        let mut ticks = tokio::time::interval_at(start + DELAY, Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut is_shown = false;
        let answer = loop {
            tokio::select! {
                answer = &mut answer => break answer,
                _ = ticks.tick() => {
                    if self.pauses.load(Ordering::Acquire) == 0 {
                        is_shown = true;
                        let seconds = start.elapsed().as_secs();
                        write!(io::stderr(), "\r\x1b[Kwaiting for {} ({seconds} s)", self.server).ok();
                    }
                }
            }
        };
        if is_shown {
            clear();
        }
        answer
    }
}

fn clear() {
    write!(io::stderr(), "\r\x1b[K").ok();
}

/// How many suggestions are listed without a confirmation.
const MAX_LISTED: usize = 100;

pub(crate) trait Assist {
    fn suggestions(&self, line: &str, at: usize) -> (usize, Vec<Suggestion>);
    fn hint(&self, line: &str) -> Option<String>;
    /// Returns whether Enter continues the line instead of ending it.
    fn is_open(&self, line: &str) -> bool;
}

pub(crate) struct Suggestion {
    /// The text that replaces the word. Must be safe to print.
    pub(crate) text: String,
    /// The text in the list of suggestions. Must be safe to print.
    pub(crate) label: String,
}

const MAX_LABEL: usize = 80;

pub(crate) fn suggestion(text: String, label: &str) -> Suggestion {
    Suggestion { text, label: shortened(&visible_line(label), MAX_LABEL) }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line, exactly as it was typed.
    Text(String),
    Back,
    Cancel,
    /// Ctrl-D on an empty line, or the end of stdin.
    End,
}

pub(crate) struct LineReader {
    editor: Editor<Assistant, FileHistory>,
    pressed: Arc<AtomicU8>,
}

const NOTHING: u8 = 0;

const BACK: u8 = 1;

const EDIT: u8 = 2;

struct Key(Arc<AtomicU8>, u8);

impl ConditionalEventHandler for Key {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        self.0.store(self.1, Ordering::Release);
        Some(Cmd::AcceptLine)
    }
}

impl LineReader {
    pub(crate) fn new(assist: Box<dyn Assist>) -> Result<LineReader, ReadlineError> {
        // With stdout in a pipe, the line is typed on the controlling terminal.
        let behavior = if io::stdout().is_terminal() { Behavior::Stdio } else { Behavior::PreferTerm };
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .completion_prompt_limit(MAX_LISTED)
            .completion_show_all_if_ambiguous(true)
            .behavior(behavior)
            .bracketed_paste(true)
            .build();
        let pressed = Arc::new(AtomicU8::new(NOTHING));
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Assistant { assist, pressed: Arc::clone(&pressed) }));
        let key = |what| EventHandler::Conditional(Box::new(Key(Arc::clone(&pressed), what)));
        editor.bind_sequence(KeyEvent(KeyCode::BackTab, Modifiers::NONE), key(BACK));
        editor.bind_sequence(Event::KeySeq(vec![KeyEvent::ctrl('X'), KeyEvent::ctrl('E')]), key(EDIT));
        Ok(LineReader { editor, pressed })
    }

    /// Returns a printer that can be used while a line is being typed.
    pub(crate) fn printer(&mut self) -> Option<Box<dyn ExternalPrinter + Send>> {
        let printer = self.editor.create_external_printer().ok()?;
        Some(Box::new(printer))
    }

    pub(crate) fn remember(&mut self, line: &str) {
        self.editor.add_history_entry(line).ok();
    }

    pub(crate) fn load(&mut self, history: &Path) {
        self.editor.load_history(history).ok();
    }

    pub(crate) fn save(&mut self, history: &Path) {
        self.editor.save_history(history).ok();
    }

    /// Reads one line that begins with `initial`.
    pub(crate) fn read(&mut self, prompt: &str, initial: &str) -> Result<Line, ReadlineError> {
        let mut text = initial.to_owned();
        loop {
            self.pressed.store(NOTHING, Ordering::Release);
            // The external editor can return characters that a line cannot show; they are kept.
            let line = match self.editor.readline_with_initial(prompt, (&text, "")) {
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => return Ok(Line::Cancel),
                Err(ReadlineError::Eof) => return Ok(Line::End),
                Err(error) => return Err(error),
            };
            match self.pressed.load(Ordering::Acquire) {
                BACK => return Ok(Line::Back),
                EDIT => text = edited(&line)?,
                _ => return Ok(Line::Text(line)),
            }
        }
    }
}

fn edited(text: &str) -> io::Result<String> {
    let editor =
        ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    let file = tempfile::Builder::new().prefix("promptshelf-").suffix(".md").tempfile()?;
    fs::write(file.path(), text)?;
    // $EDITOR can contain options, so it runs in a shell, as in git.
    let status = shell(&format!("{editor} \"$0\"")).arg(file.path()).status()?;
    if !status.success() {
        return Ok(text.to_owned());
    }
    let mut edited = fs::read_to_string(file.path())?;
    // Editors add a line break at the end of a file.
    if edited.ends_with('\n') && !text.ends_with('\n') {
        edited.pop();
    }
    Ok(edited)
}

pub(crate) fn shell(line: &str) -> Command {
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
        let pair = |one: Suggestion| Pair { display: one.label, replacement: one.text };
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
