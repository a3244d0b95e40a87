//! The user guide in `docs/guide`, an mdBook.
//!
//! - `cargo xtask guide` builds the book into `target/guide`, with a reference that the binary and the requirements make.
//! - The step `guide` of the tests fails if an example does not pass `promptshelf check`, or if a link in the
//!   documentation leads to a missing file or heading.
//!
//! Code blocks whose info string names a file (`markdown,file=review.md`) form a library for each page, which has to
//! pass `promptshelf check --deny warnings` and `promptshelf test`; blocks marked `toml,server` are settings.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Component, Path},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{
    conformance, prepare,
    repository::{Repository, Texts},
    terminal::Program,
};

/// The folder of the book's pages, from the root.
const PAGES: &str = "docs/guide/src";

/// The version of mdBook that builds the book.
const MDBOOK: &str = "0.5.4";

/// Checks links and examples, of the reference too.
pub(crate) fn check(repository: &Repository) -> Result<()> {
    let mut texts = repository.texts()?;
    let reference = reference_pages(repository)?;
    texts.extend(reference.into_iter().map(|(name, text)| (format!("{PAGES}/reference/{name}"), text)));
    let broken = broken(&texts);
    if !broken.is_empty() {
        bail!("broken links:\n  {}", broken.join("\n  "));
    }
    check_examples(repository, &texts)
}

/// Builds the book from a copy of its pages in the target folder, to which the reference is added.
pub(crate) fn build(repository: &Repository) -> Result<()> {
    let copy = repository.target().join("guide-pages");
    let source = repository.root.join("docs/guide");
    if copy.exists() {
        fs::remove_dir_all(&copy).with_context(|| format!("{} cannot be removed", copy.display()))?;
    }
    Program::new("cp", &repository.root).args(&["-R", &source.to_string_lossy(), &copy.to_string_lossy()]).run()?;
    let mut summary = fs::read_to_string(source.join("src/SUMMARY.md")).context("SUMMARY.md cannot be read")?;
    let reference = copy.join("src/reference");
    fs::create_dir_all(&reference).with_context(|| format!("{} cannot be created", reference.display()))?;
    for (name, text) in reference_pages(repository)? {
        let title = text.lines().next().unwrap_or_default().trim_start_matches("# ");
        summary.push_str(&format!("- [{title}](reference/{name})\n"));
        fs::write(reference.join(name), text).with_context(|| format!("{name} cannot be written"))?;
    }
    fs::write(copy.join("src/SUMMARY.md"), summary).context("SUMMARY.md cannot be written")?;
    let program = prepare::cargo_tool(repository, "mdbook", MDBOOK, "search")?;
    Program::new(program, &repository.root)
        .args(&["build", &copy.to_string_lossy(), "--dest-dir", &repository.target().join("guide").to_string_lossy()])
        .run()
}

/// One code block: its info string and its text.
struct Block<'t> {
    info: &'t str,
    text: String,
}

fn check_examples(repository: &Repository, texts: &Texts) -> Result<()> {
    let folder = repository.target().join("guide-examples");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    let mut libraries = 0;
    for (path, text) in texts.iter().filter(|(path, _)| path.starts_with(PAGES)) {
        let page = folder.join(path.replace('/', "-"));
        let (files, settings) = sorted(&blocks(text));
        for (name, text) in &files {
            if Path::new(name).components().any(|part| !matches!(part, Component::Normal(_))) {
                bail!("{path}: `file={name}` is not a path inside the example");
            }
            let file = page.join(name);
            fs::create_dir_all(file.parent().unwrap_or(&page))?;
            fs::write(file, text)?;
        }
        if !files.is_empty() {
            libraries += 1;
            let library = page.to_string_lossy().into_owned();
            let program = || Program::new(repository.binary(), &repository.root);
            program().args(&["check", &library, "--deny", "warnings"]).run().with_context(|| path.clone())?;
            program().args(&["test", &library]).run().with_context(|| path.clone())?;
        }
        for (number, text) in settings.iter().enumerate() {
            let file = folder.join(format!("{}-{number}.toml", path.replace('/', "-")));
            fs::create_dir_all(&folder)?;
            fs::write(&file, text)?;
            let empty = folder.join("empty");
            fs::create_dir_all(&empty)?;
            Program::new(repository.binary(), &repository.root)
                .args(&["check", "--config"])
                .arg(&file)
                .arg(&empty)
                .run()
                .with_context(|| path.clone())?;
        }
    }
    if libraries == 0 {
        bail!("{PAGES} has no example");
    }
    Ok(())
}

