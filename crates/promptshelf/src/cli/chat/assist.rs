//! Completion and hints of a chat: commands, argument names, and values that the server suggests.

use std::{
    collections::HashMap,
    sync::{Arc, mpsc},
    time::Duration,
};

use parking_lot::Mutex;
use promptshelf_client::{Arguments, CompletionTarget, PromptArgument};
use tokio::runtime::Handle;

use super::{
    ChatPrompt, PromptList,
    actions::WORDS,
    call::{self, TypedValue, quoted},
};
use crate::{
    commands::list::placeholder,
    output::{visible, visible_line},
    terminal::{Assist, Suggestion, suggestion},
};

const HINT_TIMEOUT: Duration = Duration::from_millis(120);

const TAB_TIMEOUT: Duration = Duration::from_secs(3);

/// The most cached answers; beyond it the cache is cleared.
const MAX_CACHED: usize = 1000;

#[derive(Clone)]
pub(super) struct Suggestions {
    runtime: Handle,
    cache: Arc<Mutex<HashMap<Key, Vec<String>>>>,
}

type Key = (String, String, String, String, Arguments);

impl Suggestions {
    pub(super) fn new(runtime: Handle) -> Suggestions {
        Suggestions { runtime, cache: Arc::default() }
    }

    /// Returns suggested values if they arrive in time. A later answer is cached for the next key press.
    fn get(
        &self,
        prompt: &ChatPrompt,
        argument: &str,
        typed: &str,
        known: &Arguments,
        timeout: Duration,
    ) -> Vec<String> {
        if !prompt.server.client.has_completions() {
            return Vec::new();
        }
        let strings = (prompt.server.name.clone(), prompt.info.name.clone(), argument.to_owned(), typed.to_owned());
        let key: Key = (strings.0, strings.1, strings.2, strings.3, known.clone());
        if let Some(values) = self.cache.lock().get(&key) {
            return values.clone();
        }
        let (sender, receiver) = mpsc::channel();
        let (client, cache) = (prompt.server.client.without_sign_in(), Arc::clone(&self.cache));
        self.runtime.spawn(async move {
            let (_, prompt, argument, typed, known) = &key;
            let Ok(completion) = client.complete(CompletionTarget::Prompt(prompt), argument, typed, known).await else {
                return;
            };
            // A line can hold only values that are safe to print.
            let values: Vec<String> = completion.values.into_iter().filter(|value| visible(value) == *value).collect();
            sender.send(values.clone()).ok();
            let mut cache = cache.lock();
            if cache.len() >= MAX_CACHED {
                cache.clear();
            }
            cache.insert(key, values);
        });
        receiver.recv_timeout(timeout).unwrap_or_default()
    }

    /// Removes the cached values of a server, for instance because its prompts have changed.
    pub(super) fn clear(&self, server: &str) {
        self.cache.lock().retain(|(name, ..), _| name != server);
    }
}

pub(super) struct ChatAssist {
    pub(super) prompts: PromptList,
    pub(super) suggestions: Suggestions,
}

impl ChatAssist {
    /// Returns the prompt of a line, and the part of the line with its values.
    fn prompt<'l>(&self, line: &'l str) -> Option<(ChatPrompt, &'l str)> {
        let (command, values) = call::split(line)?;
        let prompt = self.prompts.find(command)?;
        Some((prompt, values))
    }

    fn commands(&self, typed: &str) -> Vec<Suggestion> {
        let prompts = self.prompts.all();
        // A name completes to its command, which has a prefix if several servers have the name.
        let matches = |prompt: &&ChatPrompt| prompt.command.starts_with(typed) || prompt.info.name.starts_with(typed);
        let matching = prompts.iter().filter(matches);
        let label = |prompt: &ChatPrompt| {
            let about = prompt.info.description.as_deref().or(prompt.info.title.as_deref()).unwrap_or_default();
            format!("/{}  {about}", prompt.command)
        };
        let completed = |prompt: &ChatPrompt| {
            let space = if prompt.info.arguments.is_empty() { "" } else { " " };
            format!("/{}{space}", prompt.command)
        };
        matching.map(|prompt| suggestion(completed(prompt), &label(prompt))).collect()
    }
}

/// Returns the values of a line, except the one at `except`, which is being typed.
fn known(values: &[TypedValue], arguments: &[PromptArgument], except: Option<usize>) -> Arguments {
    let name = |(index, value): (usize, &TypedValue)| {
        let name = value.name.clone().or_else(|| arguments.get(index).map(|argument| argument.name.clone()))?;
        Some((name, value.value.clone()))
    };
    values.iter().enumerate().filter(|(index, _)| Some(*index) != except).filter_map(name).collect()
}

/// The argument at the end of a line, and the typed part of its value.
struct Current<'a> {
    argument: &'a PromptArgument,
    typed: String,
    value_at: usize,
    known: Arguments,
}

