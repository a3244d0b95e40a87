//! Keys of `_meta`: `[prefix/]name`, with prefixes that the protocol reserves (all revisions from 2025-06-18,
//! *General fields*).

use crate::{
    definition::PromptDefinition,
    diagnostic::{Code, Diagnostic},
};

pub(super) fn check(definition: &PromptDefinition, found: &mut Vec<Diagnostic>) {
    for key in definition.meta.keys() {
        let place = definition.origin.locate("_meta");
        let fault = match key.rsplit_once('/') {
            Some((prefix, _)) if is_reserved(prefix) => "is reserved for the protocol",
            Some((prefix, _)) if is_own(prefix) => "is reserved for the provenance of prompts",
            Some((prefix, name)) if prefix.split('.').all(is_label) && is_name(name) => continue,
            None if is_name(key) => continue,
            _ => "is not a valid key of `_meta`",
        };
        found.push(
            Diagnostic::error(Code::InvalidName, place, format!("`{key}` {fault}"))
                .help("write it as `com.example/name`, with a domain of your own"),
        );
    }
}

/// Returns whether the protocol reserves a prefix: by its first or second label, or by its last but one, depending on
/// the revision.
fn is_reserved(prefix: &str) -> bool {
    let labels: Vec<&str> = prefix.split('.').collect();
    let last_but_one = labels.len().saturating_sub(2);
    [0, 1, last_but_one].iter().any(|at| matches!(labels.get(*at), Some(&("modelcontextprotocol" | "mcp"))))
}

/// Whether a prefix is that of provenance, which authors must not be able to write.
fn is_own(prefix: &str) -> bool {
    prefix.eq_ignore_ascii_case("dev.promptshelf")
}

fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let ends = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: B10
    #[test]
    fn meta_keys_are_valid_and_not_reserved() {
        let faults = |key: &str| {
            let mut definition = PromptDefinition::template("it", "text");
            definition.meta.insert(key.to_owned(), serde_json::Value::Null);
            let mut found = Vec::new();
            check(&definition, &mut found);
            found.len()
        };
        for good in ["owner", "com.example/owner", "a/b_c.d-e", "com.example.mcp/x", "example/", "team-1.de/x1"] {
            assert_eq!(faults(good), 0, "{good}");
        }
        let reserved = [
            "modelcontextprotocol.io/x",
            "io.modelcontextprotocol/x",
            "mcp.dev/x",
            "com.example.mcp.tools/x",
            "com.mcp.tools/x",
            "api.modelcontextprotocol.org/x",
            "mcp/x",
            "dev.promptshelf/approvedBy",
            "Dev.PromptShelf/version",
        ];
        for bad in reserved.into_iter().chain([
            "/x",
            "a..b/x",
            "1a/x",
            "a-/x",
            "a/b/c",
            "-x",
            "x-",
            "a b",
            "ü",
            "com.example/x y",
        ]) {
            assert_eq!(faults(bad), 1, "{bad}");
        }
    }
}
