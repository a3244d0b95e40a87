//! The grammar of the words of a command: LIBRARY first, which may be left out; then names; then `NAME=VALUE`.

use std::{
    ffi::{OsStr, OsString},
    fmt::Debug,
    marker::PhantomData,
    path::Path,
};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, error::ErrorKind, value_parser};
use promptshelf_client::ConfiguredServer;
use promptshelf_git::GitAddress;
use promptshelf_store::StoreUrl;

use super::{
    LibraryOption, ValueArguments,
    client::SourceArguments,
    pair,
    place::{PlaceArguments, StoreArguments},
};
use crate::source::{is_path, is_url, own_prompt};

/// The ids of the positional arguments.
pub(super) const LIBRARY: &str = "first";
pub(super) const NAMES: &str = "names";
/// The usage before the form of the names, until the path of the command is known.
pub(super) const USAGE: &str = "[LIBRARY]";

/// What the LIBRARY of a command may be. The options of the type name it, too.
pub(crate) trait Library: Args + Debug {
    const ABOUT: &str;

    /// Returns whether a word that could be a name is a LIBRARY.
    fn is_meant(word: &OsStr) -> bool;

    /// Takes the word. Returns it if an option names the library already.
    fn take(&mut self, word: OsString) -> Result<(), OsString>;

    /// What the error about a word too many adds.
    const TIP: &str = "";

    /// Returns what is wrong with a word that cannot be a LIBRARY.
    fn fault(_word: &str) -> Option<String> {
        None
    }
}

/// Returns what is wrong with a word that is no store. A word with a `:` or `@` can have a password, and is not repeated.
pub(crate) fn store_fault(word: &str) -> Option<String> {
    if is_url(word) || StoreUrl::is_meant(word) || word.contains([':', '@', '\0']) {
        return None;
    }
    if Path::new(word).is_file() {
        return Some(format!("`{word}` is a file; the store in it is `sqlite:{word}`"));
    }
    Some(format!("`{word}` is not a store: the first word is `sqlite:FILE`, `postgres://…` or the URL of a server"))
}

/// The names after LIBRARY.
pub(crate) trait Names: Debug {
    /// Their form in help texts.
    const FORM: &str;
    const ABOUT: &str;
    const LEAST: usize;
    const MOST: usize;
    /// Whether `NAME=VALUE` may follow.
    const HAS_VALUES: bool = false;

    /// Returns whether a word that may be left out can be a name at all.
    fn can_be(_word: &OsStr) -> bool {
        true
    }
}

/// The words of a command, and the options that stand for some of them.
#[derive(Debug)]
pub(crate) struct Words<L, N> {
    pub(crate) library: L,
    pub(crate) names: Vec<String>,
    pub(crate) values: ValueArguments,
    form: PhantomData<N>,
}

impl<L, N> Words<L, N> {
    /// Returns the first name; empty only where the command needs none.
    pub(crate) fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    pub(crate) fn optional_name(&self) -> Option<&str> {
        self.names.first().map(String::as_str)
    }
}

impl<L: Library, N: Names> Args for Words<L, N> {
    fn augment_args(command: Command) -> Command {
        let word = |id| Arg::new(id).value_parser(value_parser!(OsString));
        let mut command = command.arg(word(LIBRARY).value_name("LIBRARY").help(L::ABOUT));
        if !N::FORM.is_empty() {
            let first = N::FORM.split(['<', '[', '>', ']']).nth(1).unwrap_or_default();
            command = command.arg(word(NAMES).num_args(..).value_name(first).help(N::ABOUT));
        }
        command = command.override_usage(format!("{USAGE} {}", N::FORM));
        command = L::augment_args(command);
        if N::HAS_VALUES { ValueArguments::augment_args(command) } else { command }
    }

    fn augment_args_for_update(command: Command) -> Command {
        Words::<L, N>::augment_args(command)
    }
}

