//! Addresses of stores and channels.

use std::{
    fmt,
    net::IpAddr,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use url::Url;

use crate::error::StoreError;

/// The place of a store: `sqlite:PATH` or `postgres://…`. `Display` and `Debug` hide the password.
///
/// A relative path starts at the working directory. A URL of PostgreSQL has the parameters of libpq that are known here
/// (`sslmode`, `sslrootcert`, `host` …); parameters that it leaves out come from the environment (`PGPASSWORD`, `PGHOST` …) and
/// from `~/.pgpass`. `notifications=off` does without LISTEN: changes are then noticed by comparisons only.
///
/// ```
/// use promptshelf_store::StoreUrl;
///
/// let url: StoreUrl = "postgres://ada:secret@db.example/prompts".parse()?;
/// assert_eq!(url.to_string(), "postgres://ada:***@db.example/prompts");
/// # Ok::<(), promptshelf_store::StoreError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(Place);

/// The parsed form of a [`StoreUrl`].
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Sqlite(PathBuf),
    Postgres(PostgresUrl),
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PostgresUrl {
    url: Url,
    connect_timeout: Option<Duration>,
    has_notifications: bool,
}

impl PostgresUrl {
    /// Returns the URL with the password, without the parameters that the driver does not know.
    pub(crate) fn for_driver(&self) -> &Url {
        &self.url
    }

    pub(crate) fn has_password(&self) -> bool {
        self.url.password().is_some() || self.url.query_pairs().any(|(name, _)| name == "password")
    }

    /// Returns whether `LISTEN` is used.
    pub(crate) fn has_notifications(&self) -> bool {
        self.has_notifications
    }

    /// Returns the value of `connect_timeout`.
    pub(crate) fn connect_timeout(&self) -> Option<Duration> {
        self.connect_timeout
    }
}

/// The parameters of a PostgreSQL URL that the driver applies. It ignores others with a warning that shows their values.
const PARAMETERS: &[&str] = &[
    "application_name",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "notifications",
    "options",
    "password",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "user",
];

/// The values of `sslmode`.
const SSL_MODES: &[&str] = &["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

impl StoreUrl {
    /// Whether a word is meant as a store: it starts with `sqlite:`, `postgres:` or `postgresql:`, or is a path that ends
    /// with `.db`, `.sqlite` or `.sqlite3`, before a `#CHANNEL`.
    ///
    /// ```
    /// use promptshelf_store::StoreUrl;
    ///
    /// assert!(StoreUrl::is_meant("sqlite:prompts") && StoreUrl::is_meant("team.db#staging"));
    /// assert!(!StoreUrl::is_meant("prompts"));
    /// ```
    #[must_use]
    pub fn is_meant(word: &str) -> bool {
        ["sqlite:", "postgres:", "postgresql:"].iter().any(|scheme| word.starts_with(scheme))
            || is_file_name(word.split('#').next().unwrap_or(word))
    }

    /// Returns whether the URL contains a password.
    #[must_use]
    pub fn has_password(&self) -> bool {
        match &self.0 {
            Place::Sqlite(_) => false,
            Place::Postgres(url) => url.has_password(),
        }
    }

    /// Returns the place of a store in an SQLite file.
    #[must_use]
    pub fn file(path: &Path) -> StoreUrl {
        StoreUrl(Place::Sqlite(path.to_owned()))
    }

    /// Returns the file of a store in SQLite.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.0 {
            Place::Sqlite(path) => Some(path),
            Place::Postgres(_) => None,
        }
    }

    pub(crate) fn place(&self) -> &Place {
        &self.0
    }

    pub(crate) fn has_notifications(&self) -> bool {
        matches!(&self.0, Place::Postgres(url) if url.has_notifications())
    }
}

impl FromStr for StoreUrl {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<StoreUrl, StoreError> {
        let place = match text.split_once(':') {
            Some(("sqlite", path)) => Place::Sqlite(sqlite(path)?),
            Some(("postgres" | "postgresql", _)) => Place::Postgres(postgres(text)?),
            _ if is_file_name(text) => Place::Sqlite(sqlite(text)?),
            _ => {
                // The text may be a URL with a password, so it is not repeated.
                return Err(invalid("a store is `sqlite:FILE`, a path that ends with `.db`, or `postgres://…`"));
            }
        };
        Ok(StoreUrl(place))
    }
}

/// Whether a path has the ending of a database, and is no URL.
fn is_file_name(path: &str) -> bool {
    let ending = Path::new(path).extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ["db", "sqlite", "sqlite3"].contains(&ending)) && !path.contains("://")
}

