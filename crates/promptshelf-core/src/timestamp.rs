//! Points in time, such as the last change of a file.

use std::{fmt, str::FromStr, time::SystemTime};

/// A point in time, formatted by RFC 3339.
///
/// ```
/// use promptshelf_core::Timestamp;
///
/// let time: Timestamp = "2026-07-28T12:00:00+02:00".parse()?;
/// assert_eq!(time.to_string(), "2026-07-28T10:00:00Z");
/// # Ok::<(), promptshelf_core::TimestampError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

/// A text or a number that cannot be expressed as a [`Timestamp`].
#[derive(Clone, Debug, thiserror::Error)]
#[error("expected a point in time such as 2026-07-28T10:00:00Z")]
pub struct TimestampError(#[source] jiff::Error);

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Timestamp, TimestampError> {
        text.parse().map(Timestamp).map_err(TimestampError)
    }
}

impl Timestamp {
    /// Creates a timestamp from seconds since 1970-01-01T00:00:00Z, and nanoseconds.
    ///
    /// # Errors
    ///
    /// [`TimestampError`] for a year outside -9999 to 9999.
    pub fn from_unix(seconds: i64, nanoseconds: i32) -> Result<Timestamp, TimestampError> {
        jiff::Timestamp::new(seconds, nanoseconds).map(Timestamp).map_err(TimestampError)
    }

    /// Creates a timestamp of a system's time, in whole seconds; `None` for a time outside of the years -9999 to 9999.
    #[must_use]
    pub fn of_system(time: SystemTime) -> Option<Timestamp> {
        let seconds = time.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
        Timestamp::from_unix(i64::try_from(seconds).ok()?, 0).ok()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
