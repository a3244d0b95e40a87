//! The library that is served: a folder, a git repository, or channels of a store.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use promptshelf_core::Access;
use promptshelf_git::GitAddress;
use promptshelf_store::{ChannelAddress, ChannelName, StoreUrl};

use super::{
    overrides::Overrides,
    requirements::Requirements,
    sources::{ConfiguredSource, ConfiguredSources},
};
use crate::{
    args::ServeArguments,
    exit::{Exit, Failure},
};

/// The variable with the library of `serve`, if it is a store and the command line names none.
const STORE_VARIABLE: &str = "PROMPTSHELF_STORE";

/// Returns the variable that would select the library, if it is set to another one than the command line names.
pub(crate) fn ignored_variable(
    arguments: &ServeArguments,
    environment: &impl Fn(&str) -> Option<String>,
) -> Option<&'static str> {
    let store = environment(STORE_VARIABLE).filter(|store| !store.is_empty())?;
    let is_ignored = !arguments.library.is_omitted() && arguments.library.word() != Path::new(&store);
    is_ignored.then_some(STORE_VARIABLE)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServedLibrary {
    Folder(PathBuf),
    Git(GitAddress),
    Channels(Box<ServedChannels>),
    Sources(ConfiguredSources),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedChannels {
    pub(crate) default: ChannelAddress,
    pub(crate) others: Vec<ChannelName>,
    pub(crate) cache: Option<PathBuf>,
}

pub(crate) type ChannelAccess = HashMap<String, Arc<Access>>;

impl ServedLibrary {
    /// Reads the argument LIBRARY, else `PROMPTSHELF_STORE`, else takes the configured sources, else the current folder.
    pub(super) fn resolve<E: Fn(&str) -> Option<String>>(
        arguments: &ServeArguments,
        configured: &BTreeMap<String, Requirements>,
        sources: Vec<ConfiguredSource>,
        cache: Option<PathBuf>,
        overrides: &Overrides<'_, E>,
    ) -> Result<ServedLibrary, Failure> {
        let variable = if arguments.library.is_omitted() { overrides.variable("store") } else { None };
        let word = variable.as_deref().or_else(|| arguments.library.word().to_str()).unwrap_or_default();
        if variable.is_some() || StoreUrl::is_meant(word) {
            let names = overrides.list("channel", "CHANNELS", &arguments.channels)?;
            return channels(word, names, configured, cache);
        }
        if arguments.library.is_omitted() && !sources.is_empty() {
            if !arguments.channels.is_empty() {
                return Err(Failure::new(Exit::Usage, "--channel needs a store, and [[source]] is served"));
            }
            return Ok(ServedLibrary::Sources(sources.into()));
        }
        if !arguments.channels.is_empty() {
            return Err(Failure::new(Exit::Usage, "--channel needs a store, and the library is another one")
                .help("serve a store, such as sqlite:team.db or postgres://…"));
        }
        if GitAddress::is_meant(word) {
            return Ok(ServedLibrary::Git(word.parse::<GitAddress>()?));
        }
        Ok(ServedLibrary::Folder(arguments.library.word().to_owned()))
    }

    pub(crate) fn has_store(&self) -> bool {
        matches!(self, ServedLibrary::Channels(_))
    }

    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            ServedLibrary::Folder(folder) => Some(folder),
            ServedLibrary::Git(_) => None,
            ServedLibrary::Channels(_) => None,
            ServedLibrary::Sources(_) => None,
        }
    }

    /// The sources, if these are served.
    pub(crate) fn sources(&self) -> &[ConfiguredSource] {
        match self {
            ServedLibrary::Sources(sources) => sources,
            _ => &[],
        }
    }
}

impl fmt::Display for ServedLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServedLibrary::Folder(folder) => folder.display().fmt(f),
            ServedLibrary::Git(address) => address.fmt(f),
            // The URL of a store is shown without its password.
            ServedLibrary::Channels(channels) => write!(f, "{}#{}", channels.default.store, channels.default.channel),
            ServedLibrary::Sources(sources) => {
                let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
                write!(f, "the sources {}", names.join(", "))
            }
        }
    }
}

fn channels(
    word: &str,
    names: Option<Vec<String>>,
    configured: &BTreeMap<String, Requirements>,
    cache: Option<PathBuf>,
) -> Result<ServedLibrary, Failure> {
    let invalid = |error: promptshelf_store::StoreError| Failure::new(Exit::Usage, error.to_string());
    let default: ChannelAddress = word.parse().map_err(invalid)?;
    if default.revision.is_some() {
        return Err(Failure::new(Exit::Usage, "a server follows the newest revision of a channel, not a fixed one")
            .help("leave out @REVISION; `promptshelf rollback` makes an earlier revision the newest one"));
    }
    let names = names.unwrap_or_else(|| configured.keys().cloned().collect());
    let names = names
        .iter()
        .map(|name| name.parse())
        .collect::<Result<std::collections::BTreeSet<ChannelName>, _>>()
        .map_err(invalid)?;
    let others = names.into_iter().filter(|name| *name != default.channel).collect();
    Ok(ServedLibrary::Channels(Box::new(ServedChannels { default, others, cache })))
}

/// The requirements under `[channels]`. A channel without any is open to all callers.
pub(super) fn access(configured: &BTreeMap<String, Requirements>) -> ChannelAccess {
    let requirements = |(name, channel): (&String, &Requirements)| {
        let Requirements { scopes, roles, users } = channel.clone();
        let is_restricted = !(scopes.is_empty() && roles.is_empty() && users.is_empty());
        is_restricted.then(|| (name.clone(), Arc::new(Access { scopes, roles, users, visible: false })))
    };
    configured.iter().filter_map(requirements).collect()
}
