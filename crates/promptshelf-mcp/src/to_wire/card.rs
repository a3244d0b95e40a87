//! Documents for discovery before a connection: the server card (SEP-2127, a draft) and a catalog that names it.
//!
//! Both are public: they hold the names and the description of the library, and nothing that depends on a caller.

use promptshelf_core::About;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{DEFAULT_NAME, Implementation, icons};
use crate::{Server, revision::Revision};

/// The schema of the draft of August 2026.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";

const CARD: &str = "application/mcp-server-card+json";

const MAX_TEXT: usize = 100;

/// A document for discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveryDocument {
    /// JSON.
    pub body: String,
    /// The media type.
    pub media_type: &'static str,
    /// A strong entity tag with its quotation marks (RFC 9110).
    pub etag: String,
}

impl DiscoveryDocument {
    fn new(document: &Value, media_type: &'static str) -> DiscoveryDocument {
        let body = document.to_string();
        let digest: String = Sha256::digest(&body).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        DiscoveryDocument { body, media_type, etag: format!("\"{digest}\"") }
    }
}

impl Server {
    /// Returns the server card of the endpoint at `url`.
    ///
    /// ```
    /// # use promptshelf_core::{CatalogHandle, Definitions, check};
    /// # let handle = CatalogHandle::new(check(Definitions::default(), None).catalog);
    /// # let server = promptshelf_mcp::Server::new(promptshelf_service::Service::new(handle));
    /// let card = server.server_card("https://prompts.example.com/mcp");
    /// assert!(card.body.contains(r#""name":"com.example.prompts/promptshelf""#));
    /// ```
    #[must_use]
    pub fn server_card(&self, url: &str) -> DiscoveryDocument {
        let catalog = self.service().catalog();
        let about = catalog.about();
        let brief = Implementation::brief(about);
        let description = about.description.as_deref().filter(|text| !text.trim().is_empty());
        let versions: Vec<&str> = Revision::ALL.iter().rev().map(|revision| revision.as_str()).collect();
        let mut card = json!({
            "$schema": SCHEMA,
            "name": name(about, url),
            "version": brief.version,
            "description": shortened(description.unwrap_or("Prompts for people and their models")),
            "remotes": [{ "type": "streamable-http", "url": url, "supportedProtocolVersions": versions }],
        });
        if let Some(title) = about.title.as_deref().filter(|title| !title.is_empty()) {
            card["title"] = json!(shortened(title));
        }
        if let Some(website) = &about.website_url {
            card["websiteUrl"] = json!(website);
        }
        if let Some(icons) = icons(about.icons.iter(), Revision::V2026_07_28) {
            card["icons"] = json!(icons);
        }
        DiscoveryDocument::new(&card, CARD)
    }

    /// Returns a catalog with the server card of the endpoint at `url`, for `/.well-known/ai-catalog.json`.
    #[must_use]
    pub fn ai_catalog(&self, url: &str) -> DiscoveryDocument {
        let catalog = self.service().catalog();
        let about = catalog.about();
        let name = name(about, url);
        let suffix = name.rsplit('/').next().unwrap_or(DEFAULT_NAME);
        let document = json!({
            "specVersion": "1.0",
            "entries": [{
                "identifier": format!("urn:air:{}:{suffix}", host(url)),
                "displayName": about.title.as_deref().unwrap_or(suffix),
                "type": CARD,
                "url": format!("{}/server-card", url.trim_end_matches('/')),
            }],
        });
        DiscoveryDocument::new(&document, "application/ai-catalog+json")
    }
}

/// Returns the library's name with a namespace: its own if it has one, otherwise the host with its parts reversed.
fn name(about: &About, url: &str) -> String {
    let own = about.name.as_deref().unwrap_or(DEFAULT_NAME);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    if let Some((namespace, rest)) = own.split_once('/')
        && !namespace.is_empty()
        && namespace.chars().all(is_plain)
        && !rest.is_empty()
        && rest.chars().all(|c| is_plain(c) || c == '_')
    {
        return own.to_owned();
    }
    let host = host(url);
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    let namespace: Vec<&str> = if is_address { vec![host] } else { host.rsplit('.').collect() };
    let plain = |text: &str, more: char| -> String {
        text.chars().map(|c| if is_plain(c) || c == more { c } else { '-' }).collect()
    };
    format!("{}/{}", plain(&namespace.join("."), '.'), plain(own, '_'))
}

/// Returns the host of a URL, without port and brackets.
fn host(url: &str) -> &str {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split(':').next().unwrap_or_default(),
    }
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_TEXT - 1) {
        Some((end, last)) if end + last.len_utf8() < text.len() => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}
