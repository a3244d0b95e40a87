//! Conversion of rendered pieces into messages.

use std::{collections::BTreeMap, mem, sync::Arc};

use super::{
    checked::{Prompt, within},
    render::{ContentName, Part, RenderContext},
};
use crate::{
    argument::RawArguments,
    content::{
        Annotations, ContentBlock, EmbeddedResource, Icon, Media, Message, MimeType, ResourceContents, ResourceLink,
        Role, Text,
    },
    definition::{Budget, LibraryFile},
    render_error::RenderError,
    resource::Resource,
    template::{Attach, Call, Directive, Link, Piece, Remaining},
    uri_template::{is_uri, label_fault},
    value::Bindings,
};

/// Creates messages: text around a block becomes messages of the same role, in order, and blank text is dropped.
pub(super) fn assemble(
    prompt: &Prompt,
    bindings: &Bindings,
    context: RenderContext<'_>,
) -> Result<Vec<Part>, RenderError> {
    let budget = &context.policy.budget;
    let mut assembly = Assembly {
        attachments: &prompt.uses().attachments,
        context,
        ledger: Ledger { budget, attached: 0, linked: 0, left: context.remaining() },
        role: Role::User,
        annotations: Annotations::default(),
        parts: Vec::new(),
    };
    assembly.prompt(prompt, bindings)?;
    Ok(assembly.parts)
}

struct Assembly<'a> {
    attachments: &'a BTreeMap<String, Arc<LibraryFile>>,
    context: RenderContext<'a>,
    ledger: Ledger<'a>,
    role: Role,
    /// The annotations of `role(…)` for the texts of its message.
    annotations: Annotations,
    parts: Vec<Part>,
}

impl<'a> Assembly<'a> {
    fn prompt(&mut self, prompt: &'a Prompt, bindings: &Bindings) -> Result<(), RenderError> {
        for piece in prompt.pieces(bindings, &mut self.ledger.left)? {
            match piece {
                Piece::Text(text) => self.text(text),
                Piece::Directive(Directive::Role { role, annotations }) => {
                    self.role = role;
                    self.annotations = annotations;
                }
                Piece::Directive(Directive::Attach(attach)) => self.attach(attach)?,
                Piece::Directive(Directive::Link(link)) => self.link(link)?,
                Piece::Directive(Directive::Prompt(call)) => self.add_prompt(prompt, &call)?,
            }
            within(self.parts.len(), self.ledger.budget.messages, "messages")?;
        }
        Ok(())
    }