impl<L: Library, N: Names> FromArgMatches for Words<L, N> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Words<L, N>, clap::Error> {
        let mut library = L::from_arg_matches(matches)?;
        let mut values = if N::HAS_VALUES { ValueArguments::from_arg_matches(matches)? } else { Default::default() };
        let words = [Some(LIBRARY), (!N::FORM.is_empty()).then_some(NAMES)].into_iter().flatten();
        let words = words.filter_map(|id| matches.get_many::<OsString>(id)).flatten().cloned();
        let (assigned, mut words): (Vec<OsString>, Vec<OsString>) =
            words.partition(|word| N::HAS_VALUES && is_value(word));
        for word in assigned {
            values.values.extend(pair(&word.to_string_lossy()));
        }
        let is_library = words.first().is_some_and(|first| match words.len() {
            // A value of a prompt was written without `=`.
            count if count > N::MOST && N::HAS_VALUES && is_prompt(first) => false,
            count if count > N::MOST => true,
            count if count <= N::LEAST => is_address(first),
            _ => L::is_meant(first) || !N::can_be(first),
        });
        if is_library && let Some(fault) = words[0].to_str().and_then(L::fault) {
            return Err(clap::Error::raw(ErrorKind::InvalidValue, fault));
        }
        let taken =
            if is_library { format!(" after `{}`, which is the LIBRARY", words[0].display()) } else { String::new() };
        if is_library && let Err(word) = library.take(words.remove(0)) {
            let message = format!("`{}` and an option both name the library: name it once", word.display());
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, message));
        }
        if words.len() < N::LEAST {
            let mut message = format!("a word is missing{taken}: expected [LIBRARY] {}", N::FORM);
            let range = words.first().and_then(|word| word.to_str()?.split_once(".."));
            if let Some((a, b)) = range.filter(|(a, b)| N::LEAST == 2 && !a.is_empty() && !b.is_empty()) {
                message = format!("write two words: `{a} {b}`");
            }
            return Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, message));
        }
        if let Some(word) = words.get(N::MOST) {
            let values = if N::HAS_VALUES { "; write a value as `NAME=VALUE`, without blanks around `=`" } else { "" };
            let message = format!("unexpected `{}`: expected [LIBRARY] {}{}{values}", word.display(), N::FORM, L::TIP);
            return Err(clap::Error::raw(ErrorKind::UnknownArgument, message));
        }
        let names = words.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Ok(Words { library, names, values, form: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Words::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns whether a word is `NAME=VALUE`, and not a path or an address with `=` in it.
fn is_value(word: &OsStr) -> bool {
    word.to_str().and_then(|word| word.split_once('=')).is_some_and(|(name, _)| is_value_name(name))
}

fn is_value_name(name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    !name.is_empty() && !name.starts_with('-') && name.chars().all(is_part)
}

/// Returns the words of a command line for a value.
pub(crate) fn value_words(name: &str, value: &str) -> Vec<String> {
    let word = format!("{name}={value}");
    if is_value_name(name) { vec![word] } else { vec!["--arg".to_owned(), word] }
}

/// Returns whether a word is the file or the name of a prompt of the current folder, and no place.
fn is_prompt(word: &OsStr) -> bool {
    let is_name = || word.to_str().is_some_and(|text| !is_path(text) && own_prompt(text).is_some());
    !is_address(word) && (Path::new(word).is_file() || !Path::new(word).is_dir() && is_name())
}

/// Returns whether a word can only be an address.
fn is_address(word: &OsStr) -> bool {
    word.to_str().is_some_and(|word| is_url(word) || StoreUrl::is_meant(word) || GitAddress::is_meant(word))
}

/// Returns whether a word is a place, and not the name of a prompt of the current folder.
fn is_place(word: &OsStr, is_known: impl FnOnce(&str) -> bool) -> bool {
    let Some(text) = word.to_str().filter(|text| !is_address(word) && !is_path(text)) else { return true };
    (Path::new(text).is_dir() || is_known(text)) && own_prompt(text).is_none()
}

/// A resource, instead of all.
#[derive(Debug)]
pub(crate) struct Uri;

impl Names for Uri {
    const FORM: &str = "[URI]";
    const ABOUT: &str = "Read this resource instead of listing all";
    const LEAST: usize = 0;
    const MOST: usize = 1;

    fn can_be(word: &OsStr) -> bool {
        word.to_str().is_some_and(|word| word.contains(':'))
    }
}

impl Library for SourceArguments {
    const ABOUT: &str = "A folder of prompt files, a git repository (git+https://…), the URL of a server, or the name of a \
                         server in the configuration of Claude Code (.mcp.json) or VS Code [default: the current folder]";

    fn is_meant(word: &OsStr) -> bool {
        is_place(word, |word| ConfiguredServer::all().iter().any(|server| server.name == word))
    }

    fn take(&mut self, word: OsString) -> Result<(), OsString> {
        if self.is_set() {
            return Err(word);
        }
        self.first = Some(word);
        Ok(())
    }
}

impl Library for LibraryOption {
    const ABOUT: &str = "The folder of prompt files, or a git repository (git+https://…) [default: the current folder]";

    fn is_meant(word: &OsStr) -> bool {
        is_place(word, |_| false)
    }

    fn take(&mut self, word: OsString) -> Result<(), OsString> {
        if self.folder.is_some() {
            return Err(word);
        }
        self.folder = Some(word.into());
        Ok(())
    }
}

impl Library for StoreArguments {
    const ABOUT: &str = "The store: sqlite:FILE or postgres://… [env: PROMPTSHELF_STORE]";

    fn is_meant(word: &OsStr) -> bool {
        is_address(word)
    }

    fn fault(word: &str) -> Option<String> {
        store_fault(word)
    }

    fn take(&mut self, word: OsString) -> Result<(), OsString> {
        if self.store.as_ref().is_some_and(|store| !is_default_store(&store.0)) {
            return Err(word);
        }
        self.store = Some(word.into_string()?.into());
        Ok(())
    }
}

fn is_default_store(store: &str) -> bool {
    crate::environment::variable("PROMPTSHELF_STORE").as_deref() == Some(store)
}

impl Library for PlaceArguments {
    const ABOUT: &str = "The store: sqlite:FILE or postgres://…, or the URL of a server with it; `#CHANNEL` names another \
                         channel than production [env: PROMPTSHELF_STORE]";
    const TIP: &str = "; `--channel NAME` names a channel";

    fn is_meant(word: &OsStr) -> bool {
        is_address(word)
    }

    fn fault(word: &str) -> Option<String> {
        store_fault(word)
    }

    fn take(&mut self, word: OsString) -> Result<(), OsString> {
        let is_named = self.url.is_some() || self.store.as_ref().is_some_and(|store| !is_default_store(&store.0));
        match word.into_string() {
            Ok(word) if !is_named => {
                let is_server = is_url(&word);
                let place = Some(word.into());
                if is_server {
                    self.url = place;
                } else {
                    self.store = place;
                }
                Ok(())
            }
            Ok(word) => Err(word.into()),
            Err(word) => Err(word),
        }
    }
}

macro_rules! names {
    ($($(#[$about:meta])* $name:ident($form:literal, $least:literal..=$most:expr, $values:literal, $help:literal);)+) => {$(
        $(#[$about])*
        #[derive(Debug)]
        pub(crate) struct $name;

        impl Names for $name {
            const FORM: &str = $form;
            const ABOUT: &str = $help;
            const LEAST: usize = $least;
            const MOST: usize = $most;
            const HAS_VALUES: bool = $values;
        }
    )+};
}

names! {
    Nothing("", 0..=0, false, "");
    OnlyPrompt("[PROMPT]", 0..=1, false, "Only this prompt");
    Prompts("[PROMPT]...", 0..=usize::MAX, false, "These prompts, with all files that they bring in [default: everything]");
    PromptsAndValues("[PROMPT]... [NAME=VALUE]...", 0..=usize::MAX, true, "Names of prompts [default: all], and values of their arguments");
    PromptAndValues("<PROMPT> [NAME=VALUE]...", 1..=1, true, "The prompt's name, and values of its arguments");
    FileAndValues("<PROMPT> [NAME=VALUE]...", 1..=1, true, "A prompt file, or the name of a prompt; and values of its arguments");
    PartOfValue("<PROMPT> <ARGUMENT> [VALUE] [NAME=VALUE]...", 2..=3, true,
        "The prompt's name, or a resource template such as `logs://recent{?timeframe}`; its argument; the beginning of its value; and other values");
    NewPrompt("<NAME>", 1..=1, false, "The prompt's name, or its path in the library: `git/commit` becomes `git-commit`");
    States("<A> <B>", 2..=2, false,
        "The states to compare: revisions such as `12`, channels, `CHANNEL@REVISION`, or paths of folders");
    ToFolder("<FOLDER>", 1..=1, false, "The folder: a new or empty one, or one without local changes since the last pull");
    BackupFile("<FILE>", 1..=1, false, "The file of the backup");
    OneProposal("<NUMBER>", 1..=1, false, "The proposal");
    OnlyProposal("[NUMBER]", 0..=1, false, "Show this proposal with its changes");
    DividedChannel("<CHANNEL>", 1..=1, false, "The channel whose callers are divided");
    ChannelAndShare("<CHANNEL> <PERCENT>", 2..=2, false, "The channel whose callers are divided, and their share in per cent, from 0 to 100");
    Token("<TOKEN>", 1..=1, false, "The number of the token, or its name");
    Owner("<NAME>", 1..=1, false, "Name of the token's owner in access rules and records");
}
