//! A server made with the official Rust SDK and its macros: one prompt for
//! everything that a client of prompts can meet.
//!
//! ```text
//! official-server [--http] [REVISION]
//! ```
//!
//! With a revision it knows no other, as a server that was not touched since.

use std::{borrow::Cow, error::Error, io::Write as _, sync::Arc};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt, elicit_safe,
    handler::server::{prompt::PromptContext, router::prompt::PromptRouter, wrapper::Parameters},
    model::{
        CompleteRequestParams, CompleteResult, CompletionInfo, ElicitRequest, ElicitRequestParams,
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequest, InputRequests, InputRequiredResult,
        ListPromptsResult, PaginatedRequestParams, PromptMessage, ProtocolVersion, ReadResourceRequestParams,
        ReadResourceResponse, ReadResourceResult, ResourceContents, Role, ServerCapabilities, ServerConfig,
    },
    prompt, prompt_router,
    service::{ElicitationError, RequestContext},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// One pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
const NOTE: &str = "Remember the milk.";

#[derive(Deserialize, JsonSchema)]
struct Greeting {
    /// Who is greeted
    name: String,
    /// In which language
    language: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Paint {
    /// Which one it gets
    colour: String,
    /// How many coats
    coats: u8,
}
elicit_safe!(Paint);

#[derive(Clone)]
struct Peer {
    router: PromptRouter<Self>,
    revisions: Cow<'static, [ProtocolVersion]>,
}

#[prompt_router]
impl Peer {
    fn new(revisions: Cow<'static, [ProtocolVersion]>) -> Peer {
        Peer { router: Self::prompt_router(), revisions }
    }

    #[prompt(description = "Greets somebody in a language")]
    async fn greet(&self, Parameters(greeting): Parameters<Greeting>) -> Vec<PromptMessage> {
        let language = greeting.language.as_deref().unwrap_or("en");
        vec![
            PromptMessage::new_text(Role::User, format!("Greet {} in {language}.", greeting.name)),
            PromptMessage::new_text(Role::Assistant, "Gladly."),
        ]
    }

    #[prompt(description = "An image and an embedded resource")]
    async fn media(&self) -> Vec<PromptMessage> {
        let (uri, kind) = ("docs://note".to_owned(), Some("text/plain".to_owned()));
        vec![
            PromptMessage::new_image(Role::User, PNG, "image/png", None, None),
            PromptMessage::new_resource(Role::User, uri, kind, Some(NOTE.to_owned()), None, None, None),
        ]
    }

    #[prompt(description = "Asks for a colour first")]
    async fn asks(&self) -> Vec<PromptMessage> {
        Vec::new()
    }
}

impl Peer {
    /// Asks in the way of the client's era.
    async fn paint(
        &self,
        request: &GetPromptRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let paint = match request.input_responses.as_ref().and_then(|answers| answers.get("paint")) {
            Some(answer) => serde_json::from_value(answer["content"].clone()).ok(),
            None if self.revisions.contains(&ProtocolVersion::V_2026_07_28) => {
                let schema = json!({
                    "type": "object",
                    "properties": {
                        "colour": { "type": "string", "description": "Which one it gets" },
                        "coats": { "type": "integer", "minimum": 1, "maximum": 9 },
                    },
                    "required": ["colour", "coats"],
                });
                let requested_schema = serde_json::from_value(schema)
                    .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                let params = ElicitRequestParams::FormElicitationParams {
                    meta: None,
                    message: "Which colour?".into(),
                    requested_schema,
                };
                let mut questions = InputRequests::new();
                questions.insert("paint".to_owned(), InputRequest::Elicitation(ElicitRequest::new(params)));
                return Ok(InputRequiredResult::new(Some(questions), Some("asked".into())).into());
            }
            None => match context.peer.elicit::<Paint>("Which colour?").await {
                Ok(paint) => paint,
                Err(ElicitationError::UserDeclined | ElicitationError::UserCancelled) => None,
                Err(error) => return Err(ErrorData::internal_error(error.to_string(), None)),
            },
        };
        let said = match paint {
            Some(Paint { colour, coats }) => format!("It is {colour}, {coats} times."),
            None => "It has no colour.".to_owned(),
        };
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, said)]).into())
    }
}

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_prompts().enable_resources().enable_completions();
        ServerConfig::new(capabilities.build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.revisions.clone()
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(self.router.list_all()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name == "asks" {
            return self.paint(&request, &context).await;
        }
        self.router.get_prompt(PromptContext::new(self, request.name, request.arguments, context)).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let known = request.context.as_ref().and_then(|context| context.get_argument("language"));
        let values = match request.argument.name.as_str() {
            "language" => ["de", "en", "fr"].map(str::to_owned).into(),
            _ => vec![format!("friend-{}", known.map_or("of-all", String::as_str))],
        };
        let fitting = values.into_iter().filter(|value| value.starts_with(&request.argument.value)).collect();
        CompletionInfo::new(fitting).map(CompleteResult::new).map_err(|error| ErrorData::internal_error(error, None))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match request.uri.as_str() {
            "docs://note" => Ok(ReadResourceResult::new(vec![ResourceContents::text(NOTE, request.uri)]).into()),
            _ => Err(ErrorData::resource_not_found("there is no such resource", None)),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let over_http = arguments.first().is_some_and(|first| first == "--http");
    if over_http {
        arguments.remove(0);
    }
    let known = ProtocolVersion::KNOWN_VERSIONS;
    let revisions = match arguments.first() {
        Some(only) => Cow::Owned(known.iter().filter(|known| known.as_str() == only).cloned().collect()),
        None => Cow::Borrowed(known),
    };
    let peer = Peer::new(revisions);
    if !over_http {
        peer.serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    }
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(peer.clone()), sessions, StreamableHttpServerConfig::default());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    writeln!(std::io::stderr(), "listening on http://{}/mcp", listener.local_addr()?)?;
    Ok(axum::serve(listener, axum::Router::new().route_service("/mcp", service)).await?)
}
