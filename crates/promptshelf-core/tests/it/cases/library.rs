//! Definitions from the blocks of a case.

use std::{collections::BTreeMap, ops::Range, sync::Arc, time::Duration};

use base64::Engine as _;
use promptshelf_core::{
    ArgumentDefinition, ArgumentType, Blob, Body, Choice, CompletionSource, Constraints, Definitions, LibraryFile,
    MimeType, Origin, PromptDefinition, ResourceBody, ResourceContent, ResourceDefinition, SourceText,
    invisible::InvisiblePolicy,
};
use serde_json::Value;

use super::Block;

pub(crate) fn read<'b>(blocks: impl Iterator<Item = &'b Block>) -> Definitions {
    let mut definitions = Definitions::default();
    for block in blocks {
        match &*block.kind {
            "prompt" => definitions.prompts.push(prompt(block).into()),
            "partial" => {
                let text = SourceText::new(&block.subject, block.body.as_str());
                definitions.partials.insert(block.subject.clone(), text);
            }
            "file" => {
                let file = file(block);
                definitions.files.insert(file.path.clone(), Arc::new(file));
            }
            "resource" => definitions.resources.push(resource(block)),
            "limits" => limits(block, &mut definitions),
            _ => {}
        }
    }
    definitions
}

/// The `key: value` lines before `---`, each with its location, and the offset of the text after them.
struct Head<'b> {
    lines: Vec<(&'b str, &'b str, Range<usize>)>,
    rest: Range<usize>,
}

fn head(body: &str) -> Head<'_> {
    let mut lines = Vec::new();
    let mut offset = 0;
    for line in body.split_inclusive('\n') {
        let start = offset;
        offset += line.len();
        if line.trim_end() == "---" {
            break;
        }
        let line = line.trim_end();
        let (key, value) = line.split_once(':').unwrap_or_else(|| panic!("no `key: value`: {line}"));
        let value = value.trim_start();
        lines.push((key, value, start + line.len() - value.len()..start + line.len()));
    }
    Head { lines, rest: offset..body.len() }
}

fn prompt(block: &Block) -> PromptDefinition {
    let Head { lines, rest } = head(&block.body);
    let source = SourceText::new(format!("{}.md", block.subject), block.body.as_str());
    let mut prompt = PromptDefinition::template(&block.subject, "");
    prompt.origin = Origin::new(source);
    prompt.body = Body::Template { range: rest };
    for (key, value, span) in lines {
        let part = match key {
            "argument" => {
                prompt.arguments.push(argument(value));
                format!("arguments.{}", prompt.arguments.len() - 1)
            }
            "name" => {
                prompt.name = value.into();
                key.to_owned()
            }
            "title" => {
                prompt.title = Some(value.into());
                key.to_owned()
            }
            "description" => {
                prompt.description = Some(value.into());
                key.to_owned()
            }
            other => panic!("a prompt has no `{other}`"),
        };
        prompt.origin.spans.insert(part, span);
    }
    prompt
}

fn argument(json: &str) -> ArgumentDefinition {
    let keys: BTreeMap<String, Value> = serde_json::from_str(json).expect("an argument as JSON");
    let (mut argument, mut constraints) = (ArgumentDefinition::default(), Constraints::default());
    for (key, value) in keys {
        match &*key {
            "name" => argument.name = text(&value),
            "title" => argument.title = Some(text(&value)),
            "description" => argument.description = Some(text(&value)),
            "required" => argument.required = value == true,
            "default" => argument.default = Some(text(&value)),
            "examples" => argument.examples = texts(&value),
            "pattern" => constraints.pattern = Some(text(&value)),
            "minLength" => constraints.min_length = Some(number(&value)),
            "maxLength" => constraints.max_length = Some(number(&value)),
            "invisible" => argument.invisible = InvisiblePolicy::parse(&text(&value)),
            "minimum" => constraints.minimum = value.as_f64(),
            "maximum" => constraints.maximum = value.as_f64(),
            "enum" => argument.choices = value.as_array().expect("a list").iter().map(choice).collect(),
            "complete" => argument.completion = Some(completion(&value)),
            "type" => {
                let kind = ArgumentType::ALL.iter().find(|kind| kind.as_str() == text(&value));
                argument.kind = *kind.expect("a type");
            }
            other => panic!("an argument has no `{other}`"),
        }
    }
    argument.constrained(constraints)
}

