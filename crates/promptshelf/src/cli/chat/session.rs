//! `promptshelf chat`: connects, reads lines, and does what they say.

use std::{
    collections::HashMap,
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex},
};

use futures_util::{FutureExt, future::join_all};
use promptshelf_client::{ClientError, ElicitationHandler, OfferedArgument, PromptResult, Target};
use promptshelf_core::Variables;
use rustyline::ExternalPrinter;
use tokio::{runtime::Handle, task::JoinHandle};

use super::{
    actions,
    assist::{OfArgument, OfChat, Suggestions},
    call,
    form::Asker,
    memory::{Memory, Remembered},
    preview,
    reader::{Reader, Typed},
    shelf::{Difference, Entry, Server, Shelf},
};
use crate::{
    args::client::ChatArguments,
    commands::{
        list::{Row, placeholder, table},
        remote::{ConnectOptions, Eras, connect, resources, waiting::Waiting},
    },
    exit::{Exit, Failure},
    output::{Output, count, visible, visible_line},
};

const PROMPT: &str = "promptshelf> ";

pub(crate) async fn chat(arguments: &ChatArguments) -> Result<(), Failure> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Failure::new(Exit::Usage, "chat needs a terminal").help("`promptshelf get` is for scripts"));
    }
    let (servers, waiting) = open(arguments).await?;
    let shelf = Shelf::new(servers);
    for (server, listed) in shelf.servers().iter().zip(join_all(shelf.servers().iter().map(|s| shelf.refresh(s))).await)
    {
        if let Err(error) = listed {
            complain(&format!("{} cannot list its prompts: {error}", server.name));
        }
    }
    // From here on Ctrl-C ends what is going on, and not the program: once somebody has asked for it, it stays asked for.
    tokio::signal::ctrl_c().now_or_never();
    let runtime = Handle::current();
    let chat = Chat {
        suggestions: Suggestions::new(runtime.clone()),
        memory: Memory::open(arguments.forget),
        current: None,
        filled: None,
        listed: HashMap::new(),
        shelf,
        waiting,
        runtime,
    };
    let ended = tokio::task::spawn_blocking(move || chat.run()).await;
    ended.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?
}

/// Connects to every server at once. One that is down does not keep the others away.
async fn open(arguments: &ChatArguments) -> Result<(Vec<Server>, HashMap<String, Waiting>), Failure> {
    let mut named: Vec<(String, Target)> = Vec::new();
    for (name, target) in arguments.servers()? {
        let times = named.iter().filter(|(known, _)| *known == name || known.starts_with(&format!("{name}-"))).count();
        named.push((if times == 0 { name } else { format!("{name}-{}", times + 1) }, target));
    }
    let connecting = named.iter().map(async |(name, target)| {
        let waiting = Waiting::new(visible_line(name).into_owned());
        let answerer: Arc<dyn ElicitationHandler> = Arc::new(Asker::new(waiting.clone()));
        let mut manners = ConnectOptions { answerer: Some(answerer), ..ConnectOptions::usual(&waiting) };
        if arguments.forget {
            manners.eras = Eras::forgotten();
        }
        let client = connect(target, arguments.timeout(), manners, &waiting).await?;
        Ok::<_, Failure>((Server { name: name.clone(), client }, waiting))
    });
    let (mut servers, mut waiting, mut failures) = (Vec::new(), HashMap::new(), Vec::new());
    for ((name, _), connected) in named.iter().zip(join_all(connecting).await) {
        match connected {
            Ok((server, wait)) => {
                waiting.insert(name.clone(), wait);
                servers.push(server);
            }
            Err(failure) => failures.push((name, failure)),
        }
    }
    if servers.is_empty() {
        let nothing = || Failure::new(Exit::Usage, "there is no server to connect to");
        return Err(failures.into_iter().next().map_or_else(nothing, |(_, failure)| failure));
    }
    for (name, failure) in failures {
        complain(&format!("{name}: {failure}"));
    }
    Ok((servers, waiting))
}