    /// Adds the messages of another prompt. It begins with the role `user`; afterwards the previous role is restored.
    fn add_prompt(&mut self, around: &'a Prompt, call: &Call) -> Result<(), RenderError> {
        let Some(prompt) = around.uses().prompts.get(&call.name) else {
            return Err(RenderError::Failed(format!("the prompt `{}` was not found by the check", call.name)));
        };
        let raw = RawArguments::from(&call.arguments);
        let bindings = prompt.bind(&raw, self.context.policy.value_bytes).map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            RenderError::Rejected(format!(
                "invalid arguments of the called prompt {}: {}",
                call.name,
                problems.join("; ")
            ))
        })?;
        let attachments = mem::replace(&mut self.attachments, &prompt.uses().attachments);
        let (role, annotations) = (mem::replace(&mut self.role, Role::User), mem::take(&mut self.annotations));
        self.prompt(prompt, &bindings)?;
        (self.attachments, self.role, self.annotations) = (attachments, role, annotations);
        Ok(())
    }

    fn push(&mut self, content: ContentBlock) {
        self.parts.push(Part::Message(Message { role: self.role, content }));
    }

    fn text(&mut self, mut text: String) {
        let content = trimmed(&text);
        if content.is_empty() {
            return;
        }
        // In place, because the text may be long.
        let end = text.trim_end().len();
        let start = end - content.len();
        text.truncate(end);
        text.drain(..start);
        self.push(text_block(text, &self.annotations));
    }

    /// Returns a file that the template names literally, or one at a computed path, if it may be read. A caller's value
    /// may be part of a computed path, so such a path only reaches files that are served anyway: nothing below a `_`, and
    /// nothing that no resource or prompt refers to.
    fn file(&self, path: &str) -> Option<&Arc<LibraryFile>> {
        let RenderContext { files, references, .. } = self.context;
        let computed = || files.by_path.get(path).filter(|file| files.is_referred_to(file, references));
        self.attachments.get(path).or_else(computed).filter(|_| self.context.may_read(ContentName::Path(path)))
    }

    /// Returns the error for a path without a file. It does not name the path to callers that may not read everything:
    /// the template, and not the caller, may have chosen it.
    fn missing(&self, path: &str) -> RenderError {
        if self.context.permission.is_some() {
            return RenderError::Rejected("an attachment was not found for these arguments".to_owned());
        }
        let shown = shortened(path);
        if let Some(reason) = self.context.files.left_out.get(path) {
            return RenderError::Rejected(format!("the library leaves out the attachment `{shown}`: {reason}"));
        }
        let mut message = format!("attachment `{shown}` not found for these arguments");
        // The rule, whether or not there is such a file: a caller may have chosen the path.
        if path.split('/').any(|part| part.starts_with('_')) {
            message.push_str(": a computed path reaches no file below a name with a leading `_`");
        }
        RenderError::Rejected(message)
    }

    fn attach(&mut self, attach: Attach) -> Result<(), RenderError> {
        let mime_type = mime_type(attach.mime.as_deref())?;
        let label = attach.uri.map(label).transpose()?;
        let Some(file) = self.file(&attach.target).cloned() else {
            if !is_uri(&attach.target) {
                return Err(self.missing(&attach.target));
            }
            self.parts.push(Part::Resource {
                role: self.role,
                uri: attach.target,
                shown_as: label,
                mime_type,
                annotations: attach.annotations,
            });
            return Ok(());
        };
        self.ledger.attached = self.ledger.attached.saturating_add(file.body.len());
        within(self.ledger.attached, self.ledger.budget.attachment_bytes, "bytes of attachments")?;
        let annotations = Annotations { last_modified: file.modified, ..attach.annotations };
        let block = match label {
            // With a URI of its own it is an embedded resource, whatever its type.
            Some(uri) => {
                let contents = file.contents(uri);
                let mime_type = mime_type.unwrap_or_else(|| contents.mime_type.clone());
                let contents = ResourceContents { mime_type, ..contents };
                ContentBlock::Resource(EmbeddedResource { contents, annotations })
            }
            None => file_block(&file, self.context.files.uri(&file), mime_type, annotations),
        };
        self.push(block);
        Ok(())
    }

    fn link(&mut self, link: Link) -> Result<(), RenderError> {
        let author_type = mime_type(link.mime.as_deref())?;
        // A hidden file has no URI that a client could read.
        let is_linkable =
            |file: &&Arc<LibraryFile>| file.is_served() || self.context.files.declared.contains_key(&file.path);
        let mut block = match self.file(&link.target).filter(is_linkable).cloned() {
            Some(file) => self.link_to_file(&file),
            None if is_uri(&link.target) => self.link_to_uri(&link.target)?,
            None => return Err(self.missing(&link.target)),
        };
        block.mime_type = author_type.or(block.mime_type);
        block.name = link.name.unwrap_or(block.name);
        block.title = link.title.or(block.title);
        block.description = link.description.or(block.description);
        block.annotations.audience = link.annotations.audience;
        block.annotations.priority = link.annotations.priority;
        let label_bytes = [Some(&block.name), block.title.as_ref(), block.description.as_ref()];
        let label_bytes =
            label_bytes.into_iter().flatten().map(String::len).sum::<usize>().saturating_add(block.uri.len());
        self.ledger.linked = self.ledger.linked.saturating_add(label_bytes);
        within(self.ledger.linked, self.ledger.budget.output_bytes, "bytes of text")?;
        self.push(ContentBlock::Link(Box::new(block)));
        Ok(())
    }

    fn link_to_file(&self, file: &LibraryFile) -> ResourceLink {
        let uri = self.context.files.uri(file);
        let target = Some(Arc::new(file.contents(Arc::clone(&uri))));
        let declared = self.context.resources.find_declared(&uri);
        ResourceLink {
            name: declared.map_or_else(|| last_part(&file.path).to_owned(), |resource| resource.name().to_owned()),
            title: declared.and_then(|resource| resource.title().map(str::to_owned)),
            description: declared.and_then(|resource| resource.description().map(str::to_owned)),
            mime_type: Some(file.mime_type.clone()),
            size: Some(file.body.len() as u64),
            icons: declared.map_or_else(Vec::new, |resource| self.icons(resource)),
            annotations: Annotations { last_modified: file.modified, ..Annotations::default() },
            target,
            uri,
        }
    }

    /// Returns the icons of a resource, without those of files that the caller may not read.
    fn icons(&self, resource: &Resource) -> Vec<Icon> {
        let may_read = |path: &str| self.context.may_read(ContentName::Path(path));
        let icons = resource.icons().iter().filter(|icon| icon.file.as_deref().is_none_or(may_read));
        icons.cloned().collect()
    }

    fn link_to_uri(&self, uri: &str) -> Result<ResourceLink, RenderError> {
        let uri = label(uri.to_owned())?;
        // Title, type and size of a resource belong to its content.
        let resource = self.context.resources.find(&uri).map(|(resource, _)| resource);
        let resource = resource.filter(|_| self.context.may_read(ContentName::Uri(&uri)));
        Ok(ResourceLink {
            name: resource.map_or_else(|| last_part(&uri).to_owned(), |resource| resource.name().to_owned()),
            title: resource.and_then(|resource| resource.title().map(str::to_owned)),
            description: resource.and_then(|resource| resource.description().map(str::to_owned)),
            mime_type: resource.and_then(|resource| resource.mime_type().cloned()),
            size: resource.and_then(|resource| resource.size()),
            icons: resource.map_or_else(Vec::new, |resource| self.icons(resource)),
            annotations: Annotations::default(),
            target: None,
            uri,
        })
    }
}

