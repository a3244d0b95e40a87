//! Provenance of prompts in `_meta`: the version, and the source, channel or commit that it comes from.

use promptshelf_core::{Catalog, CatalogProvenance, CommitProvenance, Prompt, PromptProvenance};
use serde::Serialize;

/// The members of `_meta` that say where a prompt comes from. Authors cannot write keys with this prefix.
#[derive(Default, Serialize)]
pub(super) struct WireProvenance<'a> {
    #[serde(rename = "dev.promptshelf/foreign", skip_serializing_if = "std::ops::Not::not")]
    is_foreign: bool,
    /// The servers that have passed on the prompt, this one last, so that none of them mirrors its own prompts.
    #[serde(rename = "dev.promptshelf/via", skip_serializing_if = "Vec::is_empty")]
    via: Vec<String>,
    #[serde(rename = "dev.promptshelf/version", skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(rename = "dev.promptshelf/digest", skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(rename = "dev.promptshelf/source", skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(rename = "dev.promptshelf/channel", skip_serializing_if = "Option::is_none")]
    channel: Option<&'a str>,
    #[serde(rename = "dev.promptshelf/revision", skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    /// The first 12 digits.
    #[serde(rename = "dev.promptshelf/revisionDigest", skip_serializing_if = "Option::is_none")]
    revision_digest: Option<&'a str>,
    #[serde(rename = "dev.promptshelf/commit", skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
    #[serde(rename = "dev.promptshelf/signer", skip_serializing_if = "Option::is_none")]
    signer: Option<&'a str>,
    #[serde(rename = "dev.promptshelf/approvedBy", skip_serializing_if = "Option::is_none")]
    approved_by: Option<&'a [String]>,
}

impl<'a> WireProvenance<'a> {
    /// Returns `None` for a prompt without provenance, and if clients do not see the provenance.
    pub(super) fn of(prompt: &Prompt, catalog: &'a Catalog) -> Option<WireProvenance<'a>> {
        if let Some((part, own)) = catalog.part_of(prompt) {
            let source = Some(&*part.source).filter(|source| !source.is_empty());
            let known = WireProvenance::of(&own, &part.catalog).unwrap_or_default();
            let via = part.server_id.iter().flat_map(|id| own.definition().via.iter().chain([id]));
            let via = via.map(std::string::ToString::to_string).collect();
            return Some(WireProvenance { source, is_foreign: part.is_foreign, via, ..known });
        }
        let shown = catalog.provenance().filter(|found| found.is_shown && found.covers(prompt))?;
        let CatalogProvenance { provenance, .. } = shown;
        let version = shown.prompt(prompt);
        Some(WireProvenance {
            version: version.map(PromptProvenance::version),
            digest: version.map(PromptProvenance::digest),
            source: provenance.source(),
            channel: provenance.channel(),
            revision: provenance.revision(),
            revision_digest: provenance.revision_digest().and_then(|digest| digest.get(..12)),
            commit: provenance.commit().map(CommitProvenance::id),
            signer: provenance.commit().and_then(CommitProvenance::signer),
            approved_by: version.map(PromptProvenance::approved_by),
            ..WireProvenance::default()
        })
    }
}
