//! The session of a chat: reads lines and performs them.

use std::{
    collections::HashMap,
    io::{self, IsTerminal, Write},
};

use futures_util::{FutureExt, future::join_all};
use promptshelf_client::{Arguments, ClientError, CompletionTarget, ContentBlock, PromptArgument, PromptResult};
use rustyline::error::ReadlineError;
use tokio::runtime::Handle;

use super::{
    ChatPrompt, Memory, PromptHistory, PromptList, Server, actions,
    assist::{ArgumentAssist, ChatAssist, Suggestions},
    call, connect_all, preview, updates,
};
use crate::{
    chat::UseArguments,
    commands::{
        list::{Row, placeholder, table},
        resources,
    },
    exit::{Exit, Failure},
    output::{Output, count, visible, visible_line},
    terminal::{Line, LineReader, handles_signals},
};

const PROMPT: &str = "promptshelf> ";

/// Runs a chat until the user ends it.
pub(crate) async fn chat(arguments: &UseArguments) -> Result<(), Failure> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(
            Failure::new(Exit::Usage, "`promptshelf use` needs a terminal").help("scripts can use `promptshelf get`")
        );
    }
    handles_signals();
    let (servers, failures) = connect_all(arguments).await?;
    failures.iter().for_each(|failure| report(failure));
    let prompts = PromptList::new(servers);
    let listed = join_all(prompts.servers().iter().map(|server| prompts.refresh(server))).await;
    for (server, listed) in prompts.servers().iter().zip(listed) {
        if let Err(error) = listed {
            report(&format!("{} cannot list its prompts: {error}", server.name));
        }
    }
    // From here on Ctrl-C ends the current request and not the program: tokio's handler stays installed.
    tokio::signal::ctrl_c().now_or_never();
    let runtime = Handle::current();
    let chat = Chat {
        suggestions: Suggestions::new(runtime.clone()),
        memory: Memory::open(arguments.forget),
        current: None,
        filled: None,
        resource_servers: HashMap::new(),
        prompts,
        runtime,
    };
    let ended = tokio::task::spawn_blocking(move || chat.run()).await;
    ended.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?
}

struct Current {
    prompt: ChatPrompt,
    result: PromptResult,
}

struct Chat {
    prompts: PromptList,
    suggestions: Suggestions,
    memory: Memory,
    runtime: Handle,
    current: Option<Current>,
    filled: Option<String>,
    resource_servers: HashMap<String, Server>,
}

struct Filled {
    values: Arguments,
    result: PromptResult,
}

/// The text to print, possibly empty, or an error message.
type Outcome = Result<String, String>;

impl Chat {
    fn run(mut self) -> Result<(), Failure> {
        let failure =
            |error: ReadlineError| Failure::new(Exit::Failed, format!("cannot read from this terminal: {error}"));
        let assist = ChatAssist { prompts: self.prompts.clone(), suggestions: self.suggestions.clone() };
        let mut reader = LineReader::new(Box::new(assist)).map_err(failure)?;
        if let Some(lines) = self.memory.lines() {
            reader.load(&lines);
        }
        self.greet()?;
        let _updates = updates::follow(&self.runtime, &self.prompts, &self.suggestions, reader.printer());
        loop {
            let line = match reader.read(PROMPT, "").map_err(failure)? {
                Line::Text(line) if line.trim().is_empty() => continue,
                Line::Text(line) => line,
                Line::Back | Line::Cancel => continue,
                Line::End => break,
            };
            if let Some(line) = self.remembered(&line) {
                reader.remember(&line);
            }
            if matches!(line.trim(), "quit" | "exit") {
                break;
            }
            let performed = self.perform(&line);
            if let Some(filled) = self.filled.take() {
                reader.remember(&filled);
            }
            match performed {
                Ok(text) if text.is_empty() => {}
                Ok(text) => writeln!(io::stdout(), "{}", visible(&text))?,
                Err(message) => report(&message),
            }
        }
        if let Some(lines) = self.memory.lines() {
            reader.save(&lines);
        }
        Ok(())
    }

