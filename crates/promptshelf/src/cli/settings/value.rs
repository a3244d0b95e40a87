//! Values of settings that are checked while they are parsed, from a flag, a variable or `server.toml` alike.

use std::{fmt, net::IpAddr, str::FromStr, time::SystemTime};

use promptshelf_server::http::{auth::Algorithm, proxy::IpNet};
use schemars::JsonSchema;
use serde::Deserialize;

const DEFAULT_HOST: &str = "127.0.0.1";
const DEFAULT_PORT: u16 = 8080;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidValue(String);

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

/// Reads a type from a string of `server.toml` through its `FromStr`.
macro_rules! from_string {
    ($($name:ident),*) => {
        $(impl TryFrom<String> for $name {
            type Error = InvalidValue;

            fn try_from(text: String) -> Result<$name, InvalidValue> {
                text.parse()
            }
        })*
    };
}

pub(super) use from_string;

from_string!(Address, AlgorithmName, CollectorUrl, Day, HttpsUrl, Network, Sha256);

/// An address to listen on, not yet resolved.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Default for Address {
    fn default() -> Address {
        Address { host: DEFAULT_HOST.to_owned(), port: DEFAULT_PORT }
    }
}

impl FromStr for Address {
    type Err = InvalidValue;

    /// Parses `host:port`, `[::1]:port`, `:port` or `port`. The default host is the loopback interface.
    fn from_str(text: &str) -> Result<Address, InvalidValue> {
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let host = if host.is_empty() { DEFAULT_HOST } else { host };
        match port.parse() {
            Ok(port) if !host.contains('/') => Ok(Address { host: host.to_owned(), port }),
            _ => Err(InvalidValue::new("an address such as 127.0.0.1:8080", text)),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// `true` or `false`, as written in the environment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switch(pub(super) bool);

impl FromStr for Switch {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Switch, InvalidValue> {
        match text {
            "true" | "1" | "yes" => Ok(Switch(true)),
            "false" | "0" | "no" => Ok(Switch(false)),
            _ => Err(InvalidValue::new("true or false", text)),
        }
    }
}

/// An https URL without a query, or http on this machine: tokens for any other URL could be forged or intercepted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub(super) struct HttpsUrl(pub(super) String);

impl FromStr for HttpsUrl {
    type Err = InvalidValue;

    fn from_str(url: &str) -> Result<HttpsUrl, InvalidValue> {
        let is_plain = !url.contains(['#', '?', '@', ' ', '"', '\\', '*', '{', '}']);
        match url.split_once("://") {
            Some(("https", rest)) if is_plain && !rest.is_empty() => Ok(HttpsUrl(url.to_owned())),
            Some(("http", _)) if is_plain && promptshelf_client::is_loopback_url(url) => Ok(HttpsUrl(url.to_owned())),
            _ => Err(InvalidValue::new("an https URL without a query, or http on this machine", url)),
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

/// The URL that spans are sent to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub(super) struct CollectorUrl(pub(super) String);

impl FromStr for CollectorUrl {
    type Err = InvalidValue;

    /// Parses the URL of a collector, to which OTLP over HTTP appends `/v1/traces`, or a URL with a path of its own.
    fn from_str(text: &str) -> Result<CollectorUrl, InvalidValue> {
        // The text is not repeated: it may contain a password.
        let invalid = || InvalidValue("expected the URL of a collector, such as http://127.0.0.1:4318".to_owned());
        let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")).ok_or_else(invalid)?;
        // Secrets belong in OTEL_EXPORTER_OTLP_HEADERS, so that they are in no file and in no log.
        if rest.is_empty() || rest.starts_with('/') || rest.contains(['@', '?', '#', ' ', '"', '\\']) {
            return Err(invalid());
        }
        Ok(CollectorUrl(match rest.split_once('/') {
            None | Some((_, "")) => format!("{}/v1/traces", text.trim_end_matches('/')),
            Some(_) => text.to_owned(),
        }))
    }
}

/// A network, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub(super) struct Network(pub(super) IpNet);

impl FromStr for Network {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Network, InvalidValue> {
        let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        let network = network.map_err(|_| InvalidValue::new("an address or a network such as 10.0.0.0/8", text))?;
        match network.prefix_len() {
            // Every caller could then choose the address that it is counted under.
            0 => Err(InvalidValue::new("a network smaller than all addresses", text)),
            _ => Ok(Network(network)),
        }
    }
}

/// An asymmetric signature algorithm. Symmetric ones need a secret that both sides share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub(super) struct AlgorithmName(pub(super) Algorithm);

impl FromStr for AlgorithmName {
    type Err = InvalidValue;

    fn from_str(name: &str) -> Result<AlgorithmName, InvalidValue> {
        match name.parse() {
            Err(_) | Ok(Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512) => {
                Err(InvalidValue::new("an asymmetric algorithm such as ES256", name))
            }
            Ok(algorithm) => Ok(AlgorithmName(algorithm)),
        }
    }
}

/// A SHA-256 hash in hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub(super) struct Sha256(pub(super) [u8; 32]);

impl FromStr for Sha256 {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Sha256, InvalidValue> {
        let byte = |index: usize| {
            let pair = text.get(2 * index..2 * index + 2).filter(|pair| pair.bytes().all(|c| c.is_ascii_hexdigit()))?;
            u8::from_str_radix(pair, 16).ok()
        };
        let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
        let digest = bytes.filter(|_| text.len() == 64).and_then(|bytes| bytes.try_into().ok());
        // The text is not repeated: it may be the token itself.
        digest.map(Sha256).ok_or_else(|| InvalidValue("expected 64 hexadecimal digits".to_owned()))
    }
}

/// The beginning of a day in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub(crate) struct Day(pub(crate) SystemTime);

impl FromStr for Day {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Day, InvalidValue> {
        let day = text.parse::<jiff::civil::Date>().ok();
        let begins = day.and_then(|day| day.to_zoned(jiff::tz::TimeZone::UTC).ok());
        let begins = begins.ok_or_else(|| InvalidValue::new("a day such as 2027-01-31", text))?;
        Ok(Day(begins.timestamp().into()))
    }
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
        for invalid in ["prompts", "http://localhost:80", "localhost:99999", "localhost:", "::1"] {
            assert!(parse(invalid).is_err() || invalid == "::1", "{invalid}");
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
        assert!("tomorrow".parse::<Day>().is_err());
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
}