type Files = Vec<(String, String)>;

/// Splits blocks into files of the page's library, and settings.
fn sorted(blocks: &[Block<'_>]) -> (Files, Vec<String>) {
    let (mut files, mut settings) = (Vec::new(), Vec::new());
    for block in blocks {
        if let Some((_, name)) = block.info.split_once(",file=") {
            files.push((name.trim().to_owned(), block.text.clone()));
        } else if block.info == "toml,server" {
            settings.push(block.text.clone());
        }
    }
    (files, settings)
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found: Vec<Block<'_>> = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        match fence {
            None if line.starts_with("```") => {
                let ticks = line.len() - line.trim_start_matches('`').len();
                fence = Some(&line[..ticks]);
                found.push(Block { info: line[ticks..].trim(), text: String::new() });
            }
            Some(ticks) if line.trim_end() == ticks => fence = None,
            Some(_) => {
                if let Some(block) = found.last_mut() {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
            }
            None => {}
        }
    }
    found
}

/// Returns a line for each broken link, as `page:line: target`.
fn broken(texts: &Texts) -> Vec<String> {
    let mut files: BTreeSet<String> = texts.keys().cloned().collect();
    let folders: BTreeSet<String> =
        files.iter().flat_map(|path| Path::new(path).ancestors().skip(1).map(shown).collect::<Vec<_>>()).collect();
    files.extend(folders);
    let mut found = Vec::new();
    for (page, text) in texts.iter().filter(|(path, _)| is_document(path)) {
        let mut in_code = false;
        for (number, line) in text.lines().enumerate() {
            if line.starts_with("```") {
                in_code = !in_code;
            }
            if in_code {
                continue;
            }
            for target in targets(line) {
                if let Some(problem) = problem(page, target, &files, texts) {
                    found.push(format!("{page}:{}: {target} ({problem})", number + 1));
                }
            }
        }
    }
    found
}

/// Documents for people: those at the root, in `docs`, in `deploy` and the crates' READMEs.
fn is_document(path: &str) -> bool {
    let is_readme = path.starts_with("crates/") && path.ends_with("/README.md") && path.split('/').count() == 3;
    path.ends_with(".md")
        && (!path.contains('/') || path.starts_with("docs/") || path.starts_with("deploy/") || is_readme)
}

/// The targets of inline links outside inline code.
fn targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("](") {
        let is_code = rest[..at].matches('`').count() % 2 == 1;
        rest = &rest[at + 2..];
        let Some(end) = rest.find(')') else { break };
        if !is_code {
            found.push(rest[..end].split_whitespace().next().unwrap_or_default());
        }
        rest = &rest[end..];
    }
    found
}

fn problem(page: &str, target: &str, files: &BTreeSet<String>, texts: &Texts) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let file = if path.is_empty() { page.to_owned() } else { resolved(page, path) };
    // Pictures are not text, so they are known by their folder's other files only.
    let is_picture = [".png", ".svg"].iter().any(|ending| file.ends_with(ending));
    if !files.contains(&file) && !is_picture {
        return Some("no such file");
    }
    let has_heading = heading.is_empty()
        || texts
            .get(&file)
            .is_none_or(|text| text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading));
    (!has_heading).then_some("no such heading")
}