    /// Returns a line for the history: without the values of sensitive arguments.
    fn remembered(&self, line: &str) -> Option<String> {
        let Some((command, values)) = call::split(line) else { return Some(line.to_owned()) };
        match self.prompts.find(command) {
            Some(prompt) if prompt.has_sensitive() => {
                Some(call::without(&prompt.command, values, &prompt.info.arguments, |name| prompt.is_sensitive(name)))
            }
            Some(_) => Some(line.to_owned()),
            // A misspelled name can be followed by values of any prompt.
            None => Some(line.to_owned()).filter(|_| !self.prompts.all().iter().any(ChatPrompt::has_sensitive)),
        }
    }

    fn greet(&self) -> io::Result<()> {
        for server in self.prompts.servers() {
            let all = self.prompts.all();
            let prompts = all.iter().filter(|prompt| prompt.server.name == server.name).count();
            let revision = server.client.revision().unwrap_or_default();
            let line = format!("{}: {} (MCP {revision})", server.name, count(prompts, "prompt"));
            writeln!(io::stdout(), "{}", visible_line(&line))?;
        }
        writeln!(io::stdout(), "/ and Tab list the prompts, `help` lists the commands.")
    }

    fn perform(&mut self, line: &str) -> Outcome {
        if let Some((command, values)) = call::split(line) {
            let prompt = self.prompts.find(command).ok_or_else(|| self.unknown(command))?;
            return self.use_prompt(&prompt, values);
        }
        let line = line.trim();
        if let Some(command) = line.strip_prefix('|') {
            let text = actions::text(&self.current()?.result.messages);
            return actions::pipe(&text, command.trim());
        }
        let (word, rest) = line.split_once(char::is_whitespace).map_or((line, ""), |(word, rest)| (word, rest.trim()));
        match word {
            "help" => {
                Ok(actions::WORDS.iter().map(|(word, about)| format!("  {word:<10} {about}\n")).collect::<String>()
                    + "  /name      uses a prompt; values as `name=value`, `name='in quotes'` or `name=@file`")
            }
            "prompts" => self.list_prompts(rest),
            "servers" => Ok(self.list_servers()),
            "resources" => self.list_resources(),
            "read" if !rest.is_empty() => self.read(rest),
            "show" => self.show(rest),
            "follow" => self.follow(rest),
            "copy" if rest.is_empty() => actions::copy(&actions::text(&self.current()?.result.messages)),
            "copy" => {
                let index = self.index(rest)?;
                actions::copy(&actions::text(&self.current()?.result.messages[index..=index]))
            }
            "save" if !rest.is_empty() => actions::save(&self.current()?.result, rest),
            "save" | "read" => Err(format!("`{word}` requires an argument; `help` lists the commands")),
            _ => {
                if let Some(prompt) = self.prompts.find(word) {
                    return self.use_prompt(&prompt, &line[word.len()..]);
                }
                let all = self.prompts.all();
                let near = promptshelf_core::nearest(word, all.iter().map(|prompt| prompt.command.as_str()));
                let near = near.map(|near| format!("did you mean /{near}? ")).unwrap_or_default();
                Err(format!("unknown command `{word}`; {near}`help` lists the commands, `prompts` the prompts"))
            }
        }
    }

    fn unknown(&self, command: &str) -> String {
        let all = self.prompts.all();
        let with_name = all.iter().filter(|prompt| prompt.info.name == command);
        let several: Vec<String> = with_name.map(|prompt| format!("/{}", prompt.command)).collect();
        if !several.is_empty() {
            return format!("several servers have this prompt: {}", several.join(", "));
        }
        let known = promptshelf_core::nearest(command, all.iter().map(|prompt| prompt.command.as_str()));
        match known {
            Some(known) => format!("unknown prompt /{command}; did you mean /{known}?"),
            None => format!("unknown prompt /{command}; `prompts` lists the prompts"),
        }
    }

    fn current(&self) -> Result<&Current, String> {
        self.current.as_ref().ok_or_else(|| "no messages yet; use a prompt first".to_owned())
    }

