//! Forwarding headers of trusted reverse proxies: the caller's address and the requested host.
//!
//! Each proxy appends the address of its peer to the list. Read from the end, the first address outside
//! the trusted networks is the caller's; the entries before it may have been forged by the caller.

use std::net::{IpAddr, SocketAddr};

use axum::{
    extract::{ConnectInfo, Request},
    http::{HeaderMap, HeaderName, HeaderValue, header},
};
pub use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The reverse proxies whose forwarding headers are trusted. None by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// The networks of the proxies. Empty means that every forwarding header is ignored.
    pub trusted: Vec<IpNet>,
    /// The headers that the proxies write. Others are ignored, because proxies pass on those of a caller.
    pub header: ForwardedHeader,
}

/// The headers in which a proxy forwards the caller's address and host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForwardedHeader {
    /// `X-Forwarded-For` and `X-Forwarded-Host`, the most common ones.
    #[default]
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

#[derive(Debug, PartialEq, Eq)]
struct Origin {
    address: IpAddr,
    /// The host that the caller requested, if the proxy forwards it.
    host: Option<HeaderValue>,
}

struct Hop {
    address: Option<IpAddr>,
    host: Option<String>,
}

impl Proxies {
    pub(super) fn apply(&self, request: &mut Request) {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
        if let Some(origin) = peer.and_then(|peer| self.origin(peer, request.headers())) {
            request.extensions_mut().insert(ConnectInfo(SocketAddr::new(origin.address, 0)));
            if let Some(host) = origin.host {
                request.headers_mut().insert(header::HOST, host);
            }
        }
    }

    pub(super) fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(&address.to_canonical()))
    }

    /// Returns the origin of a request; `None` unless the peer is a trusted proxy.
    fn origin(&self, peer: IpAddr, headers: &HeaderMap) -> Option<Origin> {
        if !self.trusts(peer) {
            return None;
        }
        let hops = match self.header {
            ForwardedHeader::XForwarded => x_forwarded(headers),
            ForwardedHeader::Forwarded => forwarded(headers),
        };
        let (mut address, mut host) = (peer, None);
        for hop in hops.into_iter().rev() {
            if hop.host.is_some() {
                host = hop.host;
            }
            // An unreadable address is not trusted; the proxy that reports it counts as the caller.
            let Some(reported) = hop.address else { break };
            address = reported.to_canonical();
            if !self.trusts(address) {
                break;
            }
        }
        Some(Origin { address, host: host.and_then(|host| HeaderValue::from_str(&host).ok()) })
    }
}

/// Reads `X-Forwarded-*`. When there are fewer hosts than addresses, they belong to the last ones; most
/// proxies replace the host, so that there is one.
fn x_forwarded(headers: &HeaderMap) -> Vec<Hop> {
    let list = |name: &HeaderName| -> Vec<String> {
        let values = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or_default());
        values.flat_map(|value| value.split(',')).map(|part| part.trim().to_owned()).collect()
    };
    let (addresses, mut hosts) = (list(&X_FORWARDED_FOR), list(&X_FORWARDED_HOST));
    let mut hops: Vec<Hop> = addresses.iter().map(|text| Hop { address: address(text), host: None }).collect();
    if hops.is_empty() && !hosts.is_empty() {
        hops.push(Hop { address: None, host: None });
    }
    for hop in hops.iter_mut().rev() {
        hop.host = hosts.pop().filter(|host| !host.is_empty());
    }
    hops
}

/// Reads `Forwarded` (RFC 7239).
fn forwarded(headers: &HeaderMap) -> Vec<Hop> {
    let mut hops = Vec::new();
    for value in headers.get_all(header::FORWARDED) {
        for element in split(value.to_str().unwrap_or_default(), ',') {
            let mut hop = Hop { address: None, host: None };
            for pair in split(element, ';') {
                let Some((name, value)) = pair.split_once('=') else { continue };
                let value = unquoted(value.trim());
                match name.trim().to_ascii_lowercase().as_str() {
                    "for" => hop.address = address(&value),
                    "host" => hop.host = Some(value),
                    _ => {}
                }
            }
            hops.push(hop);
        }
    }
    hops
}

fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |c| {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ => return c == separator && !is_quoted,
        }
        false
    })
}

fn unquoted(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return text.to_owned() };
    let mut is_escaped = false;
    inner
        .chars()
        .filter(|c| {
            is_escaped = *c == '\\' && !is_escaped;
            !is_escaped
        })
        .collect()
}

