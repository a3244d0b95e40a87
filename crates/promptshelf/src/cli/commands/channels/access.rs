//! The store of a command: the place that its options name, opening it, and command lines for the same store.

use std::{collections::BTreeMap, env, path::Path, str::FromStr};

use promptshelf_client::ServerUrl;
use promptshelf_core::nearest;
use promptshelf_service::Method;
use promptshelf_store::{ChannelAddress, ChannelName, FileEntry, Head, Store, StoreError};
use promptshelf_wire::op;

use super::connection::{CallError, Connection, LocalCaller};
use crate::{
    args::{
        place::{ActorArguments, PlaceArguments, StoreArguments, StoreText},
        store_fault,
    },
    command_line::shell_word,
    environment,
    exit::{Exit, Failure, store_word},
    output::{note, visible_line},
    source::is_url,
    terminal::Progress,
    working_copy::Listing,
};

const VARIABLE: &str = "PROMPTSHELF_STORE";

/// The address of a store that the command opens itself, and of a channel in it.
#[derive(Clone, Debug)]
pub(super) struct StorePlace {
    pub(super) address: ChannelAddress,
    has_channel: bool,
    shown: String,
}

impl StorePlace {
    fn parse(StoreText(text): &StoreText) -> Result<StorePlace, Failure> {
        let address = ChannelAddress::from_str(text).map_err(|error| {
            let failure = Failure::from(error);
            match store_fault(text) {
                Some(fault) => failure.help(fault),
                None if is_url(text) => failure.help("this command works on a store, not through a server"),
                None => failure,
            }
        })?;
        let url = text.split('#').next().unwrap_or(text);
        let is_default = environment::variable(VARIABLE).is_some_and(|default| default.split('#').next() == Some(url));
        let shown = match address.store.has_password() {
            _ if is_default => String::new(),
            true => format!("\"${VARIABLE}\""),
            false => shell_word(url),
        };
        Ok(StorePlace { address, has_channel: text.contains('#'), shown })
    }

    /// Parses the place of a command that works on the newest revision only.
    pub(super) fn unpinned(text: &StoreText) -> Result<StorePlace, Failure> {
        let place = StorePlace::parse(text)?;
        match place.address.revision {
            None => Ok(place),
            Some(_) => Err(pinned()),
        }
    }

    pub(super) fn of(arguments: &StoreArguments) -> Result<StorePlace, Failure> {
        arguments.store.as_ref().map_or_else(|| Err(missing()), StorePlace::unpinned)
    }

    pub(super) fn command(&self, words: &str) -> String {
        command_with(words, &self.shown)
    }

    pub(super) fn serve(&self) -> String {
        let is_default = environment::variable(VARIABLE)
            .is_some_and(|default| default.parse::<ChannelAddress>().is_ok_and(|address| address == self.address));
        let word = if is_default {
            String::new()
        } else {
            format!(" {}", store_word(&self.address.store, &self.address.channel))
        };
        format!("`promptshelf serve{word}`")
    }

    /// Opens the store for maintenance that changes it, and closes it. `method` is the name in the audit.
    pub(super) async fn changing<T>(
        &self,
        method: Method,
        work: impl AsyncFnOnce(&Store) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.maintained(method, Opening::Change, work).await
    }

    /// Opens the store for maintenance that only reads, and closes it.
    pub(super) async fn reading<T>(
        &self,
        method: Method,
        work: impl AsyncFnOnce(&Store) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.maintained(method, Opening::Read, work).await
    }

    /// Opens the store for maintenance that fills it, and closes it. It is created if it does not exist.
    pub(super) async fn filling<T>(
        &self,
        method: Method,
        work: impl AsyncFnOnce(&Store) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.maintained(method, Opening::Create, work).await
    }

    async fn maintained<T>(
        &self,
        method: Method,
        how: Opening,
        work: impl AsyncFnOnce(&Store) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let local = LocalCaller::default().open(async || open(&self.address, how).await).await?;
        let record = match local.api.record(method).await {
            Ok(record) => record,
            Err(rejection) => {
                local.close().await;
                return Err(rejection.into());
            }
        };
        let outcome = work(&local.store).await;
        record.end(if outcome.is_ok() { "ok" } else { "failed" });
        local.close().await;
        outcome
    }

    pub(super) fn opening(&self, error: StoreError) -> Failure {
        Failure::unopened(error, &self.address)
    }
}

