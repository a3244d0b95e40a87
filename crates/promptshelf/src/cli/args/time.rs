//! Ages and moments, as people write them on a command line.

use std::{fmt, str::FromStr, time::Duration};

use jiff::{Span, SpanRelativeTo, Timestamp, Zoned, civil, tz::TimeZone};

/// Parses an age, with days of 24 hours. Smaller units are refused: `12m` is meant as months as often as as minutes.
pub(crate) fn age(text: &str) -> Result<Duration, String> {
    let expected = || "expected an age in days, weeks or hours, such as 90d, 12w or 36h".to_owned();
    let span: Span = text.parse().map_err(|_| expected())?;
    if span.hours(0).days(0).weeks(0).fieldwise() != Span::new().fieldwise() {
        return Err(expected() + "; write a month as 30d, a year as 365d");
    }
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| expected())?;
    let duration = Duration::try_from(duration).map_err(|_| expected())?;
    if duration.is_zero() { Err(expected()) } else { Ok(duration) }
}

/// A date or a time, in UTC without a zone. It is the whole of its smallest unit: a day, a minute or a second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    text: String,
    pub(crate) begin: Timestamp,
    /// The last instant.
    pub(crate) end: Timestamp,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Moment, String> {
        moment(text).ok_or_else(|| {
            format!("expected a date such as 2027-01-31 or a time such as 2027-01-31T14:05:00Z, got `{text}`")
        })
    }
}

fn moment(text: &str) -> Option<Moment> {
    let begin = if text.contains('[') {
        text.parse::<Zoned>().ok()?.timestamp()
    } else if let Ok(instant) = text.parse() {
        instant
    } else {
        text.parse::<civil::DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp()
    };
    let time = text.split_once(['T', 't', ' ']).map_or("", |(_, time)| time);
    let time = time.split(['Z', 'z', '+', '-', '[']).next().unwrap_or_default();
    let digits = time.chars().filter(char::is_ascii_digit).count();
    let unit = match digits {
        0 => Span::new().days(1),
        1..=2 => Span::new().hours(1),
        3..=4 => Span::new().minutes(1),
        5..=6 => Span::new().seconds(1),
        _ => Span::new().nanoseconds(1),
    };
    let unit = unit.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    let end = begin.checked_add(unit).ok()?.checked_sub(Span::new().nanoseconds(1)).ok()?;
    Some(Moment { text: text.to_owned(), begin, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-577
    #[test]
    fn age_has_a_large_unit_and_is_positive() {
        const DAY: u64 = 24 * 60 * 60;
        for (text, days) in [("90d", 90), ("2w", 14), ("48h", 2), ("1w 1d", 8)] {
            assert_eq!(age(text), Ok(Duration::from_secs(days * DAY)), "{text}");
        }
        for text in ["", "90", "0d", "-1d", "1mo", "1y", "soon", "12m", "12min", "1h 30m", "3600s", "5000ms"] {
            assert!(age(text).is_err(), "{text}");
        }
    }

    // req: S-576
    #[test]
    fn moment_is_the_whole_of_its_smallest_unit_and_in_utc_without_a_zone() {
        for (text, begin, end) in [
            ("2027-01-31", "2027-01-31T00:00:00Z", "2027-01-31T23:59:59.999999999Z"),
            ("2027-01-31T14", "2027-01-31T14:00:00Z", "2027-01-31T14:59:59.999999999Z"),
            ("2027-01-31T14:05", "2027-01-31T14:05:00Z", "2027-01-31T14:05:59.999999999Z"),
            ("2027-01-31 14:05", "2027-01-31T14:05:00Z", "2027-01-31T14:05:59.999999999Z"),
            ("2027-01-31T14:05+02:00", "2027-01-31T12:05:00Z", "2027-01-31T12:05:59.999999999Z"),
            ("2027-01-31T14:05:30", "2027-01-31T14:05:30Z", "2027-01-31T14:05:30.999999999Z"),
            ("2027-01-31t14:05:30z", "2027-01-31T14:05:30Z", "2027-01-31T14:05:30.999999999Z"),
            ("2027-01-31T14:05:30-02:00", "2027-01-31T16:05:30Z", "2027-01-31T16:05:30.999999999Z"),
            ("2027-01-31T14:05:30.629Z", "2027-01-31T14:05:30.629Z", "2027-01-31T14:05:30.629Z"),
        ] {
            let parsed: Moment = text.parse().expect(text);
            let [begin, end] = [begin, end].map(|text| text.parse::<Timestamp>().expect("a time"));
            assert_eq!((parsed.begin, parsed.end), (begin, end), "{text}");
        }
        let unclear = ["", "Tuesday", "2027-13-01", "14:05", "2027-01-31T25:00:00Z", "2027-01-31T", "2027-01-31T1:2"];
        for text in unclear.into_iter().chain(["2027-01-31T14:05[Nowhere/At_all]"]) {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }
}
