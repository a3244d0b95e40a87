//! Opening a store, and command lines that use the same store.

use std::{collections::BTreeMap, env, str::FromStr, sync::Arc};

use promptshelf_server::channels::LibraryChecker;
use promptshelf_store::{ChannelAddress, ChannelName, Checker, FileEntry, Head, Store, StoreError, StoreUrl};

use crate::{
    args::channels::{ChannelArguments, StoreArguments, StoreText},
    command_line::shell_word,
    exit::{Exit, Failure},
    library::granted_roots,
    terminal::Progress,
    working_copy::Listing,
};

/// The variable with the default store.
const VARIABLE: &str = "PROMPTSHELF_STORE";

/// The address of a store, and of a channel in it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) address: ChannelAddress,
    /// Whether the text names the channel.
    pub(super) has_channel: bool,
    /// How a command line names the store.
    shown: String,
}

impl Place {
    pub(super) fn parse(StoreText(text): &StoreText) -> Result<Place, Failure> {
        let address = ChannelAddress::from_str(text)?;
        let url = text.split('#').next().unwrap_or(text);
        let is_default = env::var(VARIABLE).is_ok_and(|default| default.split('#').next() == Some(url));
        let shown = match address.store.to_string() == url {
            _ if is_default => String::new(),
            true => format!(" --store {}", shell_word(url)),
            // The URL contains a password.
            false => format!(" --store \"${VARIABLE}\""),
        };
        Ok(Place { address, has_channel: text.contains('#'), shown })
    }

    /// Parses the place of a command that works on the newest revision only.
    fn unpinned(text: &StoreText) -> Result<Place, Failure> {
        let place = Place::parse(text)?;
        match place.address.revision {
            None => Ok(place),
            Some(_) => {
                Err(Failure::new(Exit::Usage, "this command expects STORE or STORE#CHANNEL, without `@REVISION`"))
            }
        }
    }

    pub(super) fn of_store(arguments: &StoreArguments) -> Result<Place, Failure> {
        Place::unpinned(&arguments.store)
    }

    pub(super) fn of_channel(arguments: &ChannelArguments) -> Result<Place, Failure> {
        Place::with_channel(&arguments.store.store, arguments.channel.as_ref())
    }

    pub(super) fn with_channel(store: &StoreText, channel: Option<&ChannelName>) -> Result<Place, Failure> {
        let mut place = Place::unpinned(store)?;
        if let Some(channel) = channel {
            place.address.channel = channel.clone();
            place.has_channel = true;
        }
        Ok(place)
    }

    pub(super) fn channel(&self) -> &ChannelName {
        &self.address.channel
    }

    /// Returns the channel if one was named.
    pub(super) fn named_channel(&self) -> Option<&ChannelName> {
        self.has_channel.then_some(&self.address.channel)
    }

    /// Returns a command line for the same store.
    pub(super) fn command(&self, words: &str) -> String {
        format!("`promptshelf {words}{}`", self.shown)
    }

    /// Returns the word for `pull` and `serve`.
    pub(super) fn word(&self, channel: &ChannelName) -> String {
        shell_word(&format!("{}#{channel}", self.address.store))
    }

    /// Returns the word for `serve`: the store, with the channel unless it is the default one.
    pub(super) fn served(&self) -> String {
        let ChannelAddress { store, channel, .. } = &self.address;
        if *channel == ChannelName::production() { shell_word(&store.to_string()) } else { self.word(channel) }
    }

    /// Opens the store.
    pub(super) async fn open(&self) -> Result<Store, Failure> {
        waiting(&self.address.store, Store::open(&self.address.store)).await.map_err(|error| self.opening(error))
    }

    /// Converts an error of opening the store: one that does not exist cannot be reached either.
    pub(super) fn opening(&self, error: StoreError) -> Failure {
        match &error {
            StoreError::NotFound { .. } => Failure::new(Exit::Store, error.to_string())
                .help(format!("`promptshelf init {}` creates a store", shell_word(&self.address.store.to_string()))),
            _ => error.into(),
        }
    }
}

/// Shows the wait for a store on a terminal.
pub(super) async fn waiting<T>(store: &StoreUrl, answer: impl Future<Output = T>) -> T {
    Progress::new(crate::output::visible_line(&store.to_string()).into_owned()).during(answer).await
}

/// Returns the check of trees, with the folders that the operator's settings grant.
pub(super) fn checker() -> Arc<dyn Checker> {
    Arc::new(LibraryChecker::new().grant_roots(granted_roots(None)))
}

/// Returns the files of a channel; `None` if the channel does not exist.
pub(super) async fn current(store: &Store, channel: &ChannelName) -> Result<Option<(Head, Listing)>, Failure> {
    match store.files(channel, None).await {
        Ok((head, files)) => Ok(Some((head, to_listing(&files)))),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn to_listing(files: &[FileEntry]) -> Listing {
    files.iter().map(|file| (file.path.clone(), file.digest)).collect::<BTreeMap<_, _>>()
}
