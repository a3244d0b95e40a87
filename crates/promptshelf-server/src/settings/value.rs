//! Values of settings that are checked while they are parsed, from a flag, a variable or `server.toml` alike.

use std::{fmt, net::IpAddr, str::FromStr, time::Duration, time::SystemTime};

use promptshelf_client::is_loopback_url;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::{auth::Algorithm, proxy::IpNet};

/// Why a text is no value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidValue(String);

impl InvalidValue {
    pub(super) fn new(expected: &str, found: &str) -> InvalidValue {
        InvalidValue(format!("expected {expected}, got `{found}`"))
    }
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidValue {}

/// Declares values that are written as text.
macro_rules! text {
    ($($(#[$meta:meta])* $vis:vis $name:ident($inner:ty) = $parse:expr;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
        #[serde(try_from = "String")]
        #[schemars(with = "String")]
        $vis struct $name($vis $inner);

        impl FromStr for $name {
            type Err = InvalidValue;

            fn from_str(text: &str) -> Result<$name, InvalidValue> {
                let parse: fn(&str) -> Result<$inner, InvalidValue> = $parse;
                parse(text).map($name)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidValue;

            fn try_from(text: String) -> Result<$name, InvalidValue> {
                text.parse()
            }
        }
    )*};
}

text! {
    /// An https URL without a query, or http on this machine: tokens for any other URL could be forged or intercepted.
    pub(super) HttpsUrl(String) = |url| {
        let is_plain = !url.contains(['#', '?', '@', ' ', '"', '\\', '*', '{', '}']);
        match url.split_once("://") {
            Some(("https", rest)) if is_plain && !rest.is_empty() => Ok(url.to_owned()),
            Some(("http", _)) if is_plain && is_loopback_url(url) => Ok(url.to_owned()),
            _ => Err(InvalidValue::new("an https URL without a query, or http on this machine", url)),
        }
    };

    /// The URL of a collector, to which OTLP over HTTP appends `/v1/traces`, or a URL with a path.
    pub(super) CollectorUrl(String) = |text| {
        // The text is not repeated: it may contain a password.
        let invalid = || InvalidValue("expected the URL of a collector, such as http://127.0.0.1:4318".to_owned());
        let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")).ok_or_else(invalid)?;
        // Secrets belong in OTEL_EXPORTER_OTLP_HEADERS, so that they are in no file and in no log.
        if rest.is_empty() || rest.starts_with('/') || rest.contains(['@', '?', '#', ' ', '"', '\\']) {
            return Err(invalid());
        }
        Ok(match rest.split_once('/') {
            None | Some((_, "")) => format!("{}/v1/traces", text.trim_end_matches('/')),
            Some(_) => text.to_owned(),
        })
    };

    /// A network, or one address.
    pub(super) Network(IpNet) = |text| {
        let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        let network = network.map_err(|_| InvalidValue::new("an address or a network such as 10.0.0.0/8", text))?;
        // Every caller could otherwise choose the address that it is counted under.
        if network.prefix_len() == 0 {
            return Err(InvalidValue::new("a network smaller than all addresses", text));
        }
        Ok(network)
    };

    /// An asymmetric signature algorithm. Symmetric ones need a secret that both sides share.
    pub(super) AlgorithmName(Algorithm) = |name| match name.parse() {
        Err(_) | Ok(Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512) => {
            Err(InvalidValue::new("an asymmetric algorithm such as ES256", name))
        }
        Ok(algorithm) => Ok(algorithm),
    };

    /// A SHA-256 hash in hexadecimal digits.
    pub(super) Sha256([u8; 32]) = |text| {
        let byte = |index: usize| {
            let pair = text.get(2 * index..2 * index + 2).filter(|pair| pair.bytes().all(|c| c.is_ascii_hexdigit()))?;
            u8::from_str_radix(pair, 16).ok()
        };
        let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
        let digest = bytes.filter(|_| text.len() == 64).and_then(|bytes| bytes.try_into().ok());
        // The text is not repeated: it may be the token itself.
        digest.ok_or_else(|| InvalidValue("expected 64 hexadecimal digits".to_owned()))
    };

    /// The beginning of a day in UTC.
    pub Day(SystemTime) = |text| {
        // The parser leaves out a time of day.
        let day = text.parse::<jiff::civil::Date>().ok().filter(|day| day.to_string() == text);
        let begins = day.and_then(|day| day.to_zoned(jiff::tz::TimeZone::UTC).ok());
        let begins = begins.ok_or_else(|| InvalidValue::new("a day such as 2027-01-31", text))?;
        Ok(begins.timestamp().into())
    };

    /// The name of a source. It is part of the URIs of files.
    pub(super) SourceName(String) = |text| {
        let expected = "1 to 32 lower-case letters, digits, `-` and `_`, starting with a letter or digit";
        name(text, 32, &['-', '_'], expected)
    };

    /// The name of an evaluation.
    pub(super) EvaluationName(String) = |text| {
        let expected = "1 to 64 lower-case letters, digits, `-`, `_` and `.`, starting with a letter or digit";
        name(text, 64, &['-', '_', '.'], expected)
    };

    /// The text before the names of prompts.
    pub(super) Prefix(String) = |text| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if text.len() > 64 || !text.chars().all(is_plain) {
            return Err(InvalidValue::new("at most 64 letters, digits, `-`, `_` and `.`", text));
        }
        Ok(text.to_owned())
    };

    /// A time with its unit, from one second to one day.
    pub(super) Interval(Duration) = |text| {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let seconds = match &text[digits.len()..] {
            "s" => Some(1),
            "m" => Some(60),
            "h" => Some(60 * 60),
            _ => None,
        };
        let number = digits.parse::<u64>().ok();
        let seconds = seconds.zip(number).and_then(|(unit, number)| number.checked_mul(unit));
        let seconds = seconds.filter(|seconds| (1..=24 * 60 * 60).contains(seconds));
        let invalid = || InvalidValue::new("a time from 1s to 24h, such as `60s`, `5m` or `1h`", text);
        seconds.map(Duration::from_secs).ok_or_else(invalid)
    };

    /// A factor, such as `2x`.
    pub(super) Factor(f64) = |text| {
        let factor = text.strip_suffix('x').and_then(|number| number.parse::<f64>().ok());
        let factor = factor.filter(|factor| (1.0..=100.0).contains(factor));
        factor.ok_or_else(|| InvalidValue::new("a factor from 1x to 100x, such as `2x` or `1.5x`", text))
    };
}

fn name(text: &str, most: usize, others: &[char], expected: &str) -> Result<String, InvalidValue> {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_name = text.starts_with(is_letter) && text.chars().all(|c| is_letter(c) || others.contains(&c));
    if !is_name || text.len() > most {
        return Err(InvalidValue::new(expected, text));
    }
    Ok(text.to_owned())
}

const DEFAULT_HOST: &str = "127.0.0.1";

/// An address to listen on, not yet resolved. The default is `127.0.0.1:8080`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct Address {
    /// A host name, or an IP address without brackets.
    pub host: String,
    /// The port; 0 for one that the system chooses.
    pub port: u16,
}

impl Default for Address {
    fn default() -> Address {
        Address { host: DEFAULT_HOST.to_owned(), port: 8080 }
    }
}

impl FromStr for Address {
    type Err = InvalidValue;

