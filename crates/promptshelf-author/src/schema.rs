//! JSON Schemas of prompt files and `promptshelf.toml`, for editors.
//!
//! They come from the reader: the schema of prompt files is generated from its tables of keys, that of `promptshelf.toml`
//! is derived from its serde types. They follow draft 7, which the language servers of editors support. Rules that a
//! schema cannot express, such as that a file exists, are left to `check`.

use serde_json::Value;

use promptshelf_source::syntax::{PROMPT_KEYS, library_schema};

/// Returns the schema of a prompt file's front matter.
///
/// ```
/// let schema = promptshelf_author::schema::prompt();
/// assert_eq!(schema["properties"]["arguments"]["type"], "array");
/// ```
#[must_use]
pub fn prompt() -> Value {
    PROMPT_KEYS.schema("The front matter of a promptshelf prompt file")
}

/// Returns the schema of the authors' sections of `promptshelf.toml`.
///
/// ```
/// let schema = promptshelf_author::schema::library();
/// assert_eq!(schema["title"], "promptshelf.toml");
/// ```
#[must_use]
pub fn library() -> Value {
    library_schema()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use promptshelf_core::{Code, SourceText};
    use serde_json::json;

    use promptshelf_source::syntax::{
        GOLDEN_ENDING, Holds, Keys, Notes, front_matter, parse_prompt, parse_toml, parse_yaml,
    };

    use super::*;

    fn names(schema: &Value) -> BTreeSet<String> {
        schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    }

    fn check_table(schema: &Value, keys: &Keys) {
        assert_eq!(names(schema), keys.names().into_iter().map(str::to_owned).collect(), "{schema}");
        for key in keys.keys {
            let property = &schema["properties"][key.name];
            assert_eq!(property["description"], key.about);
            let is_open = matches!(key.holds, Holds::Value | Holds::Values);
            assert_eq!(property.as_object().map(serde_json::Map::len) == Some(1), is_open, "{}", key.name);
            let inner = match key.holds {
                Holds::Table(keys) => Some((property.clone(), keys)),
                Holds::Tables(keys) => Some((property["items"].clone(), keys)),
                Holds::Choices(keys) | Holds::ListOfTextsOrTables(keys) => {
                    Some((property["items"]["anyOf"][1].clone(), keys))
                }
                Holds::TextOrTable(keys) => Some((property["anyOf"][1].clone(), keys)),
                Holds::TextsOrTables(keys) => Some((property["anyOf"][0]["anyOf"][1].clone(), keys)),
                _ => None,
            };
            if let Some((schema, keys)) = inner {
                check_table(&schema, keys);
            }
        }
    }

    #[test]
    fn schema_has_exactly_the_table_keys() {
        check_table(&prompt(), &PROMPT_KEYS);
    }

    /// A value that no key accepts: three nested lists with a mapping inside.
    const NONSENSE: &str = "[[[{ no: [such, value] }]]]";

    fn diagnostics(front_matter: &str) -> Vec<promptshelf_core::Diagnostic> {
        let source = SourceText::new("a.md", format!("---\n{front_matter}\n---\nHello\n"));
        parse_prompt(&source).expect("it is a prompt file").diagnostics
    }

    fn keys_below(name: &str) -> &'static Keys {
        match PROMPT_KEYS.find(name).map(|key| key.holds) {
            Some(Holds::Tables(keys) | Holds::ListOfTextsOrTables(keys) | Holds::TextsOrTables(keys)) => keys,
            other => panic!("{name} takes no tables: {other:?}"),
        }
    }

    #[test]
    fn parser_reads_every_table_key() {
        let tables: [(&str, &Keys, &str); 4] = [
            ("", &PROMPT_KEYS, ""),
            ("arguments:\n  - name: x\n    ", keys_below("arguments"), "name"),
            ("icons:\n  - src: a.png\n    ", keys_below("icons"), "src"),
            ("tests:\n  - ", keys_below("tests"), ""),
        ];
        for (before, keys, there) in tables {
            for key in keys.keys.iter().filter(|key| key.name != there) {
                if matches!(key.holds, Holds::Value | Holds::Values) {
                    continue;
                }
                let found = diagnostics(&format!("{before}{}: {NONSENSE}", key.name));
                let complains = found
                    .iter()
                    .any(|found| matches!(found.code, Code::WrongType | Code::InvalidCompletion) && found.is_error());
                assert!(complains, "no diagnostic for `{}`: {found:?}", key.name);
                assert!(!found.iter().any(|found| found.code == Code::UnknownKey), "`{}` is unknown", key.name);
            }
        }
    }

    fn as_json(path: &str, text: &str) -> (Value, bool) {
        let source = SourceText::new(path, text);
        let mut notes = Notes::new(&source);
        let node = if path.ends_with(".toml") {
            Some(parse_toml(&mut notes))
        } else {
            front_matter(text).and_then(|(keys, _)| parse_yaml(keys, &mut notes))
        };
        (node.map_or(json!({}), |node| node.to_json()), notes.diagnostics.is_empty())
    }

    #[test]
    fn schemas_and_parser_accept_the_same() {
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        let [prompt, library] = [("prompt", prompt()), ("library", library())].map(|(name, schema)| {
            compiler.add_resource(name, schema).expect("JSON");
            compiler.compile(name, &mut schemas).expect("it is a schema")
        });
        let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/library");
        let mut taken = 0;
        for path in ["", "git"] {
            for entry in std::fs::read_dir(format!("{examples}/{path}")).expect("it is there") {
                let path = entry.expect("it is there").path();
                let name = path.display().to_string();
                let validator = match &*name {
                    name if name.ends_with("README.md") || name.ends_with(GOLDEN_ENDING) => continue,
                    name if name.ends_with(".toml") => library,
                    name if name.ends_with(".md") => prompt,
                    _ => continue,
                };
                let (value, is_well_formed) = as_json(&name, &std::fs::read_to_string(&path).expect("it is text"));
                assert!(is_well_formed, "{name}");
                if let Err(error) = schemas.validate(&value, validator) {
                    panic!("{name}: {error:#}");
                }
                taken += 1;
            }
        }
        assert!(taken > 10, "{taken}");
        for wrong in
            ["desciption: x", "tags: { a: b }", "arguments:\n  - type: text", "arguments:\n  - name: a\n    type: int"]
        {
            let (value, _) = as_json("a.md", &format!("---\n{wrong}\n---\nHello"));
            assert!(schemas.validate(&value, prompt).is_err(), "{wrong}");
            assert!(!diagnostics(wrong).is_empty(), "{wrong}");
        }
    }

    #[test]
    fn schema_lists_argument_types() {
        let types: Vec<&str> = promptshelf_core::ArgumentType::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(
            prompt()["properties"]["arguments"]["items"]["anyOf"][1]["properties"]["type"]["enum"],
            json!(types)
        );
    }
}
