//! Dispatch: calls the service operation for each method.
//!
//! Elsewhere: access decisions (`promptshelf-service`), encoding (`to_wire`), and `subscriptions/listen`
//! (`subscription`).

use std::borrow::Cow;

use bytes::Bytes;
use http::HeaderMap;
use promptshelf_core::{Answers, RawArguments, cursor::ListKind};
use promptshelf_service::{Caller, OpenPrompt, Reference, Rejection, RenderedPrompt};
use serde_json::value::RawValue;

use crate::{
    Server,
    conversation::Conversation,
    error_code::{Advice, WireError},
    jsonrpc::{self, Request},
    multi_round::{self, Ask, Elicitation, Outcome, Round},
    profile::Profile,
    request::{CompletionTarget, LOG_LEVELS, Params},
    request_options::ToolMode,
    revision::{Era, Revision},
    to_wire, user_agent,
};

/// The origin of a request: caller, revision and conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) revision: Revision,
    pub(crate) caller: &'a Caller,
    pub(crate) conversation: &'a Conversation,
    pub(crate) asking: Asking<'a>,
    pub(crate) headers: Option<&'a HeaderMap>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Asking<'a> {
    /// None: its questions are ordinary arguments.
    Never,
    /// With an `input_required` result; the client repeats the request with the user's answers. Holds the client's
    /// capabilities, undecoded because only guided prompts need them.
    Rounds(&'a RawValue),
    Requests(&'a dyn Ask, Elicitation),
}

#[expect(clippy::large_enum_variant, reason = "a box would be an allocation for each rendered prompt")]
pub(crate) enum Rendered {
    Prompt(promptshelf_service::Answer<RenderedPrompt>),
    /// The result to send: a question to the user.
    Question(Vec<u8>),
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) body: Bytes,
    pub(crate) status: u16,
    pub(crate) outcome: &'static str,
    pub(crate) advice: Option<Advice>,
}

impl Answer {
    pub(crate) fn ok(body: Bytes) -> Answer {
        Answer { body, status: 200, outcome: "ok", advice: None }
    }

    pub(crate) fn error(id: Option<&jsonrpc::RequestId>, error: &WireError) -> Answer {
        Answer { body: jsonrpc::error(id, error), status: error.status, outcome: error.word(), advice: error.advice() }
    }
}

/// The methods of the modern era. The transports handle `subscriptions/listen` themselves, because its response is a
/// stream.
const MODERN: &[&str] = &[
    "prompts/get",
    "prompts/list",
    "completion/complete",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/directory/read",
    "skills/list",
    "skills/get",
    "server/discover",
    "subscriptions/listen",
];

/// The methods of tools, which both eras have unless they are disabled.
const TOOLS: &[&str] = &["tools/list", "tools/call"];

/// The methods that only the legacy era has.
const LEGACY: &[&str] = &["initialize", "ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"];

pub(crate) fn methods() -> impl Iterator<Item = &'static str> {
    MODERN.iter().chain(TOOLS).chain(LEGACY).copied()
}

impl Server {
    pub(crate) fn has_modern_method(&self, method: &str) -> bool {
        MODERN.contains(&method) || (self.tools() != ToolMode::Disabled && TOOLS.contains(&method))
    }

    pub(crate) async fn answer(&self, context: Context<'_>, request: &Request<'_>) -> Answer {
        let tagged = self.tagged(context, request);
        let context = Context { caller: tagged.as_ref().unwrap_or(context.caller), ..context };
        let mut out = jsonrpc::open_result(&request.id);
        let confirmation = self.service().confirmation();
        let mut result = self.result(context, &request.method, &request.params, &mut out).await;
        if let Some(confirmation) = confirmation
            && !confirmation.await
        {
            result = Err(WireError::rejected(&Rejection::NotRecorded, context.revision));
        }
        match result {
            Ok(()) => Answer::ok(jsonrpc::close(out)),
            Err(error) => Answer::error(Some(&request.id), &self.refused(context.caller, error)),
        }
    }

    /// Counts a refused message, unless the service has admitted or refused it. Returns the error to send: another one
    /// if the caller is over its limit.
    pub(crate) fn refused(&self, caller: &Caller, error: WireError) -> WireError {
        if error.status == 429 {
            return error;
        }
        match self.service().count_refused(caller) {
            Ok(()) => error,
            // The same in every revision.
            Err(rejection) => WireError::rejected(&rejection, Revision::NEWEST_LEGACY),
        }
    }

    /// Returns the caller with its client program, for a request that usage metrics count.
    fn tagged(&self, context: Context<'_>, request: &Request<'_>) -> Option<Caller> {
        let usage = self.service().usage()?;
        if !matches!(&*request.method, "prompts/get" | "completion/complete" | "tools/call") {
            return None;
        }
        let protocol = context.revision.as_str();
        // Over legacy HTTP only `User-Agent` names the program.
        let declared = request.params.client_info().or_else(|| user_agent(context.headers?));
        let tag = match declared {
            Some(declared) => usage.client(declared, protocol),
            None => context
                .conversation
                .client(usage, protocol)
                .unwrap_or_else(|| context.caller.client().clone().with_protocol(protocol)),
        };
        Some(context.caller.clone().with_client(tag))
    }

