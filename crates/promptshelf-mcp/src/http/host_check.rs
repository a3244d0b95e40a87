//! The check of `Host` and `Origin`, against DNS rebinding and cross-site requests.
//!
//! A web page can send requests to any address, including this machine's own, and can point its own host name there.
//! It cannot choose the browser's `Origin` and `Host` headers.

use std::net::Ipv6Addr;

use http::{
    HeaderMap, HeaderValue,
    header::{self, HeaderName},
    request::Parts,
};

use super::HttpOptions;

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// How long a browser may cache a preflight response, in seconds.
const PREFLIGHT_LIFETIME: &str = "7200";

#[derive(Clone, Debug)]
pub(super) struct HostCheck {
    hosts: Vec<AllowedHost>,
    origins: Vec<String>,
}

#[derive(Clone, Debug)]
struct AllowedHost {
    host: String,
    port: Option<u16>,
}

impl HostCheck {
    pub(super) fn new(options: &HttpOptions) -> HostCheck {
        let mut hosts: Vec<AllowedHost> =
            options.allowed_hosts.iter().filter_map(|host| AllowedHost::new(host)).collect();
        // Only an empty list means the defaults: a list of invalid names must not allow these.
        if options.allowed_hosts.is_empty() {
            hosts.extend(LOOPBACK.map(|host| AllowedHost { host: host.to_owned(), port: None }));
        }
        let origins = options.allowed_origins.iter().map(|origin| origin.trim_end_matches('/').to_owned()).collect();
        HostCheck { hosts, origins }
    }

    pub(super) fn admit<'a>(&self, head: &'a Parts) -> Result<Option<&'a HeaderValue>, &'static str> {
        let host = single(&head.headers, &header::HOST).map_err(|()| "The header Host occurs twice")?;
        let host = host.map(|host| host.to_str().unwrap_or_default());
        let authority = head.uri.authority().map(http::uri::Authority::as_str);
        if host.is_none() && authority.is_none() {
            return Err("The header Host is missing");
        }
        // HTTP/2 has an authority instead of the header, and some proxies send both.
        if ![host, authority].into_iter().flatten().all(|host| self.serves_host(host)) {
            return Err("This host name is not allowed; the operator can add it to the allowed hosts");
        }
        let origin = single(&head.headers, &header::ORIGIN).map_err(|()| "The header Origin occurs twice")?;
        match origin {
            Some(origin) if !origin.to_str().is_ok_and(|origin| self.serves_origin(origin)) => {
                Err("This origin is not allowed; the operator can add it to the allowed origins")
            }
            allowed => Ok(allowed),
        }
    }

    fn serves_host(&self, authority: &str) -> bool {
        let Some((host, port)) = split(authority) else { return false };
        self.hosts.iter().any(|allowed| {
            allowed.host.eq_ignore_ascii_case(host)
                // Without a port it is the default port of the scheme, which is unknown here.
                && allowed.port.is_none_or(|one| port.map_or(matches!(one, 80 | 443), |port| port == one))
        })
    }

    fn serves_origin(&self, origin: &str) -> bool {
        if self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)) {
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
                .any(|allowed| allowed.host.eq_ignore_ascii_case(host) && allowed.port.is_none_or(|one| one == port))
        })
    }
}

impl AllowedHost {
    fn new(text: &str) -> Option<AllowedHost> {
        let text = text.trim();
        if text.parse::<Ipv6Addr>().is_ok() {
            return Some(AllowedHost { host: format!("[{text}]"), port: None });
        }
        match split(text) {
            Some((host, port)) if !host.is_empty() => Some(AllowedHost { host: host.to_owned(), port }),
            _ => {
                tracing::warn!(
                    host = text,
                    "invalid allowed host ignored; expected a host name such as example.com or example.com:8080"
                );
                None
            }
        }
    }
}

/// Splits `host` or `host:port`.
fn split(authority: &str) -> Option<(&str, Option<u16>)> {
    match authority.rsplit_once(':') {
        // The colons inside an IPv6 address do not start a port.
        Some((host, port)) if !port.ends_with(']') => Some((host, Some(port.parse().ok()?))),
        _ => Some((authority, None)),
    }
}

/// Returns the value of a header that may occur once. Which one of two would count is ambiguous.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(()),
    }
}

pub(super) fn allow_reading(headers: &mut HeaderMap, origin: &HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    // The headers that a page needs to sign in, to retry, and to open a stream.
    const EXPOSED: HeaderValue = HeaderValue::from_static("WWW-Authenticate, Retry-After, Mcp-Session-Id");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
}

/// Allows the headers of a preflight request. The headers of an admitted page are not restricted.
pub(super) fn allow_sending(headers: &mut HeaderMap, request: &HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(PREFLIGHT_LIFETIME));
    if let Some(names) = request.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
}
