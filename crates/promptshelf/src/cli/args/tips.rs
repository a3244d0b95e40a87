//! What people of other programs type, and how it is called here.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use promptshelf_core::nearest;

use super::CommandLine;

/// Words of other programs for commands, with what to write instead.
const COMMANDS: &[(&[&str], &str)] = &[
    (&["ls", "prompts"], "`promptshelf list` shows the prompts of a library"),
    (&["search", "find", "grep"], "`promptshelf list --search TEXT` shows the prompts with a text"),
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
    (&["push", "commit", "upload", "deploy"], "`promptshelf publish` brings the changes of a folder into a channel"),
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

/// The same for commands below a command. Their words have other meanings than those above.
const BELOW: &[(&str, &[&str], &str)] = &[
    (
        "store",
        &["init", "create", "new", "add", "make"],
        "`promptshelf init sqlite:FILE` creates a store, `promptshelf init postgres://…` one in a database",
    ),
    (
        "store",
        &["list", "ls", "show", "status", "info", "channels"],
        "`promptshelf policy` shows the channels of a store",
    ),
    (
        "store",
        &["dump", "export", "save", "snapshot"],
        "`promptshelf store backup LIBRARY FILE` writes everything to a file",
    ),
    ("store", &["load", "import", "recover"], "`promptshelf store restore LIBRARY FILE` reads a backup"),
    (
        "store",
        &["cp", "mv", "move", "clone"],
        "`promptshelf store copy LIBRARY --to STORE` copies a store to an empty one",
    ),
    ("store", &["upgrade", "update"], "`promptshelf store migrate` brings the schema of a store up to date"),
    ("store", &["check", "fsck", "validate"], "`promptshelf store verify` compares everything with its digests"),
    ("store", &["vacuum", "clean", "compact"], "`promptshelf store gc` removes contents that nothing refers to"),
    (
        "token",
        &["add", "generate", "issue", "make", "mint"],
        "`promptshelf token create LIBRARY NAME` creates a token in a store, `promptshelf token new NAME` one for a file",
    ),
    ("token", &["ls", "show", "status"], "`promptshelf token list` shows the tokens of a store"),
    (
        "token",
        &["rm", "remove", "delete", "disable", "expire"],
        "`promptshelf token revoke LIBRARY TOKEN` ends a token",
    ),
    (
        "source",
        &["add", "new", "create", "init", "rm", "remove", "delete"],
        "the sources are in `[[source]]` of server.toml: `promptshelf help sources`",
    ),
    ("source", &["ls", "show", "status"], "`promptshelf source list` shows the sources with their state"),
    (
        "source",
        &["update", "fetch", "pull", "sync", "reload"],
        "`promptshelf source refresh NAME` reads a source again",
    ),
    ("source", &["unpin"], "`promptshelf source pin NAME` without a commit follows the reference again"),
    (
        "rollout",
        &["create", "new", "add", "begin"],
        "`promptshelf rollout start CHANNEL --to CHANNEL` begins a rollout",
    ),
    ("rollout", &["ls"], "`promptshelf rollout list` shows the rollouts"),
    ("rollout", &["status", "history"], "`promptshelf rollout show CHANNEL` shows the rollouts of a channel"),
    ("rollout", &["cancel", "abort", "end", "rollback"], "`promptshelf rollout stop CHANNEL` ends a rollout"),
    ("rollout", &["promote", "complete", "done"], "`promptshelf rollout finish CHANNEL` promotes the new version"),
];

/// Stands for a word that is no option.
const WORD: &str = "";

/// Options and words of other programs, each with the command that it is a tip for, or none for all.
const OPTIONS: &[(&str, &[&str], &str)] = &[
    ("init", &["--store", "--to", "--db"], "the store is the first word: `promptshelf init sqlite:FILE`"),
    ("store copy", &[WORD], "`--to STORE` names the new store"),
    ("publish", &[WORD], "`--to STORE` names the store, the only word is the folder"),
    ("install", &[WORD], "`--client NAME` names the client"),
    ("uninstall", &[WORD], "`--client NAME` names the client"),
    ("sync", &[WORD], "`--client NAME` names the client"),
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
    ("pull", &["--force", "-f"], "`--merge` keeps local changes, and joins them with those of the channel"),
    ("publish", &["--force", "-f"], "`--replace` makes the channel equal to the folder"),
    ("", &["-y", "--force", "--assume-yes"], "`--yes` answers every question with yes"),
    ("", &["--no-color", "--no-colour"], "`--color never`"),
    ("", &["--branch", "-b"], "`--channel NAME` names a channel"),
];

/// Replaces the tips of an error about an unknown command or option: the parser's own are for words that only look alike.
pub(super) fn improve(mut error: Error, words: impl Iterator<Item = OsString>) -> Error {
    let told = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    };
    let mut path = words.filter_map(|word| word.into_string().ok()).filter(|word| !word.starts_with('-'));
    let command = path.next().unwrap_or_default();
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let Some(word) = told(ContextKind::InvalidSubcommand).map(|word| word.to_lowercase()) else { return error };
            let root = CommandLine::complete();
            let above = root.find_subcommand(&command);
            let group = above.map_or("", clap::Command::get_name);
            let names: Vec<&str> = above.unwrap_or(&root).get_subcommands().map(clap::Command::get_name).collect();
            let all = COMMANDS.iter().map(|(words, tip)| ("", *words, *tip)).chain(BELOW.iter().copied());
            let others: Vec<(&[&str], &str)> =
                all.filter(|(of, ..)| *of == group).map(|(_, words, tip)| (words, tip)).collect();
            let others_words = others.iter().flat_map(|(words, _)| words.iter().copied());
            error.remove(ContextKind::SuggestedSubcommand);
            error.remove(ContextKind::Suggested);
            let begins = || names.iter().copied().find(|name| word.len() > 2 && name.starts_with(&word));
            let exact = others_words.clone().find(|other| *other == word);
            // A command comes before a word of others that is as near.
            let near = exact.or_else(begins).or_else(|| nearest(&word, names.iter().copied().chain(others_words)));
            let Some(near) = near else { return error };
            let tip = match others.iter().find(|(words, _)| words.contains(&near)) {
                Some((_, tip)) => (*tip).to_owned(),
                None => format!("did you mean `{near}`?"),
            };
            error.insert(ContextKind::Suggested, tips(vec![tip]));
        }
        ErrorKind::UnknownArgument => {
            let Some(option) = told(ContextKind::InvalidArg) else { return error };
            let option = option.split('=').next().unwrap_or_default();
            let below = path.next().map(|below| format!("{command} {below}")).unwrap_or_default();
            let is_of = |of: &str| of.is_empty() || of == command || of == below;
            let known = if option.starts_with('-') { option } else { WORD };
            let found = OPTIONS.iter().find(|(of, options, _)| is_of(of) && options.contains(&known));
            // It has no option of this name: it is one of the prompt's arguments.
            let is_value = ["get", "render", "use"].contains(&&*command) && option.starts_with("--");
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

    fn shown(line: &str) -> String {
        let words = || line.split(' ').map(OsString::from);
        let error = CommandLine::complete().try_get_matches_from(words()).expect_err(line);
        improve(error, words().skip(1)).to_string()
    }

    #[test]
    fn words_of_other_programs_lead_to_the_commands_here() {
        for (line, tip) in [
            ("promptshelf search x", "tip: `promptshelf list --search TEXT`"),
            ("promptshelf Log", "tip: `promptshelf history`"),
            ("promptshelf version", "tip: `promptshelf --version`"),
            ("promptshelf check --output-format=sarif", "tip: `--format sarif`"),
            ("promptshelf list --output-format json", "tip: `--json`"),
            ("promptshelf serve --port 80", "tip: `--http 127.0.0.1:8080`"),
            ("promptshelf get review --code x", "tip: write a value of the prompt as `code=…`"),
            // Words below a command have its meaning.
            ("promptshelf store init x.db", "tip: `promptshelf init sqlite:FILE`"),
            ("promptshelf store create", "tip: `promptshelf init sqlite:FILE`"),
            ("promptshelf token add ci", "tip: `promptshelf token create LIBRARY NAME`"),
            ("promptshelf store rename", "unrecognized subcommand 'rename'\n\nUsage"),
            ("promptshelf init --store x.db", "tip: the store is the first word"),
            ("promptshelf store copy a.db b.db", "tip: `--to STORE`"),
            ("promptshelf pull --force a.db prompts", "tip: `--merge` keeps"),
            ("promptshelf install prompts zed", "tip: `--client NAME`"),
            // The nearest name, of commands and of words of others.
            ("promptshelf instal", "tip: did you mean `install`?\n"),
            ("promptshelf pub", "tip: did you mean `publish`?\n"),
            ("promptshelf tset", "tip: did you mean `test`?\n"),
            ("promptshelf token revok", "tip: did you mean `revoke`?\n"),
            ("promptshelf chanels", "tip: `promptshelf policy`"),
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
        let tips = COMMANDS.iter().map(|(_, tip)| *tip).chain(BELOW.iter().chain(OPTIONS).map(|(.., tip)| *tip));
        for line in tips.flat_map(|tip| tip.split('`').filter(|part| part.starts_with("promptshelf "))) {
            let mut words = line.split(' ').skip(1).peekable();
            let command = words.next().unwrap_or_default();
            let found = commands.find_subcommand(command);
            let is_complete = found.is_none_or(|found| {
                !found.has_subcommands() || words.peek().is_some_and(|below| found.find_subcommand(below).is_some())
            });
            let is_known = (command.starts_with('-') || command == "COMMAND" || found.is_some()) && is_complete;
            let topic = words.next().filter(|_| command == "help");
            let is_page = topic.is_none_or(|topic| crate::commands::help::topics().any(|known| known == topic));
            assert!(is_known && is_page, "{line}");
        }
    }

    #[test]
    fn no_word_is_a_command_of_its_own() {
        let commands = CommandLine::complete();
        let all =
            COMMANDS.iter().map(|(words, _)| ("", *words)).chain(BELOW.iter().map(|(of, words, _)| (*of, *words)));
        let all: Vec<(&str, &str)> = all.flat_map(|(of, words)| words.iter().map(move |word| (of, *word))).collect();
        for (of, word) in &all {
            let above = if of.is_empty() { Some(&commands) } else { commands.find_subcommand(of) };
            assert!(above.expect("a command").find_subcommand(word).is_none(), "{of} {word}");
        }
        let distinct: std::collections::HashSet<&(&str, &str)> = all.iter().collect();
        assert_eq!(distinct.len(), all.len(), "each word has one tip");
    }
}