fn resolved(page: &str, path: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::Normal(name) => parts.push(name.to_str().unwrap_or_default()),
            _ => {}
        }
    }
    parts.join("/")
}

/// The anchor of a heading: lower-cased, spaces as `-`, other punctuation removed.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns the file name and the text of each page of the reference.
fn reference_pages(repository: &Repository) -> Result<Vec<(&'static str, String)>> {
    prepare::build(repository)?;
    let run = |arguments: &[&str]| {
        // The width of help texts must not depend on the terminal.
        Program::new(repository.binary(), &repository.root).args(arguments).env("COLUMNS", "100").read()
    };
    let schema = |name: &str| -> Result<Value> {
        serde_json::from_str(&run(&["schema", name])?).with_context(|| format!("`schema {name}` is not JSON"))
    };
    let help = run(&["--help"])?;
    let mut pages = vec![
        ("commands.md", commands(&help, run)?),
        (
            "prompt-file.md",
            keys("Keys of prompt files", "The front matter of a prompt file (YAML).", &schema("prompt")?),
        ),
        (
            "library.md",
            keys("promptshelf.toml", "The authors' settings, in the library's folder.", &schema("library")?),
        ),
        (
            "server.md",
            keys(
                "server.toml",
                "The operators' settings; see [Serving a team](../serving/overview.md).",
                &schema("server")?,
            ),
        ),
        ("operations.md", operations(&schema("api")?)),
        ("diagnostics.md", diagnostics(&run(&["explain"])?, run)?),
        ("exit-codes.md", exit_codes(&help)),
    ];
    pages.extend(conformance::pages(repository)?);
    Ok(pages)
}

fn commands(help: &str, run: impl Fn(&[&str]) -> Result<String>) -> Result<String> {
    let mut text = "# Commands\n\nThe output of `promptshelf help COMMAND`.\n".to_owned();
    subcommands(&mut text, help, &[], &run)?;
    Ok(text)
}

/// Writes the help of the subcommands that a help text lists, each followed by its own subcommands.
fn subcommands(
    text: &mut String,
    help: &str,
    command: &[&str],
    run: &impl Fn(&[&str]) -> Result<String>,
) -> Result<()> {
    // Wrapped descriptions have a deeper indentation than names.
    let listed: Vec<&str> = match command {
        // The first help text has groups of commands before its usage.
        [] => help.split("\nUsage:").next().unwrap_or_default().lines().filter(|line| line.starts_with("  ")).collect(),
        _ => section(help, "Commands:").collect(),
    };
    let names = listed.into_iter().filter(|line| !line.starts_with("   "));
    for name in names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        let command = [command, &[name]].concat();
        let help = run(&[&["help"], &*command].concat())?;
        let level = "#".repeat(command.len() + 1);
        write!(text, "\n{level} {}\n\n```text\n{}\n```\n", command.join(" "), help.trim_end())?;
        subcommands(text, &help, &command, run)?;
    }
    Ok(())
}

/// A page of the operations of an OpenAPI document by subject, and of the types of their bodies.
fn operations(document: &Value) -> String {
    let mut text = "# Operations of the API\n\n\
        The OpenAPI document that `promptshelf schema api` prints, and that a server has at `/api/v1/openapi.json`. \
        [The HTTP API](../serving/api.md) explains how to use it. Scopes are needed with sign-in only.\n"
        .to_owned();
    let mut subjects: Vec<(&str, String)> = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let subject = operation["tags"][0].as_str().unwrap_or_default();
            let place = subjects.iter().position(|(known, _)| *known == subject).unwrap_or_else(|| {
                subjects.push((subject, String::new()));
                subjects.len() - 1
            });
            subjects[place].1.push_str(&operation_section(document, path, method, operation));
        }
    }
    for (subject, operations) in subjects {
        text.push_str(&format!("\n## {subject}\n{operations}"));
    }
    text.push_str("\n## Types\n");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        let about = schema["description"].as_str().map(|about| format!("\n{about}\n")).unwrap_or_default();
        text.push_str(&format!("\n### {name}\n{about}"));
        let parts = [schema].into_iter().chain(schema["allOf"].as_array().into_iter().flatten());
        let tables: String =
            parts.filter(|part| part["properties"].is_object()).map(|part| members(document, part)).collect();
        text.push_str(&if tables.is_empty() { format!("\n{}\n", body_type(document, schema)) } else { tables });
    }
    text
}