fn sqlite(path: &str) -> Result<PathBuf, StoreError> {
    // `sqlite:///a` is widely used for the absolute path /a. `sqlite://a` would name a host.
    let path = match path.strip_prefix("//") {
        Some(absolute) if absolute.starts_with('/') => absolute,
        Some(_) => return Err(invalid("expected `sqlite:PATH`, without `//`")),
        None => path,
    };
    if path.is_empty() || path == ":memory:" || path.contains('\0') {
        return Err(invalid("expected `sqlite:PATH` with the path of a file"));
    }
    if path.contains('?') {
        return Err(invalid("`sqlite:PATH` has no parameters after `?`"));
    }
    Ok(PathBuf::from(path))
}

/// The characters that separate the parts of a URL, with the form that they have within a part.
const ENCODED: &str = "in a user name or a password `#` is written `%23`, `/` is `%2F`, `?` is `%3F` and `@` is `%40`";

/// Parses a URL of PostgreSQL. No part of the text is ever repeated in an error: a separator within the password makes each
/// part of the URL a part of the password.
fn postgres(text: &str) -> Result<PostgresUrl, StoreError> {
    const FORM: &str = "expected `postgres://USER:PASSWORD@HOST:PORT/DATABASE`";
    let bad = |reason: &str| invalid(format!("the URL of the store is invalid ({reason}): {FORM}; {ENCODED}"));
    let (_, rest) = text.split_once("://").ok_or_else(|| bad("`//` is missing"))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    if rest[authority.len()..].contains('@') {
        return Err(bad("an `@` after the host"));
    }
    let parsed = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
    if parsed.cannot_be_a_base() || parsed.fragment().is_some() {
        return Err(bad("a `#` at the wrong place"));
    }
    if parsed.host_str().is_some_and(|host| host.contains(',')) {
        return Err(invalid("the URL of a store names one host"));
    }
    let mut url = parsed.clone();
    url.set_query(None);
    let mut connect_timeout = None;
    let mut has_notifications = true;
    for (index, (name, value)) in parsed.query_pairs().enumerate() {
        let Some(name) = PARAMETERS.iter().find(|known| **known == name) else {
            let (number, known) = (index + 1, PARAMETERS.join(", "));
            return Err(invalid(format!(
                "parameter {number} after the `?` in the URL of the store is unknown; known ones: {known}; {ENCODED}"
            )));
        };
        let is_good = match *name {
            "sslmode" => SSL_MODES.contains(&&*value),
            "port" => value.parse::<u16>().is_ok(),
            "hostaddr" => value.parse::<IpAddr>().is_ok(),
            // Not a parameter of libpq, so the driver does not get it.
            "notifications" if matches!(&*value, "on" | "off") => {
                has_notifications = value == "on";
                continue;
            }
            "notifications" => false,
            "connect_timeout" => match value.parse::<u64>() {
                Ok(seconds) => {
                    connect_timeout = (seconds > 0).then(|| Duration::from_secs(seconds));
                    continue;
                }
                Err(_) => false,
            },
            _ => true,
        };
        if !is_good {
            return Err(invalid(format!("the parameter `{name}` of the store's URL has an invalid value")));
        }
        url.query_pairs_mut().append_pair(name, &value);
    }
    Ok(PostgresUrl { url, connect_timeout, has_notifications })
}

fn invalid(reason: impl Into<String>) -> StoreError {
    StoreError::InvalidUrl { reason: reason.into() }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Place::Postgres(PostgresUrl { url, connect_timeout, has_notifications }) => {
                let mut shown = url.clone();
                if shown.password().is_some() {
                    // Fails for URLs without a host only, which have no password.
                    let _ = shown.set_password(Some("***"));
                }
                shown.set_query(None);
                for (name, value) in url.query_pairs() {
                    let value = if name == "password" { "***" } else { &value };
                    shown.query_pairs_mut().append_pair(&name, value);
                }
                if let Some(seconds) = connect_timeout {
                    shown.query_pairs_mut().append_pair("connect_timeout", &seconds.as_secs().to_string());
                }
                if !has_notifications {
                    shown.query_pairs_mut().append_pair("notifications", "off");
                }
                write!(f, "{shown}")
            }
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

/// The name of a channel: 1 to 64 lower-case ASCII letters, digits, `-`, `_` and `.`, starting with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(utoipa::ToSchema),
    schema(value_type = String, pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")
)]
#[serde(try_from = "String", into = "String")]
pub struct ChannelName(String);