    /// Parses `host:port`, `[::1]:port`, `:port` or `port`. The default host is the loopback interface.
    fn from_str(text: &str) -> Result<Address, InvalidValue> {
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if bracketed.is_none() && host.contains(':') {
            return Err(InvalidValue::new("an IPv6 address in brackets, with a port, such as [::1]:8080", text));
        }
        let host = bracketed.unwrap_or(host);
        let host = if host.is_empty() { DEFAULT_HOST } else { host };
        match port.parse() {
            Ok(port) if !host.contains('/') => Ok(Address { host: host.to_owned(), port }),
            _ => Err(InvalidValue::new("an address such as 127.0.0.1:8080", text)),
        }
    }
}

impl TryFrom<String> for Address {
    type Error = InvalidValue;

    fn try_from(text: String) -> Result<Address, InvalidValue> {
        text.parse()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

pub(super) fn host(url: &str) -> Option<String> {
    let authority = url.split_once("://")?.1.split('/').next()?;
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    Some(host.to_owned())
}

/// Returns whether a text is one scope (RFC 6749, 3.3: printable ASCII without space, `"` and `\`).
#[must_use]
pub fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_accept_short_forms() {
        let parse = |text: &str| text.parse().map(|address: Address| address.to_string());
        assert_eq!(parse("0.0.0.0:80").as_deref(), Ok("0.0.0.0:80"));
        assert_eq!(parse("8080").as_deref(), Ok("127.0.0.1:8080"));
        assert_eq!(parse(":0").as_deref(), Ok("127.0.0.1:0"));
        assert_eq!(parse("[::1]:9").as_deref(), Ok("[::1]:9"));
        for invalid in ["prompts", "http://localhost:80", "localhost:99999", "localhost:", "::1", "::1:8080", "[::1]"] {
            assert!(parse(invalid).is_err(), "{invalid}");
        }
    }

    // req: P6
    #[test]
    fn insecure_urls_are_rejected() {
        let is_valid = |url: &str| url.parse::<HttpsUrl>().is_ok();
        for right in ["https://a.example", "https://a.example:8443/x", "http://127.0.0.1:9/mcp", "http://localhost/mcp"]
        {
            assert!(is_valid(right), "{right}");
        }
        for invalid in [
            "http://a.example",
            "https://",
            "https://a@b",
            "https://a/x#y",
            "https://a/x?y",
            "a.example",
            "http://localhost.evil.example",
        ] {
            assert!(!is_valid(invalid), "{invalid}");
        }
    }

    #[test]
    fn collector_urls_get_the_otlp_path_and_reject_secrets() {
        let parse = |text: &str| text.parse().map(|url: CollectorUrl| url.0);
        assert_eq!(parse("http://127.0.0.1:4318").as_deref(), Ok("http://127.0.0.1:4318/v1/traces"));
        assert_eq!(parse("https://example.com/").as_deref(), Ok("https://example.com/v1/traces"));
        assert_eq!(parse("https://example.com/otlp/v1/traces").as_deref(), Ok("https://example.com/otlp/v1/traces"));
        for invalid in
            ["", "127.0.0.1:4318", "http://", "https:///v1", "http://me:word@example.com", "http://a/b?key=c"]
        {
            assert!(parse(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn days_begin_at_midnight_utc() {
        let Day(day) = "2027-01-31".parse().expect("a day");
        assert_eq!(day.duration_since(SystemTime::UNIX_EPOCH).expect("later").as_secs() % 86_400, 0);
        for text in ["tomorrow", "2027-01-31T18:00", "2027-01-31 18:00", "2027-01-31T00:00:00Z"] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
    }

    #[test]
    fn networks_never_cover_all_addresses() {
        let parse = |text: &str| text.parse::<Network>();
        assert_eq!(parse("::1"), parse("::1/128"));
        assert!(parse("10.0.0.0/8").is_ok() && parse("10.0.0.0/33").is_err() && parse("0.0.0.0/0").is_err());
    }

    #[test]
    fn symmetric_algorithms_and_none_are_rejected() {
        for invalid in ["HS256", "none", ""] {
            assert!(invalid.parse::<AlgorithmName>().is_err(), "{invalid}");
        }
        assert!("ES256".parse::<AlgorithmName>().is_ok());
    }

    #[test]
    fn times_have_a_unit_and_bounds() {
        let seconds = |text: &str| text.parse().ok().map(|time: Interval| time.0.as_secs());
        assert_eq!([seconds("1s"), seconds("5m"), seconds("24h")], [Some(1), Some(300), Some(86_400)]);
        for invalid in ["", "0s", "60", "s", "-1s", "25h", "1d", "1.5s", "99999999999999999999h"] {
            assert_eq!(seconds(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn names_and_prefixes_are_plain() {
        for invalid in ["", "A", "a b", "-a", "a/b", "ä", &"a".repeat(33)] {
            assert!(invalid.parse::<SourceName>().is_err(), "{invalid}");
        }
        assert!("team_1-x".parse::<SourceName>().is_ok());
        assert!("".parse::<Prefix>().is_ok() && "Team.".parse::<Prefix>().is_ok() && "a b".parse::<Prefix>().is_err());
    }
}
