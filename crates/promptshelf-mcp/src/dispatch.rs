//! A method's name becomes a question to the service. No decisions here.

use bytes::Bytes;
use promptshelf_core::{Answers, RawArguments, cursor::ListKind};
use promptshelf_service::{Caller, OpenPrompt, Reference, Rejection};
use serde_json::value::RawValue;

use crate::{
    Server,
    conversation::Conversation,
    error_code::{Advice, WireError},
    jsonrpc::{self, Request},
    multi_round::{self, Ask, Elicitation, Outcome, Round},
    request::{CompletionTarget, LOG_LEVELS, Params},
    revision::{Era, Revision},
    to_wire,
};

/// Who asks, in which revision, and in which conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) revision: Revision,
    pub(crate) caller: &'a Caller,
    pub(crate) conversation: &'a Conversation,
    pub(crate) asking: Asking<'a>,
}

/// How a prompt can ask back.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asking<'a> {
    /// It cannot: what it would ask for are arguments like any other.
    Never,
    /// By its answer; the client comes back with what the person said. Holds the
    /// client's capabilities, which only guided prompts have to look into.
    Rounds(&'a RawValue),
    /// By requests of this server's own over the same pipe.
    Requests(&'a dyn Ask, Elicitation),
}

/// An answer, and the HTTP status that it travels with.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) body: Bytes,
    pub(crate) status: u16,
    /// What became of the request, as a word of a closed set.
    pub(crate) outcome: &'static str,
    /// What its headers say.
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

/// The methods of the modern era. `subscriptions/listen` is the transports'
/// own: its answer is a stream.
const MODERN: &[&str] = &[
    "prompts/get",
    "prompts/list",
    "completion/complete",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "server/discover",
    "subscriptions/listen",
];

/// The methods that only the legacy era has.
const LEGACY: &[&str] = &["initialize", "ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"];

/// Whether a method of the modern era exists.
pub(crate) fn is_modern_method(method: &str) -> bool {
    MODERN.contains(&method)
}

/// Every method there is.
pub(crate) fn methods() -> impl Iterator<Item = &'static str> {
    MODERN.iter().chain(LEGACY).copied()
}

impl Server {
    /// Answers a request.
    pub(crate) async fn answer(&self, context: Context<'_>, request: &Request<'_>) -> Answer {
        let mut out = jsonrpc::open_result(&request.id);
        match self.result(context, &request.method, &request.params, &mut out).await {
            Ok(()) => Answer::ok(jsonrpc::close(out)),
            Err(error) => Answer::error(Some(&request.id), &error),
        }
    }

    /// Writes a request's result.
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
            ("completion/complete", _) => self.complete(context, params, out),
            ("resources/list", _) => self.list(context, ListKind::Resources, params, out),
            ("resources/templates/list", _) => self.list(context, ListKind::ResourceTemplates, params, out),
            ("resources/read", _) => self.read(context, params, out).await,
            ("server/discover", Era::Modern) => {
                to_wire::discovery(&self.service().view(context.caller), out);
                Ok(())
            }
            ("initialize", Era::Legacy) => self.initialize(context, params, out),
            ("ping", Era::Legacy) => {
                out.extend_from_slice(b"{}");
                Ok(())
            }
            ("resources/subscribe", Era::Legacy) => self.subscribe(context, params, out).await,
            ("resources/unsubscribe", Era::Legacy) => {
                context.conversation.unsubscribe(&params.uri()?);
                out.extend_from_slice(b"{}");
                Ok(())
            }
            ("logging/setLevel", Era::Legacy) => {
                let level = params.level()?;
                let known = LOG_LEVELS.iter().position(|known| *known == level).ok_or_else(|| {
                    WireError::invalid_params(format!("`level` has to be one of {}", LOG_LEVELS.join(", ")))
                })?;
                context.conversation.set_log_level(known);
                out.extend_from_slice(b"{}");
                Ok(())
            }
            (unknown, era) => Err(WireError::method_not_found(unknown, era)),
        }
    }

    fn initialize(&self, context: Context<'_>, params: &Params<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
        let requested = params.protocol_version()?;
        // Another revision is answered with the newest that has a handshake;
        // whether that will do is for the client to say.
        let known = Revision::parse(&requested).filter(|revision| !revision.is_modern());
        let agreed = known.unwrap_or(Revision::NEWEST_LEGACY);
        context.conversation.agree(agreed);
        context.conversation.set_elicitation(params.capabilities().map(Elicitation::of).unwrap_or_default());
        to_wire::initialization(&self.service().view(context.caller), agreed, out);
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
        self.pages().write(&page, context.revision, out);
        Ok(())
    }

    async fn get(&self, context: Context<'_>, params: &Params<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
        let name = params.name()?;
        let given = params.arguments()?;
        let rejected = |rejection| WireError::rejected(&rejection, context.revision);
        let open = self.service().open(context.caller, &name).map_err(rejected)?;
        let answer = if open.prompt().is_guided() {
            let answers = match self.ask(context, &open, &given, params).await? {
                Outcome::Ready(answers) => answers,
                Outcome::Asked(question) => {
                    out.extend_from_slice(&question);
                    return Ok(());
                }
            };
            let given = open.prompt().with_answers(&given, &answers);
            self.service().render(open, &given).await
        } else {
            self.service().render(open, &given).await
        };
        let mut answer = answer.map_err(rejected)?;
        if !context.revision.has_links() {
            answer.resolve_links(to_wire::MAX_EMBEDDED_BYTES).await;
        }
        to_wire::prompt(&answer, context.revision, out);
        Ok(())
    }

    /// Asks what a guided prompt still has to know, in the way that the client has.
    async fn ask(
        &self,
        context: Context<'_>,
        open: &OpenPrompt,
        given: &RawArguments<'_>,
        params: &Params<'_>,
    ) -> Result<Outcome, WireError> {
        match context.asking {
            Asking::Never => Ok(Outcome::Ready(Answers::default())),
            Asking::Rounds(capabilities) => {
                let round = Round {
                    caller: context.caller,
                    key: self.state_key(),
                    elicitation: Elicitation::of(capabilities),
                    revision: context.revision,
                    responses: params.input_responses(),
                    state: params.request_state(),
                };
                round.take(open, given)
            }
            Asking::Requests(ask, elicitation) => {
                multi_round::converse(ask, elicitation, context.revision, open, given).await.map(Outcome::Ready)
            }
        }
    }

    fn complete(&self, context: Context<'_>, params: &Params<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
        let request = params.completion()?;
        let known = match context.revision.has_completion_context() {
            true => params.completion_context()?,
            false => promptshelf_core::Variables::new(),
        };
        let reference = match &request.target {
            CompletionTarget::Prompt(name) => Reference::Prompt(name),
            CompletionTarget::Resource(uri) => Reference::Resource(uri),
        };
        let completions = self
            .service()
            .complete(context.caller, reference, &request.argument, &request.typed, &known)
            .map_err(|rejection| match rejection {
                // Nobody reads here: what is unknown is the reference, in every revision.
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
                "This resource cannot be followed: its URI is too long, or too many are",
            ));
        };
        // What it holds now is what later changes are told against.
        followed.changed(self.service()).await;
        context.conversation.subscribe(followed)?;
        out.extend_from_slice(b"{}");
        Ok(())
    }
}
