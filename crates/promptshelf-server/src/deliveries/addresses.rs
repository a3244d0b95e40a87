//! The addresses that webhooks are sent to: public ones, unless the operator allows others.
//!
//! A name is resolved once for each connection. The addresses are checked, and the connection goes to one of those: a name
//! that resolves to another address a moment later (DNS rebinding) is never connected to unchecked.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
    sync::{Arc, LazyLock},
};

use ipnet::{Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// IPv4 networks that are not public: the IANA special-purpose address registry, multicast and reserved ones.
static NOT_PUBLIC_V4: LazyLock<Vec<Ipv4Net>> = LazyLock::new(|| {
    let networks = [
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    ];
    networks.iter().filter_map(|network| network.parse().ok()).collect()
});

/// The same for IPv6, within the global unicast addresses: protocol assignments with Teredo, documentation, 6to4.
static NOT_PUBLIC_V6: LazyLock<Vec<Ipv6Net>> = LazyLock::new(|| {
    let networks = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];
    networks.iter().filter_map(|network| network.parse().ok()).collect()
});

pub(super) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !NOT_PUBLIC_V4.iter().any(|network| network.contains(&address))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, high, low] = address.segments();
    // NAT64 (RFC 6052) reaches the IPv4 address in the last 32 bits.
    if [a, b, c, d, e, f] == [0x64, 0xff9b, 0, 0, 0, 0] {
        return is_public_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    }
    // All global unicast addresses are in 2000::/3.
    a >> 13 == 1 && !NOT_PUBLIC_V6.iter().any(|network| network.contains(&address))
}

/// A name has no public address, and others are not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PrivateAddress(pub(super) IpAddr);

impl fmt::Display for PrivateAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the host resolves to {}, which is not a public address: `allow-private = true` permits it", self.0)
    }
}

impl std::error::Error for PrivateAddress {}

pub(super) type Lookup =
    Arc<dyn Fn(String) -> Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>> + Send + Sync>;

pub(super) fn system_lookup() -> Lookup {
    Arc::new(|name| {
        // The client replaces the port.
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
    })
}

pub(super) struct CheckedResolver {
    pub(super) lookup: Lookup,
    pub(super) allows_private: bool,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolving = (self.lookup)(name.as_str().to_owned());
        let allows_private = self.allows_private;
        Box::pin(async move {
            let found = resolving.await?;
            let first = found.first().map(SocketAddr::ip);
            let may_connect = |address: &SocketAddr| allows_private || is_public(address.ip());
            let allowed: Vec<SocketAddr> = found.into_iter().filter(may_connect).collect();
            match first {
                Some(first) if allowed.is_empty() => Err(PrivateAddress(first).into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-190
    #[test]
    fn special_addresses_are_not_public() {
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.31.255.255",
            "192.168.0.1",
            "198.19.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:a00:1::",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().expect("an address")), "{address}");
        }
        for address in ["1.1.1.1", "172.32.0.1", "192.169.0.1", "::ffff:1.1.1.1", "64:ff9b::101:101", "2606:4700::1111"]
        {
            assert!(is_public(address.parse().expect("an address")), "{address}");
        }
    }

    fn changing(answers: &[&[&str]]) -> CheckedResolver {
        let answers: Vec<Vec<SocketAddr>> = answers
            .iter()
            .map(|answer| answer.iter().map(|ip| SocketAddr::new(ip.parse().expect("an address"), 0)).collect())
            .collect();
        let answers = std::sync::Mutex::new(answers.into_iter());
        let lookup: Lookup = Arc::new(move |_| {
            let answer = answers.lock().expect("one test").next().expect("an answer");
            Box::pin(async move { Ok(answer) })
        });
        CheckedResolver { lookup, allows_private: false }
    }

    // req: S-190
    #[tokio::test]
    async fn each_answer_of_a_changing_name_is_checked() {
        let resolver = changing(&[&["1.1.1.1"], &["127.0.0.1"], &["10.0.0.1", "1.1.1.1", "::1"], &[]]);
        let name = || "rebinding.example".parse::<Name>().expect("a name");
        let addresses = |addresses: Addrs| addresses.map(|one| one.ip().to_string()).collect::<Vec<_>>();
        assert_eq!(addresses(resolver.resolve(name()).await.expect("public")), ["1.1.1.1"]);
        let error = resolver.resolve(name()).await.err().expect("private");
        assert!(error.is::<PrivateAddress>(), "{error}");
        assert_eq!(addresses(resolver.resolve(name()).await.expect("one of them")), ["1.1.1.1"]);
        assert_eq!(addresses(resolver.resolve(name()).await.expect("none")), [""; 0]);
    }
}
