//! One `resources/read` request, whose answer can have contents that this client does not know.
//!
//! The SDK discards an answer with one unknown part as a whole. Then the request is repeated, and only that part is
//! replaced, by a text that names it.

use rmcp::{
    ServiceError,
    model::{
        ClientRequest, InputRequiredResult, ReadResourceRequest, ReadResourceRequestParams, ReadResourceResponse,
        ReadResourceResult, ServerResult,
    },
    service::{Peer, RoleClient},
};
use serde_json::Value;

use crate::{
    content::{ResourceBody, ResourceContents},
    model::ReadResult,
    prompt_request::answer,
    sdk_error::complete,
};

/// The media type of the text in place of unknown contents.
const PLAIN_TEXT: &str = "text/plain";

pub(crate) enum ReadAnswer {
    Complete(ReadResult),
    InputRequired(InputRequiredResult),
}

pub(crate) async fn read_resource(
    peer: &Peer<RoleClient>,
    params: ReadResourceRequestParams,
) -> Result<ReadAnswer, ServiceError> {
    let result = match peer.read_resource_once(params.clone()).await {
        Ok(ReadResourceResponse::Complete(result)) => result,
        Ok(ReadResourceResponse::InputRequired(required)) => return Ok(ReadAnswer::InputRequired(required)),
        Ok(_) => return Err(ServiceError::UnexpectedResponse),
        Err(ServiceError::UnexpectedResponse) => {
            let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
            return match answer(peer, request).await? {
                ServerResult::CustomResult(result) => {
                    lossy(result.0).map(ReadAnswer::Complete).ok_or(ServiceError::UnexpectedResponse)
                }
                _ => Err(ServiceError::UnexpectedResponse),
            };
        }
        Err(error) => return Err(error),
    };
    read_result(result).map(ReadAnswer::Complete)
}

/// Sends the request past the SDK's cache, which keeps contents until they expire.
pub(crate) async fn read_uncached(
    peer: &Peer<RoleClient>,
    params: ReadResourceRequestParams,
) -> Result<ReadResult, ServiceError> {
    match answer(peer, ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))).await? {
        ServerResult::ReadResourceResult(result) => read_result(result),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

fn read_result(result: ReadResourceResult) -> Result<ReadResult, ServiceError> {
    let result = complete(result, |result| result.result_type.as_ref())?;
    let raw = serde_json::to_value(&result).unwrap_or_default();
    let contents = result.contents.into_iter().map(ResourceContents::from_wire).collect();
    Ok(ReadResult { contents, raw })
}

/// Reads a result that the SDK does not understand. `None` if it is not one of a resource.
fn lossy(raw: Value) -> Option<ReadResult> {
    if raw.get("resultType").is_some_and(|kind| kind != "complete") {
        return None;
    }
    let contents = raw.get("contents")?.as_array()?.iter().map(lossy_contents).collect();
    Some(ReadResult { contents, raw })
}

fn lossy_contents(raw: &Value) -> ResourceContents {
    if let Ok(contents) = serde_json::from_value(raw.clone()) {
        return ResourceContents::from_wire(contents);
    }
    ResourceContents {
        uri: raw["uri"].as_str().unwrap_or_default().to_owned(),
        mime_type: PLAIN_TEXT.to_owned(),
        body: ResourceBody::Text("[contents of an unknown type]".to_owned()),
    }
}
