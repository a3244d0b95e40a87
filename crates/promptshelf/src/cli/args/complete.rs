//! Completions that shells ask this program for: prompts, their arguments and choices, channels and clients.

use std::{
    env,
    ffi::OsStr,
    path::Path,
    process::{Command, Stdio},
};

use clap::ValueEnum as _;
use clap_complete::{
    CompleteEnv, CompletionCandidate, PathCompleter,
    engine::{ArgValueCompleter, ValueCompleter as _},
    env::Shells,
};
use promptshelf_author::clients::CLIENTS;
use promptshelf_core::{ArgumentType, Prompt};

use super::{CommandLine, words};
use crate::{library, source::HERE};

/// The variable by which a shell asks for completions.
const VARIABLE: &str = "COMPLETE";

const PROGRAM: &str = "promptshelf";

/// Answers a shell and ends the process, if a shell has called it.
pub(crate) fn answer() {
    if env::var_os(VARIABLE).is_some() {
        CompleteEnv::with_factory(completing).bin(PROGRAM).complete();
    }
}

/// Returns the script that makes a shell ask this program.
pub(crate) fn script(shell: clap_complete::Shell) -> std::io::Result<Vec<u8>> {
    let name = shell.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(&name) {
        completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    }
    Ok(script)
}

fn completing() -> clap::Command {
    with_completers(CommandLine::complete())
}

fn with_completers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| match argument.get_id().as_str() {
        words::LIBRARY | words::NAMES => argument.add(ArgValueCompleter::new(names)),
        "clients" => argument.add(ArgValueCompleter::new(clients)),
        "channel" | "channels" => argument.add(ArgValueCompleter::new(channels)),
        _ => argument,
    });
    command.mut_subcommands(with_completers)
}

/// The words of the line that is completed, after the program's name.
fn line() -> Vec<String> {
    let words = env::args_os().skip_while(|word| word != "--").skip(2);
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Prompts of the library of the line, and folders; after a prompt, its arguments and their choices.
fn names(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let line = line();
    let folder =
        line.iter().skip(1).find(|word| **word != typed && Path::new(word).is_dir()).map_or(HERE, String::as_str);
    let mut candidates = Vec::new();
    if let Ok(library) = library::open(Path::new(folder)) {
        let catalog = library.catalog();
        match line.iter().skip(1).filter(|word| **word != typed).find_map(|word| catalog.find(word)) {
            Some(prompt) => candidates.extend(values(prompt, &typed, &line)),
            None => candidates.extend(catalog.prompts().iter().map(|prompt| {
                let about = prompt.title().or(prompt.description());
                CompletionCandidate::new(prompt.name().as_str()).help(about.map(|about| about.to_owned().into()))
            })),
        }
    }
    candidates.retain(|candidate| candidate.get_value().to_string_lossy().starts_with(&*typed));
    if folder == HERE && !typed.contains('=') {
        candidates.extend(PathCompleter::dir().complete(current));
    }
    candidates
}

fn values(prompt: &Prompt, typed: &str, line: &[String]) -> Vec<CompletionCandidate> {
    let is_given = |name: &str| line.iter().any(|word| word != typed && word.starts_with(&format!("{name}=")));
    if let Some(argument) = typed.split_once('=').and_then(|(name, _)| prompt.argument(name)) {
        let choices = argument.choices().iter().map(|choice| choice.value.to_string());
        let choices: Vec<String> = match argument.kind() {
            ArgumentType::Boolean => vec!["true".to_owned(), "false".to_owned()],
            _ => choices.collect(),
        };
        return choices
            .iter()
            .map(|choice| CompletionCandidate::new(format!("{}={choice}", argument.name())))
            .collect();
    }
    let arguments = prompt.arguments().iter().filter(|argument| !is_given(argument.name()));
    arguments.map(|argument| CompletionCandidate::new(format!("{}=", argument.name()))).collect()
}

fn clients(current: &OsStr) -> Vec<CompletionCandidate> {
    let all = std::iter::once(("all", "All clients")).chain(CLIENTS.iter().map(|client| (client.id, client.name)));
    let typed = current.to_string_lossy();
    let fitting = all.filter(|(id, _)| id.starts_with(&*typed));
    fitting.map(|(id, name)| CompletionCandidate::new(id).help(Some(name.into()))).collect()
}

/// The channels of the store of the line or the environment. Servers are not asked: a key must not send requests.
fn channels(current: &OsStr) -> Vec<CompletionCandidate> {
    let is_store = |word: &String| promptshelf_store::StoreUrl::is_meant(word);
    let store = line().into_iter().find(is_store).or_else(|| crate::environment::variable("PROMPTSHELF_STORE"));
    let (Some(store), Ok(program)) = (store.filter(is_store), env::current_exe()) else { return Vec::new() };
    let store = store.split('#').next().unwrap_or(&store);
    let mut command = Command::new(program);
    command.args(["policy", "--json", "-q"]).env("PROMPTSHELF_STORE", store).env_remove(VARIABLE);
    let answer = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok();
    let list: serde_json::Value =
        answer.and_then(|answer| serde_json::from_slice(&answer.stdout).ok()).unwrap_or_default();
    let names = list["items"].as_array().into_iter().flatten().filter_map(|channel| channel["channel"].as_str());
    let typed = current.to_string_lossy();
    names.filter(|name| name.starts_with(&*typed)).map(CompletionCandidate::new).collect()
}
