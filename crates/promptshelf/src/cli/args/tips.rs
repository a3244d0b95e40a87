//! What people of other programs type, and how it is called here.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// Words of other programs for commands, with what to write instead.
const COMMANDS: &[(&[&str], &str)] = &[
    (&["search", "find", "grep", "ls", "prompts"], "`promptshelf list` shows the prompts of a library"),
    (&["show", "cat", "view", "print"], "`promptshelf get PROMPT` renders a prompt"),
    (&["run", "call", "chat"], "`promptshelf use` fills in prompts interactively; `promptshelf get PROMPT` prints one"),
    (&["lint", "validate", "verify", "doctor"], "`promptshelf check` reports every mistake in a library"),
    (&["fix"], "`promptshelf check --fix` corrects what has one answer"),
    (&["format"], "`promptshelf fmt` formats the front matter of prompt files"),
    (&["rule", "rules", "codes"], "`promptshelf explain` explains the codes of `check`"),
    (&["create", "add"], "`promptshelf new NAME` creates a prompt file, `promptshelf init` a library or a store"),
    (
        &["rename", "mv", "move"],
        "rename the file: its path is the prompt's name; `aliases` in its front matter keep the old one",
    ),
    (&["rm", "remove", "delete"], "delete the file; `promptshelf publish` takes the prompt out of a channel"),
    (&["push", "commit", "upload", "deploy"], "`promptshelf publish` makes a channel equal to a folder"),
    (&["clone", "fetch", "checkout", "download"], "`promptshelf pull` copies a channel to a folder"),
    (&["log", "revisions", "versions", "blame"], "`promptshelf history` shows the revisions of a channel"),
    (&["status", "compare"], "`promptshelf diff` compares revisions, channels and folders"),
    (&["revert", "undo", "reset", "restore"], "`promptshelf rollback` returns a channel to an earlier revision"),
    (&["pr", "prs", "proposal", "review", "reviews", "mr"], "`promptshelf proposals` lists and shows proposals"),
    (
        &["merge", "accept"],
        "`promptshelf approve NUMBER` approves a proposal, `promptshelf promote` copies between channels",
    ),
    (&["close"], "`promptshelf reject NUMBER` rejects a proposal"),
    (&["channels", "channel", "branch", "branches"], "`promptshelf policy` shows the channels of a store"),
    (
        &["copy", "cp", "backup", "migrate", "dump"],
        "`promptshelf store copy`, `backup`, `restore` and `migrate` maintain a store",
    ),
    (&["start", "server", "mcp", "up", "dev"], "`promptshelf serve` serves a library to MCP clients"),
    (&["info", "ping"], "`promptshelf health URL` asks a server whether it runs"),
    (
        &["clients", "known"],
        "`promptshelf known-clients` lists MCP clients, `promptshelf install` those on this machine",
    ),
    (&["login", "auth", "signin"], "`promptshelf sign-in URL` signs in to a server"),
    (&["logout", "signout"], "`promptshelf sign-out URL` deletes the stored credentials of a server"),
    (
        &["completion", "complete"],
        "`promptshelf completions SHELL` prints completions, `promptshelf suggest` suggests values",
    ),
    (
        &["config", "settings"],
        "`promptshelf schema server` describes server.toml, `promptshelf help serving` explains it",
    ),
    (&["version"], "`promptshelf --version`, or `promptshelf --version --json`"),
    (&["upgrade", "update", "self"], "install the new version as you installed this one: `promptshelf help versions`"),
];

/// Options of other programs, each with the command that it is a tip for, or none for all.
const OPTIONS: &[(&str, &[&str], &str)] = &[
    ("check", &["--output-format", "--output", "-o", "-f"], "`--format sarif`, `--format github` or `--json`"),
    ("check", &["--diff"], "`--fix --dry-run` shows the changes"),
    ("check", &["--strict"], "`--deny warnings` fails for warnings, too"),
    ("serve", &["--port", "-p", "--host", "--bind", "--listen", "--address"], "`--http 127.0.0.1:8080` listens there"),
    ("install", &["--all"], "`--client all`"),
    ("sync", &["--all"], "`--client all`"),
    ("export", &["--client", "--to-client", "--for"], "`--format NAME` names the program"),
    ("", &["--output-format", "--format", "-o"], "`--json` prints JSON"),
    (
        "",
        &["-C", "--directory", "--dir", "--library", "--cwd"],
        "the first word is the library: `promptshelf COMMAND FOLDER …`",
    ),
    ("", &["-v", "--verbose", "--debug"], "`--log debug` shows more"),
    ("", &["-y", "--force", "--assume-yes"], "`--yes` answers every question with yes"),
    ("", &["--no-color", "--no-colour"], "`--color never`"),
    ("", &["--branch", "-b"], "`--channel NAME` names a channel"),
];

