//! The command line: how words are read, help texts, and the arguments that several commands share. Each command has its own
//! arguments in its module of `commands`.

pub(super) mod client;
pub(crate) mod complete;
mod help;
pub(super) mod place;
pub(crate) mod time;
mod tips;
pub(super) mod words;

use std::{
    ffi::{OsStr, OsString},
    io::{self, IsTerminal as _, Write},
    path::{Path, PathBuf},
};

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

pub(crate) use self::words::{Words, store_fault, value_words};

use crate::{
    commands::{
        Command,
        serve::{self, ServeArguments},
    },
    environment::{self, without_passwords},
    output,
    source::HERE,
};

/// The width at which help texts are wrapped, even on wider terminals.
const MAX_COLUMNS: usize = 100;

/// Turns a folder of prompt files into a Model Context Protocol prompt server.
#[derive(Debug, Parser)]
#[command(name = "promptshelf", version, max_term_width = MAX_COLUMNS, after_help = help::EXAMPLES)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) common: CommonArguments,
}

/// The same with `serve` alone, the only command that clients start and wait for. Building the options of the other
/// commands takes a good part of the time to the first response.
#[derive(Debug, Parser)]
struct ServeLine {
    #[command(subcommand)]
    command: ServeCommand,

    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Debug, Subcommand)]
enum ServeCommand {
    Serve(ServeArguments),
}

impl CommandLine {
    pub(crate) fn complete() -> clap::Command {
        help::arranged(serve::describe(CommandLine::command()))
    }

    /// Parses the arguments of the process. Prints help or an error and ends the process if there is nothing to run.
    pub(crate) fn read() -> CommandLine {
        if std::env::args_os().len() < 2 && io::stdout().is_terminal() {
            write!(io::stdout(), "{}", help::first_steps()).ok();
            std::process::exit(0)
        }
        if std::env::args_os().nth(1).is_some_and(|command| command == "serve")
            && let Ok(ServeLine { command: ServeCommand::Serve(arguments), common }) = ServeLine::try_parse()
        {
            return CommandLine { command: Command::Serve(arguments), common };
        }
        // Help and errors come from the complete command line.
        let matches = with_secrets(CommandLine::command()).try_get_matches();
        let matches = matches.or_else(|_| {
            let colours = output::colours_of(std::env::args_os().skip(1)).choice();
            with_secrets(CommandLine::complete()).color(colours).try_get_matches()
        });
        let parsed = matches.and_then(|matches| {
            CommandLine::from_arg_matches(&matches).map_err(|error| error.format(&mut command_of(&matches)))
        });
        parsed.unwrap_or_else(|error| {
            let error = tips::improve(error, std::env::args_os().skip(1));
            let shown = error.to_string();
            let safe = without_passwords(&shown);
            let safe = output::visible(&safe);
            // It has words that were typed.
            if *safe != *shown && error.use_stderr() {
                write!(io::stderr(), "{safe}").ok();
                std::process::exit(error.exit_code())
            }
            error.exit()
        })
    }
}

/// Returns the complete command that was called, for its usage.
fn command_of(matches: &clap::ArgMatches) -> clap::Command {
    let mut root = CommandLine::complete();
    root.build();
    let (mut command, mut matches) = (&root, matches);
    while let Some((name, below)) = matches.subcommand()
        && let Some(found) = command.find_subcommand(name)
    {
        (command, matches) = (found, below);
    }
    command.clone()
}

fn with_secrets(command: clap::Command) -> clap::Command {
    let secret = |argument: &clap::Arg| argument.get_env().and_then(OsStr::to_str).and_then(environment::from_file);
    let command = command.mut_args(|argument| match secret(&argument) {
        Some(secret) => argument.required(false).default_value(secret).hide_default_value(true),
        None => argument,
    });
    command.mut_subcommands(with_secrets)
}