/// What the last prompt gave.
struct Current {
    entry: Entry,
    got: PromptResult,
}

struct Chat {
    shelf: Shelf,
    suggestions: Suggestions,
    memory: Memory,
    waiting: HashMap<String, Waiting>,
    runtime: Handle,
    current: Option<Current>,
    /// The line that stands for what was filled in last, so that it can be had again.
    filled: Option<String>,
    /// Which server listed a resource.
    listed: HashMap<String, Server>,
}

/// A sentence for the person; empty when there is nothing to say.
type Said = Result<String, String>;

impl Chat {
    fn run(mut self) -> Result<(), Failure> {
        let broken = |error: rustyline::error::ReadlineError| {
            Failure::new(Exit::Failed, format!("this terminal cannot be read: {error}"))
        };
        let assist = OfChat { shelf: self.shelf.clone(), suggestions: self.suggestions.clone() };
        let mut reader = Reader::new(Box::new(assist)).map_err(broken)?;
        if let Some(lines) = self.memory.lines() {
            reader.load(&lines);
        }
        self.greet()?;
        let _listening = self.listen(reader.printer());
        loop {
            let line = match reader.read(PROMPT, "").map_err(broken)? {
                Typed::Line(line) if line.trim().is_empty() => continue,
                Typed::Line(line) => line,
                Typed::Back | Typed::Cancel => continue,
                Typed::End => break,
            };
            reader.remember(&line);
            if matches!(line.trim(), "quit" | "exit") {
                break;
            }
            let performed = self.perform(&line);
            if let Some(filled) = self.filled.take() {
                reader.remember(&filled);
            }
            match performed {
                Ok(said) if said.is_empty() => {}
                Ok(said) => writeln!(io::stdout(), "{}", visible(&said))?,
                Err(problem) => complain(&problem),
            }
        }
        if let Some(lines) = self.memory.lines() {
            reader.save(&lines);
        }
        Ok(())
    }

    fn greet(&self) -> io::Result<()> {
        for server in self.shelf.servers() {
            let entries = self.shelf.entries();
            let prompts = entries.iter().filter(|entry| entry.server.name == server.name).count();
            let revision = server.client.revision().unwrap_or_default();
            let said = format!("{}: {} (MCP {revision})", server.name, count(prompts, "prompt"));
            writeln!(io::stdout(), "{}", visible_line(&said))?;
        }
        writeln!(io::stdout(), "/ and Tab show the prompts, `help` the rest.")
    }

    /// Follows changes of every server's list for as long as the handles are held.
    fn listen(&self, printer: Option<Box<dyn ExternalPrinter + Send>>) -> Listening {
        let printer = Arc::new(Mutex::new(printer));
        let listen = |server: &Server| {
            let (server, shelf, suggestions) = (server.clone(), self.shelf.clone(), self.suggestions.clone());
            let printer = Arc::clone(&printer);
            self.runtime.spawn(async move {
                let server = Server { client: server.client.in_background(), ..server };
                let mut changes = server.client.changes();
                while changes.next().await {
                    suggestions.forget(&server.name);
                    let Ok(difference) = shelf.refresh(&server).await else { continue };
                    if difference.is_empty() {
                        continue;
                    }
                    let said = format!("{}\n", announcement(&server.name, &difference));
                    if let Ok(mut printer) = printer.lock()
                        && let Some(printer) = printer.as_mut()
                    {
                        printer.print(said).ok();
                    }
                }
            })
        };
        Listening(self.shelf.servers().iter().map(listen).collect())
    }

