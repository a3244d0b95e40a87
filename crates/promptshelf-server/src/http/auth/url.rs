//! Parts of configured URLs.

use url::{Host, Url};

/// Returns a URL's path, empty where it has none.
pub(super) fn path_of(url: &str) -> &str {
    let host = url.find("://").map_or(0, |scheme| scheme + 3);
    url[host..].find('/').map_or("", |slash| &url[host + slash..])
}

/// Returns whether a URL is plain `http` on this machine.
pub(super) fn is_loopback(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| {
        let is_local = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        url.scheme() == "http" && is_local
    })
}