/// Returns whether the words are `--version --json`, in any order. The parser would ask for a command.
pub(crate) fn asks_for_version_as_json(words: impl Iterator<Item = OsString>) -> bool {
    let mut words: Vec<OsString> = words.take(3).collect();
    words.sort();
    words == ["--json", "--version"] || words == ["--json", "-V"]
}

/// The options of every command. One line of each help text names them.
#[derive(Debug, Args)]
pub(crate) struct CommonArguments {
    /// Print results only: no notes and no progress on stderr
    #[arg(short = 'q', long, global = true, hide = true)]
    pub(crate) quiet: bool,

    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide = true)]
    pub(crate) color: Colours,

    /// Answer questions with yes, except those about text or commands of others
    #[arg(long, global = true, hide = true)]
    pub(crate) yes: bool,

    /// Log level: off, error, warn, info, debug or trace, or per target as in `info,promptshelf_source=debug`
    /// [default: info for `serve`, else error]
    #[arg(long = "log", global = true, value_name = "LEVEL", env = "RUST_LOG", hide_env_values = true, hide = true)]
    pub(crate) level: Option<String>,

    /// Format of log lines on stderr
    #[arg(long, global = true, value_name = "FORMAT", env = "PROMPTSHELF_LOG_FORMAT", default_value = "text")]
    #[arg(hide_env_values = true, hide = true)]
    pub(crate) log_format: LogFormat,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colours {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Plain text, for people
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// The library of commands whose only positional argument it is.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LibraryObject {
    /// The folder of prompt files [default: the current folder]
    #[arg(value_name = "LIBRARY", conflicts_with = "named")]
    folder: Option<PathBuf>,

    /// The same as LIBRARY
    #[arg(id = "named", short = 'l', long = "library", value_name = "LIBRARY", hide = true)]
    named: Option<PathBuf>,
}

/// The library of commands whose positional argument is a prompt.
#[derive(Debug, Args)]
pub(crate) struct LibraryOption {
    /// The same as LIBRARY
    #[arg(short = 'l', long = "library", value_name = "LIBRARY", hide = true)]
    folder: Option<PathBuf>,
}

/// The libraries and files of `check`, `test` and `fmt`.
#[derive(Debug, Args)]
pub(crate) struct PathArguments {
    /// Folders of prompt files, or single files, whose library is found above them [default: the current folder]
    #[arg(value_name = "LIBRARY|FILE")]
    paths: Vec<PathBuf>,

    /// The same as LIBRARY
    #[arg(id = "named", short = 'l', long = "library", value_name = "LIBRARY", hide = true)]
    named: Option<PathBuf>,
}

impl PathArguments {
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.paths.iter().chain(&self.named).cloned().collect()
    }
}

impl LibraryObject {
    pub(crate) fn folder(&self) -> &Path {
        self.explicit_folder().unwrap_or(Path::new(HERE))
    }

    /// Returns the folder if it was set explicitly.
    pub(crate) fn explicit_folder(&self) -> Option<&Path> {
        self.folder.as_deref().or(self.named.as_deref())
    }
}

impl LibraryOption {
    /// Returns the folder if it was set explicitly.
    pub(crate) fn explicit_folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.as_deref().unwrap_or(Path::new(HERE))
    }
}

/// Values for the arguments of a prompt.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ValueArguments {
    /// A value: `code=text`, `code=@file`, or `code=-` for stdin; can be repeated
    #[arg(short = 'a', long = "arg", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) values: Vec<(String, String)>,

    /// A value used verbatim, even if it begins with `@` or is `-`; can be repeated
    #[arg(long = "literal", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) literal: Vec<(String, String)>,
}

