//! The variables of promptshelf in the environment. A secret can also be in a file that a variable with the ending `_FILE`
//! names.

use std::{borrow::Cow, collections::BTreeMap, env, fs, sync::OnceLock};

use promptshelf_core::nearest;

use crate::{
    exit::{Exit, Failure},
    settings::{FLAGS, Flag},
};

/// The variables that are no secrets and replace no setting of `server.toml`.
const PLAIN: [&str; 7] = [
    "PROMPTSHELF_ALLOW_SERVER",
    "PROMPTSHELF_CHANNELS",
    "PROMPTSHELF_CLIENT_ID",
    "PROMPTSHELF_CLIENT_ISSUER",
    "PROMPTSHELF_CONFIG",
    "PROMPTSHELF_LOG_FORMAT",
    // That of the installers.
    "PROMPTSHELF_RELEASES",
];

const SECRETS: [&str; 5] = [
    "PROMPTSHELF_CLIENT_SECRET",
    "PROMPTSHELF_STATE_KEY",
    "PROMPTSHELF_STATE_KEY_PREVIOUS",
    "PROMPTSHELF_STORE",
    "PROMPTSHELF_TOKEN",
];

const PREFIX: &str = "PROMPTSHELF_";

static FILES: OnceLock<BTreeMap<&'static str, String>> = OnceLock::new();

/// Reads the files of secrets, once, before anything else.
pub(crate) fn read_secrets() -> Result<(), Failure> {
    let mut files = BTreeMap::new();
    for name in SECRETS {
        let file_name = format!("{name}_FILE");
        let Some(path) = env::var_os(&file_name).filter(|path| !path.is_empty()) else { continue };
        let usage = |message: String| Failure::new(Exit::Usage, message);
        if env::var_os(name).is_some_and(|value| !value.is_empty()) {
            return Err(
                usage(format!("{name} and {file_name} are both set in the environment")).help("keep one of them")
            );
        }
        let shown = path.display();
        let text = fs::read_to_string(&path)
            .map_err(|error| usage(format!("{shown}, which {file_name} names, cannot be read: {error}")))?;
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() || text.contains(['\r', '\n', '\0']) {
            return Err(usage(format!("{shown}, which {file_name} names, has to contain one line with the secret")));
        }
        files.insert(name, text.to_owned());
    }
    // The first call counts.
    let _ = FILES.set(files);
    Ok(())
}

pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty()).or_else(|| from_file(name).map(str::to_owned))
}

pub(crate) fn from_file(name: &str) -> Option<&'static str> {
    FILES.get()?.get(name).map(String::as_str)
}

/// A variable that no program reads, with the one that may be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownVariable {
    pub(crate) name: String,
    pub(crate) nearest: Option<String>,
}

impl std::fmt::Display for UnknownVariable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the variable {} in the environment is unknown", self.name)?;
        self.nearest.iter().try_for_each(|nearest| write!(f, "; did you mean {nearest}?"))
    }
}

/// Returns the variables that begin like those of promptshelf, or nearly so, and are none of them.
pub(crate) fn unknown() -> Vec<UnknownVariable> {
    let names = env::vars_os().filter(|(_, value)| !value.is_empty());
    unknown_of(names.filter_map(|(name, _)| name.into_string().ok()))
}

fn unknown_of(names: impl Iterator<Item = String>) -> Vec<UnknownVariable> {
    let files = SECRETS.iter().map(|name| format!("{name}_FILE"));
    let others: Vec<String> = files.chain(FLAGS.iter().map(Flag::variable)).collect();
    let known = || PLAIN.into_iter().chain(SECRETS).chain(others.iter().map(String::as_str));
    let mut unknown: Vec<UnknownVariable> = names
        .filter(|name| !known().any(|known| known == name))
        .filter_map(|name| {
            // A name is compared by its parts: that of the program may be mistyped, or that of the setting.
            let upper = name.to_uppercase();
            let (program, _) = upper.split_once('_')?;
            let is_meant = nearest(program, ["PROMPTSHELF"]).is_some();
            let nearest = nearest(&upper, known()).map(str::to_owned);
            (name.starts_with(PREFIX) || (is_meant && nearest.is_some())).then_some(UnknownVariable { name, nearest })
        })
        .collect();
    unknown.sort_by(|a, b| a.name.cmp(&b.name));
    unknown
}