    fn index(&self, number: &str) -> Result<usize, String> {
        let messages = self.current()?.result.messages.len();
        let index = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        index
            .filter(|index| *index < messages)
            .ok_or_else(|| format!("expected the number of a message, from 1 to {messages}"))
    }

    fn show(&self, number: &str) -> Outcome {
        // The only one needs no number.
        let number = if number.is_empty() && self.current()?.result.messages.len() == 1 { "1" } else { number };
        let index = self.index(number)?;
        let message = &self.current()?.result.messages[index];
        preview::whole(&mut Output::stdout(), index, message).map_err(|error| error.to_string())?;
        Ok(String::new())
    }

    fn follow(&self, number: &str) -> Outcome {
        let index = self.index(number)?;
        let Current { prompt, result } = self.current()?;
        let ContentBlock::Link(link) = &result.messages[index].content else {
            return Err(format!("message {number} is not a link"));
        };
        self.read_from(&prompt.server, &link.uri)
    }

    fn read(&self, uri: &str) -> Outcome {
        let of_prompt = || self.current.as_ref().map(|current| &current.prompt.server);
        let only = || self.prompts.servers().first().filter(|_| self.prompts.servers().len() == 1);
        match self.resource_servers.get(uri).or_else(only).or_else(of_prompt) {
            Some(server) => self.read_from(server, uri),
            None => Err("the resource's server is unknown; `resources` lists the resources".to_owned()),
        }
    }

    fn read_from(&self, server: &Server, uri: &str) -> Outcome {
        let result = self.wait(server, server.client.read(uri))?;
        let mut output = Output::stdout();
        for contents in &result.contents {
            preview::contents(&mut output, contents).map_err(|error| error.to_string())?;
        }
        Ok(String::new())
    }

    fn list_prompts(&self, text: &str) -> Outcome {
        let all = self.prompts.all();
        let text = text.to_lowercase();
        let contains = |prompt: &&ChatPrompt| {
            let info = &prompt.info;
            let texts = [Some(prompt.command.as_str()), info.title.as_deref(), info.description.as_deref()];
            texts.into_iter().flatten().any(|part| part.to_lowercase().contains(&text))
        };
        let matching: Vec<&ChatPrompt> = all.iter().filter(contains).collect();
        let commands: Vec<String> = matching.iter().map(|prompt| format!("/{}", prompt.command)).collect();
        let rows = matching.into_iter().zip(&commands);
        let rows: Vec<Row<'_>> =
            rows.map(|(prompt, command)| Row { name: command, ..Row::from(&*prompt.info) }).collect();
        table(&mut Output::stdout(), &rows).map_err(|error| error.to_string())?;
        Ok(String::new())
    }