fn operation_section(document: &Value, path: &str, method: &str, operation: &Value) -> String {
    let sentence = |key: &str| operation[key].as_str().map(|text| format!("\n{}.\n", text.trim_end_matches('.')));
    let mut text = format!("\n### `{} {path}`\n", method.to_uppercase());
    text.extend(["summary", "description"].into_iter().filter_map(sentence));
    let body = |content: &Value| {
        let schema =
            content.as_object().and_then(|media| media.values().next()).map_or(&Value::Null, |it| &it["schema"]);
        body_type(document, schema)
    };
    let mut facts = Vec::new();
    let sets = operation["security"].as_array().into_iter().flatten().filter_map(|set| set["token"].as_array());
    let scopes = |set: &Vec<Value>| {
        set.iter().map(|scope| format!("`{}`", scope.as_str().unwrap_or_default())).collect::<Vec<_>>().join(" and ")
    };
    let sets: Vec<String> = sets.map(scopes).filter(|set| !set.is_empty()).collect();
    if !sets.is_empty() {
        facts.push(format!("Scopes: {}", sets.join(", or ")));
    }
    if operation["requestBody"].is_object() {
        facts.push(format!("Body: {}", body(&operation["requestBody"]["content"])));
    }
    let parameters: Vec<&Value> = operation["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|parameter| followed(document, parameter))
        .collect();
    if parameters.iter().any(|parameter| parameter["name"] == "cursor") {
        facts.push("A list in [pages](../serving/api.md#pages)".to_owned());
    }
    let mut responses: Vec<_> = operation["responses"].as_object().into_iter().flatten().collect();
    responses.sort_by_key(|(status, _)| *status);
    for (status, response) in responses {
        let response = followed(document, response);
        let content = &response["content"];
        let about = response["description"].as_str().unwrap_or_default();
        // What holds for all operations is on the page that explains them.
        if matches!(status.as_str(), "default" | "304" | "400") {
            continue;
        }
        let value = if content["application/problem+json"].is_object() || content.is_null() {
            String::new()
        } else {
            body(content)
        };
        let parts = [value.as_str(), if about == "OK" { "" } else { about }];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        facts.push(format!("{status}: {}", parts.join(". ")));
    }
    text.push_str(&facts.iter().map(|fact| format!("\n- {fact}")).collect::<String>());
    text.push('\n');
    let rows: String = parameters
        .into_iter()
        .filter(|parameter| parameter["name"] != "cursor" && parameter["name"] != "limit")
        .filter_map(|parameter| {
            let word = |key: &str| parameter[key].as_str().unwrap_or_default();
            let schema = &parameter["schema"];
            let about = [word("description"), followed(document, schema)["description"].as_str().unwrap_or_default()];
            let about = about.into_iter().find(|about| !about.is_empty()).unwrap_or_default();
            // The name of a part of the path says it all, unless there is a description.
            (word("in") != "path" || !about.is_empty()).then(|| {
                format!(
                    "| `{}` | {} | {} | {} |\n",
                    word("name"),
                    word("in"),
                    cell(&kind(document, schema)),
                    cell(about)
                )
            })
        })
        .collect();
    if !rows.is_empty() {
        text.push_str(&format!("\n| parameter | in | type | meaning |\n|---|---|---|---|\n{rows}"));
    }
    text
}

/// The type of a body in words, with a link to its section.
fn body_type(document: &Value, schema: &Value) -> String {
    match (schema["$ref"].as_str().and_then(|place| place.rsplit('/').next()), schema["items"].is_object()) {
        (Some(name), _) => format!("[{name}](#{})", name.to_lowercase()),
        (None, true) => format!("list of {}", body_type(document, &schema["items"])),
        (None, false) => match schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
            Some(several) => {
                let several = several.iter().filter(|one| one["type"] != "null");
                several.map(|one| body_type(document, one)).collect::<Vec<_>>().join(", or ")
            }
            None => kind(document, schema),
        },
    }
}