/// Replaces the tips of an error about an unknown command or option: the parser's own are for words that only look alike.
pub(super) fn improve(mut error: Error, mut words: impl Iterator<Item = OsString>) -> Error {
    let told = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let Some(word) = told(ContextKind::InvalidSubcommand).map(|word| word.to_lowercase()) else { return error };
            if let Some((_, tip)) = COMMANDS.iter().find(|(words, _)| words.contains(&word.as_str())) {
                error.remove(ContextKind::SuggestedSubcommand);
                error.insert(ContextKind::Suggested, tips(vec![(*tip).to_owned()]));
            }
        }
        ErrorKind::UnknownArgument => {
            let Some(option) = told(ContextKind::InvalidArg) else { return error };
            let option = option.split('=').next().unwrap_or_default();
            let command = words.find(|word| !word.as_encoded_bytes().starts_with(b"-"));
            let command = command.as_deref().and_then(OsStr::to_str).unwrap_or_default();
            let found =
                OPTIONS.iter().find(|(of, options, _)| (of.is_empty() || *of == command) && options.contains(&option));
            // It has no option of this name: it is one of the prompt's arguments.
            let is_value = ["get", "render", "use"].contains(&command) && option.starts_with("--");
            let tip = match found {
                Some((_, _, tip)) => Some((*tip).to_owned()),
                None if is_value && error.get(ContextKind::SuggestedArg).is_none() => {
                    let name = option.trim_start_matches('-');
                    Some(format!("write a value of the prompt as `{name}=…`"))
                }
                None => None,
            };
            // The words after `--` are names and commands, never options.
            error.remove(ContextKind::Suggested);
            if let Some(tip) = tip {
                error.remove(ContextKind::SuggestedArg);
                error.insert(ContextKind::Suggested, tips(vec![tip]));
            }
        }
        _ => {}
    }
    error
}

fn tips(tips: Vec<String>) -> ContextValue {
    ContextValue::StyledStrs(tips.into_iter().map(Into::into).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::CommandLine;

    fn shown(line: &str) -> String {
        let words = || line.split(' ').map(OsString::from);
        let error = CommandLine::complete().try_get_matches_from(words()).expect_err(line);
        improve(error, words().skip(1)).to_string()
    }

    #[test]
    fn words_of_other_programs_lead_to_the_commands_here() {
        for (line, tip) in [
            ("promptshelf search x", "tip: `promptshelf list`"),
            ("promptshelf Log", "tip: `promptshelf history`"),
            ("promptshelf version", "tip: `promptshelf --version`"),
            ("promptshelf check --output-format=sarif", "tip: `--format sarif`"),
            ("promptshelf list --output-format json", "tip: `--json`"),
            ("promptshelf serve --port 80", "tip: `--http 127.0.0.1:8080`"),
            ("promptshelf get review --code x", "tip: write a value of the prompt as `code=…`"),
            // A mistake in an option of the command itself.
            ("promptshelf serve --htp 80", "'--http'"),
        ] {
            let text = shown(line);
            assert!(text.contains(tip) && !text.contains("as a value"), "{line}: {text}");
        }
    }

    #[test]
    fn tips_name_commands_and_pages_that_exist() {
        let commands = CommandLine::complete();
        let tips = COMMANDS.iter().map(|(_, tip)| *tip).chain(OPTIONS.iter().map(|(.., tip)| *tip));
        for line in tips.flat_map(|tip| tip.split('`').filter(|part| part.starts_with("promptshelf "))) {
            let mut words = line.split(' ').skip(1);
            let command = words.next().unwrap_or_default();
            let is_known =
                command.starts_with('-') || command == "COMMAND" || commands.find_subcommand(command).is_some();
            let topic = words.next().filter(|_| command == "help");
            let is_page = topic.is_none_or(|topic| crate::commands::help::topics().any(|known| known == topic));
            assert!(is_known && is_page, "{line}");
        }
    }

    #[test]
    fn no_word_is_a_command_of_its_own() {
        let commands = CommandLine::complete();
        for word in COMMANDS.iter().flat_map(|(words, _)| *words) {
            assert!(commands.find_subcommand(word).is_none(), "{word}");
        }
        let all: Vec<&str> = COMMANDS.iter().flat_map(|(words, _)| *words).copied().collect();
        let distinct: std::collections::HashSet<&str> = all.iter().copied().collect();
        assert_eq!(distinct.len(), all.len(), "each word has one tip");
    }
}