impl ChannelName {
    /// The channel that is meant where none is named.
    #[must_use]
    pub fn production() -> ChannelName {
        ChannelName("production".to_owned())
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ChannelName {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<ChannelName, StoreError> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let is_good = text.len() <= 64
            && text.starts_with(is_plain)
            && text.chars().all(|c| is_plain(c) || matches!(c, '-' | '_' | '.'));
        if is_good {
            Ok(ChannelName(text.to_owned()))
        } else {
            Err(StoreError::InvalidChannel { name: text.to_owned() })
        }
    }
}

impl TryFrom<String> for ChannelName {
    type Error = StoreError;

    fn try_from(text: String) -> Result<ChannelName, StoreError> {
        text.parse()
    }
}

impl From<ChannelName> for String {
    fn from(name: ChannelName) -> String {
        name.0
    }
}

impl fmt::Display for ChannelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A channel of a store, as the command line names it: `STORE[#CHANNEL[@REVISION]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelAddress {
    /// The store.
    pub store: StoreUrl,
    /// The channel; `production` where none is named.
    pub channel: ChannelName,
    /// The revision; `None` for the newest one.
    pub revision: Option<u64>,
}

impl FromStr for ChannelAddress {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<ChannelAddress, StoreError> {
        let (store, rest) = text.split_once('#').map_or((text, None), |(store, rest)| (store, Some(rest)));
        let is_file = is_file_name(store) && !store.contains([':', '@']);
        let is_secret = !text.starts_with("sqlite:") && !is_file;
        let (channel, revision) = match rest.map(channel_and_revision) {
            None => (ChannelName::production(), None),
            // Everything after the `#` may be part of a password.
            Some(Err(_)) if is_secret => {
                let form = "expected `#CHANNEL` or `#CHANNEL@REVISION`";
                return Err(invalid(format!("the URL of the store does not end with a channel: {form}; {ENCODED}")));
            }
            // Without an `@`, the part before the `#` can be the begin of a user name and a password.
            Some(Ok((_, Some(_)))) if is_secret && !store.contains('@') && !has_path(store) => {
                let form = "write a `/` before the `#` if it is the URL of a host and a port";
                return Err(invalid(format!("the URL of the store is ambiguous: {form}; {ENCODED}")));
            }
            Some(parsed) => parsed?,
        };
        Ok(ChannelAddress { store: store.parse()?, channel, revision })
    }
}

/// Parses `CHANNEL[@REVISION]`.
fn channel_and_revision(text: &str) -> Result<(ChannelName, Option<u64>), StoreError> {
    let (name, revision) = text.split_once('@').map_or((text, None), |(name, number)| (name, Some(number)));
    let number = |text: &str| text.parse().map_err(|_| StoreError::InvalidRevision { revision: text.to_owned() });
    Ok((name.parse()?, revision.map(number).transpose()?))
}