/// Returns a text for stderr in which no address with a password is repeated: a word of the command line, or the address
/// of the store in the environment. An error may repeat such a word for another reason, as that of a folder, for example.
pub(crate) fn without_passwords(text: &str) -> Cow<'_, str> {
    let words = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    masked(text, words.chain(variable("PROMPTSHELF_STORE")))
}

fn masked(text: &str, words: impl Iterator<Item = String>) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(text);
    for word in words {
        // The word may be the value of an option.
        let word =
            word.split_once('=').filter(|(option, _)| option.starts_with('-')).map_or(&*word, |(_, value)| value);
        let Some(mask) = mask(word) else { continue };
        // A path has no empty parts, and one of a folder may be continued.
        let plain = word.replace("//", "/");
        for written in [word, word.trim(), &plain] {
            if shown.contains(written) {
                shown = Cow::Owned(shown.replace(written, &mask));
            }
        }
        let password = word.rsplit_once('@').and_then(|(user, _)| user.split_once("://")?.1.split_once(':'));
        if let Some((_, password)) = password.filter(|(_, password)| password.len() >= SHORTEST_MASKED)
            && shown.contains(password)
        {
            shown = Cow::Owned(shown.replace(password, "***"));
        }
    }
    shown
}

/// The shortest password that is looked for by itself: a shorter one may be a part of any word.
const SHORTEST_MASKED: usize = 8;

/// Returns what is shown of an address that has a password, or may have one.
fn mask(word: &str) -> Option<String> {
    let (scheme, rest) = word.trim_start().split_once([':', '/'])?;
    // What follows is a path.
    if scheme.eq_ignore_ascii_case("sqlite") {
        return None;
    }
    let rest = rest.trim_start_matches('/');
    let user = rest.rsplit_once('@').map(|(user, _)| user);
    let is_database = scheme.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("postgres"));
    let has_parameter = rest.to_ascii_lowercase().contains("password=");
    let has_password = has_parameter
        || user.is_some_and(|user| user.contains(':') || !word.contains("//"))
        || (is_database && user.is_none() && rest.contains(':') && !is_host_with_port(rest));
    let is_url = word.contains("://");
    let named = user.filter(|_| is_url && !has_parameter).and_then(|user| Some((user, user.split_once(':')?.0)));
    has_password.then(|| match named {
        // The host and the name say which address it is. A query may have secrets of other names.
        Some((user, name)) => {
            let place = &rest[user.len()..];
            let (place, query) = place.split_once('?').map_or((place, ""), |(place, _)| (place, "?***"));
            format!("{scheme}://{name}:***{place}{query}")
        }
        None => format!("{}:***", if is_database || is_url { scheme } else { "" }),
    })
}

