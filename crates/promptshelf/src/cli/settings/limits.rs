//! The keys of `[limits]` that are about callers. The others bound the library
//! and are its source's.

use std::num::NonZeroU32;

use promptshelf_core::Diagnostic;
use promptshelf_service::Limits;

use super::{
    given::Given,
    manifest::{Manifest, Others},
};

const SETTINGS: &[&str] = &[
    "requests-per-minute",
    "completions-per-minute",
    "requests-per-minute-per-address",
    "concurrent-requests",
    "subscriptions",
];

/// The most of anything.
const MOST: u64 = 1_000_000;

/// How much callers may ask; nothing where none of it is said.
///
/// # Errors
///
/// The first value that cannot be.
pub(super) fn read(manifest: &Manifest<'_>) -> Result<Option<Limits>, Box<Diagnostic>> {
    let mut written: Option<Limits> = None;
    manifest.section("limits", SETTINGS, Others::PassedOver, |name, value| {
        let number = u32::try_from(Given::Toml(value).number(MOST)?).ok().and_then(NonZeroU32::new);
        let number = number.ok_or("this cannot be zero")?;
        let limits = written.get_or_insert_default();
        match name {
            "requests-per-minute" => limits.requests_per_minute = number,
            "completions-per-minute" => limits.completions_per_minute = number,
            "requests-per-minute-per-address" => limits.requests_per_minute_per_address = number,
            "concurrent-requests" => limits.concurrent_requests = number,
            _ => limits.subscriptions = number,
        }
        Ok(())
    })?;
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::{super::manifest::ManifestFile, *};

    #[test]
    fn what_is_not_said_is_as_usual_and_what_is_not_ours_is_passed_over() {
        let read = |text: &str| read(&ManifestFile::written(text).parse());
        assert_eq!(read("[limits]\nfiles = 3").expect("it is right"), None);
        let limits = read("[limits]\nfuel = 1\nsubscriptions = 3").expect("it is right").expect("limits");
        assert_eq!(limits, Limits { subscriptions: NonZeroU32::new(3).expect("three"), ..Limits::default() });
        let wrong = read("[limits]\nrequests-per-minute = 0").expect_err("it is wrong");
        assert!(wrong.message.contains("from 1 to"), "{}", wrong.message);
    }
}