fn has_path(url: &str) -> bool {
    url.split_once("://").is_some_and(|(_, rest)| rest.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        text.parse::<StoreUrl>().unwrap().to_string()
    }

    #[test]
    fn sqlite_urls_have_a_path_and_nothing_else() {
        assert_eq!(shown("sqlite:team.db"), "sqlite:team.db");
        assert_eq!(shown("sqlite:/var/lib/team.db"), "sqlite:/var/lib/team.db");
        assert_eq!(shown("sqlite:///var/lib/team.db"), "sqlite:/var/lib/team.db");
        for wrong in
            ["sqlite:", "sqlite://", "sqlite://host/a.db", "sqlite::memory:", "sqlite:a.db?mode=ro", "sqlite:a\0"]
        {
            assert!(matches!(wrong.parse::<StoreUrl>(), Err(StoreError::InvalidUrl { .. })), "{wrong}");
        }
    }

    // req: S-86
    #[test]
    fn passwords_are_hidden_wherever_they_are() {
        for url in [
            "postgres://ada:hunter2@db.example/x",
            "postgresql://ada:hunter2@db.example:5433/x?sslmode=verify-full",
            "postgres://db.example/x?user=ada&password=hunter2&connect_timeout=3",
            "postgres:///x?host=/run/postgresql&password=hunter2",
        ] {
            let parsed: StoreUrl = url.parse().unwrap();
            assert!(!format!("{parsed} {parsed:?}").contains("hunter2"), "{parsed}");
            assert!(parsed.has_password());
            assert!(parsed.to_string().contains("***"), "{parsed}");
            let address: ChannelAddress = format!("{url}#staging@7").parse().unwrap();
            assert!(!format!("{address:?}").contains("hunter2"));
            assert_eq!((address.channel.as_str(), address.revision, address.store), ("staging", Some(7), parsed));
        }
        assert_eq!(shown("postgres://db.example/x"), "postgres://db.example/x");
        for url in ["postgres://db.example/x?notifications=off", "postgres://h/x?sslmode=prefer&notifications=off"] {
            assert_eq!(shown(url), url);
        }
    }

    #[test]
    fn unknown_parameters_and_bad_values_are_refused_without_their_values() {
        for url in [
            "postgres://h/x?passwort=hunter2",
            "postgres://h/x?sslmode=hunter2",
            "postgres://h/x?port=hunter2",
            "postgres://h/x?connect_timeout=hunter2",
            "postgres://h/x?hostaddr=hunter2",
            "postgres://h/x?notifications=hunter2",
            "postgres://one,two:hunter2/x",
            "postgres://one,two/x",
            "postgres:hunter2",
            "postgres://h/x#y",
            "mysql://ada:hunter2@h/x",
            "hunter2",
        ] {
            let error = url.parse::<StoreUrl>().unwrap_err();
            assert!(matches!(error, StoreError::InvalidUrl { .. }), "{url}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }

    // req: S-327
    #[test]
    fn separators_in_a_password_are_explained_and_never_repeated() {
        for text in [
            "postgres://promptshelf:Hunter#Tail99secret@127.0.0.1/prompts",
            "postgres://u:Hunter?Tail99secret=Tail99secret@h/x",
            "postgres://u:Hunter/Tail99secret@h/x",
            "postgres://u:12/Tail99secret@h/x",
            "postgres://u:12#Tail99secret",
            "postgres://u:12#tail99secret@7",
            "postgres:u:Tail99secret@h/x",
        ] {
            let error = text.parse::<ChannelAddress>().unwrap_err();
            assert!(error.to_string().contains("`#` is written `%23`"), "{text}: {error}");
            assert!(!format!("{error} {error:?}").to_lowercase().contains("tail99"), "{error}");
        }
    }

    proptest::proptest! {
        /// Whatever a password is, and however it is written: neither an error nor the shown address has a part of it.
        // req: S-327
        #[test]
        fn no_part_of_a_password_is_shown(
            secret in "[A-Z]{6}[#?@/:%&= a-z0-9;,\\\\\\[\\]]{0,6}[A-Z]{6}",
            encode in proptest::bool::ANY,
            tail in proptest::sample::select(vec!["@h/x", "@h:5432/x#staging", "@h/x#staging@7", "", "@", "@h/x?sslmode=z", "@h,i/x"]),
            before in proptest::sample::select(vec!["postgres://u:", "postgresql://u:", "postgres://:", "mysql://u:", "postgres://h/x?password="]),
        ) {
            // With the host left out, an `@` in the password is that before the host.
            proptest::prop_assume!(encode || !tail.is_empty() || !secret.contains('@'));
            let written = if encode { url::form_urlencoded::byte_serialize(secret.as_bytes()).collect() } else { secret.clone() };
            let text = format!("{before}{written}{tail}");
            let shown = match text.parse::<ChannelAddress>() {
                Ok(address) => format!("{address:?} {}", address.store),
                Err(error) => format!("{error} {error:?}"),
            };
            // Any six capitals in a row are a part of the password.
            let longest = shown.split(|c: char| !c.is_ascii_uppercase()).map(str::len).max();
            let allowed = ["PASSWORD", "DATABASE", "REVISION", "CHANNEL"].iter().fold(shown.clone(), |text, word| text.replace(word, ""));
            let longest = longest.filter(|_| allowed.split(|c: char| !c.is_ascii_uppercase()).any(|word| word.len() >= 6));
            proptest::prop_assert!(longest.is_none(), "{text}: {shown}");
        }
    }

    #[test]
    fn address_names_a_channel_and_a_revision() {
        let parsed = |text: &str| text.parse::<ChannelAddress>();
        let address = parsed("sqlite:team.db").unwrap();
        assert_eq!((address.channel, address.revision), (ChannelName::production(), None));
        assert_eq!(parsed("sqlite:team.db#a.b-c_1@12").unwrap().revision, Some(12));
        assert_eq!(parsed("team.db#next@3").unwrap().revision, Some(3));
        for wrong in
            ["sqlite:t.db#", "sqlite:t.db#A", "sqlite:t.db#-a", "sqlite:t.db#a@", "sqlite:t.db#a@x", "sqlite:t.db#a@-1"]
        {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