    fn perform(&mut self, line: &str) -> Said {
        if let Some((command, values)) = call::split(line) {
            let entry = self.shelf.find(command).ok_or_else(|| self.unknown(command))?;
            return self.use_prompt(&entry, values);
        }
        let line = line.trim();
        if let Some(command) = line.strip_prefix('|') {
            let text = actions::text(&self.current()?.got.messages);
            return actions::pipe(&text, command.trim());
        }
        let (word, rest) = line.split_once(char::is_whitespace).map_or((line, ""), |(word, rest)| (word, rest.trim()));
        match word {
            "help" => {
                Ok(actions::WORDS.iter().map(|(word, about)| format!("  {word:<10} {about}\n")).collect::<String>()
                    + "  /name      uses a prompt; values as `name=value`, `name='in quotes'` or `name=@file`")
            }
            "prompts" => self.prompts(rest),
            "servers" => Ok(self.servers()),
            "resources" => self.resources(),
            "read" if !rest.is_empty() => self.read(rest),
            "show" => self.show(rest),
            "follow" => self.follow(rest),
            "copy" if rest.is_empty() => actions::copy(&actions::text(&self.current()?.got.messages)),
            "copy" => {
                let place = self.place(rest)?;
                actions::copy(&actions::text(&self.current()?.got.messages[place..=place]))
            }
            "save" if !rest.is_empty() => actions::save(&self.current()?.got, rest),
            "save" | "read" => Err(format!("`{word}` needs to know what")),
            _ => Err(format!("`{word}` means nothing here; prompts begin with a slash, and `help` shows the rest")),
        }
    }

    fn unknown(&self, command: &str) -> String {
        let entries = self.shelf.entries();
        let of_name = entries.iter().filter(|entry| entry.prompt.name == command);
        let several: Vec<String> = of_name.map(|entry| format!("/{}", entry.command)).collect();
        if !several.is_empty() {
            return format!("there are several: {}", several.join(", "));
        }
        let known = promptshelf_core::nearest(command, entries.iter().map(|entry| entry.command.as_str()));
        match known {
            Some(known) => format!("there is no prompt /{command}; did you mean /{known}?"),
            None => format!("there is no prompt /{command}; `prompts` shows what there is"),
        }
    }

    fn current(&self) -> Result<&Current, String> {
        self.current.as_ref().ok_or_else(|| "there are no messages yet; use a prompt first".to_owned())
    }

    /// The message with a number.
    fn place(&self, number: &str) -> Result<usize, String> {
        let messages = self.current()?.got.messages.len();
        let place = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        place
            .filter(|place| *place < messages)
            .ok_or_else(|| format!("write the number of a message, from 1 to {messages}"))
    }

    fn show(&self, number: &str) -> Said {
        let place = self.place(number)?;
        let message = &self.current()?.got.messages[place];
        preview::whole(&mut Output::stdout(), place, message).map_err(|error| error.to_string())?;
        Ok(String::new())
    }

    fn follow(&self, number: &str) -> Said {
        let place = self.place(number)?;
        let Current { entry, got } = self.current()?;
        let promptshelf_core::ContentBlock::Link(link) = &got.messages[place].content else {
            return Err(format!("message {number} is no link"));
        };
        self.read_from(&entry.server, &link.uri)
    }

    fn read(&self, uri: &str) -> Said {
        let of_prompt = || self.current.as_ref().map(|current| &current.entry.server);
        let only = || self.shelf.servers().first().filter(|_| self.shelf.servers().len() == 1);
        match self.listed.get(uri).or_else(only).or_else(of_prompt) {
            Some(server) => self.read_from(server, uri),
            None => Err("which server has it? `resources` lists what there is".to_owned()),
        }
    }

    /// Reads a resource from the server that told of it, and from nowhere else.
    fn read_from(&self, server: &Server, uri: &str) -> Said {
        let read = self.wait(server, server.client.read(uri))?;
        let mut paper = Output::stdout();
        for contents in &read.contents {
            preview::contents(&mut paper, contents).map_err(|error| error.to_string())?;
        }
        Ok(String::new())
    }