/// Checks that a store and its channel exist, for a server that will follow the channel. Returns the parsed address.
pub(crate) async fn check_channel(text: &StoreText) -> Result<ChannelAddress, Failure> {
    let place = StorePlace::unpinned(text)?;
    let channel = &place.address.channel;
    let store = open(&place.address, Opening::Read).await?;
    let found = async {
        store.must_be_changeable().await?;
        store.channel(channel).await
    }
    .await;
    store.close().await;
    found?;
    Ok(place.address)
}

#[derive(Clone, Copy)]
pub(super) enum Opening {
    /// The schema stays as it is.
    Read,
    Change,
    Create,
}

/// Opens a store, and brings its schema up to date only if it is to be changed.
pub(super) async fn open(address: &ChannelAddress, how: Opening) -> Result<Store, Failure> {
    let url = &address.store;
    let opened = match how {
        Opening::Read => waiting(url, Store::open_unmigrated(url)).await,
        Opening::Change => waiting(url, Store::open(url)).await,
        Opening::Create => waiting(url, Store::create(url)).await,
    };
    let store = opened.map_err(|error| Failure::unopened(error, address))?;
    if let Some(before) = store.migrated_from() {
        note(&[format!("the schema of {url} was version {before}, and is version {} now", Store::newest_schema())]);
    }
    Ok(store)
}

fn is_default(StoreText(text): &StoreText) -> bool {
    environment::variable(VARIABLE).is_some_and(|default| default == *text)
}

fn missing() -> Failure {
    let help = format!(
        "name it, such as sqlite:team.db: as the first word, for `publish` after `--to`; or set {VARIABLE}; a server with a \
         store has a URL"
    );
    let is_store = |found: &environment::UnknownVariable| found.nearest.as_deref() == Some(VARIABLE);
    let help = environment::unknown().iter().find(|found| is_store(found)).map_or(help, ToString::to_string);
    Failure::new(Exit::Usage, "the store is missing").help(help)
}

fn pinned() -> Failure {
    Failure::new(Exit::Usage, "this command expects STORE or STORE#CHANNEL, without `@REVISION`")
}

/// The address of a channel, in a store or through the API of a server.
#[derive(Clone, Debug)]
pub(super) struct Place {
    target: Target,
    channel: ChannelName,
    revision: Option<u64>,
    has_channel: bool,
    shown: String,
    /// Words of the command that should be names of prompts.
    prompts: Vec<String>,
    /// Who calls the operations of a store that is opened here.
    caller: LocalCaller,
}

#[derive(Clone, Debug)]
enum Target {
    Store(ChannelAddress),
    Server(ServerUrl),
}

impl Place {
    /// Returns the place of a command that works on the newest revision only.
    pub(super) fn new(arguments: &PlaceArguments, channel: Option<&ChannelName>) -> Result<Place, Failure> {
        let mut place = Place::with_revision(arguments)?;
        if place.revision.is_some() {
            return Err(pinned());
        }
        if let Some(channel) = channel {
            let is_own = arguments.store.iter().chain(&arguments.url).any(|text| !is_default(text));
            if is_own && place.named_channel().is_some_and(|named| named != channel) {
                let message = format!("`#{}` and `--channel {channel}` name two channels: name one", place.channel);
                return Err(Failure::new(Exit::Usage, message));
            }
            place = place.at(channel);
        }
        Ok(place)
    }

    pub(super) fn at(self, channel: &ChannelName) -> Place {
        Place { channel: channel.clone(), has_channel: true, ..self }
    }

    pub(super) fn with_revision(arguments: &PlaceArguments) -> Result<Place, Failure> {
        match (&arguments.url, &arguments.store) {
            (Some(_), Some(store)) if !is_default(store) => {
                Err(Failure::new(Exit::Usage, "two words or options both name the store").help("name it once"))
            }
            (Some(url), _) => Place::server(url),
            (None, Some(server)) if is_url(&server.0) => Place::server(server),
            (None, Some(store)) => Ok(StorePlace::parse(store)?.into()),
            (None, None) => Err(missing()),
        }
    }

