//! Imports files of formats that a library also reads in place: the reader parses them, and the result is written as
//! a file of our format.

use std::sync::Arc;

use promptshelf_core::{ArgumentDefinition, Body, BodyPiece, Code, Select, SourceText, is_variable_name};

use super::{Foreign, ImportFormat, entries, lose_others, slug, template};
use promptshelf_source::syntax::{Node, Notes, argument_name, keys_of, parse_prompt};

const KNOWN_KEYS: &[&str] =
    &["name", "title", "description", "argument-hint", "arguments", "version", "messages", "prompt", "testData"];

pub(super) fn read(format: ImportFormat, notes: &mut Notes<'_>) -> Vec<Foreign> {
    let path = &notes.source.path;
    let is_hidden = |home: &str| path.find(&format!("{home}/")).map(|at| path[at..].to_owned());
    let name = path.rsplit('/').next().unwrap_or(path);
    // The path under which a library would read the file.
    let (home, ending) = match format {
        ImportFormat::Claude => (".claude/commands", ".md"),
        ImportFormat::Opencode => (".opencode/commands", ".md"),
        ImportFormat::Codex => (".codex/prompts", ".md"),
        ImportFormat::Cursor => (".cursor/commands", ".md"),
        ImportFormat::Gemini => (".gemini/commands", ".toml"),
        ImportFormat::Vscode => (".github/prompts", ".prompt.md"),
        ImportFormat::Github => (".github/prompts", ".prompt.yml"),
        _ => ("", ""),
    };
    let live = match home {
        // A skill is named after its folder.
        "" => path.trim_start_matches("./").trim_start_matches('.').to_owned(),
        ".opencode/commands" if path.contains(".opencode/command/") => {
            is_hidden(".opencode/command").unwrap_or_default()
        }
        _ => is_hidden(home).unwrap_or_else(|| {
            // Folders of commands give them names in the folders of other programs and of extensions, too.
            let inside = ["/commands/", "/prompts/"]
                .iter()
                .filter_map(|folder| format!("/{path}").rfind(folder).map(|at| &path[at + folder.len() - 1..]));
            let name = inside.min_by_key(|inside| inside.len()).unwrap_or(name);
            let stem = name.strip_suffix(ending).or_else(|| name.strip_suffix(".md")).unwrap_or(name);
            let ending = if name.ends_with(".yaml") { "" } else { ending };
            format!("{home}/{stem}{ending}")
        }),
    };
    let live = if home.is_empty() && !live.contains('/') { format!("skill/{live}") } else { live };
    let source = SourceText::new(live, notes.source.text.clone());
    let Some(parsed) = parse_prompt(&source) else {
        notes.error(Code::Syntax, &(0..0), "the file does not have this format");
        return Vec::new();
    };
    for mut found in parsed.diagnostics {
        found.location = notes.location(&found.location.span());
        notes.diagnostics.push(found);
    }
    lose_keys(&source, notes);
    let Some(definition) = parsed.definition else { return Vec::new() };
    let mut arguments = definition.arguments.clone();
    let template = match &definition.body {
        Body::Pieces(pieces) => {
            if pieces.iter().any(|piece| matches!(piece, BodyPiece::Words(words) if words.select != Select::All)) {
                let message = "words are separated at each blank now: quotation marks do not join them";
                notes.warning(Code::NotSupported, &(0..0), message).help =
                    Some("give the prompt an argument for each value instead of one for all words".to_owned());
            }
            let mut pieces = without_files(pieces, notes);
            rename(&mut arguments, &mut pieces, notes);
            template::of(&pieces)
        }
        Body::Template { range } => definition.origin.source.text[range.clone()].to_owned(),
        Body::Function(_) => String::new(),
    };
    vec![Foreign {
        path: slug(&definition.name),
        title: definition.title.as_deref().map(str::to_owned),
        description: definition.description.as_deref().map(str::to_owned),
        version: definition.version.clone(),
        tags: definition.tags.clone(),
        arguments,
        tests: definition.tests.clone(),
        template,
        ..Foreign::default()
    }]
}

/// Gives arguments the names of variables, which templates need.
fn rename(arguments: &mut [ArgumentDefinition], pieces: &mut [BodyPiece], notes: &mut Notes<'_>) {
    let mut taken: Vec<String> = arguments.iter().map(|argument| argument.name.clone()).collect();
    for (index, argument) in arguments.iter_mut().enumerate() {
        let before = argument.name.clone();
        if is_variable_name(&before) {
            continue;
        }
        let wanted = argument_name(&before).filter(|name| is_variable_name(name));
        let mut name = wanted.unwrap_or_else(|| format!("arg{}", index + 1));
        while taken.contains(&name) {
            name.push('_');
        }
        for piece in pieces.iter_mut() {
            match piece {
                BodyPiece::Argument(used) if *used == before => used.clone_from(&name),
                BodyPiece::Words(words) if words.argument == before => words.argument.clone_from(&name),
                _ => {}
            }
        }
        let message = format!("the argument `{before}` is called `{name}` in the template");
        notes.warning(Code::NotSupported, &(0..0), message);
        taken.push(name.clone());
        argument.name = name;
    }
}

/// Returns a body in which files are text, as they are where the library has no such file: the other program reads them
/// from the project that it works in.
fn without_files(pieces: &[BodyPiece], notes: &mut Notes<'_>) -> Vec<BodyPiece> {
    let piece = |piece: &BodyPiece| match piece {
        BodyPiece::Attach { path, otherwise, span } => {
            let message = format!("the file `{path}` is not attached; the text has its path");
            notes.warning(Code::NotSupported, span, message).help = Some(format!(
                "to attach it, copy it to the library and write `{{{{ attach({}) }}}}`",
                template::string(path)
            ));
            (!otherwise.is_empty()).then(|| BodyPiece::Text(otherwise.clone()))
        }
        other => Some(other.clone()),
    };
    pieces.iter().filter_map(piece).collect()
}

/// Reports keys that only concern the other program, and messages with the role `system`.
fn lose_keys(source: &Arc<SourceText>, notes: &mut Notes<'_>) {
    let Some(tree) = keys_of(source) else { return };
    lose_others(&tree, KNOWN_KEYS, notes);
    for row in super::get(&tree, "testData").map(Node::items).unwrap_or_default() {
        for entry in entries(row).iter().filter(|entry| entry.key == "expected") {
            let message = "expected answers of a model are not tested, and are omitted";
            notes.warning(Code::NotSupported, &entry.key_span, message);
        }
    }
    let messages = super::get(&tree, "messages").map(Node::items).unwrap_or_default();
    for message in messages {
        for entry in entries(message).iter().filter(|entry| entry.key == "role") {
            if let Some(role) = entry.node.text().filter(|role| ["system", "developer"].contains(role)) {
                super::lose_role(role, &entry.node.span, notes);
            }
        }
    }
}