/// Parses `name=value`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected name=value".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_valid() {
        CommandLine::complete().debug_assert();
    }

    /// The commands, with their paths, that have no commands below them.
    fn leaves() -> Vec<(String, clap::Command)> {
        fn collect(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
            for below in command.get_subcommands() {
                let path = format!("{path} {}", below.get_name()).trim_start().to_owned();
                if below.has_subcommands() { collect(below, &path, found) } else { found.push((path, below.clone())) }
            }
        }
        let mut found = Vec::new();
        collect(&CommandLine::complete(), "", &mut found);
        found
    }

    /// Commands whose first word is not a library, with the word.
    const OTHER_WORDS: [(&str, &str); 15] = [
        ("audit", "FILE"),
        ("explain", "CODE"),
        ("known-clients", "NAME"),
        ("schema", "FILE"),
        ("import", "PATH"),
        ("help", "TOPIC"),
        ("completions", "SHELL"),
        ("man", "FOLDER"),
        ("token new", "NAME"),
        ("uninstall", ""),
        ("source list", ""),
        ("source refresh", "NAME"),
        ("source approve", "NAME"),
        ("source pin", "NAME"),
        ("source rollback", "NAME"),
    ];

    /// Commands without results to read: they run until they are stopped, ask, print files, or say one sentence.
    const WITHOUT_JSON: [&str; 13] = [
        "serve",
        "use",
        "lsp",
        "schema",
        "completions",
        "man",
        "help",
        "sign-in",
        "sign-out",
        "source refresh",
        "source approve",
        "source pin",
        "source rollback",
    ];

    /// Prints the tree with `--nocapture`.
    #[test]
    fn every_command_has_the_form_of_the_grammar() {
        for (path, command) in leaves() {
            let words: Vec<String> = (command.get_positionals().filter(|word| !word.is_last_set()))
                .filter_map(|word| Some(word.get_value_names()?.first()?.to_string()))
                .collect();
            println!("{path} {}", words.join(" "));
            let first = words.first().map_or("", String::as_str);
            match OTHER_WORDS.iter().find(|(other, _)| *other == path) {
                Some((_, word)) => assert_eq!(first, *word, "{path}"),
                // Their places are options of the same meaning.
                None if path.starts_with("rollout ") => {}
                None => assert!(first.starts_with("LIBRARY"), "the first word of `{path}` is {first:?}"),
            }
            let has = |name: &str| command.get_arguments().any(|option| option.get_long() == Some(name));
            assert_eq!(has("json"), !WITHOUT_JSON.contains(&path.as_str()), "--json of `{path}`");
            for option in command.get_arguments() {
                let name = option.get_long().unwrap_or_default();
                let id = option.get_id();
                if name == "client" {
                    assert!(
                        matches!(option.get_action(), clap::ArgAction::Append),
                        "--client of `{path}` can be repeated"
                    );
                    let help = option.get_help().map(ToString::to_string).unwrap_or_default();
                    assert!(help.contains("`all`"), "--client of `{path}` has `all`");
                }
                if name == "channel" {
                    let names = option.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
                    assert!(names.is_some_and(|name| name == "CHANNEL" || name == "NAME"), "--channel of `{path}`");
                }
                let short = option.get_short().map(|short| (short, name));
                let known =
                    [('a', "arg"), ('m', "message"), ('l', "library"), ('q', "quiet"), ('h', "help"), ('V', "version")];
                assert!(short.is_none_or(|short| known.contains(&short)), "{id} of `{path}`");
            }
        }
        for (path, _) in OTHER_WORDS {
            assert!(leaves().iter().any(|(leaf, _)| leaf == path), "{path} is no command");
        }
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> =
            crate::commands::GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.sort_unstable();
        let root = CommandLine::complete();
        let mut names: Vec<&str> = root.get_subcommands().map(clap::Command::get_name).collect();
        names.sort_unstable();
        assert_eq!(grouped, names);
    }

    /// An example that the parser refuses teaches a wrong form.
    #[test]
    fn examples_are_accepted() {
        let mut count = 0;
        for (path, command) in leaves().into_iter().chain([(String::new(), CommandLine::complete())]) {
            let texts = [command.get_before_help(), command.get_after_help(), command.get_after_long_help()];
            let text: Vec<String> = texts.into_iter().flatten().map(ToString::to_string).collect();
            let text = text.join("\n").replace("\\\n    ", " ");
            let examples = text.lines().filter(|line| line.starts_with("  ") && line.contains("promptshelf "));
            for line in examples {
                let line = line.split_once("promptshelf ").map_or(line, |(_, words)| words);
                // What follows is a comment or the shell's.
                let line = line.split("   ").next().and_then(|line| line.split(['|', '>']).next()).unwrap_or(line);
                let line = line.split(" < ").next().unwrap_or(line);
                let words = shlex::split(line).unwrap_or_else(|| panic!("{path}: {line}"));
                let parsed =
                    CommandLine::command().try_get_matches_from(std::iter::once("promptshelf".to_owned()).chain(words));
                let parsed = parsed.and_then(|matches| CommandLine::from_arg_matches(&matches));
                assert!(
                    parsed.is_ok(),
                    "`{path}` has the example `{line}`: {}",
                    parsed.err().map(|error| error.to_string()).unwrap_or_default()
                );
                count += 1;
            }
        }
        assert!(count > 100, "{count} examples");
    }

    #[test]
    fn words_are_library_names_and_values() {
        let parse = |line: &str| {
            let words = shlex::split(line).expect("words");
            let matches =
                CommandLine::command().try_get_matches_from(std::iter::once("promptshelf".to_owned()).chain(words));
            matches.and_then(|matches| CommandLine::from_arg_matches(&matches)).map(|line| line.command)
        };
        let Ok(Command::Get(get)) = parse("get prompts hello name=Ada -a x=1") else { panic!("it is accepted") };
        assert_eq!((get.words.name(), get.words.values.values.len()), ("hello", 2));
        let Ok(Command::Get(get)) = parse("get hello 'name=a b=c'") else { panic!("it is accepted") };
        assert_eq!(get.words.values.values, [("name".to_owned(), "a b=c".to_owned())]);
        let Ok(Command::History(history)) = parse("history code_review") else { panic!("it is accepted") };
        assert_eq!(history.words.optional_name(), Some("code_review"));
        let Ok(Command::Diff(diff)) = parse("diff https://a.example 1 2") else { panic!("it is accepted") };
        assert_eq!((diff.words.names.join(" "), diff.words.library.url.is_some()), ("1 2".to_owned(), true));
        for (line, expected) in [
            ("get", "a word is missing"),
            ("approve sqlite:team.db", "a word is missing after `sqlite:team.db`, which is the LIBRARY: expected"),
            ("store backup b.db", "a word is missing after `b.db`, which is the LIBRARY: expected [LIBRARY] <FILE>"),
            (
                "get prompts hello name",
                "unexpected `name`: expected [LIBRARY] <PROMPT> [NAME=VALUE]...; write a value as",
            ),
            ("get prompts hello name = x", "unexpected `name`"),
            ("diff sqlite:team.db 1", "a word is missing"),
            ("new a b c", "unexpected `c`"),
            ("history sqlite:a.db --store sqlite:b.db", "both name the library"),
            ("rollback sqlite:a.db --to latest -m x", "expected a number such as 12"),
            ("publish sqlite:a.db -m x", "it is the store: write it after `--to`"),
            ("publish team.db --to sqlite:a.db -m x", "it is the store: write it after `--to`"),
        ] {
            let error = parse(line).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn help_texts_fit_80_columns() {
        const TERMINAL_COLUMNS: usize = 80;

        let command_line = CommandLine::complete();
        for command in command_line.get_subcommands().chain([&command_line]) {
            for text in [command.get_after_help(), command.get_after_long_help()].into_iter().flatten() {
                let text = text.to_string();
                let longest = text.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
                assert!(longest.chars().count() <= TERMINAL_COLUMNS, "{}: {longest}", command.get_name());
            }
        }
    }
}