    /// Parses `URL[#CHANNEL[@REVISION]]`.
    fn server(StoreText(text): &StoreText) -> Result<Place, Failure> {
        let (url, fragment) = text.split_once('#').map_or((text.as_str(), None), |(url, rest)| (url, Some(rest)));
        let server: ServerUrl = url.parse()?;
        let (channel, revision) = match fragment.map(|rest| rest.split_once('@').unwrap_or((rest, ""))) {
            None => (ChannelName::production(), None),
            Some((channel, "")) => (channel.parse()?, None),
            Some((channel, revision)) => {
                let invalid = || StoreError::InvalidRevision { revision: revision.to_owned() };
                (channel.parse()?, Some(revision.parse().map_err(|_| invalid())?))
            }
        };
        let shown = shell_word(&server.to_string());
        Ok(Place {
            target: Target::Server(server),
            channel,
            revision,
            has_channel: fragment.is_some(),
            shown,
            prompts: Vec::new(),
            caller: LocalCaller::default(),
        })
    }

    /// Returns the paths in a folder at which the store itself stands.
    pub(super) fn own_files(&self, folder: &Path) -> Vec<String> {
        let Target::Store(address) = &self.target else { return Vec::new() };
        let Some(file) = address.store.path() else { return Vec::new() };
        let (Ok(file), Ok(folder)) = (file.canonicalize(), folder.canonicalize()) else { return Vec::new() };
        let Some(path) = file.strip_prefix(&folder).ok().and_then(Path::to_str) else { return Vec::new() };
        ["", "-wal", "-shm", "-journal"].iter().map(|ending| format!("{path}{ending}")).collect()
    }

    /// Names the caller as the arguments do. A server knows the caller, and no name is sent to it.
    pub(super) fn acting(mut self, arguments: &ActorArguments) -> Result<Place, Failure> {
        if !self.is_server() {
            self.caller.name = Some(local_name(arguments)?);
        } else if arguments.name.is_some() {
            let message = "`--as` is for a store: a server knows the caller";
            return Err(Failure::new(Exit::Usage, message)
                .help("leave out `--as`; the author is the name of the token or of the sign-in"));
        }
        Ok(self)
    }

    /// Sets words that should be names of prompts, for a command with `--channel`: one may be a channel instead.
    pub(super) fn about(mut self, prompts: &[String]) -> Place {
        self.prompts = prompts.to_vec();
        self
    }

    /// Sets the settings file of the operator.
    pub(super) fn configured(mut self, file: Option<&Path>) -> Place {
        self.caller.config = file.map(Path::to_path_buf);
        self
    }

    /// Sets the least number of callers that reports of usage show. A server has one of its own.
    pub(super) fn showing_callers(mut self, at_least: u64) -> Place {
        self.caller.min_callers = at_least;
        self
    }

    pub(super) fn channel(&self) -> &ChannelName {
        &self.channel
    }

    pub(super) fn revision(&self) -> Option<u64> {
        self.revision
    }

    /// Returns the channel if one was named.
    pub(super) fn named_channel(&self) -> Option<&ChannelName> {
        self.has_channel.then_some(&self.channel)
    }

    /// Returns whether a server knows the caller, so that the command does not name the author.
    pub(super) fn is_server(&self) -> bool {
        matches!(self.target, Target::Server(_))
    }

    pub(super) fn command(&self, words: &str) -> String {
        command_with(words, &self.shown)
    }

    pub(super) fn pull(&self, channel: &ChannelName, folder: &str) -> String {
        let place = match &self.target {
            Target::Store(address) => store_word(&address.store, channel).to_string(),
            Target::Server(server) => shell_word(&format!("{server}#{channel}")).to_string(),
        };
        format!("`promptshelf pull {place} {folder}`")
    }

    /// Returns the name of the store or the server, without a password.
    pub(super) fn name(&self) -> String {
        match &self.target {
            Target::Store(address) => address.store.to_string(),
            Target::Server(server) => server.to_string(),
        }
    }

    /// Connects to the store or the server for `work` that only reads, and closes the connections. The schema of a store
    /// stays as it is.
    pub(super) async fn using<T>(
        &self,
        work: impl AsyncFnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.connected(Opening::Read, work).await
    }

    /// Connects to the store or the server for `work` that changes it, and closes the connections.
    pub(super) async fn changing<T>(
        &self,
        work: impl AsyncFnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.connected(Opening::Change, work).await
    }