    fn prompts(&self, fitting: &str) -> Said {
        let entries = self.shelf.entries();
        let fits = |entry: &&Entry| {
            let prompt = &entry.prompt;
            let texts = [Some(entry.command.as_str()), prompt.title.as_deref(), prompt.description.as_deref()];
            texts.into_iter().flatten().any(|text| text.to_lowercase().contains(&fitting.to_lowercase()))
        };
        let fitting: Vec<&Entry> = entries.iter().filter(fits).collect();
        // The slash belongs to the word behind it.
        let commands: Vec<String> = fitting.iter().map(|entry| format!("/{}", entry.command)).collect();
        let rows = fitting.into_iter().zip(&commands);
        let rows: Vec<Row<'_>> =
            rows.map(|(entry, command)| Row { name: command, ..Row::from(&*entry.prompt) }).collect();
        table(&mut Output::stdout(), &rows).map_err(|error| error.to_string())?;
        Ok(String::new())
    }

    fn servers(&self) -> String {
        let line = |server: &Server| {
            let itself = server.client.server_name().unwrap_or_default();
            let gone = if server.client.is_closed() { ", gone" } else { "" };
            let revision = server.client.revision().unwrap_or_default();
            format!("{}: {} calls itself {itself} (MCP {revision}{gone})", server.name, server.client.target())
        };
        self.shelf.servers().iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn resources(&mut self) -> Said {
        let mut listed = HashMap::new();
        let mut paper = Output::stdout();
        for server in self.shelf.servers() {
            if !server.client.has_resources() {
                continue;
            }
            let mut all = self.wait(server, resources::all(server.client.resources()))?;
            all.extend(self.wait(server, resources::all(server.client.resource_templates()))?);
            for resource in &all {
                resources::row(&mut paper, resource).map_err(|error| error.to_string())?;
                listed.entry(resource.uri.clone()).or_insert_with(|| server.clone());
            }
        }
        self.listed = listed;
        if self.listed.is_empty() { Ok("There are no resources here.".to_owned()) } else { Ok(String::new()) }
    }

    fn use_prompt(&mut self, entry: &Entry, typed: &str) -> Said {
        let prompt = &entry.prompt;
        let target = entry.server.client.target().to_string();
        let given = call::assign(typed, &prompt.arguments)?;
        let mut remembered = self.memory.of(&target, &prompt.name);
        let was_given = given.len();
        let Some(given) = self.complete(entry, given, &remembered)? else { return Ok("cancelled".to_owned()) };
        if given.len() > was_given {
            self.filled = Some(call::line(&entry.command, &given));
        }
        let got = self.wait(&entry.server, entry.server.client.get(&prompt.name, &given))?;
        let difference = remembered.note(prompt, &given, &got);
        self.memory.keep(&target, &prompt.name, &remembered);
        let shown = review(&got, difference.as_deref());
        self.current = Some(Current { entry: entry.clone(), got });
        shown.map(|()| String::new()).map_err(|error| error.to_string())
    }

    /// Asks for what is missing: everything when nothing was given, otherwise
    /// what the prompt needs. Nothing when somebody has cancelled.
    fn complete(&self, entry: &Entry, given: Variables, remembered: &Remembered) -> Result<Option<Variables>, String> {
        let nothing = given.is_empty();
        let wanted =
            |argument: &&OfferedArgument| !given.contains_key(&argument.name) && (nothing || argument.required);
        let missing: Vec<&OfferedArgument> = entry.prompt.arguments.iter().filter(wanted).collect();
        if missing.len() > 1 {
            let mut paper = Output::stdout();
            let keys = "Enter leaves out what stands in brackets, Shift-Tab goes back, Ctrl-C cancels";
            writeln!(paper.out, "{}", paper.quiet(keys)).map_err(|error| error.to_string())?;
        }
        let mut values = given.clone();
        let mut at = 0;
        while let Some(argument) = missing.get(at) {
            let before = values.remove(&argument.name).unwrap_or_default();
            match self.ask(entry, argument, &before, &values, remembered)? {
                Typed::Line(line) => {
                    if !line.is_empty() {
                        values.insert(argument.name.clone(), line);
                    } else if argument.required {
                        complain("this has to be filled in");
                        continue;
                    }
                    at += 1;
                }
                Typed::Back => at = at.saturating_sub(1),
                Typed::Cancel | Typed::End => return Ok(None),
            }
        }
        Ok(Some(values))
    }

    fn ask(
        &self,
        entry: &Entry,
        argument: &OfferedArgument,
        before: &str,
        known: &Variables,
        remembered: &Remembered,
    ) -> Result<Typed, String> {
        let about = argument.description.as_deref().or(argument.title.as_deref()).unwrap_or_default();
        if !about.is_empty() {
            writeln!(io::stdout(), "{}", visible_line(about)).map_err(|error| error.to_string())?;
        }
        let assist = OfArgument {
            entry: entry.clone(),
            argument: argument.name.clone(),
            known: known.clone(),
            suggestions: self.suggestions.clone(),
        };
        let broken = |error: rustyline::error::ReadlineError| error.to_string();
        let mut reader = Reader::new(Box::new(assist)).map_err(broken)?;
        remembered.values(&argument.name).iter().for_each(|value| reader.remember(value));
        let prompt = format!("{}: ", placeholder(&visible_line(&argument.name), argument.required));
        reader.read(&prompt, before).map_err(broken)
    }

    /// Waits for a server until it answers or somebody presses Ctrl-C.
    fn wait<T>(&self, server: &Server, answer: impl Future<Output = Result<T, ClientError>>) -> Result<T, String> {
        let waiting = self.waiting.get(&server.name).cloned();
        self.runtime.block_on(async {
            let answer = async {
                match &waiting {
                    Some(waiting) => waiting.during(answer).await,
                    None => answer.await,
                }
            };
            tokio::select! {
                answer = answer => answer.map_err(|error| match error {
                    ClientError::Cancelled => "cancelled".to_owned(),
                    error => error.to_string(),
                }),
                _ = tokio::signal::ctrl_c() => Err("cancelled".to_owned()),
            }
        })
    }
}

/// Shows what a prompt gave, before it goes anywhere.
fn review(got: &PromptResult, difference: Option<&str>) -> io::Result<()> {
    let mut paper = Output::stdout();
    if let Some(difference) = difference {
        writeln!(paper.out, "This prompt has changed since you used it:\n{}", visible(difference))?;
    }
    preview::all(&mut paper, &got.messages)?;
    writeln!(paper.out, "({}; `copy`, `save FILE` or `| COMMAND`)", count(got.messages.len(), "message"))
}

/// Ends the following when it is dropped.
struct Listening(Vec<JoinHandle<()>>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// How many names are told of one change.
const TOLD: usize = 5;

fn announcement(server: &str, difference: &Difference) -> String {
    let told = |what: &str, names: &[String]| {
        let shown: Vec<String> = names.iter().take(TOLD).map(|name| visible_line(name).into_owned()).collect();
        let more = if names.len() > TOLD { format!(" and {} more", names.len() - TOLD) } else { String::new() };
        (!names.is_empty()).then(|| format!("{what} {}{more}", shown.join(", ")))
    };
    let Difference { added, removed, changed } = difference;
    let parts = [told("new:", added), told("gone:", removed), told("changed:", changed)];
    format!("{}: {}", visible_line(server), parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// Says what is wrong. Some of it comes from servers.
fn complain(problem: &str) {
    let mut paper = Output::stderr();
    writeln!(paper.out, "{}", visible(problem)).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: Q21
    #[test]
    fn an_announcement_tells_a_few_names_and_steers_nothing() {
        let many = (0..7).map(|number| format!("p{number}\u{1b}[2J")).collect();
        let difference = Difference { added: many, ..Difference::default() };
        let said = announcement("here", &difference);
        assert!(said.starts_with("here: new: p0\\u{1b}[2J, p1") && said.ends_with("and 2 more"), "{said}");
    }

    #[test]
    fn a_client_is_shared_between_threads() {
        fn shared<T: Send + Sync + 'static>() {}
        shared::<promptshelf_client::Client>();
    }
}