/// A table of the members of a type.
fn members(document: &Value, schema: &Value) -> String {
    let mut text = "\n| member | type | meaning |\n|---|---|---|\n".to_owned();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (key, value) in schema["properties"].as_object().into_iter().flatten() {
        let about = followed(document, value)["description"].as_str().unwrap_or_default();
        let optional = if required.contains(&key.as_str()) { "" } else { " Optional." };
        text.push_str(&format!("| `{key}` | {} | {}{optional} |\n", cell(&body_type(document, value)), cell(about)));
    }
    text
}

fn diagnostics(list: &str, run: impl Fn(&[&str]) -> Result<String>) -> Result<String> {
    let mut text = "# Diagnostics\n\nThe output of `promptshelf explain CODE`.\n".to_owned();
    for code in list.lines().filter_map(|line| line.split_whitespace().next()) {
        let page = run(&["explain", code])?;
        let page = page.trim().strip_prefix(code).unwrap_or(&page).trim();
        write!(text, "\n## {code}\n\n{page}\n")?;
    }
    Ok(text)
}

fn exit_codes(help: &str) -> String {
    let mut text = "# Exit codes\n\n| code | meaning |\n|---|---|\n".to_owned();
    for line in section(help, "Exit codes:") {
        if let Some((code, meaning)) = line.trim().split_once(' ') {
            text.push_str(&format!("| {code} | {} |\n", cell(meaning.trim())));
        }
    }
    text
}

/// The indented lines below a title.
fn section<'h>(help: &'h str, title: &str) -> impl Iterator<Item = &'h str> {
    let below = help.lines().skip_while(move |line| line.trim_end() != title).skip(1);
    below.take_while(|line| line.starts_with(' '))
}

/// A page of tables, one for each object of a JSON Schema.
fn keys(title: &str, about: &str, schema: &Value) -> String {
    let mut text = format!("# {title}\n\n{about}\n");
    object(&mut text, schema, schema, "", 0);
    text
}

/// The deepest nesting of tables; schemas can be recursive.
const MOST_LEVELS: usize = 5;

fn object(text: &mut String, root: &Value, schema: &Value, path: &str, level: usize) {
    let Some(properties) = schema["properties"].as_object() else { return };
    if !path.is_empty() {
        text.push_str(&format!("\n## `{path}`\n"));
    }
    text.push_str("\n| key | type | meaning |\n|---|---|---|\n");
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (key, value) in properties {
        let value = followed(root, value);
        let about = value["description"].as_str().unwrap_or_default();
        let needed = if required.contains(&key.as_str()) { " Required." } else { "" };
        let default = default(value);
        text.push_str(&format!("| `{key}` | {} | {}{default}{needed} |\n", cell(&kind(root, value)), cell(about)));
    }
    if level == MOST_LEVELS {
        return;
    }
    for (key, value) in properties {
        let mut seen = Vec::new();
        for (names, inner) in objects(root, value, 0) {
            if seen.contains(&inner) {
                continue;
            }
            seen.push(inner);
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            object(text, root, inner, &format!("{path}{}", ".NAME".repeat(names)), level + 1);
        }
    }
}

