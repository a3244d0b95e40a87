//! What can be typed next: commands, argument names, and values that the
//! server suggests while somebody types.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use promptshelf_client::{Client, Of, OfferedArgument};
use promptshelf_core::Variables;
use tokio::runtime::Handle;

use super::{
    actions::WORDS,
    call::{self, Piece, quoted},
    reader::{Assist, Suggestion},
    shelf::{Entry, Shelf},
};
use crate::{
    commands::list::{placeholder, shortened},
    output::{visible, visible_line},
};

/// How long a key may be delayed for a hint.
const UNNOTICED: Duration = Duration::from_millis(120);
/// How long somebody waits who has pressed Tab.
const PATIENCE: Duration = Duration::from_secs(3);
/// How many answers are kept before all are forgotten.
const KEPT: usize = 1000;
/// As much as is shown of a suggestion.
const SHOWN: usize = 80;

/// Asks servers for values, and keeps what they have said.
#[derive(Clone)]
pub(super) struct Suggestions {
    runtime: Handle,
    kept: Arc<Mutex<HashMap<Key, Vec<String>>>>,
}

type Key = (String, String, String, String, Variables);

impl Suggestions {
    pub(super) fn new(runtime: Handle) -> Suggestions {
        Suggestions { runtime, kept: Arc::default() }
    }

    /// Suggested values, if they are there in time. What comes later is kept
    /// for the next key.
    fn of(&self, entry: &Entry, argument: &str, typed: &str, known: &Variables, patience: Duration) -> Vec<String> {
        if !entry.server.client.completes() {
            return Vec::new();
        }
        let strings = (entry.server.name.clone(), entry.prompt.name.clone(), argument.to_owned(), typed.to_owned());
        let key: Key = (strings.0, strings.1, strings.2, strings.3, known.clone());
        if let Some(values) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return values.clone();
        }
        let (say, said) = mpsc::channel();
        let (client, kept): (Client, _) = (entry.server.client.in_background(), Arc::clone(&self.kept));
        self.runtime.spawn(async move {
            let (_, prompt, argument, typed, known) = &key;
            let Ok(completion) = client.complete(Of::Prompt(prompt), argument, typed, known).await else { return };
            // What cannot be shown as it is cannot be put into a line either.
            let values: Vec<String> = completion.values.into_iter().filter(|value| visible(value) == *value).collect();
            say.send(values.clone()).ok();
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() >= KEPT {
                kept.clear();
            }
            kept.insert(key, values);
        });
        said.recv_timeout(patience).unwrap_or_default()
    }

    /// Forgets what a server has said, for instance because its prompts have changed.
    pub(super) fn forget(&self, server: &str) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).retain(|(of, ..), _| of != server);
    }
}

fn suggestion(text: String, shown: &str) -> Suggestion {
    Suggestion { text, shown: shortened(&visible_line(shown), SHOWN) }
}

/// Helps with the lines of a chat.
pub(super) struct OfChat {
    pub(super) shelf: Shelf,
    pub(super) suggestions: Suggestions,
}

impl OfChat {
    /// The prompt of a line, and the part of the line that holds its values.
    fn entry<'l>(&self, line: &'l str) -> Option<(Entry, &'l str)> {
        let (command, values) = call::split(line)?;
        let entry = self.shelf.find(command)?;
        Some((entry, values))
    }

    fn commands(&self, typed: &str) -> Vec<Suggestion> {
        let entries = self.shelf.entries();
        // Who types a name does not know yet that two servers have it.
        let fits = |entry: &&Entry| entry.command.starts_with(typed) || entry.prompt.name.starts_with(typed);
        let fitting = entries.iter().filter(fits);
        let shown = |entry: &Entry| {
            let about = entry.prompt.description.as_deref().or(entry.prompt.title.as_deref()).unwrap_or_default();
            format!("/{}  {about}", entry.command)
        };
        let completed = |entry: &Entry| {
            let space = if entry.prompt.arguments.is_empty() { "" } else { " " };
            format!("/{}{space}", entry.command)
        };
        fitting.map(|entry| suggestion(completed(entry), &shown(entry))).collect()
    }
}

/// What is known beside the piece that is being typed.
fn known(pieces: &[Piece], arguments: &[OfferedArgument], but: Option<usize>) -> Variables {
    let name = |(at, piece): (usize, &Piece)| {
        let name = piece.name.clone().or_else(|| arguments.get(at).map(|argument| argument.name.clone()))?;
        Some((name, piece.value.clone()))
    };
    pieces.iter().enumerate().filter(|(at, _)| Some(*at) != but).filter_map(name).collect()
}

/// The argument that the end of a line is about, and what has been typed of its value.
struct Current<'a> {
    argument: &'a OfferedArgument,
    typed: String,
    /// Where the value begins in the text of the values.
    value_at: usize,
    known: Variables,
}

fn current<'a>(text: &str, arguments: &'a [OfferedArgument]) -> Option<Current<'a>> {
    let pieces = call::pieces(text, arguments);
    let last = pieces.len().checked_sub(1);
    let typing = last.map(|at| &pieces[at]).filter(|piece| piece.open || piece.at.end == text.len() && !piece.quoted);
    match typing {
        Some(piece) => {
            let by_name = |name: &String| arguments.iter().find(|argument| argument.name == *name);
            let argument = match &piece.name {
                Some(name) => by_name(name)?,
                None => arguments.get(last?)?,
            };
            let known = known(&pieces, arguments, last);
            Some(Current { argument, typed: piece.value.clone(), value_at: piece.value_at, known })
        }
        None if text.is_empty() || !text.ends_with(char::is_whitespace) => None,
        None => {
            let known = known(&pieces, arguments, None);
            let argument = arguments.iter().find(|argument| !known.contains_key(&argument.name))?;
            Some(Current { argument, typed: String::new(), value_at: text.len(), known })
        }
    }
}

