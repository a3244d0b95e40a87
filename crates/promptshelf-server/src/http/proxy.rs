//! Behind a proxy: who asks, and for which host, is what the proxy says, as far
//! as the proxy is one that the operator trusts.
//!
//! Each proxy adds at the end of the list whom it was asked by. From the end
//! backwards, the first one who is no trusted proxy is the caller; what stands
//! before it, anybody can have written.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::{
    Router,
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, header},
    middleware::{self, Next},
    response::Response,
};
pub use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The proxies that are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// Their addresses. Nobody is believed where there are none.
    pub trusted: Vec<IpNet>,
    /// Which headers they write. A caller could send the other ones, which
    /// proxies pass on as they are.
    pub header: ForwardedHeader,
}

/// The headers in which a proxy says whom it was asked by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For` and `X-Forwarded-Host`, which nearly all write.
    #[default]
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// Puts the caller's address and host in the place of the proxy's, around every route.
pub(super) fn around(routes: Router, proxies: &Proxies) -> Router {
    if !proxies.is_any() {
        return routes;
    }
    routes.layer(middleware::from_fn_with_state(Arc::new(proxies.clone()), believe))
}

async fn believe(State(proxies): State<Arc<Proxies>>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
    if let Some(origin) = peer.and_then(|peer| proxies.origin(peer, request.headers())) {
        request.extensions_mut().insert(ConnectInfo(SocketAddr::new(origin.address, 0)));
        if let Some(host) = origin.host {
            request.headers_mut().insert(header::HOST, host);
        }
    }
    next.run(request).await
}

/// Where a request comes from.
#[derive(Debug, PartialEq, Eq)]
struct Origin {
    address: IpAddr,
    /// The host that the caller asked, where the proxy says it.
    host: Option<HeaderValue>,
}

/// What one proxy says.
struct Hop {
    address: Option<IpAddr>,
    host: Option<String>,
}

impl Proxies {
    pub(super) fn is_any(&self) -> bool {
        !self.trusted.is_empty()
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(&address.to_canonical()))
    }

    /// Where a request of a peer comes from; `None` when the peer is no proxy.
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
            // Who cannot be named is no trusted proxy, and counts as the one who reports it.
            let Some(by) = hop.address else { break };
            address = by.to_canonical();
            if !self.trusts(address) {
                break;
            }
        }
        Some(Origin { address, host: host.and_then(|host| HeaderValue::from_str(&host).ok()) })
    }
}

/// What proxies say in `X-Forwarded-*`. A host that only some of them add
/// belongs to the last ones; most replace it, so that there is one.
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

/// What proxies say in `Forwarded`.
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

/// Parts of a text, separated outside of quotation marks.
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

/// An address as proxies write it: alone, with a port, in brackets.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    text.parse().ok().or_else(|| bare?.parse().ok()).or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(peer: &str, proxies: &Proxies, written: &[(&'static str, &str)]) -> Option<(String, Option<String>)> {
        let mut headers = HeaderMap::new();
        for (name, value) in written {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"));
        }
        let origin = proxies.origin(peer.parse().expect("an address"), &headers)?;
        Some((origin.address.to_string(), origin.host.map(|host| host.to_str().expect("text").to_owned())))
    }

    fn trusting(header: ForwardedHeader) -> Proxies {
        let trusted = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().expect("a network"));
        Proxies { trusted: trusted.to_vec(), header }
    }

    // req: S-8
    #[test]
    fn the_last_one_who_is_no_trusted_proxy_is_the_caller() {
        let proxies = trusting(ForwardedHeader::XForwarded);
        let told = |list: &str| origin("10.0.0.1", &proxies, &[("x-forwarded-for", list)]).expect("a proxy").0;
        assert_eq!(told("203.0.113.7"), "203.0.113.7");
        assert_eq!(told("1.1.1.1, 203.0.113.7, 10.9.9.9"), "203.0.113.7", "what stands before was sent by the caller");
        assert_eq!(told("203.0.113.7:4711"), "203.0.113.7");
        assert_eq!(told("[2001:db8::1]:80"), "2001:db8::1");
        assert_eq!(told("2001:db8::1,fd00::7"), "2001:db8::1");
        assert_eq!(told("::ffff:203.0.113.7"), "203.0.113.7");
        assert_eq!(told("10.0.0.3, 10.0.0.2"), "10.0.0.3", "somebody in the network of the proxies");
        assert_eq!(told("203.0.113.7, unknown"), "10.0.0.1", "who cannot be named counts as the proxy");
        assert_eq!(told("203.0.113.7, nonsense\"',, 10.0.0.2"), "10.0.0.2");
        assert_eq!(told(""), "10.0.0.1");
        let twice = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "203.0.113.7")];
        assert_eq!(origin("10.0.0.1", &proxies, &twice).expect("a proxy").0, "203.0.113.7");
        assert_eq!(origin("::ffff:10.0.0.1", &proxies, &twice).expect("a proxy").0, "203.0.113.7");
    }

    #[test]
    fn strangers_and_other_headers_are_not_believed() {
        let both = [("x-forwarded-for", "1.1.1.1"), ("forwarded", "for=2.2.2.2;host=b"), ("x-forwarded-host", "a")];
        assert_eq!(origin("192.0.2.1", &trusting(ForwardedHeader::XForwarded), &both), None);
        let said = |header| origin("10.0.0.1", &trusting(header), &both).expect("a proxy");
        assert_eq!(said(ForwardedHeader::XForwarded), ("1.1.1.1".to_owned(), Some("a".to_owned())));
        assert_eq!(said(ForwardedHeader::Forwarded), ("2.2.2.2".to_owned(), Some("b".to_owned())));
        assert_eq!(origin("10.0.0.1", &Proxies::default(), &both), None);
    }

    #[test]
    fn the_host_is_the_one_that_the_first_trusted_proxy_was_asked_for() {
        let proxies = trusting(ForwardedHeader::XForwarded);
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
    fn forwarded_is_read_as_it_may_be_written() {
        let proxies = trusting(ForwardedHeader::Forwarded);
        let told = |value: &str| origin("10.0.0.1", &proxies, &[("forwarded", value)]).expect("a proxy");
        let both = |address: &str, host: &str| (address.to_owned(), Some(host.to_owned()));
        assert_eq!(told("For=\"[2001:db8::1]:4711\"; Host=a.example").0, "2001:db8::1");
        assert_eq!(
            told("for=1.1.1.1;host=evil, for=203.0.113.7;proto=https;host=\"a.example:8443\", for=10.0.0.2"),
            both("203.0.113.7", "a.example:8443")
        );
        assert_eq!(told("for=\"1.1.1.1, for=2.2.2.2\""), ("10.0.0.1".to_owned(), None), "a comma within quotes");
        assert_eq!(told("for=\"203.0.113\\.7\""), ("203.0.113.7".to_owned(), None));
        for unnamed in ["for=unknown", "for=_hidden", "proto=https", "", ";;=,=", "\""] {
            assert_eq!(told(unnamed).0, "10.0.0.1", "{unnamed}");
        }
    }
}