/// Resolves a `$ref` into the schema's definitions, keeping the description at the reference if there is one.
fn followed<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let target = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
    match target.and_then(|pointer| root.pointer(pointer)) {
        Some(found) if schema["description"].is_null() => followed(root, found),
        _ => schema,
    }
}

/// The alternatives of a schema: itself, or the members of `anyOf`, `oneOf` and `allOf`.
fn alternatives<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Value> {
    let resolved = match schema["$ref"].as_str().and_then(|target| root.pointer(target.trim_start_matches('#'))) {
        Some(found) => found,
        None => schema,
    };
    for word in ["anyOf", "oneOf", "allOf"] {
        if let Some(several) = resolved[word].as_array() {
            return several.iter().flat_map(|one| alternatives(root, one)).collect();
        }
    }
    vec![resolved]
}

/// The default of a value as a sentence, if its schema names one.
fn default(schema: &Value) -> String {
    match &schema["default"] {
        Value::Null => String::new(),
        Value::String(text) => format!(" Default: `{text}`."),
        Value::Number(number) => match number.as_f64() {
            Some(whole) if whole.fract() == 0.0 => format!(" Default: {whole}."),
            _ => format!(" Default: {number}."),
        },
        other => format!(" Default: {other}."),
    }
}

/// The objects with properties inside a schema, through lists and through tables whose keys are free names. Each comes
/// with the number of such names on the way to it.
fn objects<'s>(root: &'s Value, schema: &'s Value, depth: usize) -> Vec<(usize, &'s Value)> {
    if depth > MOST_LEVELS {
        return Vec::new();
    }
    let mut found = Vec::new();
    for one in alternatives(root, schema) {
        if one["properties"].is_object() {
            found.push((0, one));
        } else if one["items"].is_object() {
            found.extend(objects(root, &one["items"], depth + 1));
        } else if one["additionalProperties"].is_object() {
            let named = objects(root, &one["additionalProperties"], depth + 1);
            found.extend(named.into_iter().map(|(names, inner)| (names + 1, inner)));
        }
    }
    found
}

/// The type of a value in words.
fn kind(root: &Value, schema: &Value) -> String {
    let mut words: Vec<String> = Vec::new();
    for one in alternatives(root, schema) {
        let word = if let Some(choices) = one["enum"].as_array() {
            choices
                .iter()
                .map(|choice| format!("`{}`", choice.as_str().map_or_else(|| choice.to_string(), str::to_owned)))
                .collect::<Vec<_>>()
                .join(", ")
        } else if let Some(choice) = one["const"].as_str() {
            format!("`{choice}`")
        } else if one["items"].is_object() {
            format!("list of {}", kind(root, &one["items"]))
        } else {
            match &one["type"] {
                Value::String(name) if name == "object" => "table".to_owned(),
                Value::String(name) => name.clone(),
                // A scalar of YAML: numbers and booleans are read as text.
                Value::Array(names) if names.iter().any(|name| name == "string") => "string".to_owned(),
                Value::Array(names) => names
                    .iter()
                    .filter_map(Value::as_str)
                    .filter(|name| *name != "null")
                    .collect::<Vec<_>>()
                    .join(" or "),
                _ => "any".to_owned(),
            }
        };
        if word != "null" && !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" or ")
}

/// A text as one cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(pages: &[(&str, &str)]) -> Vec<String> {
        let texts = pages.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        broken(&texts)
    }

    #[test]
    fn links_to_missing_files_and_headings_are_reported() {
        let found = documents(&[
            (
                "docs/a.md",
                "[b](b.md#part-one) [c](c.md) [b](b.md#part-two)\n`[d](d.md)` [up](../README.md) [web](https://x.y)",
            ),
            ("docs/b.md", "# Part one!"),
            ("README.md", "[docs](docs)\n```\n[x](missing.md)\n```"),
        ]);
        assert_eq!(found, ["docs/a.md:1: c.md (no such file)", "docs/a.md:1: b.md#part-two (no such heading)"]);
    }
}