    async fn connected<T>(
        &self,
        how: Opening,
        work: impl AsyncFnOnce(&Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let connection = match &self.target {
            Target::Store(address) => {
                Connection::Store(Box::new(self.caller.open(async || open(address, how).await).await?))
            }
            Target::Server(server) => Connection::to_server(server.clone()).await?,
        };
        let outcome = match work(&connection).await {
            Err(failure) => Err(with_channel(&connection, failure, &self.prompts).await),
            done => done,
        };
        connection.close().await;
        outcome
    }

    pub(super) async fn waiting<T>(&self, answer: impl Future<Output = T>) -> T {
        waiting(&self.name(), answer).await
    }
}

impl From<StorePlace> for Place {
    fn from(place: StorePlace) -> Place {
        let StorePlace { address, has_channel, shown } = place;
        let (channel, revision) = (address.channel.clone(), address.revision);
        let caller = LocalCaller::default();
        Place { target: Target::Store(address), channel, revision, has_channel, shown, prompts: Vec::new(), caller }
    }
}

/// Adds the channel that was meant to a failure: the nearest name to one that does not exist, or that of a word in place of
/// a prompt. The caller sees the channels that are open to it, and no others.
async fn with_channel(store: &Connection, failure: Failure, prompts: &[String]) -> Failure {
    let missing = failure.message.strip_prefix("the channel `").and_then(|rest| rest.strip_suffix("` does not exist"));
    let missing = missing.filter(|_| failure.help.is_none());
    if missing.is_none() && (failure.exit != Exit::NotFound || prompts.is_empty()) {
        return failure;
    }
    let Ok(known) = store.all(&op::ListChannels {}).await else { return failure };
    let names: Vec<&str> = known.iter().map(|channel| channel.name.as_str()).collect();
    let Some(missing) = missing else {
        let word = prompts.iter().map(|word| word.trim_start_matches('#')).find(|word| names.contains(word));
        return match word {
            Some(channel) => failure.help(format!("`{channel}` is a channel: write `--channel {channel}`")),
            None => failure,
        };
    };
    let help = match nearest(missing, names.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None if names.is_empty() => return failure,
        None => format!("the channels are {}", names.join(", ")),
    };
    failure.help(help)
}

/// Returns a command line with the store or server where the grammar has it: first, or as the destination of `publish`.
fn command_with(words: &str, library: &str) -> String {
    let is_group = ["store ", "token ", "rollout "].iter().any(|group| words.starts_with(group));
    let after = words.match_indices(' ').nth(usize::from(is_group)).map_or(words.len(), |(at, _)| at);
    match (library, words.split_at(after)) {
        ("", _) => format!("`promptshelf {words}`"),
        (library, ("publish", rest)) => format!("`promptshelf publish{rest} --to {library}`"),
        (library, (command, rest)) => format!("`promptshelf {command} {library}{rest}`"),
    }
}

pub(super) async fn waiting<T>(store: &impl ToString, answer: impl Future<Output = T>) -> T {
    Progress::new(visible_line(&store.to_string()).into_owned()).during(answer).await
}

/// Returns the files of a channel; `None` if the channel does not exist.
pub(super) async fn current(store: &Connection, channel: &ChannelName) -> Result<Option<(Head, Listing)>, Failure> {
    match store.files(channel, None).await {
        Ok((head, files)) => Ok(Some((head, to_listing(&files)))),
        Err(CallError::Store(StoreError::NotFound { .. })) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn to_listing(files: &[FileEntry]) -> Listing {
    files.iter().map(|file| (file.path.clone(), file.digest)).collect::<BTreeMap<_, _>>()
}

/// Returns the name of the person or program that runs a command on a store.
pub(super) fn local_name(arguments: &ActorArguments) -> Result<String, Failure> {
    let name = match &arguments.name {
        Some(name) => Some(name.clone()),
        None => user(),
    };
    let is_valid = |name: &String| !name.trim().is_empty() && !name.contains(char::is_control);
    match name.filter(is_valid) {
        Some(name) => Ok(name),
        None if arguments.name.is_some() => {
            Err(Failure::new(Exit::Usage, "`--as` expects a name, without control characters"))
        }
        None => Err(Failure::new(Exit::Usage, "the name of the user is unknown").help("set it: `--as NAME`")),
    }
}

pub(super) fn user() -> Option<String> {
    let is_set = |name: &String| !name.is_empty();
    let variable = |name| env::var(name).ok().filter(is_set);
    variable("USER").or_else(|| variable("LOGNAME")).or_else(|| variable("USERNAME")).or_else(account)
}

/// Returns the name of the account, in environments without these variables, such as containers.
#[cfg(unix)]
fn account() -> Option<String> {
    let id = rustix::process::getuid().as_raw();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _password) = (fields.next()?, fields.next()?);
        (fields.next()?.parse() == Ok(id)).then(|| name.to_owned())
    });
    Some(name.unwrap_or_else(|| format!("uid {id}")))
}

#[cfg(not(unix))]
fn account() -> Option<String> {
    None
}
