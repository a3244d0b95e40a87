//! `promptshelf export --server-json`: the entry of a library in an MCP registry.
//!
//! Format: `server.json`, schema 2025-12-11 (modelcontextprotocol/registry, docs/reference/server-json, read 2026-11), with
//! the further rules of the official registry for packages.

use std::path::Path;

use promptshelf_core::About;
use serde_json::{Value, json};

use super::plugin::{description, name};
use crate::{
    args::exchange::RegistryArguments,
    exit::{Exit, Failure},
    output::{file_json, note},
    source::is_url,
    state::digest_bytes,
};

const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
const MAX_TEXT: usize = 100;
const MAX_NAME: usize = 200;
const MAX_ICON: usize = 255;
/// The largest bundle, in bytes.
const MAX_BUNDLE_BYTES: u64 = 1 << 30;

pub(super) fn text(arguments: &RegistryArguments, about: &About, folder: &Path) -> Result<String, Failure> {
    let usage = |message: String| Failure::new(Exit::Usage, message);
    let registered = arguments.server_name.as_deref().unwrap_or_default();
    if !is_registered_name(registered) {
        let message = format!("`{registered}` is not a name in a registry");
        return Err(usage(message).help("expected a reversed domain and a name, such as io.github.ada/team-prompts"));
    }
    let Some(version) = about.version.as_deref().filter(|version| is_version(version)) else {
        let message = "the library has no version such as 1.0.0, and each entry of a registry needs a new one";
        return Err(Failure::new(Exit::Library, message).help("set `version` in [server] of promptshelf.toml"));
    };
    let described = description(about, &name(about, folder));
    let mut entry = json!({
        "$schema": SCHEMA,
        "name": registered,
        "description": shortened(&described, "description"),
        "version": version,
    });
    if let Some(title) = &about.title {
        entry["title"] = json!(shortened(title, "title"));
    }
    if let Some(url) = &about.website_url {
        entry["websiteUrl"] = json!(url);
    }
    let icons: Vec<Value> = about.icons.iter().filter_map(icon).collect();
    if !icons.is_empty() {
        entry["icons"] = json!(icons);
    }
    let mut packages = if arguments.remote.is_empty() { programs() } else { Vec::new() };
    let bundles: Vec<Value> = arguments
        .bundle
        .chunks_exact(2)
        .map(|pair| package(Path::new(&pair[0]), &pair[1], version))
        .collect::<Result<_, Failure>>()?;
    packages.extend(bundles);
    if !packages.is_empty() {
        entry["packages"] = json!(packages);
    }
    let remotes: Vec<Value> = arguments
        .remote
        .iter()
        .map(|url| Ok(json!({ "type": "streamable-http", "url": public_url(url)? })))
        .collect::<Result<_, Failure>>()?;
    if !remotes.is_empty() {
        entry["remotes"] = json!(remotes);
    }
    Ok(format!("{}\n", file_json(&entry)))
}

/// Returns the packages of this program, which serve the folder of the library on the user's machine.
fn programs() -> Vec<Value> {
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    let folder = json!({ "description": "The folder of the library", "format": "filepath", "isRequired": true });
    let mut library = folder.clone();
    library["type"] = json!("positional");
    library["valueHint"] = json!("library");
    let words = [json!({ "type": "positional", "value": "serve" }), json!({ "type": "named", "name": "--stdio" })];
    let program = |registry: &str, identifier: &str, runner: &str, library: &Value| {
        json!({
            "registryType": registry,
            "identifier": identifier,
            "version": VERSION,
            "runtimeHint": runner,
            "packageArguments": [&words[0], &words[1], library],
            "transport": { "type": "stdio" },
        })
    };
    let image = format!("ghcr.io/promptshelf/promptshelf:{VERSION}");
    let mut container = program("oci", &image, "docker", &json!({ "type": "positional", "value": "/prompts" }));
    // The tag is the version.
    container.as_object_mut().map(|container| container.shift_remove("version"));
    container["runtimeArguments"] = json!([{
        "type": "named", "name": "--volume", "value": "{library}:/prompts:ro", "isRequired": true,
        "variables": { "library": folder },
    }]);
    vec![program("npm", "promptshelf", "npx", &library), program("pypi", "promptshelf", "uvx", &library), container]
}

