//! URLs to which secrets may be sent: encrypted, or on this machine.
//!
//! The WHATWG parser decides, because the HTTP client uses it too: a second parser could see another host in the same
//! text, as in `http://evil.example\@localhost/`.

use url::{Host, Url};

/// Returns whether a URL is `http` or `https` at a loopback address or `localhost`.
#[must_use]
pub fn is_loopback_url(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && is_loopback(&url))
}

/// Returns whether secrets may be sent to a URL: `https`, or `http` on this machine.
#[must_use]
pub fn is_secure_url(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| match url.scheme() {
        "https" => true,
        "http" => is_loopback(&url),
        _ => false,
    })
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-74
    #[test]
    fn host_is_the_one_that_requests_go_to() {
        for url in ["http://localhost:1/mcp", "http://127.0.0.1/mcp", "http://[::1]:8080/", "http://a@localhost/"] {
            assert!(is_loopback_url(url) && is_secure_url(url), "{url}");
        }
        for url in [
            "http://evil.example\\@localhost/",
            "http:\\\\evil.example/@localhost",
            "http://localhost@evil.example/",
            "http://localhost.evil.example/",
            "http://evil.example?@localhost/",
            "http://evil.example#@localhost/",
            "http:///evil.example/@localhost",
            "http://[::1].evil.example/",
            "ftp://localhost/",
            "localhost",
        ] {
            assert!(!is_loopback_url(url) && !is_secure_url(url), "{url}");
        }
        assert!(
            is_secure_url("https://evil.example\\@localhost/") && !is_loopback_url("https://evil.example\\@localhost/")
        );
    }
}