impl Assist for OfChat {
    fn suggestions(&self, line: &str, at: usize) -> (usize, Vec<Suggestion>) {
        let line = &line[..at];
        let Some((command, values)) = call::split(line) else {
            let fitting = WORDS.iter().filter(|(word, _)| word.starts_with(line) && !line.is_empty());
            return (
                0,
                fitting.map(|(word, about)| suggestion((*word).to_owned(), &format!("{word}  {about}"))).collect(),
            );
        };
        if values.is_empty() {
            return (line.len() - command.len() - 1, self.commands(command));
        }
        let Some((entry, values)) = self.entry(line) else { return (at, Vec::new()) };
        let before = line.len() - values.len();
        let arguments = &entry.prompt.arguments;
        let Some(current) = current(values, arguments) else { return (at, Vec::new()) };
        let of = |value: String| suggestion(quoted(&value), &value);
        let found = self.suggestions.of(&entry, &current.argument.name, &current.typed, &current.known, PATIENCE);
        let mut all: Vec<Suggestion> = found.into_iter().map(of).collect();
        let is_start = values[current.value_at..].chars().all(char::is_alphanumeric);
        let is_named = values[..current.value_at].ends_with('=');
        if is_start && !is_named && arguments.len() > 1 {
            let missing = arguments.iter().filter(|argument| !current.known.contains_key(&argument.name));
            let fitting = missing.filter(|argument| argument.name.starts_with(&current.typed));
            all.extend(fitting.filter(|argument| visible_line(&argument.name) == argument.name).map(|argument| {
                let about = argument.description.as_deref().unwrap_or_default();
                suggestion(format!("{}=", argument.name), &format!("{}=  {about}", argument.name))
            }));
        }
        (before + current.value_at, all)
    }

    fn hint(&self, line: &str) -> Option<String> {
        let (entry, values) = self.entry(line)?;
        let arguments = &entry.prompt.arguments;
        if let Some(current) = current(values, arguments).filter(|current| !current.typed.is_empty()) {
            let found = self.suggestions.of(&entry, &current.argument.name, &current.typed, &current.known, UNNOTICED);
            let rest =
                found.iter().find_map(|value| value.strip_prefix(&current.typed)).filter(|rest| !rest.is_empty());
            return rest.map(|rest| visible_line(rest).into_owned());
        }
        let pieces = call::pieces(values, arguments);
        let known = known(&pieces, arguments, None);
        let missing = arguments.iter().filter(|argument| !known.contains_key(&argument.name));
        let missing: Vec<String> = missing.map(|a| placeholder(&visible_line(&a.name), a.required)).collect();
        if missing.is_empty() || pieces.last().is_some_and(|piece| piece.open) {
            return None;
        }
        let space = if values.ends_with(char::is_whitespace) { "" } else { " " };
        Some(format!("{space}{}", missing.join(" ")))
    }

    fn is_open(&self, line: &str) -> bool {
        self.entry(line).is_some_and(|(entry, values)| {
            let arguments = &entry.prompt.arguments;
            let pieces = call::pieces(values, arguments);
            // The only argument takes its line as it is, apostrophes included.
            let verbatim =
                arguments.len() == 1 && pieces.first().is_some_and(|first| first.name.is_none() && !first.quoted);
            !verbatim && pieces.last().is_some_and(|piece| piece.open)
        })
    }
}

/// Helps with the value of one argument, typed without quotes.
pub(super) struct OfArgument {
    pub(super) entry: Entry,
    pub(super) argument: String,
    pub(super) known: Variables,
    pub(super) suggestions: Suggestions,
}

impl Assist for OfArgument {
    fn suggestions(&self, line: &str, at: usize) -> (usize, Vec<Suggestion>) {
        let found = self.suggestions.of(&self.entry, &self.argument, &line[..at], &self.known, PATIENCE);
        (0, found.into_iter().map(|value| suggestion(value.clone(), &value)).collect())
    }

    fn hint(&self, line: &str) -> Option<String> {
        if line.is_empty() {
            return None;
        }
        let found = self.suggestions.of(&self.entry, &self.argument, line, &self.known, UNNOTICED);
        let rest = found.iter().find_map(|value| value.strip_prefix(line)).filter(|rest| !rest.is_empty())?;
        Some(visible_line(rest).into_owned())
    }

    fn is_open(&self, _: &str) -> bool {
        false
    }
}

/// Helps with a field that takes one of a few values.
pub(super) struct OfChoices(pub(super) Vec<(String, String)>);

impl Assist for OfChoices {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_line_is_about_one_argument() {
        let arguments: Vec<OfferedArgument> = ["code", "language"].map(OfferedArgument::named).into();
        let about = |text: &str| {
            current(text, &arguments).map(|current| (current.argument.name.clone(), current.typed, current.value_at))
        };
        assert_eq!(about(" "), Some(("code".to_owned(), String::new(), 1)));
        assert_eq!(about(" x"), Some(("code".to_owned(), "x".to_owned(), 1)));
        assert_eq!(about(" x ru"), Some(("language".to_owned(), "ru".to_owned(), 3)));
        assert_eq!(about(" language='ru st"), Some(("language".to_owned(), "ru st".to_owned(), 10)));
        assert_eq!(about(" language='rust'"), None);
        assert_eq!(about(" language=rust "), Some(("code".to_owned(), String::new(), 15)));
        assert_eq!(about(" a b "), None);
    }
}