fn current<'a>(text: &str, arguments: &'a [PromptArgument]) -> Option<Current<'a>> {
    let typed_values = call::values(text, arguments);
    let last = typed_values.len().checked_sub(1);
    let typing = last
        .map(|index| &typed_values[index])
        .filter(|value| value.is_open || value.range.end == text.len() && !value.is_quoted);
    match typing {
        Some(value) => {
            let by_name = |name: &String| arguments.iter().find(|argument| argument.name == *name);
            let argument = match &value.name {
                Some(name) => by_name(name)?,
                None => arguments.get(last?)?,
            };
            let known = known(&typed_values, arguments, last);
            Some(Current { argument, typed: value.value.clone(), value_at: value.value_at, known })
        }
        None if text.is_empty() || !text.ends_with(char::is_whitespace) => None,
        None => {
            let known = known(&typed_values, arguments, None);
            let argument = arguments.iter().find(|argument| !known.contains_key(&argument.name))?;
            Some(Current { argument, typed: String::new(), value_at: text.len(), known })
        }
    }
}

impl Assist for ChatAssist {
    fn suggestions(&self, line: &str, at: usize) -> (usize, Vec<Suggestion>) {
        let line = &line[..at];
        if line.trim().is_empty() {
            return (at, self.commands(""));
        }
        let Some((command, values)) = call::split(line) else {
            let matching = WORDS.iter().filter(|(word, _)| word.starts_with(line));
            return (
                0,
                matching.map(|(word, about)| suggestion((*word).to_owned(), &format!("{word}  {about}"))).collect(),
            );
        };
        if values.is_empty() {
            return (line.len() - command.len() - 1, self.commands(command));
        }
        let Some((prompt, values)) = self.prompt(line) else { return (at, Vec::new()) };
        let before = line.len() - values.len();
        let arguments = &prompt.info.arguments;
        let Some(current) = current(values, arguments) else { return (at, Vec::new()) };
        let quoted = |value: String| suggestion(quoted(&value), &value);
        let found = self.suggestions.get(&prompt, &current.argument.name, &current.typed, &current.known, TAB_TIMEOUT);
        let mut all: Vec<Suggestion> = found.into_iter().map(quoted).collect();
        let is_start = values[current.value_at..].chars().all(char::is_alphanumeric);
        let is_named = values[..current.value_at].ends_with('=');
        if is_start && !is_named && arguments.len() > 1 {
            let missing = arguments.iter().filter(|argument| !current.known.contains_key(&argument.name));
            let matching = missing.filter(|argument| argument.name.starts_with(&current.typed));
            all.extend(matching.filter(|argument| visible_line(&argument.name) == argument.name).map(|argument| {
                let about = argument.description.as_deref().unwrap_or_default();
                suggestion(format!("{}=", argument.name), &format!("{}=  {about}", argument.name))
            }));
        }
        (before + current.value_at, all)
    }

    fn hint(&self, line: &str) -> Option<String> {
        let (prompt, values) = self.prompt(line)?;
        let arguments = &prompt.info.arguments;
        if let Some(current) = current(values, arguments).filter(|current| !current.typed.is_empty()) {
            let found =
                self.suggestions.get(&prompt, &current.argument.name, &current.typed, &current.known, HINT_TIMEOUT);
            let rest =
                found.iter().find_map(|value| value.strip_prefix(&current.typed)).filter(|rest| !rest.is_empty());
            return rest.map(|rest| visible_line(rest).into_owned());
        }
        let typed_values = call::values(values, arguments);
        let known = known(&typed_values, arguments, None);
        let missing = arguments.iter().filter(|argument| !known.contains_key(&argument.name));
        let missing: Vec<String> = missing.map(|a| placeholder(&visible_line(&a.name), a.required)).collect();
        if missing.is_empty() || typed_values.last().is_some_and(|value| value.is_open) {
            return None;
        }
        let space = if values.ends_with(char::is_whitespace) { "" } else { " " };
        Some(format!("{space}{}", missing.join(" ")))
    }

    fn is_open(&self, line: &str) -> bool {
        self.prompt(line).is_some_and(|(prompt, values)| {
            let arguments = &prompt.info.arguments;
            let typed_values = call::values(values, arguments);
            // A single argument takes the rest of the line verbatim, apostrophes included.
            let verbatim = arguments.len() == 1
                && typed_values.first().is_some_and(|first| first.name.is_none() && !first.is_quoted);
            !verbatim && typed_values.last().is_some_and(|value| value.is_open)
        })
    }
}

/// Completion of the value of one argument, typed without quotes.
pub(super) struct ArgumentAssist {
    pub(super) prompt: ChatPrompt,
    pub(super) argument: String,
    pub(super) known: Arguments,
    pub(super) suggestions: Suggestions,
}

impl Assist for ArgumentAssist {
    fn suggestions(&self, line: &str, at: usize) -> (usize, Vec<Suggestion>) {
        let found = self.suggestions.get(&self.prompt, &self.argument, &line[..at], &self.known, TAB_TIMEOUT);
        (0, found.into_iter().map(|value| suggestion(value.clone(), &value)).collect())
    }

    fn hint(&self, line: &str) -> Option<String> {
        if line.is_empty() {
            return None;
        }
        let found = self.suggestions.get(&self.prompt, &self.argument, line, &self.known, HINT_TIMEOUT);
        let rest = found.iter().find_map(|value| value.strip_prefix(line)).filter(|rest| !rest.is_empty())?;
        Some(visible_line(rest).into_owned())
    }

    fn is_open(&self, _: &str) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_line_determines_the_argument() {
        let arguments: Vec<PromptArgument> = ["code", "language"].map(PromptArgument::new).into();
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
