//! The state of a git source, for people, metrics and readiness.

use std::time::{SystemTime, UNIX_EPOCH};

use promptshelf_core::Timestamp;

/// The state of a source at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GitState {
    /// The served commit; `None` before the first one.
    pub served: Option<ServedCommit>,
    /// The number of commits that were served so far.
    pub commits: u64,
    /// The commit that the source is pinned to.
    pub pin: Option<String>,
    /// The last problem; `None` once the newest commit is served.
    pub problem: Option<String>,
    /// The time since which the newest commit is unknown or not served.
    pub behind_since: Option<Timestamp>,
    /// The time of the last successful comparison with the repository.
    pub compared: Option<Timestamp>,
}

/// A served commit. All texts but the id and the signer come from the repository and are not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedCommit {
    /// The id, in hexadecimal digits.
    pub id: String,
    /// The author, with the mail address.
    pub author: String,
    /// The time of the commit.
    pub time: Option<Timestamp>,
    /// The verified signer; `None` if signatures are not required.
    pub signer: Option<String>,
}

/// Returns the present time, in whole seconds: fractions would only make the text longer.
pub(crate) fn now() -> Option<Timestamp> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Timestamp::from_unix(i64::try_from(since.as_secs()).ok()?, 0).ok()
}