/// Parses an address, with or without port and brackets.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    text.parse().ok().or_else(|| bare?.parse().ok()).or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(peer: &str, proxies: &Proxies, headers: &[(&'static str, &str)]) -> Option<(String, Option<String>)> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"));
        }
        let origin = proxies.origin(peer.parse().expect("an address"), &map)?;
        Some((origin.address.to_string(), origin.host.map(|host| host.to_str().expect("text").to_owned())))
    }

    fn proxies_with(header: ForwardedHeader) -> Proxies {
        let trusted = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().expect("a network"));
        Proxies { trusted: trusted.to_vec(), header }
    }

    // req: S-8
    #[test]
    fn last_untrusted_address_is_the_caller() {
        let proxies = proxies_with(ForwardedHeader::XForwarded);
        let origin_of = |list: &str| origin("10.0.0.1", &proxies, &[("x-forwarded-for", list)]).expect("a proxy").0;
        assert_eq!(origin_of("203.0.113.7"), "203.0.113.7");
        assert_eq!(
            origin_of("1.1.1.1, 203.0.113.7, 10.9.9.9"),
            "203.0.113.7",
            "earlier entries were sent by the caller"
        );
        assert_eq!(origin_of("203.0.113.7:4711"), "203.0.113.7");
        assert_eq!(origin_of("[2001:db8::1]:80"), "2001:db8::1");
        assert_eq!(origin_of("2001:db8::1,fd00::7"), "2001:db8::1");
        assert_eq!(origin_of("::ffff:203.0.113.7"), "203.0.113.7");
        assert_eq!(origin_of("10.0.0.3, 10.0.0.2"), "10.0.0.3", "a caller in the proxies' network");
        assert_eq!(origin_of("203.0.113.7, unknown"), "10.0.0.1", "an unreadable address counts as the proxy");
        assert_eq!(origin_of("203.0.113.7, nonsense\"',, 10.0.0.2"), "10.0.0.2");
        assert_eq!(origin_of(""), "10.0.0.1");
        let twice = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "203.0.113.7")];
        assert_eq!(origin("10.0.0.1", &proxies, &twice).expect("a proxy").0, "203.0.113.7");
        assert_eq!(origin("::ffff:10.0.0.1", &proxies, &twice).expect("a proxy").0, "203.0.113.7");
    }

    #[test]
    fn untrusted_peers_and_other_headers_are_ignored() {
        let both = [("x-forwarded-for", "1.1.1.1"), ("forwarded", "for=2.2.2.2;host=b"), ("x-forwarded-host", "a")];
        assert_eq!(origin("192.0.2.1", &proxies_with(ForwardedHeader::XForwarded), &both), None);
        let with_header = |header| origin("10.0.0.1", &proxies_with(header), &both).expect("a proxy");
        assert_eq!(with_header(ForwardedHeader::XForwarded), ("1.1.1.1".to_owned(), Some("a".to_owned())));
        assert_eq!(with_header(ForwardedHeader::Forwarded), ("2.2.2.2".to_owned(), Some("b".to_owned())));
        assert_eq!(origin("10.0.0.1", &Proxies::default(), &both), None);
    }

    #[test]
    fn host_comes_from_the_first_trusted_proxy() {
        let proxies = proxies_with(ForwardedHeader::XForwarded);
        let host = |addresses: &str, hosts: &str| {
            let written = [("x-forwarded-for", addresses), ("x-forwarded-host", hosts)];
            origin("10.0.0.1", &proxies, &written).expect("a proxy").1
        };
        assert_eq!(host("203.0.113.7", "prompts.example").as_deref(), Some("prompts.example"));
        assert_eq!(host("203.0.113.7, 10.0.0.2", "prompts.example, inner").as_deref(), Some("prompts.example"));
        assert_eq!(host("203.0.113.7, 10.0.0.2", "prompts.example").as_deref(), Some("prompts.example"));
        assert_eq!(host("203.0.113.7", "evil.example, prompts.example").as_deref(), Some("prompts.example"));
        assert_eq!(host("203.0.113.7", ""), None);
        let alone = origin("10.0.0.1", &proxies, &[("x-forwarded-host", "prompts.example")]).expect("a proxy");
        assert_eq!(alone, ("10.0.0.1".to_owned(), Some("prompts.example".to_owned())));
    }

    #[test]
    fn forwarded_is_parsed_as_rfc_7239_allows() {
        let proxies = proxies_with(ForwardedHeader::Forwarded);
        let origin_of = |value: &str| origin("10.0.0.1", &proxies, &[("forwarded", value)]).expect("a proxy");
        let both = |address: &str, host: &str| (address.to_owned(), Some(host.to_owned()));
        assert_eq!(origin_of("For=\"[2001:db8::1]:4711\"; Host=a.example").0, "2001:db8::1");
        assert_eq!(
            origin_of("for=1.1.1.1;host=evil, for=203.0.113.7;proto=https;host=\"a.example:8443\", for=10.0.0.2"),
            both("203.0.113.7", "a.example:8443")
        );
        assert_eq!(origin_of("for=\"1.1.1.1, for=2.2.2.2\""), ("10.0.0.1".to_owned(), None), "a comma within quotes");
        assert_eq!(origin_of("for=\"203.0.113\\.7\""), ("203.0.113.7".to_owned(), None));
        for unnamed in ["for=unknown", "for=_hidden", "proto=https", "", ";;=,=", "\""] {
            assert_eq!(origin_of(unnamed).0, "10.0.0.1", "{unnamed}");
        }
    }
}