/// Returns whether the only `:` of an address without `scheme://` is that before a port.
fn is_host_with_port(rest: &str) -> bool {
    let Some((_, after)) = rest.split_once(':') else { return false };
    let port = after.split(['/', '?', '#']).next().unwrap_or_default();
    port.parse::<u16>().is_ok() && !after.contains(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-94, S-327
    #[test]
    fn addresses_with_passwords_are_not_repeated() {
        for address in [
            "postgres://u:Tail99secret@h/p",
            "POSTGRES://u:Tail99secret@h/p",
            "postgress://u:a#Tail99secret@h/p",
            " postgres://u:Tail99secret@h/p",
            "postgres:u:Tail99secret@h/p",
            "postgres:/u:Tail99secret@h/p",
            "postgres//u:Tail99secret@h/p",
            "postgresql://u:Tail99secret",
            "postgres://h/p?password=Tail99secret",
            "mysql://u:a b Tail99secret@h/p",
            "https://u:Tail99secret@h/p",
            "u:Tail99secret@h/p",
        ] {
            for text in [format!("the folder {address} is missing"), format!("{}/a.md", address.replace("//", "/"))] {
                for word in [address.to_owned(), format!("--store={address}")] {
                    let shown = masked(&text, std::iter::once(word));
                    assert!(!shown.contains("Tail99"), "{shown}");
                }
            }
        }
        for plain in [
            "prompts",
            "https://example.com:8080/a",
            "git+ssh://git@example.com/a",
            "a@b",
            "sqlite:team.db",
            "sqlite:d@x/none.db",
            "sqlite:///srv/a:b@c.db#next@2",
            "sqlite:m.db@2",
            "postgres://localhost:1/x",
            "postgres://u@localhost:5432/x?sslmode=require",
        ] {
            assert_eq!(masked(plain, std::iter::once(plain.to_owned())), plain);
        }
        // The host stays.
        for (address, shown) in [
            ("postgres://ada:Tail99secret@db.example.com:5432/p#next", "postgres://ada:***@db.example.com:5432/p#next"),
            ("https://ada:a@Tail99secret@example.com/p?key=Tail99secret", "https://ada:***@example.com/p?***"),
        ] {
            assert_eq!(masked(address, std::iter::once(address.to_owned())), shown);
        }
    }

    // req: S-325
    #[test]
    fn mistyped_variables_are_named_with_the_meant_one() {
        let unknown = |name: &str| unknown_of(std::iter::once(name.to_owned())).into_iter().next();
        for (mistyped, meant) in [
            ("PROMTSHELF_STORE", "PROMPTSHELF_STORE"),
            ("PROMPTSHELF_STOR", "PROMPTSHELF_STORE"),
            ("promptshelf_store", "PROMPTSHELF_STORE"),
            ("PROMPTSHELF_STATE_KEY_FILES", "PROMPTSHELF_STATE_KEY_FILE"),
            ("PROPMTSHELF_TOKENS", "PROMPTSHELF_TOKENS"),
        ] {
            assert_eq!(unknown(mistyped).and_then(|found| found.nearest).as_deref(), Some(meant), "{mistyped}");
        }
        assert_eq!(unknown("PROMPTSHELF_ZZZZZZZZ").map(|found| found.nearest), Some(None));
        for other in ["PATH", "SHELF_STORE", "PROMPT_COMMAND", "PROMPTSHELF_STORE", "PROMPTSHELF_STORE_FILE"] {
            assert_eq!(unknown(other), None, "{other}");
        }
    }

    /// The list is complete: every variable that the source reads is in it.
    #[test]
    fn every_variable_of_the_source_is_known() {
        fn visit(folder: &std::path::Path, found: &mut std::collections::BTreeSet<String>) {
            for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
                if entry.is_dir() {
                    visit(&entry, found);
                } else if !entry.ends_with("environment.rs") {
                    let text = std::fs::read_to_string(&entry).unwrap_or_default();
                    let is_part = |c: char| c.is_ascii_uppercase() || c == '_';
                    for (at, _) in text.match_indices(PREFIX) {
                        let name: String = text[at..].chars().take_while(|c| is_part(*c)).collect();
                        found.insert(name.trim_end_matches('_').to_owned());
                    }
                }
            }
        }
        let mut found = std::collections::BTreeSet::new();
        visit(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli"), &mut found);
        // The last two are variables of the build.
        let others = ["PROMPTSHELF", "PROMPTSHELF_NAME", "PROMPTSHELF_COMMIT", "PROMPTSHELF_TARGET"];
        found.retain(|name| !name.ends_with("_FILE") && !others.contains(&name.as_str()));
        let unknown = unknown_of(found.into_iter());
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