/// Removes blank lines at the beginning and white space at the end, which come from the layout of the file. The
/// indentation of the first line stays.
fn trimmed(text: &str) -> &str {
    let text = text.trim_end();
    let blank = text.len() - text.trim_start().len();
    let first_line = text[..blank].rfind('\n').map_or(0, |newline| newline + 1);
    &text[first_line..]
}

/// Validates a URI that is only a label: nothing is fetched from it.
fn label(uri: String) -> Result<Arc<str>, RenderError> {
    match label_fault(&uri) {
        None => Ok(Arc::from(uri)),
        Some(fault) => Err(RenderError::Rejected(fault)),
    }
}

/// Parses a MIME type. Literal types were validated by the check, so an invalid one here comes from a caller's value.
fn mime_type(text: Option<&str>) -> Result<Option<MimeType>, RenderError> {
    let parse = |text| {
        MimeType::parse(text).ok_or_else(|| {
            RenderError::Rejected(format!(
                "invalid MIME type `{}`: expected one such as text/markdown",
                shortened(text)
            ))
        })
    };
    text.map(parse).transpose()
}

fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(64)]
}

fn last_part(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().filter(|part| !part.is_empty()).unwrap_or(path)
}

/// Creates a block from a library file: an image or audio block, or else an embedded resource.
fn file_block(
    file: &LibraryFile,
    uri: Arc<str>,
    mime_type: Option<MimeType>,
    annotations: Annotations,
) -> ContentBlock {
    let mime_type = mime_type.unwrap_or_else(|| file.mime_type.clone());
    let media = |mime_type, annotations| Media { data: file.blob(), mime_type, annotations };
    if mime_type.is_image() {
        ContentBlock::Image(media(mime_type, annotations))
    } else if mime_type.is_audio() {
        ContentBlock::Audio(media(mime_type, annotations))
    } else {
        let contents = ResourceContents { mime_type, ..file.contents(uri) };
        ContentBlock::Resource(EmbeddedResource { contents, annotations })
    }
}

fn text_block(text: String, annotations: &Annotations) -> ContentBlock {
    ContentBlock::Text(Text { text, annotations: annotations.clone() })
}

struct Ledger<'b> {
    budget: &'b Budget,
    attached: usize,
    /// Bytes of the texts in links.
    linked: usize,
    left: Remaining,
}