    async fn result(
        &self,
        context: Context<'_>,
        method: &str,
        params: &Params<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let revision = context.revision;
        match (method, revision.era()) {
            ("prompts/list", _) => self.list(context, ListKind::Prompts, params, out),
            ("prompts/get", _) => self.get(context, params, out).await,
            ("completion/complete", _) => self.complete(context, params, out).await,
            ("resources/list", _) => self.list(context, ListKind::Resources, params, out),
            ("resources/templates/list", _) => self.list(context, ListKind::ResourceTemplates, params, out),
            ("resources/read", _) => self.read(context, params, out).await,
            ("server/discover", Era::Modern) => {
                to_wire::discovery(&self.service().view(context.caller), self.tools(), out);
                Ok(())
            }
            ("resources/directory/read", _) => self.read_folder(context, params, out),
            ("skills/list", _) => self.list_skills(context, params, out),
            ("skills/get", _) => self.get_skill(context, params, out),
            ("tools/list", _) if self.tools() != ToolMode::Disabled => self.list_tools(context, params, out),
            // Boxed: every request would have room for the call of a tool.
            ("tools/call", _) if self.tools() != ToolMode::Disabled => {
                Box::pin(self.call_tool(context, params, out)).await
            }
            ("initialize", Era::Legacy) => self.initialize(context, params, out),
            ("ping", Era::Legacy) => {
                out.extend_from_slice(b"{}");
                Ok(())
            }
            ("resources/subscribe", Era::Legacy) => self.subscribe(context, params, out).await,
            ("resources/unsubscribe", Era::Legacy) => {
                context.conversation.unsubscribe(context.caller, &params.uri()?);
                out.extend_from_slice(b"{}");
                Ok(())
            }
            ("logging/setLevel", Era::Legacy) => {
                let level = params.level()?;
                let known = LOG_LEVELS.iter().position(|known| *known == level).ok_or_else(|| {
                    WireError::invalid_params(format!("`level` must be one of {}", LOG_LEVELS.join(", ")))
                })?;
                context.conversation.set_log_level(context.caller, known);
                out.extend_from_slice(b"{}");
                Ok(())
            }
            (unknown, era) => Err(WireError::method_not_found(unknown, era)),
        }
    }

    fn initialize(&self, context: Context<'_>, params: &Params<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
        let requested = params.protocol_version()?;
        // An unknown revision is answered with the newest legacy one; the client decides whether to continue.
        let known = Revision::parse(&requested).filter(|revision| !revision.is_modern());
        let agreed = known.unwrap_or(Revision::NEWEST_LEGACY);
        context.conversation.agree(agreed);
        if self.service().usage().is_some() && context.caller.is_local() {
            context.conversation.set_client(params.client_info());
        }
        let elicitation = params.capabilities().map(Elicitation::of).unwrap_or_default();
        context.conversation.set_elicitation(elicitation.in_revision(agreed));
        to_wire::initialization(&self.service().view(context.caller), agreed, self.tools(), out);
        Ok(())
    }

    fn list(
        &self,
        context: Context<'_>,
        list: ListKind,
        params: &Params<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let cursor = params.cursor()?;
        let page = self
            .service()
            .list(context.caller, list, cursor.as_deref())
            .map_err(|rejection| WireError::rejected(&rejection, context.revision))?;
        self.pages().write(&page, self.profile(), context.revision, out);
        Ok(())
    }

    async fn get(&self, context: Context<'_>, params: &Params<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
        let name = params.name()?;
        let arguments = params.arguments()?;
        if let Some(profile) = self.profile() {
            return Box::pin(self.get_with(profile, context, &name, params, out)).await;
        }
        let open = self
            .service()
            .open(context.caller, &name)
            .map_err(|rejection| WireError::rejected(&rejection, context.revision))?;
        match self.render(context, open, arguments, params).await? {
            Rendered::Question(question) => out.extend_from_slice(&question),
            Rendered::Prompt(answer) => to_wire::prompt(&answer, context.revision, out),
        }
        Ok(())
    }

    /// Answers `prompts/get` as a profile delivers it.
    async fn get_with(
        &self,
        profile: &Profile,
        context: Context<'_>,
        name: &str,
        params: &Params<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let rejected = |rejection| WireError::rejected(&rejection, context.revision);
        let name = self.own_name(context.caller, name);
        let open = self.service().open(context.caller, &name).map_err(rejected)?;
        let arguments = profile.arguments(open.prompt(), params.arguments()?);
        match self.render(context, open, &arguments, params).await? {
            Rendered::Question(question) => out.extend_from_slice(&question),
            Rendered::Prompt(mut answer) => {
                if profile.inline_resources {
                    answer.resolve_links(to_wire::MAX_EMBEDDED_BYTES).await;
                }
                answer.map_messages(|prompt, messages| profile.messages_of(prompt, messages));
                to_wire::prompt(&answer, context.revision, out);
            }
        }
        Ok(())
    }

