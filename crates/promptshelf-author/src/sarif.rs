//! Diagnostics as SARIF 2.1.0 (OASIS), which code hosts show next to the lines.

use promptshelf_core::{Code, Diagnostic, Location, Severity};
use serde_json::{Value, json};

use crate::explain;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Returns diagnostics as a SARIF log with one run. Its rules are the codes that occur. `show_path` maps a
/// file's path inside the library to the path in the log, relative to the repository.
///
/// ```
/// let log = promptshelf_author::sarif(&[], |path| path.to_owned());
/// assert_eq!(log["version"], "2.1.0");
/// ```
#[must_use]
pub fn sarif(diagnostics: &[Diagnostic], show_path: impl Fn(&str) -> String) -> Value {
    let mut codes: Vec<Code> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let rule = |code: &Code| {
        json!({
            "id": code.as_str(),
            "shortDescription": { "text": explain::summary(*code) },
            "help": { "text": explain::page(*code) },
        })
    };
    let result = |diagnostic: &Diagnostic| {
        let text = match &diagnostic.help {
            Some(help) => format!("{}\nHelp: {help}", diagnostic.message),
            None => diagnostic.message.clone(),
        };
        let mut result = json!({
            "ruleId": diagnostic.code.as_str(),
            "ruleIndex": codes.binary_search(&diagnostic.code).unwrap_or_default(),
            "level": match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Hint => "note",
            },
            "message": { "text": text },
            "locations": [place(&diagnostic.location, &show_path)],
        });
        if !diagnostic.related.is_empty() {
            let related = diagnostic.related.iter().map(|(location, label)| {
                let mut place = place(location, &show_path);
                place["message"] = json!({ "text": label });
                place
            });
            result["relatedLocations"] = related.collect();
        }
        result
    };
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "promptshelf",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": codes.iter().map(rule).collect::<Vec<Value>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": diagnostics.iter().map(result).collect::<Vec<Value>>(),
        }],
    })
}

fn place(location: &Location, show_path: impl Fn(&str) -> String) -> Value {
    let path = show_path(&location.source.path);
    let mut place = json!({ "physicalLocation": { "artifactLocation": { "uri": uri(&path) } } });
    if !location.source.text.is_empty() {
        let (line, column) = location.line_column();
        let end = location.span().end;
        let (end_line, end_column) = Location::new(&location.source, end..end).line_column();
        place["physicalLocation"]["region"] =
            json!({ "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column });
    }
    place
}

/// Returns a path as a URI reference (RFC 3986); relative paths stay relative.
fn uri(path: &str) -> String {
    let kept = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(byte);
    let encoded = path.replace('\\', "/").bytes().fold(String::with_capacity(path.len()), |mut uri, byte| {
        if kept(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
        uri
    });
    if path.starts_with('/') { format!("file://{encoded}") } else { encoded }
}

#[cfg(test)]
mod tests {
    use promptshelf_core::SourceText;

    use super::*;

    #[test]
    fn run_names_rules_and_locations() {
        let source = SourceText::new("a b.md", "---\nname: ä x\n---\n");
        let at = Location::new(&source, 12..14);
        let found = [
            Diagnostic::warning(Code::InvalidName, at.clone(), "no").help("rename it").also(at, "here"),
            Diagnostic::error(Code::EmptyLibrary, Location::file(&SourceText::new(".", "")), "none"),
        ];
        let log = sarif(&found, |path| format!("lib/{path}"));
        let run = &log["runs"][0];
        assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "invalid-name");
        let result = &run["results"][0];
        assert_eq!((&result["ruleIndex"], &result["level"]), (&json!(0), &json!("warning")));
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "lib/a%20b.md");
        assert_eq!(place["region"], json!({ "startLine": 2, "startColumn": 8, "endLine": 2, "endColumn": 10 }));
        assert_eq!(result["relatedLocations"][0]["message"]["text"], "here");
        assert!(run["results"][1]["locations"][0]["physicalLocation"].get("region").is_none());
    }
}
