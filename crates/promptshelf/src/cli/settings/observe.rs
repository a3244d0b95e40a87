//! The `[metrics]` and `[traces]` sections of `promptshelf.toml`, their flags
//! and their variables.

use promptshelf_core::Diagnostic;

use super::{
    Address,
    given::Given,
    manifest::{Manifest, Others},
};
use crate::exit::{Exit, Failure};

/// Where traces go, and how many.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Traces {
    /// The URL that spans are sent to.
    pub(crate) endpoint: String,
    /// Of a hundred traces that begin here, so many are sent. A caller's own
    /// trace is continued as the caller says.
    pub(crate) percent: u8,
}

/// Where figures are served, if they are.
///
/// # Errors
///
/// What cannot be, and where it stands.
pub(crate) fn metrics(
    manifest: &Manifest<'_>,
    flag: Option<&str>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<Address>, Failure> {
    let written = written_metrics(manifest).map_err(|found| manifest.failure(&found))?;
    let said = said("metrics", flag, environment);
    let typed = said.map(|(name, text)| Address::parse(&text).map_err(|reason| usage(&name, &reason))).transpose()?;
    Ok(typed.or(written))
}

/// Where traces are sent to, if they are.
///
/// # Errors
///
/// What cannot be, and where it stands.
pub(crate) fn traces(
    manifest: &Manifest<'_>,
    flag: Option<&str>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<Traces>, Failure> {
    let (written, percent) = written_traces(manifest).map_err(|found| manifest.failure(&found))?;
    let said = said("traces", flag, environment);
    let typed = said.map(|(name, text)| endpoint(&text).map_err(|reason| usage(&name, &reason))).transpose()?;
    let traces = typed.or(written).map(|endpoint| Traces { endpoint, percent });
    if traces.is_some() && cfg!(not(feature = "traces")) {
        return Err(Failure::new(Exit::Usage, "this promptshelf was built without the feature `traces`"));
    }
    Ok(traces)
}

/// What is wrong with the sections by themselves.
pub(super) fn check_manifest(manifest: &Manifest<'_>) -> Result<(), Box<Diagnostic>> {
    written_metrics(manifest)?;
    written_traces(manifest).map(drop)
}

fn written_metrics(manifest: &Manifest<'_>) -> Result<Option<Address>, Box<Diagnostic>> {
    let mut written = None;
    manifest.section("metrics", &["listen"], Others::Refused, |_, value| {
        written = Some(Address::parse(&Given::Toml(value).text()?)?);
        Ok(())
    })?;
    Ok(written)
}

fn written_traces(manifest: &Manifest<'_>) -> Result<(Option<String>, u8), Box<Diagnostic>> {
    let (mut written, mut percent) = (None, 100);
    manifest.section("traces", &["endpoint", "percent"], Others::Refused, |name, value| {
        let given = Given::Toml(value);
        match name {
            "endpoint" => written = Some(endpoint(&given.text()?)?),
            _ => percent = u8::try_from(given.number(100)?).unwrap_or(100),
        }
        Ok(())
    })?;
    Ok((written, percent))
}

/// What the command line or the environment says, and where it is said.
fn said(name: &str, flag: Option<&str>, environment: impl Fn(&str) -> Option<String>) -> Option<(String, String)> {
    let variable = format!("PROMPTSHELF_{}", name.to_uppercase());
    let set = || environment(&variable).filter(|text| !text.is_empty());
    match flag {
        Some(flag) => Some((format!("--{name}"), flag.to_owned())),
        None => set().map(|text| (format!("{variable} in the environment"), text)),
    }
}

fn usage(name: &str, reason: &str) -> Failure {
    Failure::new(Exit::Usage, format!("{name}: {reason}"))
}

/// The URL for spans: below a collector's own, as OTLP over HTTP has it, unless
/// a path is named.
fn endpoint(written: &str) -> Result<String, String> {
    const WRONG: &str = "this has to be the URL of a collector, such as http://127.0.0.1:4318";
    let rest = written.strip_prefix("http://").or_else(|| written.strip_prefix("https://")).ok_or(WRONG)?;
    // What is secret comes from OTEL_EXPORTER_OTLP_HEADERS, and so into no file and no log.
    if rest.is_empty() || rest.starts_with('/') || rest.contains(['@', '?', '#', ' ', '"', '\\']) {
        return Err(WRONG.to_owned());
    }
    match rest.split_once('/') {
        None | Some((_, "")) => Ok(format!("{}/v1/traces", written.trim_end_matches('/'))),
        Some(_) => Ok(written.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_collector_or_a_path_of_one_and_holds_no_secret() {
        assert_eq!(endpoint("http://127.0.0.1:4318").as_deref(), Ok("http://127.0.0.1:4318/v1/traces"));
        assert_eq!(endpoint("https://example.com/").as_deref(), Ok("https://example.com/v1/traces"));
        assert_eq!(endpoint("https://example.com/otlp/v1/traces").as_deref(), Ok("https://example.com/otlp/v1/traces"));
        for wrong in ["", "127.0.0.1:4318", "http://", "https:///v1", "http://me:word@example.com", "http://a/b?key=c"]
        {
            assert!(endpoint(wrong).is_err(), "{wrong}");
        }
    }
}