fn choice(value: &Value) -> Choice {
    match value.get("value") {
        Some(inner) => Choice { value: text(inner), title: value.get("title").map(text) },
        None => Choice { value: text(value), title: None },
    }
}

fn completion(value: &Value) -> CompletionSource {
    let Some(keys) = value.as_object() else {
        return CompletionSource::Values(texts(value));
    };
    let (first, source) = keys.iter().next().expect("a completion source");
    match &**first {
        "file" => CompletionSource::File(text(source)),
        "files" => CompletionSource::Paths(texts(source).into()),
        "resources" => CompletionSource::Resources(text(source)),
        "by" => CompletionSource::By {
            argument: text(source),
            cases: keys.iter().skip(1).map(|(case, values)| (case.clone(), texts(values))).collect(),
        },
        "echo" => CompletionSource::Function(Arc::new(|typed, known| {
            known.iter().map(|(name, value)| format!("{typed} {name}={value}")).collect()
        })),
        other => panic!("no completion comes from `{other}`"),
    }
}

fn file(block: &Block) -> LibraryFile {
    let (path, mime) = block.subject.rsplit_once(' ').unwrap_or((&block.subject, "text/plain"));
    let mime_type = MimeType::parse(mime).expect("a MIME type");
    let body = if mime.starts_with("text/") || mime.ends_with("+xml") || mime.ends_with("/json") {
        ResourceBody::Text(block.body.as_str().into())
    } else {
        let bytes = base64::engine::general_purpose::STANDARD.decode(block.body.trim()).expect("Base64");
        ResourceBody::Blob(Blob::new(bytes))
    };
    let modified = path.contains("dated").then(|| "2026-07-28T09:30:00Z".parse().expect("a time"));
    LibraryFile { path: path.to_owned(), mime_type, body, has_mark: false, modified }
}

fn resource(block: &Block) -> ResourceDefinition {
    let Head { lines, rest } = head(&block.body);
    let content = ResourceContent::Template(block.body[rest.clone()].to_owned());
    let origin = Origin::new(SourceText::new("promptshelf.toml", block.body.as_str()));
    let mut resource = ResourceDefinition::from_source(&block.subject, content, origin);
    resource.origin.spans.insert("text", rest);
    for (key, value, span) in lines {
        let part = match key {
            "variable" => {
                resource.variables.push(argument(value));
                format!("variables.{}", resource.variables.len() - 1)
            }
            _ => key.to_owned(),
        };
        match key {
            "variable" => {}
            "name" => value.clone_into(&mut resource.name),
            "title" => resource.title = Some(value.to_owned()),
            "description" => resource.description = Some(value.to_owned()),
            "mime" => resource.mime_type = MimeType::parse(value),
            "file" => resource.content = ResourceContent::LibraryFile(value.to_owned()),
            "fixed" => resource.content = ResourceContent::Fixed(ResourceBody::Text(value.into())),
            other => panic!("a resource has no `{other}`"),
        }
        resource.origin.spans.insert(part, span);
    }
    resource
}

fn limits(block: &Block, definitions: &mut Definitions) {
    let policy = &mut definitions.policy;
    for (key, value, _) in head(&block.body).lines {
        let number: usize = value.parse().expect("a number");
        match key {
            "fuel" => policy.budget.fuel = number as u64,
            "output-bytes" => policy.budget.output_bytes = number,
            "attachment-bytes" => policy.budget.attachment_bytes = number,
            "messages" => policy.budget.messages = number,
            "include-depth" => policy.budget.include_depth = number,
            "value-bytes" => policy.value_bytes = number,
            "ttl" => policy.ttl = Duration::from_secs(number as u64),
            other => panic!("there is no limit `{other}`"),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().expect("a list").iter().map(text).collect()
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().expect("a number")).expect("a small number")
}
