//! Encoding of tools and of the results of their calls.

use promptshelf_core::{ContentBlock, Text};
use promptshelf_service::{Answer, RenderedPrompt, View};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Modern, PromptMeta, ResultMeta, WireDeprecation, WireProvenance, block, text};
use crate::{
    json::write,
    revision::Revision,
    role_mark::{mark, marked},
};

/// Writes the result of `tools/list`.
pub(crate) fn list(
    view: &View,
    mut tools: Vec<Value>,
    next_cursor: Option<&str>,
    revision: Revision,
    out: &mut Vec<u8>,
) {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Result<'a> {
        tools: Vec<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        next_cursor: Option<&'a str>,
        #[serde(flatten)]
        modern: Modern<'a>,
    }
    for tool in tools.iter_mut().filter_map(Value::as_object_mut) {
        if !revision.has_titles() {
            tool.remove("title");
        }
        if revision.has_tool_annotations() {
            let hints = json!({ "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false });
            tool.insert("annotations".to_owned(), hints);
        }
    }
    write(out, &Result { tools, next_cursor, modern: Modern::cacheable(view, revision) });
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    content: [Value; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
    #[serde(flatten)]
    modern: Modern<'a>,
}

/// Writes the result of a search, also as text for clients without structured results.
pub(crate) fn found(view: &View, found: &Value, revision: Revision, out: &mut Vec<u8>) {
    let structured_content = revision.has_structured_results().then_some(found);
    let content = [json!({ "type": "text", "text": found.to_string() })];
    write(out, &CallResult { content, structured_content, is_error: false, modern: Modern::complete(view, revision) });
}

/// Writes the result of a call that failed for a reason that the model can act on.
pub(crate) fn failed(view: &View, message: &str, revision: Revision, out: &mut Vec<u8>) {
    let content = [json!({ "type": "text", "text": message })];
    let modern = Modern::complete(view, revision);
    write(out, &CallResult { content, structured_content: None, is_error: true, modern });
}

/// Writes a rendered prompt: a block for each message, and the messages as structured content.
pub(crate) fn rendered(answer: &Answer<RenderedPrompt>, revision: Revision, out: &mut Vec<u8>) {
    let RenderedPrompt { prompt, messages, .. } = answer.value();
    out.extend_from_slice(br#"{"content":["#);
    let is_marked = messages.iter().any(|message| Some(message.role) != messages.first().map(|first| first.role));
    let mut is_first = true;
    let mut add = |block: &ContentBlock, out: &mut Vec<u8>| {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        block::write_block(block, revision, out);
    };
    for message in messages {
        match &message.content {
            ContentBlock::Text(text) if is_marked => {
                let marked = Text { text: marked(message.role, &text.text), annotations: text.annotations.clone() };
                add(&ContentBlock::Text(marked), out);
            }
            block if is_marked => {
                add(&ContentBlock::text(mark(message.role)), out);
                add(block, out);
            }
            block => add(block, out),
        }
    }
    out.push(b']');
    if revision.has_structured_results() {
        out.extend_from_slice(br#","structuredContent":{"prompt":"#);
        text::write(out, prompt.name().as_str());
        out.extend_from_slice(br#","messages":["#);
        for (at, message) in messages.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            block::write_message(message, revision, out);
        }
        out.extend_from_slice(b"]}");
    }
    if revision.is_modern() {
        out.extend_from_slice(br#","resultType":"complete""#);
    }
    let server = revision.is_modern().then(|| ResultMeta::of(answer.view()));
    let provenance = WireProvenance::of(prompt, answer.view().catalog());
    let deprecated = WireDeprecation::of(prompt, answer.view());
    if server.is_some() || deprecated.is_some() || provenance.is_some() {
        out.extend_from_slice(br#","_meta":"#);
        write(out, &PromptMeta { server, deprecated, provenance });
    }
    out.push(b'}');
}
