//! A prompt of a library or server as the text of a file.
//!
//! A server sends rendered messages only. Each argument is therefore requested with a word that cannot occur by chance,
//! and this word becomes the placeholder of the target format.

use std::{
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

use promptshelf_author::{ActivePart, ExportFormat, Loss, clients::NativeFiles, export};
use promptshelf_client::{Arguments, ContentBlock, Message, PromptInfo, ResourceBody, Role};
use promptshelf_core::{ArgumentDefinition, BodyPiece, Definitions, Prompt, PromptDefinition, check};

use crate::{
    connect::Connection,
    exit::{Exit, Failure},
    state::digest,
};

/// The requests for one prompt: with all words, then without those that were rejected.
const MAX_ATTEMPTS: usize = 3;
/// The longest description of a skill, in characters (Agent Skills specification).
const MAX_SKILL_DESCRIPTION: usize = 1024;

pub(super) struct File {
    pub(super) text: String,
    pub(super) losses: Vec<Loss>,
    /// The reasons why the file does not do what the prompt does.
    pub(super) incomplete: Vec<String>,
    pub(super) active: Vec<ActivePart>,
}

pub(super) async fn convert(
    connection: &Connection,
    prompt: &PromptInfo,
    native: &NativeFiles,
) -> Result<File, Failure> {
    let (mut losses, mut incomplete) = (Vec::new(), Vec::new());
    let mut values: Arguments =
        prompt.arguments.iter().enumerate().map(|(index, argument)| (argument.name.clone(), word(index))).collect();
    let mut attempts = 0;
    let result = loop {
        attempts += 1;
        let error = match connection.client.get(&prompt.name, &values).await {
            Ok(result) => break result,
            Err(error) => error,
        };
        let rejected: Vec<String> = connection.problems(&error).into_iter().map(str::to_owned).collect();
        let is_new = rejected.iter().any(|name| values.contains_key(name));
        if !is_new || attempts == MAX_ATTEMPTS {
            let reason = with_names(prompt, connection.rejection(Exit::Failed, &error).message);
            let failure = connection.failure(error);
            return Err(match failure.exit {
                Exit::Unreachable | Exit::TimedOut | Exit::SignIn => failure,
                exit => Failure::new(exit, format!("it cannot be rendered: {reason}")),
            });
        }
        for argument in prompt.arguments.iter().filter(|argument| rejected.contains(&argument.name)) {
            let name = &argument.name;
            if argument.required && attempts == 1 {
                let sample = connection.sample(&prompt.name, name).await;
                let subject = format!("`{name}`: `{sample}`");
                losses.push(Loss::new("arguments that accept certain values only have one of them", subject));
                values.insert(name.clone(), sample);
            } else {
                let subject = format!("`{name}`");
                losses.push(Loss::new("arguments that accept certain values only are left out", subject));
                values.remove(name);
            }
        }
    };
    let pieces = pieces(prompt, &result.messages, &mut incomplete);
    if pieces.iter().any(|piece| matches!(piece, BodyPiece::Text(text) if has_rest(text))) {
        return Err(Failure::new(
            Exit::Failed,
            "an argument is changed by the prompt, so that it cannot be a placeholder",
        ));
    }
    let checked = definition(prompt)?;
    let exported = export(&checked, native.format, Some(pieces));
    losses.extend(exported.losses);
    incomplete.extend(exported.incomplete);
    let chars = exported.text.chars().count();
    if let Some(limit) = native.max_chars.filter(|limit| chars > *limit) {
        losses.push(Loss::new(format!("the client reads {limit} characters"), format!("{chars} characters")));
    }
    let description = prompt.description.as_ref().map_or(0, |description| description.chars().count());
    if native.format == ExportFormat::Skill && description > MAX_SKILL_DESCRIPTION {
        let what = format!("clients read {MAX_SKILL_DESCRIPTION} characters of a description");
        losses.push(Loss::new(what, format!("{description} characters")));
    }
    losses.dedup();
    Ok(File { text: exported.text, losses, incomplete, active: exported.active })
}

/// Replaces the placeholders in a message of the server, which would mean nothing to the reader, by their arguments.
fn with_names(prompt: &PromptInfo, message: String) -> String {
    let arguments = prompt.arguments.iter().enumerate();
    arguments.fold(message, |text, (index, argument)| text.replace(&word(index), &format!("<{}>", argument.name)))
}

/// Makes a checked prompt of an entry in a list. Its text is never used, and must not be empty.
fn definition(prompt: &PromptInfo) -> Result<std::sync::Arc<Prompt>, Failure> {
    let mut definition = PromptDefinition::template(&*prompt.name, "-");
    if let Some(description) = prompt.description.as_deref().or(prompt.title.as_deref()) {
        definition = definition.description(description);
    }
    for argument in &prompt.arguments {
        let mut one = ArgumentDefinition::new(&*argument.name);
        one.required = argument.required;
        one.description = argument.description.as_deref().or(argument.title.as_deref()).map(Into::into);
        definition = definition.argument(one);
    }
    let checked = check(Definitions { prompts: vec![definition.into()], ..Definitions::default() }, None);
    checked.catalog.find(&prompt.name).cloned().ok_or_else(|| {
        let reason = checked.diagnostics.iter().find(|diagnostic| diagnostic.is_error());
        let reason = reason.map_or("its entry is invalid", |reason| &reason.message);
        Failure::new(Exit::Failed, format!("it cannot be converted: {reason}"))
    })
}

/// Converts messages to the parts of a body, with placeholders in place of the words. Blocks without text are lost.
fn pieces(prompt: &PromptInfo, messages: &[Message], incomplete: &mut Vec<String>) -> Vec<BodyPiece> {
    let mut pieces = Vec::new();
    for message in messages {
        pieces.push(BodyPiece::Role(match message.role {
            Role::User => promptshelf_core::Role::User,
            Role::Assistant => promptshelf_core::Role::Assistant,
        }));
        let text = match &message.content {
            ContentBlock::Text(text) => &text.text,
            ContentBlock::Resource(resource) => match &resource.contents.body {
                ResourceBody::Text(text) => text,
                ResourceBody::Blob(_) => {
                    incomplete.push("it has a file that is not text".to_owned());
                    continue;
                }
            },
            ContentBlock::Link(link) => &link.uri,
            other => {
                incomplete.push(format!("it has content of the kind `{}`", other.kind()));
                continue;
            }
        };
        split(prompt, text, &mut pieces);
    }
    pieces
}

/// Splits a text at the words of arguments, in any letter case: a filter may have changed it.
fn split(prompt: &PromptInfo, text: &str, pieces: &mut Vec<BodyPiece>) {
    let lower = text.to_ascii_lowercase();
    let mut start = 0;
    while let Some(at) = lower[start..].find(secret()).map(|at| start + at) {
        let digits = at + secret().len();
        let end = digits + lower[digits..].bytes().take_while(u8::is_ascii_digit).count();
        let argument = text[digits..end].parse().ok().and_then(|index: usize| prompt.arguments.get(index));
        let Some((argument, end)) = argument.filter(|_| lower[end..].starts_with('z')).map(|it| (it, end + 1)) else {
            // Left in the text, where `has_rest` finds it.
            pieces.push(BodyPiece::Text(text[start..end].to_owned()));
            start = end;
            continue;
        };
        pieces.push(BodyPiece::Text(text[start..at].to_owned()));
        pieces.push(BodyPiece::Argument(argument.name.clone()));
        start = end;
    }
    pieces.push(BodyPiece::Text(text[start..].to_owned()));
}

fn has_rest(text: &str) -> bool {
    text.to_ascii_lowercase().contains(&secret()[..secret().len() / 2])
}

/// Returns the word for an argument. Letters and digits pass all filters and encodings unchanged.
fn word(index: usize) -> String {
    format!("{}{index}z", secret())
}

/// The beginning of all words of this process, which a text does not contain by chance. It ends with a letter.
fn secret() -> &'static str {
    static SECRET: OnceLock<String> = OnceLock::new();
    SECRET.get_or_init(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        format!("ps{}x", &digest(&format!("{now} {}", std::process::id()))[..24])
    })
}
