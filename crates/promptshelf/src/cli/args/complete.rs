//! Completions that shells ask this program for: prompts, their arguments and choices, channels and clients.

use std::{
    env,
    ffi::OsStr,
    path::Path,
    process::{Command, Stdio},
};

use clap::{CommandFactory as _, ValueEnum as _};
use clap_complete::{
    CompleteEnv, CompletionCandidate, PathCompleter,
    engine::{ArgValueCompleter, ValueCompleter as _},
    env::Shells,
};
use promptshelf_author::{clients::CLIENTS, explain::summary};
use promptshelf_core::{Code, Prompt};
use promptshelf_store::StoreUrl;

use super::{CommandLine, words};
use crate::{
    library,
    source::{HERE, is_url},
};

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
    if name == "bash" {
        return Ok(BASH.into());
    }
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(&name) {
        completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    }
    Ok(script)
}

/// Unlike the script of the library, it joins what bash divides: `name=value` and `sqlite:team.db` are one word each.
const BASH: &str = r#"_promptshelf() {
    local current="$2" line="$COMP_LINE" words=() word i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word="${COMP_WORDS[i]}"
        if ((i > 0)) && [[ "$line" != [[:space:]]* ]]; then
            words[${#words[@]} - 1]+="$word"
        else
            words+=("$word")
        fi
        line="${line#"${line%%[![:space:]]*}"}"
        line="${line#"$word"}"
    done
    # The word may go on after the cursor.
    word="${COMP_WORDS[COMP_CWORD]}"
    local last=$((${#words[@]} - 1))
    local before="${words[last]%"$word"}"
    if [[ "$word" == [=:] ]]; then
        before+="$word"
    fi
    words[last]="$before$current"
    local IFS=$'\013'
    COMPREPLY=($(
        _CLAP_IFS="$IFS" _CLAP_COMPLETE_INDEX="$last" _CLAP_COMPLETE_COMP_TYPE="$COMP_TYPE" \
            _CLAP_COMPLETE_SPACE=false COMPLETE=bash promptshelf -- "${words[@]}"
    )) || COMPREPLY=()
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
    if [[ "${#COMPREPLY[@]}" == 1 && "${COMPREPLY[0]}" == *[=/:] ]]; then
        compopt -o nospace
    fi
}
complete -o bashdefault -o nosort -F _promptshelf promptshelf
"#;

fn completing() -> clap::Command {
    with_completers(CommandLine::complete())
}

fn with_completers(command: clap::Command) -> clap::Command {
    let name = command.get_name().to_owned();
    let command = command.mut_args(|argument| match (name.as_str(), argument.get_id().as_str()) {
        (_, words::LIBRARY | words::NAMES) => argument.add(ArgValueCompleter::new(names)),
        (_, "clients") | ("known-clients", "name") => argument.add(ArgValueCompleter::new(clients)),
        (_, "channel" | "channels") => argument.add(ArgValueCompleter::new(channels)),
        ("explain", "code") => argument.add(ArgValueCompleter::new(codes)),
        ("help", "topic") => argument.add(ArgValueCompleter::new(topics)),
        _ => argument,
    });
    command.mut_subcommands(with_completers)
}

/// The words of the line that is completed, after the program's name.
fn line() -> Vec<String> {
    let words = env::args_os().skip_while(|word| word != "--").skip(2);
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Prompts of the library of the line, and folders; after a prompt, its arguments and their values. After a store, its
/// channels.
fn names(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let line = line();
    if let Some((store, channel)) = typed.split_once('#') {
        let names = channels_of(Some(store.to_owned())).into_iter().filter(|name| name.starts_with(channel));
        return names.map(|name| CompletionCandidate::new(format!("{store}#{name}"))).collect();
    }
    if line.iter().any(|word| *word != typed && (StoreUrl::is_meant(word) || is_url(word))) {
        return Vec::new();
    }
    let folder =
        line.iter().skip(1).find(|word| **word != typed && Path::new(word).is_dir()).map_or(HERE, String::as_str);
    let mut candidates = Vec::new();
    if let Ok(library) = library::open(Path::new(folder)) {
        let catalog = library.catalog();
        match line.iter().skip(1).filter(|word| **word != typed).find_map(|word| catalog.find(word)) {
            Some(prompt) => return values(folder, prompt, &typed, &line),
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

/// The arguments of a prompt that the line has not, and the suggestions for the value that is typed.
fn values(folder: &str, prompt: &Prompt, typed: &str, line: &[String]) -> Vec<CompletionCandidate> {
    let is_given = |name: &str| line.iter().any(|word| word != typed && word.starts_with(&format!("{name}=")));
    let Some((name, value)) = typed.split_once('=') else {
        let arguments = prompt.arguments().iter().filter(|argument| !is_given(argument.name()));
        let words = arguments.map(|argument| format!("{}=", argument.name()));
        return words.filter(|word| word.starts_with(typed)).map(CompletionCandidate::new).collect();
    };
    let mut words = vec!["suggest", folder, prompt.name().as_str(), name, value];
    let others = line.iter().filter(|word| *word != typed);
    words.extend(others.map(String::as_str).filter(|word| {
        word.split_once('=').is_some_and(|(other, _)| other != name && prompt.argument(other).is_some())
    }));
    let suggested = ask(&words, None);
    let values = suggested["items"].as_array().into_iter().flatten().filter_map(|value| value.as_str());
    values
        .filter(|suggested| suggested.starts_with(value))
        .map(|value| CompletionCandidate::new(format!("{name}={value}")))
        .collect()
}

fn codes(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let fitting = Code::ALL.iter().filter(|code| code.as_str().starts_with(&*typed));
    fitting.map(|code| CompletionCandidate::new(code.as_str()).help(Some(summary(*code).into()))).collect()
}

fn topics(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let root = CommandLine::command();
    let commands = root.get_subcommands().map(|command| command.get_name().to_owned());
    let topics = commands.chain(crate::commands::help::topics().map(str::to_owned));
    topics.filter(|topic| topic.starts_with(&*typed)).map(CompletionCandidate::new).collect()
}

/// Runs this program with a command, and returns its JSON.
fn ask(words: &[&str], store: Option<&str>) -> serde_json::Value {
    let Ok(program) = env::current_exe() else { return serde_json::Value::Null };
    let mut command = Command::new(program);
    command.args(words).args(["--json", "-q"]).env_remove(VARIABLE);
    if let Some(store) = store {
        command.env("PROMPTSHELF_STORE", store);
    }
    let answer = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok();
    answer.and_then(|answer| serde_json::from_slice(&answer.stdout).ok()).unwrap_or_default()
}

fn clients(current: &OsStr) -> Vec<CompletionCandidate> {
    let all = std::iter::once(("all", "All clients")).chain(CLIENTS.iter().map(|client| (client.id, client.name)));
    let typed = current.to_string_lossy();
    let fitting = all.filter(|(id, _)| id.starts_with(&*typed));
    fitting.map(|(id, name)| CompletionCandidate::new(id).help(Some(name.into()))).collect()
}

/// The channels of the store of the line or the environment. Servers are not asked: a key must not send requests.
fn channels(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let store = line().into_iter().find(|word| StoreUrl::is_meant(word));
    let store = store.or_else(|| crate::environment::variable("PROMPTSHELF_STORE"));
    let names = channels_of(store).into_iter().filter(|name| name.starts_with(&*typed));
    names.map(CompletionCandidate::new).collect()
}

fn channels_of(store: Option<String>) -> Vec<String> {
    let Some(store) = store.filter(|store| StoreUrl::is_meant(store)) else { return Vec::new() };
    let list = ask(&["policy"], store.split('#').next());
    let names = list["items"].as_array().into_iter().flatten().filter_map(|channel| channel["channel"].as_str());
    names.map(str::to_owned).collect()
}
