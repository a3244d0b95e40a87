//! One `prompts/get` request, whose answer can contain roles and kinds of content that this client does not know.
//!
//! The SDK discards an answer with one unknown part as a whole. Here only that part is replaced, by a text that names
//! it.

use rmcp::{
    ServiceError,
    model::{
        CancelledNotificationParam, ClientRequest, GetPromptRequest, GetPromptRequestParams, GetPromptResult,
        InputRequiredResult, PromptMessage, RequestId, ServerResult,
    },
    service::{Peer, PeerRequestOptions, RoleClient},
};
use serde_json::Value;

use crate::{
    content::{ContentBlock, Message, Role},
    model::PromptResult,
    sdk_error::complete,
};

const MAX_NAME: usize = 64;
const KNOWN_TYPES: [&str; 5] = ["text", "image", "audio", "resource", "resource_link"];

pub(crate) enum PromptAnswer {
    Complete(PromptResult),
    InputRequired(InputRequiredResult),
}

/// Sends the request and waits for its answer. The request is cancelled if the future is dropped.
pub(crate) async fn get_prompt(
    peer: &Peer<RoleClient>,
    params: GetPromptRequestParams,
) -> Result<PromptAnswer, ServiceError> {
    match answer(peer, ClientRequest::GetPromptRequest(GetPromptRequest::new(params))).await? {
        ServerResult::GetPromptResult(result) => {
            let result: GetPromptResult = complete(result, |result| result.result_type.as_ref())?;
            let raw = serde_json::to_value(&result).unwrap_or_default();
            let messages = result.messages.into_iter().map(Message::from_wire).collect();
            Ok(PromptAnswer::Complete(PromptResult { description: result.description, messages, raw }))
        }
        ServerResult::InputRequiredResult(required) => Ok(PromptAnswer::InputRequired(required)),
        ServerResult::CustomResult(result) => {
            lossy(result.0).map(PromptAnswer::Complete).ok_or(ServiceError::UnexpectedResponse)
        }
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

/// Sends a request and waits for its answer. The request is cancelled if the future is dropped.
pub(crate) async fn answer(peer: &Peer<RoleClient>, request: ClientRequest) -> Result<ServerResult, ServiceError> {
    let handle = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
    let mut guard = CancelOnDrop { peer: peer.clone(), id: Some(handle.id.clone()) };
    let answer = handle.await_response().await;
    guard.id = None;
    answer
}

/// Reads a result that the SDK does not understand. `None` if it is not one of a prompt.
fn lossy(raw: Value) -> Option<PromptResult> {
    if raw.get("resultType").is_some_and(|kind| kind != "complete") {
        return None;
    }
    let messages = raw.get("messages")?.as_array()?.iter().map(lossy_message).collect();
    let description = raw.get("description").and_then(Value::as_str).map(str::to_owned);
    Some(PromptResult { description, messages, raw })
}

fn lossy_message(raw: &Value) -> Message {
    let read = |raw: &Value| serde_json::from_value::<PromptMessage>(raw.clone()).ok().map(Message::from_wire);
    if let Some(message) = read(raw) {
        return message;
    }
    // Malformed annotations must not cost the content.
    let mut bare = raw.clone();
    if let Some(content) = bare.get_mut("content").and_then(Value::as_object_mut) {
        content.remove("annotations");
        content.remove("_meta");
    }
    if let Some(message) = read(&bare) {
        return message;
    }
    let role = match raw["role"].as_str() {
        Some("assistant") => Role::Assistant,
        _ => Role::User,
    };
    Message { role, content: ContentBlock::text(format!("[{}]", problem(raw))) }
}

fn problem(raw: &Value) -> String {
    let short = |name: &str| name.chars().take(MAX_NAME).collect::<String>();
    match (raw["role"].as_str(), raw["content"]["type"].as_str()) {
        (Some(role), _) if !["user", "assistant"].contains(&role) => {
            format!("a message with the unknown role \"{}\"", short(role))
        }
        (_, Some(kind)) if !KNOWN_TYPES.contains(&kind) => format!("content of the unknown type \"{}\"", short(kind)),
        (_, Some(kind)) => format!("content of the type \"{kind}\" that does not follow the protocol"),
        (_, None) => "a message that does not follow the protocol".to_owned(),
    }
}

struct CancelOnDrop {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = Some("the caller no longer waits for the answer".to_owned());
            // A closed connection has nothing to cancel.
            peer.notify_cancelled(CancelledNotificationParam::new(Some(id), reason)).await.ok();
        });
    }
}