    fn list_servers(&self) -> String {
        let line = |server: &Server| {
            let own_name = server.client.server_name().unwrap_or_default();
            let closed = if server.client.is_closed() { ", closed" } else { "" };
            let revision = server.client.revision().unwrap_or_default();
            format!("{}: {}, with the name {own_name} (MCP {revision}{closed})", server.name, server.client.label())
        };
        self.prompts.servers().iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn list_resources(&mut self) -> Outcome {
        let mut servers = HashMap::new();
        let mut output = Output::stdout();
        for server in self.prompts.servers() {
            if !server.client.has_resources() {
                continue;
            }
            let mut all = self.wait(server, resources::all(server.client.resources()))?;
            all.extend(self.wait(server, resources::all(server.client.resource_templates()))?);
            for resource in &all {
                resources::row(&mut output, resource).map_err(|error| error.to_string())?;
                servers.entry(resource.uri.clone()).or_insert_with(|| server.clone());
            }
        }
        self.resource_servers = servers;
        if self.resource_servers.is_empty() { Ok("No resources found.".to_owned()) } else { Ok(String::new()) }
    }

    fn use_prompt(&mut self, prompt: &ChatPrompt, typed: &str) -> Outcome {
        let ChatPrompt { server, info, .. } = prompt;
        let unknown = call::unknown_names(typed, &info.arguments);
        let typed = call::assign(typed, &info.arguments)?;
        for name in unknown {
            let known: Vec<&str> = info.arguments.iter().map(|argument| argument.name.as_str()).collect();
            report(&format!(
                "`{name}` is not an argument, and was used as part of a value; expected {}",
                known.join(", ")
            ));
        }
        let mut history = self.memory.load(server.client.label(), &info.name);
        let Some(Filled { values, result }) = self.fill_and_get(prompt, typed, &history)? else {
            return Ok("cancelled".to_owned());
        };
        let difference = if prompt.has_sensitive() {
            info.arguments.iter().filter(|argument| prompt.is_sensitive(&argument.name)).for_each(|argument| {
                history.forget(&argument.name);
            });
            history.record_definition(info)
        } else {
            history.record(info, &values, &result)
        };
        self.memory.save(server.client.label(), &info.name, &history);
        let shown = review(&result, difference.as_deref());
        self.current = Some(Current { prompt: prompt.clone(), result });
        shown.map(|()| String::new()).map_err(|error| error.to_string())
    }

    /// Reads missing values and gets the prompt. Returns `None` if the user cancels.
    ///
    /// Without any typed value, optional arguments are requested too. A guided prompt requests them in forms of its own,
    /// which only the server knows: so the prompt is requested with the required arguments first, and the optional ones
    /// are read if no form was shown.
    fn fill_and_get(
        &mut self,
        prompt: &ChatPrompt,
        typed: Arguments,
        history: &PromptHistory,
    ) -> Result<Option<Filled>, String> {
        let arguments = &prompt.info.arguments;
        let (required, optional): (Vec<&PromptArgument>, Vec<&PromptArgument>) =
            arguments.iter().filter(|argument| !typed.contains_key(&argument.name)).partition(|one| one.required);
        let optional = if typed.is_empty() { optional } else { Vec::new() };
        let missing = [required.as_slice(), &optional].concat();
        if missing.len() > 1 && !required.is_empty() {
            print_keys()?;
        }
        let typed_count = typed.len();
        let Some(values) = self.fill(prompt, typed, &required, 0, history)? else { return Ok(None) };
        self.note_filled(prompt, typed_count, &values);
        let before = prompt.server.forms.shown();
        let first = self.get(prompt, &values);
        let is_rejected = matches!(&first, Err(error) if error.is_invalid_params());
        let is_final = optional.is_empty() || prompt.server.forms.shown() > before || (first.is_err() && !is_rejected);
        if is_final {
            let result = first.map_err(message)?;
            return Ok(Some(Filled { values, result }));
        }
        if missing.len() > 1 && required.is_empty() {
            print_keys()?;
        }
        let Some(filled) = self.fill(prompt, values.clone(), &missing, required.len(), history)? else {
            return Ok(None);
        };
        self.note_filled(prompt, typed_count, &filled);
        let result = if filled == values { first } else { self.get(prompt, &filled) };
        Ok(Some(Filled { values: filled, result: result.map_err(message)? }))
    }

    fn note_filled(&mut self, prompt: &ChatPrompt, typed: usize, values: &Arguments) {
        if values.len() > typed {
            let mut shown = values.clone();
            shown.retain(|name, _| !prompt.is_sensitive(name));
            self.filled = Some(call::line(&prompt.command, &shown));
        }
    }

    /// Reads the values of `missing` arguments, from the one at `index` on. Returns `None` if the user cancels.
    fn fill(
        &self,
        prompt: &ChatPrompt,
        mut values: Arguments,
        missing: &[&PromptArgument],
        mut index: usize,
        history: &PromptHistory,
    ) -> Result<Option<Arguments>, String> {
        while let Some(argument) = missing.get(index) {
            let previous = values.remove(&argument.name).unwrap_or_default();
            match self.read_value(prompt, argument, &previous, &values, history)? {
                Line::Text(line) => {
                    if !line.is_empty() {
                        values.insert(argument.name.clone(), line);
                    } else if argument.required {
                        report("expected a value");
                        continue;
                    }
                    index += 1;
                }
                Line::Back => {
                    if !previous.is_empty() {
                        values.insert(argument.name.clone(), previous);
                    }
                    index = index.saturating_sub(1);
                }
                Line::Cancel | Line::End => return Ok(None),
            }
        }
        Ok(Some(values))
    }

    fn get(&self, prompt: &ChatPrompt, values: &Arguments) -> Result<PromptResult, ClientError> {
        self.wait_for(&prompt.server, prompt.server.client.get(&prompt.info.name, values))
    }

    fn read_value(
        &self,
        prompt: &ChatPrompt,
        argument: &PromptArgument,
        initial: &str,
        known: &Arguments,
        history: &PromptHistory,
    ) -> Result<Line, String> {
        let about = argument.description.as_deref().or(argument.title.as_deref()).unwrap_or_default();
        let choices = self.choices(prompt, argument, known);
        let library = prompt.server.library.as_ref().map(promptshelf_server::Library::catalog);
        let own = library.as_ref().and_then(|catalog| catalog.find(&prompt.info.name));
        let default = own.and_then(|own| own.argument(&argument.name)?.default_value());
        let default = default.map(|default| format!("if left empty: {default}")).unwrap_or_default();
        for line in [about, &choices, &default].into_iter().filter(|line| !line.is_empty()) {
            writeln!(io::stdout(), "{}", visible_line(line)).map_err(|error| error.to_string())?;
        }
        let assist = ArgumentAssist {
            prompt: prompt.clone(),
            argument: argument.name.clone(),
            known: known.clone(),
            suggestions: self.suggestions.clone(),
        };
        let unreadable = |error: ReadlineError| error.to_string();
        let mut reader = LineReader::new(Box::new(assist)).map_err(unreadable)?;
        history.values(&argument.name).iter().for_each(|value| reader.remember(value));
        let prompt = format!("{}: ", placeholder(&visible_line(&argument.name), argument.required));
        reader.read(&prompt, initial).map_err(unreadable)
    }

    /// Returns the values that the server suggests, if they are few.
    fn choices(&self, prompt: &ChatPrompt, argument: &PromptArgument, known: &Arguments) -> String {
        const MOST: usize = 12;

        let client = &prompt.server.client;
        if !client.has_completions() {
            return String::new();
        }
        let target = CompletionTarget::Prompt(&prompt.info.name);
        let found = self.wait_for(&prompt.server, client.complete(target, &argument.name, "", known));
        match found {
            Ok(found) if (1..=MOST).contains(&found.values.len()) && !found.has_more => {
                format!("one of: {}", found.values.join(", "))
            }
            _ => String::new(),
        }
    }

    fn wait<T>(&self, server: &Server, answer: impl Future<Output = Result<T, ClientError>>) -> Result<T, String> {
        self.wait_for(server, answer).map_err(message)
    }

    /// Waits for an answer of a server. Ctrl-C cancels.
    fn wait_for<T>(
        &self,
        server: &Server,
        answer: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        self.runtime.block_on(async {
            tokio::select! {
                answer = server.progress.during(answer) => answer,
                _ = tokio::signal::ctrl_c() => Err(ClientError::Cancelled),
            }
        })
    }
}

fn message(error: ClientError) -> String {
    error.to_string()
}

fn print_keys() -> Result<(), String> {
    let mut output = Output::stdout();
    let keys = output.dimmed("Enter skips arguments in brackets, Shift-Tab goes back, Ctrl-C cancels");
    writeln!(output.out, "{keys}").map_err(|error| error.to_string())
}

fn review(result: &PromptResult, difference: Option<&str>) -> io::Result<()> {
    let mut output = Output::stdout();
    if let Some(difference) = difference {
        writeln!(output.out, "This prompt has changed since you used it:\n{}", visible(difference))?;
    }
    preview::all(&mut output, &result.messages)?;
    writeln!(output.out, "({}; `copy`, `save FILE` or `| COMMAND`)", count(result.messages.len(), "message"))
}

fn report(message: &str) {
    let mut output = Output::stderr();
    writeln!(output.out, "{}", visible(message)).ok();
}