    fn own_name<'n>(&self, caller: &Caller, name: &'n str) -> Cow<'n, str> {
        let Some(profile) = self.profile().filter(|profile| profile.short_names) else { return Cow::Borrowed(name) };
        let view = self.service().view(caller);
        let listed = view.prompts().find(|prompt| profile.name(prompt) == name);
        listed.map_or(Cow::Borrowed(name), |prompt| Cow::Owned(prompt.name().to_string()))
    }

    pub(crate) async fn render(
        &self,
        context: Context<'_>,
        open: OpenPrompt,
        arguments: &RawArguments<'_>,
        params: &Params<'_>,
    ) -> Result<Rendered, WireError> {
        let rejected = |rejection| WireError::rejected(&rejection, context.revision);
        let open = if self.request_options().refuses_unknown_arguments {
            open.refuse_unknown(arguments).map_err(rejected)?
        } else {
            open
        };
        // What is boxed: every request would have room for it.
        let (answers, answered);
        let (open, arguments) = if open.prompt().is_guided() {
            let open = match context.asking {
                // Rendering reports every problem at once.
                Asking::Never => open,
                Asking::Rounds(capabilities) => {
                    open.check(arguments, Elicitation::of(capabilities).form).map_err(rejected)?
                }
                Asking::Requests(_, elicitation) => open.check(arguments, elicitation.form).map_err(rejected)?,
            };
            answers = match Box::pin(self.ask(context, &open, arguments, params)).await? {
                Outcome::Ready(answers) => answers,
                Outcome::InputRequired(question) => return Ok(Rendered::Question(question)),
            };
            answered = open.prompt().with_answers(arguments, &answers);
            (open, &answered)
        } else if open.prompt().remote().is_some() {
            return Box::pin(self.render_remote(context, open, arguments, params)).await;
        } else {
            (open, arguments)
        };
        let mut answer = self.service().render(open, arguments).await.map_err(rejected)?;
        if !context.revision.has_links() {
            Box::pin(answer.resolve_links(to_wire::MAX_EMBEDDED_BYTES)).await;
        }
        Ok(Rendered::Prompt(answer))
    }

    /// Asks the user the questions of a guided prompt, in the way that the client supports.
    async fn ask(
        &self,
        context: Context<'_>,
        open: &OpenPrompt,
        arguments: &RawArguments<'_>,
        params: &Params<'_>,
    ) -> Result<Outcome, WireError> {
        match context.asking {
            Asking::Never => {
                multi_round::refuse_pages(open, arguments)?;
                Ok(Outcome::Ready(Answers::default()))
            }
            Asking::Rounds(capabilities) => self.round(context, capabilities, params).take(open, arguments),
            Asking::Requests(ask, elicitation) => {
                multi_round::elicit_all(ask, elicitation, context.revision, open, arguments).await.map(Outcome::Ready)
            }
        }
    }

    pub(crate) fn round<'a>(&'a self, context: Context<'a>, capabilities: &RawValue, params: &Params<'a>) -> Round<'a> {
        Round {
            caller: context.caller,
            key: self.state_key(),
            elicitation: Elicitation::of(capabilities),
            revision: context.revision,
            responses: params.input_responses(),
            state: params.request_state(),
        }
    }

    async fn complete(&self, context: Context<'_>, params: &Params<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
        let request = params.completion()?;
        let known = if context.revision.has_completion_context() {
            params.completion_context()?
        } else {
            promptshelf_core::Variables::new()
        };
        let own_name;
        let reference = match &request.target {
            CompletionTarget::Prompt(name) => {
                own_name = self.own_name(context.caller, name);
                Reference::Prompt(&own_name)
            }
            CompletionTarget::Resource(uri) => Reference::Resource(uri),
        };
        let completions = self
            .service()
            .complete(context.caller, reference, &request.argument, &request.typed, &known)
            .await
            .map_err(|rejection| match rejection {
                // Completion reads no resource: the reference is an invalid parameter in every revision.
                Rejection::UnknownResource { .. } => WireError::invalid_params(rejection.to_string()),
                other => WireError::rejected(&other, context.revision),
            })?;
        to_wire::completions(&completions, context.revision, out);
        Ok(())
    }

    async fn read(&self, context: Context<'_>, params: &Params<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
        let uri = params.uri()?;
        let contents = self
            .service()
            .read(context.caller, &uri)
            .await
            .map_err(|rejection| WireError::rejected(&rejection, context.revision))?;
        to_wire::resource_contents(&contents, context.revision, out);
        Ok(())
    }

    async fn subscribe(&self, context: Context<'_>, params: &Params<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
        let uri = params.uri()?;
        let rejected = |rejection| WireError::rejected(&rejection, context.revision);
        let view = self.service().follow(context.caller, &uri).map_err(rejected)?;
        let Some(followed) = self.followed().follow(&view, &uri) else {
            return Err(WireError::invalid_params(
                "This resource cannot be subscribed to: its URI is too long, or the server's limit of subscriptions is reached",
            ));
        };
        // Later changes are compared with the present content.
        followed.changed(self.service()).await;
        context.conversation.subscribe(context.caller, followed)?;
        out.extend_from_slice(b"{}");
        Ok(())
    }
}
