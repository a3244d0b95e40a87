//! Which hosts and origins are served at all.
//!
//! A web page can send requests to any address, this machine's own included,
//! and can make its own host name point there. It can choose neither what the
//! browser writes into `Origin` nor what it writes into `Host`.

use std::net::Ipv6Addr;

use http::{
    HeaderMap, HeaderValue,
    header::{self, HeaderName},
    request::Parts,
};

use super::HttpOptions;

/// What a server on a developer's machine is called.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// How long a browser may remember what a preflight has told it, in seconds.
const PREFLIGHT_LIFETIME: &str = "7200";

/// Which hosts and origins are served.
#[derive(Debug)]
pub(super) struct Gate {
    hosts: Vec<Place>,
    origins: Vec<String>,
}

/// A host that is served, on any port or on one.
#[derive(Debug)]
struct Place {
    host: String,
    port: Option<u16>,
}

impl Gate {
    pub(super) fn new(options: &HttpOptions) -> Gate {
        let mut hosts: Vec<Place> = options.allowed_hosts.iter().filter_map(|host| Place::new(host)).collect();
        // Of names of which none can be understood none is meant, least of all these.
        if options.allowed_hosts.is_empty() {
            hosts.extend(LOOPBACK.map(|host| Place { host: host.to_owned(), port: None }));
        }
        let origins = options.allowed_origins.iter().map(|origin| origin.trim_end_matches('/').to_owned()).collect();
        Gate { hosts, origins }
    }

    /// Lets a request in, with the origin that may read the answer, or says why not.
    pub(super) fn admit<'a>(&self, head: &'a Parts) -> Result<Option<&'a HeaderValue>, &'static str> {
        let host = only(&head.headers, &header::HOST).map_err(|()| "The header Host is there twice")?;
        let host = host.map(|host| host.to_str().unwrap_or_default());
        let authority = head.uri.authority().map(http::uri::Authority::as_str);
        if host.is_none() && authority.is_none() {
            return Err("The header Host is missing");
        }
        // HTTP/2 has an authority instead of the header, and some proxies send both.
        if ![host, authority].into_iter().flatten().all(|host| self.serves_host(host)) {
            return Err("This server does not answer to this host name; whoever runs it can allow it");
        }
        let origin = only(&head.headers, &header::ORIGIN).map_err(|()| "The header Origin is there twice")?;
        match origin {
            Some(origin) if !origin.to_str().is_ok_and(|origin| self.serves_origin(origin)) => {
                Err("Pages of this origin may not use this server; whoever runs it can allow it")
            }
            served => Ok(served),
        }
    }

    fn serves_host(&self, authority: &str) -> bool {
        let Some((host, port)) = split(authority) else { return false };
        self.hosts.iter().any(|place| {
            place.host.eq_ignore_ascii_case(host)
                // Without a port it is the usual one of a scheme that is not known here.
                && place.port.is_none_or(|one| port.map_or(matches!(one, 80 | 443), |port| port == one))
        })
    }

    fn serves_origin(&self, origin: &str) -> bool {
        if self.origins.iter().any(|served| served.eq_ignore_ascii_case(origin)) {
            return true;
        }
        let usual_port = match origin.split_once("://") {
            Some(("http", _)) => 80,
            Some(("https", _)) => 443,
            _ => return false,
        };
        let authority = origin.split_once("://").and_then(|(_, authority)| split(authority));
        authority.is_some_and(|(host, port)| {
            let port = port.unwrap_or(usual_port);
            self.hosts
                .iter()
                .any(|place| place.host.eq_ignore_ascii_case(host) && place.port.is_none_or(|one| one == port))
        })
    }
}

impl Place {
    fn new(written: &str) -> Option<Place> {
        let written = written.trim();
        if written.parse::<Ipv6Addr>().is_ok() {
            return Some(Place { host: format!("[{written}]"), port: None });
        }
        match split(written) {
            Some((host, port)) if !host.is_empty() => Some(Place { host: host.to_owned(), port }),
            _ => {
                tracing::warn!(host = written, "an allowed host is no host name and is passed over");
                None
            }
        }
    }
}

/// The host and the port of `host` or `host:port`.
fn split(authority: &str) -> Option<(&str, Option<u16>)> {
    match authority.rsplit_once(':') {
        // The colons inside an IPv6 address are not a port's.
        Some((host, port)) if !port.ends_with(']') => Some((host, Some(port.parse().ok()?))),
        _ => Some((authority, None)),
    }
}

/// A header that two times would be one too many: which of them counts is not
/// for us to guess.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(()),
    }
}

/// Lets a page of an origin read the answer.
pub(super) fn permit_reading(headers: &mut HeaderMap, origin: &HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    // What a page has to read to sign in, and to come back later.
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("WWW-Authenticate, Retry-After"));
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
}

/// Lets a page that asks beforehand send what it says it will send. Pages that
/// are let in at all are trusted with their headers.
pub(super) fn permit_sending(headers: &mut HeaderMap, asked: &HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(PREFLIGHT_LIFETIME));
    if let Some(names) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
}
