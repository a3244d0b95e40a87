//! Where a store is, and which channel of it is meant.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::error::StoreError;

/// The place of a store: `sqlite:PATH` or `postgres://…`. `Display` and `Debug` hide the password.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(pub(crate) String);

impl StoreUrl {
    /// Whether a word is meant as a store: it starts with `sqlite:`, `postgres:` or `postgresql:`.
    #[must_use]
    pub fn is_meant(word: &str) -> bool {
        ["sqlite:", "postgres:", "postgresql:"].iter().any(|scheme| word.starts_with(scheme))
    }
}

impl FromStr for StoreUrl {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<StoreUrl, StoreError> {
        Ok(StoreUrl(text.to_owned()))
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("store")
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
        if is_good { Ok(ChannelName(text.to_owned())) } else { Err(StoreError::InvalidChannel { name: text.to_owned() }) }
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
        let (channel, revision) = match rest {
            None => (ChannelName::production(), None),
            Some(rest) => {
                let (name, revision) = rest.split_once('@').map_or((rest, None), |(name, number)| (name, Some(number)));
                let number = |text: &str| {
                    text.parse().map_err(|_| StoreError::InvalidRevision { revision: text.to_owned() })
                };
                (name.parse()?, revision.map(number).transpose()?)
            }
        };
        Ok(ChannelAddress { store: store.parse()?, channel, revision })
    }
}
