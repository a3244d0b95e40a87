//! The `[proxy]` section of `promptshelf.toml`, its flag and its variable.

use std::net::IpAddr;

use promptshelf_core::Diagnostic;
use promptshelf_server::http::proxy::{ForwardedHeader, IpNet, Proxies};

use super::{
    given::Given,
    manifest::{Manifest, Others},
};
use crate::{
    args::HttpArguments,
    exit::{Exit, Failure},
};

pub(super) const SETTINGS: &[&str] = &["trusted", "header"];

/// The proxies that are believed.
///
/// # Errors
///
/// What cannot be, and where it stands.
pub(super) fn read(
    manifest: &Manifest<'_>,
    arguments: &HttpArguments,
    environment: &impl Fn(&str) -> Option<String>,
) -> Result<Proxies, Failure> {
    let written = check_manifest(manifest).map_err(|found| manifest.failure(&found))?;
    let usage = |place: &str, reason: String| Failure::new(Exit::Usage, format!("{place}: {reason}"));
    if !arguments.trusted_proxies.is_empty() {
        let trusted = networks(&arguments.trusted_proxies).map_err(|reason| usage("--trust-proxy", reason))?;
        return Ok(Proxies { trusted, ..written });
    }
    const VARIABLE: &str = "PROMPTSHELF_TRUST_PROXY";
    match environment(VARIABLE).filter(|text| !text.is_empty()) {
        None => Ok(written),
        Some(text) => {
            let trusted = Given::Text(&text).texts().and_then(|texts| networks(&texts));
            let trusted = trusted.map_err(|reason| usage(&format!("{VARIABLE} in the environment"), reason))?;
            Ok(Proxies { trusted, ..written })
        }
    }
}

/// Reads the section by itself.
pub(super) fn check_manifest(manifest: &Manifest<'_>) -> Result<Proxies, Box<Diagnostic>> {
    let mut proxies = Proxies::default();
    manifest.section("proxy", SETTINGS, Others::Refused, |name, value| {
        let given = Given::Toml(value);
        match name {
            "trusted" => proxies.trusted = networks(&given.texts()?)?,
            _ => proxies.header = header(&given.text()?)?,
        }
        Ok(())
    })?;
    Ok(proxies)
}

fn networks(texts: &[String]) -> Result<Vec<IpNet>, String> {
    texts.iter().map(|text| network(text)).collect()
}

/// A network, or one address.
fn network(text: &str) -> Result<IpNet, String> {
    let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    let network = network.map_err(|_| format!("`{text}` is no network, such as 10.0.0.0/8, and no address"))?;
    match network.prefix_len() {
        0 => Err(format!("`{text}` would let everybody say where they come from")),
        _ => Ok(network),
    }
}

fn header(text: &str) -> Result<ForwardedHeader, String> {
    match text {
        "x-forwarded" => Ok(ForwardedHeader::XForwarded),
        "forwarded" => Ok(ForwardedHeader::Forwarded),
        _ => Err("this has to be \"x-forwarded\" or \"forwarded\"".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::manifest::ManifestFile, *};

    #[test]
    fn proxies_are_networks_or_addresses_and_never_everybody() {
        let read = |text: &str| check_manifest(&ManifestFile::written(&format!("[proxy]\n{text}")).parse());
        let proxies = read("trusted = [\"10.0.0.0/8\", \"::1\"]\nheader = \"forwarded\"").expect("it is right");
        assert_eq!(proxies.trusted, [network("10.0.0.0/8").expect("one"), network("::1/128").expect("one")]);
        assert_eq!(proxies.header, ForwardedHeader::Forwarded);
        for wrong in ["trusted = [\"10.0.0.0/33\"]", "trusted = [\"0.0.0.0/0\"]", "header = \"x\"", "trust = []"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