fn package(file: &Path, url: &str, version: &str) -> Result<Value, Failure> {
    let failure = |reason: String| Failure::new(Exit::Failed, format!("the bundle {}: {reason}", file.display()));
    let size = std::fs::metadata(file).map_err(|error| failure(error.to_string()))?.len();
    if size > MAX_BUNDLE_BYTES {
        return Err(failure(format!("it has {size} bytes; at most {MAX_BUNDLE_BYTES} are expected")));
    }
    let bytes = std::fs::read(file).map_err(|error| failure(error.to_string()))?;
    if !bytes.starts_with(b"PK") {
        return Err(failure("it is not a zip archive, as `export --mcpb` writes".to_owned()));
    }
    let url = public_url(url)?;
    // The official registry requires it, and accepts releases of these two hosts only.
    if !url.contains("mcp") {
        let message = format!("the URL {url} does not contain `mcp`, which the official registry requires");
        return Err(Failure::new(Exit::Usage, message).help("name the file `….mcpb`"));
    }
    Ok(json!({
        "registryType": "mcpb",
        "identifier": url,
        "version": version,
        "fileSha256": digest_bytes(&bytes),
        "transport": { "type": "stdio" },
    }))
}

fn public_url(url: &str) -> Result<&str, Failure> {
    let usage = |message: String| Err(Failure::new(Exit::Usage, message));
    let Some(rest) = url.strip_prefix("https://").filter(|_| is_url(url)) else {
        return usage("expected a public URL such as https://example.com/mcp".to_owned());
    };
    if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return usage("the URL contains a space or a control character".to_owned());
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    if authority.contains('@') {
        return usage("the URL contains a name or password, which the entry would publish".to_owned());
    }
    match authority.is_empty() {
        true => usage("expected a URL with a host, such as https://example.com/mcp".to_owned()),
        false => Ok(url),
    }
}

/// Returns whether a name has the form of the schema: a namespace, a slash, and a name.
fn is_registered_name(name: &str) -> bool {
    let is_word = |text: &str, more: &[char]| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(&c))
    };
    let Some((namespace, name_part)) = name.split_once('/') else { return false };
    name.len() <= MAX_NAME
        && namespace.contains('.')
        && namespace.split('.').all(|label| is_word(label, &['-']))
        && is_word(name_part, &['.', '_', '-'])
}

/// Returns whether a version is one exact version. Registries refuse ranges, and names such as `latest`.
fn is_version(version: &str) -> bool {
    let mut parts = version.split(['-', '+']).next().unwrap_or_default().split('.');
    version.len() <= MAX_ICON
        && parts.clone().count() >= 2
        && parts.all(|part| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit()))
        && version.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'))
}

/// Returns an icon of the entry; `None` for one that is not a URL, which registries refuse.
fn icon(icon: &promptshelf_core::Icon) -> Option<Value> {
    if !icon.src.starts_with("https://") || icon.src.chars().count() > MAX_ICON {
        return None;
    }
    let mut entry = json!({ "src": &*icon.src });
    if let Some(mime_type) = &icon.mime_type {
        entry["mimeType"] = json!(mime_type.as_str());
    }
    if !icon.sizes.is_empty() {
        entry["sizes"] = json!(icon.sizes);
    }
    Some(entry)
}

fn shortened(text: &str, what: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_TEXT {
        return line;
    }
    note(&[format!("the {what} was shortened to {MAX_TEXT} characters, which registries accept")]);
    let start: String = line.chars().take(MAX_TEXT - 1).collect();
    let words = start.rsplit_once(' ').map_or(start.as_str(), |(words, _)| words);
    format!("{words}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_versions_have_the_form_of_the_schema() {
        for name in ["io.github.ada/prompts", "com.example/a_b.c-d"] {
            assert!(is_registered_name(name), "{name}");
        }
        let long = format!("io.github.ada/{}", "x".repeat(200));
        for name in ["", "prompts", "ada/prompts", "io.github.ada/", "/x", "a.b/c/d", "a..b/c", "a.b/c d", &long] {
            assert!(!is_registered_name(name), "{name}");
        }
        for version in ["1.0.0", "1.0", "2.1.0-alpha", "1.0.0+build"] {
            assert!(is_version(version), "{version}");
        }
        for version in ["", "latest", "1", "^1.0.0", "1.x", "1.*", ">=1.0.0", "v1.0.0", "1.0.0 ", "1..0"] {
            assert!(!is_version(version), "{version}");
        }
    }

    // req: S-216
    #[test]
    fn published_urls_have_no_credentials() {
        assert!(public_url("https://example.com/mcp").is_ok());
        for url in [
            "http://example.com/mcp",
            "https://ada:secret@example.com/mcp",
            "https:///mcp",
            "https://example.com/a b",
            "file:///etc/passwd",
            "",
        ] {
            let failure = public_url(url).expect_err(url);
            assert!(!failure.message.contains("secret"), "{}", failure.message);
        }
    }

    #[test]
    fn long_texts_end_with_a_word() {
        let text = shortened(&"words and ".repeat(20), "title");
        assert!(text.ends_with("words…") || text.ends_with("and…"), "{text}");
        assert!(text.chars().count() <= MAX_TEXT);
    }
}
