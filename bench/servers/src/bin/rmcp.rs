//! The official Rust SDK in its fastest configuration: without sessions, JSON responses, prepared results.

use std::{collections::HashMap, sync::Arc};

use anyhow::Result;
use bench_servers::{Invocation, LISTED_ARGUMENTS, listed_description, listed_name, words};
use nucleo_matcher::{
    Config, Matcher,
    pattern::{AtomKind, CaseMatching, Normalization, Pattern},
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptRequestParams, GetPromptResponse,
        GetPromptResult, ListPromptsResult, PaginatedRequestParams, Prompt, PromptArgument, PromptMessage, Role,
        ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};

#[derive(Clone)]
struct Shelf(Arc<Inner>);

struct Inner {
    invocation: Invocation,
    prompts: Vec<Prompt>,
    values: HashMap<&'static str, Vec<String>>,
}

impl Shelf {
    fn new(invocation: Invocation) -> Result<Shelf> {
        let arguments: Vec<_> = LISTED_ARGUMENTS
            .iter()
            .map(|(name, description, required)| {
                PromptArgument::new(*name).with_description(*description).with_required(*required)
            })
            .collect();
        let prompts = (0..invocation.prompts)
            .map(|at| Prompt::new(listed_name(at), Some(listed_description(at)), Some(arguments.clone())))
            .collect();
        let values = HashMap::from([("few", invocation.values("few")?), ("many", invocation.values("many")?)]);
        Ok(Shelf(Arc::new(Inner { prompts, values, invocation })))
    }
}

fn wrong() -> ErrorData {
    ErrorData::invalid_params("unknown", None)
}

impl ServerHandler for Shelf {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_prompts().enable_completions().build())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let range = self.0.invocation.page(request.and_then(|request| request.cursor).as_deref());
        let mut page = ListPromptsResult::with_all_items(self.0.prompts[range.clone()].to_vec());
        page.next_cursor = (range.end < self.0.invocation.prompts).then(|| range.end.to_string());
        Ok(page)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let given =
            |name: &str| request.arguments.as_ref().and_then(|given| given.get(name)?.as_str()).ok_or_else(wrong);
        let text = |text: String| PromptMessage::new_text(Role::User, text);
        let messages = match request.name.as_str() {
            "one" => vec![text([words::ONE_BEFORE, given("change")?, words::ONE_AFTER].concat())],
            _ => return Err(wrong()),
        };
        Ok(GetPromptResult::new(messages).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values = self.0.values.get(request.argument.name.as_str()).ok_or_else(wrong)?;
        let typed = &request.argument.value;
        let pattern = Pattern::new(typed, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy);
        let mut found = pattern.match_list(values, &mut Matcher::new(Config::DEFAULT));
        let total = u32::try_from(found.len()).map_err(|_| wrong())?;
        found.truncate(100);
        let best: Vec<String> = found.into_iter().map(|(value, _)| value.clone()).collect();
        let more = total > 100;
        let info = CompletionInfo::with_pagination(best, Some(total), more).map_err(|_| wrong())?;
        Ok(CompleteResult::new(info))
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let shelf = Shelf::new(Invocation::read()?)?;
    let port = shelf.0.invocation.port;
    if port == 0 {
        shelf.serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    }
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(None);
    let service =
        StreamableHttpService::new(move || Ok(shelf.clone()), Arc::new(NeverSessionManager::default()), config);
    let routes = axum::Router::new().route_service("/mcp", service);
    let listener =
        axum::serve::ListenerExt::tap_io(tokio::net::TcpListener::bind(("127.0.0.1", port)).await?, |stream| {
            // As in the other servers; the call fails on a closed socket.
            stream.set_nodelay(true).ok();
        });
    Ok(axum::serve(listener, routes).await?)
}
