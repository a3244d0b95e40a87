//! The `[tls]` section of `promptshelf.toml`, its flags and its variables.

use std::path::PathBuf;

use promptshelf_core::Diagnostic;
use promptshelf_server::http::tls::TlsFiles;

use super::{
    given::Given,
    manifest::{Manifest, Others},
};
use crate::{
    args::HttpArguments,
    exit::{Exit, Failure},
};

pub(super) const SETTINGS: &[&str] = &["certificate", "key"];

#[derive(Debug, Default)]
pub(super) struct Written {
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

/// The certificate to serve with, if there is one.
///
/// # Errors
///
/// What cannot be, and where it stands.
pub(super) fn read(
    manifest: &Manifest<'_>,
    arguments: &HttpArguments,
    environment: &impl Fn(&str) -> Option<String>,
) -> Result<Option<TlsFiles>, Failure> {
    let written = check_manifest(manifest).map_err(|found| manifest.failure(&found))?;
    let set = |name: &str| environment(name).filter(|text| !text.is_empty()).map(PathBuf::from);
    let path = |flag: &Option<PathBuf>, variable, written: Option<PathBuf>| {
        // A path in the manifest begins at the manifest.
        flag.clone().or_else(|| set(variable)).or(written.map(|file| manifest.folder().join(file)))
    };
    let certificate = path(&arguments.tls_certificate, "PROMPTSHELF_TLS_CERTIFICATE", written.certificate);
    let key = path(&arguments.tls_key, "PROMPTSHELF_TLS_KEY", written.key);
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        _ => Err(Failure::new(Exit::Usage, "TLS takes both a certificate and its key")
            .help("give --tls-certificate and --tls-key, or `certificate` and `key` in [tls]")),
    }
}

/// Reads the section by itself.
pub(super) fn check_manifest(manifest: &Manifest<'_>) -> Result<Written, Box<Diagnostic>> {
    let mut written = Written::default();
    manifest.section("tls", SETTINGS, Others::Refused, |name, value| {
        let path = Some(Given::Toml(value).text()?.into());
        match name {
            "certificate" => written.certificate = path,
            _ => written.key = path,
        }
        Ok(())
    })?;
    Ok(written)
}
