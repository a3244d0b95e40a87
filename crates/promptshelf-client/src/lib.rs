//! A client of any MCP server's prompts: our own libraries, and every other
//! server in the world.
//!
//! ```no_run
//! use futures_util::TryStreamExt;
//! use promptshelf_client::{Client, Target};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), promptshelf_client::ClientError> {
//!     let client = Client::connect(&Target::folder("prompts")).await?;
//!     let mut prompts = std::pin::pin!(client.prompts());
//!     while let Some(prompt) = prompts.try_next().await? {
//!         println!("{}: {}", prompt.name, prompt.description.unwrap_or_default());
//!     }
//!     let values = [("code".to_owned(), "fn main() {}".to_owned())].into();
//!     for message in client.get("code_review", &values).await?.messages {
//!         println!("{}: {:?}", message.role.as_str(), message.content);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! The wire is the official SDK's (`rmcp`); here is what a client of prompts
//! needs on top: which era a server speaks is found out by asking it, pages are
//! followed and bounded, questions in between are put to an [`ElicitationHandler`], and
//! nothing waits for ever. How any of this looks to a person is not here, and
//! neither is text made safe for a terminal: it is handed over as it came.

mod configured;
mod conversation;
mod error;
mod from_wire;
mod lists;
mod offered;
mod question;
mod rounds;
mod sign_in;
mod target;
mod transport;
mod unasked;

use std::{sync::Arc, time::Duration};

use rmcp::{
    ServiceError,
    model::{ArgumentInfo, CompleteRequestParams, CompletionContext, Reference, SubscriptionFilter},
    service::{Peer, RoleClient, RunningService},
};
use tokio::{sync::watch, task::JoinHandle};

pub use self::{
    configured::Configured,
    error::ClientError,
    offered::{Completion, OfferedArgument, OfferedPrompt, OfferedResource, PromptResult, Read},
    question::{Answer, Answers, Asked, Choice, ElicitationHandler, Field, FieldKind, Question},
    sign_in::{BrowserOpener, CredentialStore, SignIn, SignInPage},
    target::Target,
};
use self::{
    conversation::Conversation,
    error::Challenge,
    sign_in::Gate,
    transport::{Connected, Failed, Lease, Plan},
};
use promptshelf_core::Variables;

/// How long a server may take for one answer when nobody says otherwise.
const USUAL_TIMEOUT: Duration = Duration::from_secs(60);

/// How often somebody may have to sign in for one request: to be known at all,
/// for scopes that were missing, and because something has changed meanwhile.
const MOST_SIGN_INS: usize = 3;

/// What completion is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Of<'a> {
    /// An argument of the prompt with this name.
    Prompt(&'a str),
    /// A variable of this resource template.
    Resource(&'a str),
}

/// Says how to connect.
#[derive(Clone)]
#[must_use = "nothing is connected before `connect`"]
pub struct Connector {
    target: Target,
    timeout: Duration,
    answerer: Option<Arc<dyn ElicitationHandler>>,
    sign_in: Option<SignIn>,
    is_older: bool,
}

impl Connector {
    /// How long the connection, and then each answer, may take. The time that
    /// an [`ElicitationHandler`] takes is not counted.
    pub fn timeout(mut self, timeout: Duration) -> Connector {
        self.timeout = timeout;
        self
    }

    /// Who answers what the server asks in between. Without one the server is
    /// told that it cannot ask.
    pub fn answerer(mut self, answerer: Arc<dyn ElicitationHandler>) -> Connector {
        self.answerer = Some(answerer);
        self
    }

    /// How to sign in where a server at an address wants it. Without it, and
    /// where the target brings a token of its own, such a server is an error.
    pub fn sign_in(mut self, sign_in: SignIn) -> Connector {
        self.sign_in = Some(sign_in);
        self
    }

    /// Whether the server was found to be of the older era before
    /// ([`Client::is_older`]), so that it is not asked for the newer one first.
    /// When it has become newer meanwhile, that is found out.
    pub fn known_older(mut self, is_older: bool) -> Connector {
        self.is_older = is_older;
        self
    }

    /// Connects: starts the command, opens the folder, or asks the address.
    ///
    /// # Errors
    ///
    /// When there is no server, or none that speaks a revision we know.
    pub async fn connect(self) -> Result<Client, ClientError> {
        let Connector { target, timeout, answerer, sign_in, is_older } = self;
        let conversation = Conversation::new(target.to_string(), answerer);
        let gate = match (&sign_in, target.sign_in_address()) {
            (Some(sign_in), Some(address)) => Some(within(timeout, Gate::of(address, sign_in)).await??),
            _ => None,
        };
        let plan = Plan { target: &target, conversation: &conversation, gate: gate.as_ref(), is_older };
        let mut sign_ins = 0;
        let Connected { service, lease } = loop {
            let times = gate.as_ref().map_or(0, Gate::times);
            match within(timeout, transport::open(&plan)).await? {
                Ok(connected) => break connected,
                Err(Failed { error, challenge, .. }) => match (&gate, challenge) {
                    (Some(gate), Some(challenge)) if sign_ins < MOST_SIGN_INS => gate.pass(times, &challenge).await?,
                    _ => return Err(error),
                },
            }
            sign_ins += 1;
        };
        let (service, gate) = (Arc::new(service), gate.map(Arc::new));
        Ok(Client { service, conversation, timeout, target, lease: Arc::new(lease), gate })
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("target", &self.target).finish_non_exhaustive()
    }
}

async fn within<T>(timeout: Duration, done: impl Future<Output = T>) -> Result<T, ClientError> {
    tokio::time::timeout(timeout, done).await.map_err(|_| ClientError::TimedOut { after: timeout })
}

/// A connection to one server. Clones share it; it ends with the last of them.
#[derive(Clone)]
pub struct Client {
    service: Arc<RunningService<RoleClient, Conversation>>,
    conversation: Conversation,
    timeout: Duration,
    target: Target,
    lease: Arc<Lease>,
    gate: Option<Arc<Gate>>,
}

impl Client {
    /// Connects to a server, with the usual patience and nobody to answer questions.
    ///
    /// # Errors
    ///
    /// Those of [`Connector::connect`].
    pub async fn connect(target: &Target) -> Result<Client, ClientError> {
        Client::to(target).connect().await
    }

    /// Begins to say how to connect.
    pub fn to(target: &Target) -> Connector {
        Connector { target: target.clone(), timeout: USUAL_TIMEOUT, answerer: None, sign_in: None, is_older: false }
    }

    /// The same connection, for work in the background: nobody is asked to sign
    /// in for it.
    #[must_use]
    pub fn in_background(&self) -> Client {
        Client { gate: None, ..self.clone() }
    }

    /// Whether somebody has signed in for this connection.
    #[must_use]
    pub fn has_signed_in(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.times() > 0)
    }

    /// Lets somebody sign in for these scopes as well, unless they were granted
    /// already. Nothing where nobody can sign in.
    ///
    /// # Errors
    ///
    /// When signing in does not work, or nobody wants to.
    pub async fn ask_for_scopes(&self, scopes: &[String]) -> Result<(), ClientError> {
        match &self.gate {
            Some(gate) => gate.ask_for(scopes).await,
            None => Ok(()),
        }
    }

    /// Whether there is a sign-in for this server, of this run or of an earlier one.
    pub async fn has_kept_sign_in(&self) -> bool {
        match &self.gate {
            Some(gate) => gate.has_kept().await,
            None => false,
        }
    }

    /// Where this client is connected to.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The server's own name for itself. Nobody vouches for it.
    #[must_use]
    pub fn server_name(&self) -> Option<String> {
        let server = self.peer().peer_info()?;
        server.server_info.as_ref().map(|server| server.title.clone().unwrap_or_else(|| server.name.clone()))
    }

    /// The revision of the protocol that is spoken, such as `2026-07-28`.
    #[must_use]
    pub fn revision(&self) -> Option<String> {
        self.peer().peer_info().map(|server| server.protocol_version.to_string())
    }

    /// Whether the server is of the older era, in which a conversation begins
    /// with `initialize`.
    #[must_use]
    pub fn is_older(&self) -> bool {
        self.revision().is_some_and(|revision| revision.as_str() < "2026-07-28")
    }

    /// Whether the server says that it has prompts.
    #[must_use]
    pub fn has_prompts(&self) -> bool {
        self.peer().peer_info().is_some_and(|server| server.capabilities.prompts.is_some())
    }

    /// Whether the server says that it completes values.
    #[must_use]
    pub fn completes(&self) -> bool {
        self.peer().peer_info().is_some_and(|server| server.capabilities.completions.is_some())
    }

    /// Whether the server says that it has resources.
    #[must_use]
    pub fn has_resources(&self) -> bool {
        self.peer().peer_info().is_some_and(|server| server.capabilities.resources.is_some())
    }

    /// Whether the server has gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.service.is_closed()
    }

    /// Values that the server suggests for an argument, given what has been
    /// typed of it and the arguments that are filled in already.
    ///
    /// # Errors
    ///
    /// When the server does not answer, or answers with an error.
    pub async fn complete(
        &self,
        of: Of<'_>,
        argument: &str,
        typed: &str,
        known: &Variables,
    ) -> Result<Completion, ClientError> {
        let reference = match of {
            Of::Prompt(name) => Reference::for_prompt(name),
            Of::Resource(template) => Reference::for_resource(template),
        };
        let argument = ArgumentInfo::new(argument, typed);
        let mut params = CompleteRequestParams::new(reference, argument);
        if !known.is_empty() {
            let known = known.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            params = params.with_context(CompletionContext::with_arguments(known));
        }
        let ask = || async {
            error::complete(self.peer().complete(params.clone()).await?, |answer| answer.result_type.as_ref())
        };
        let answer = self.within(ask).await?;
        Ok(Completion::from_wire(answer.completion))
    }

    /// The contents of one resource. A server may give several for one address.
    ///
    /// # Errors
    ///
    /// When the server does not answer, or answers with an error.
    pub async fn read(&self, uri: &str) -> Result<Read, ClientError> {
        let result = self.read_in_rounds(uri).await?;
        let raw = serde_json::to_value(&result).unwrap_or_default();
        let contents = result.contents.into_iter().map(from_wire::contents);
        Ok(Read { contents: contents.collect(), raw })
    }

    /// Counts up whenever the server says that its list of prompts has changed.
    /// A server of revision 2026-07-28 is asked to tell from here on; older
    /// ones tell unasked. Must be called inside a Tokio runtime.
    #[must_use]
    pub fn changes(&self) -> Changes {
        let receiver = self.conversation.changes();
        let listening = self.peer().peer_info().filter(|server| {
            server.protocol_version.as_str() >= "2026-07-28"
                && server.capabilities.prompts.as_ref().is_some_and(|prompts| prompts.list_changed == Some(true))
        });
        let listening = listening.map(|_| {
            let (peer, conversation) = (self.peer().clone(), self.conversation.clone());
            tokio::spawn(async move {
                let filter = SubscriptionFilter::builder().prompts_list_changed().build();
                // A server that does not keep the stream is not asked again: its list is still
                // read anew when its time is over.
                let Ok(mut subscription) = peer.listen(filter).await else { return };
                while let Ok(Some(_)) = subscription.next().await {
                    conversation.note_change();
                }
            })
        });
        Changes { receiver, listening }
    }

    /// What the server's process has said on its stderr last; empty for servers
    /// that are no process of ours.
    #[must_use]
    pub fn last_words(&self) -> String {
        self.lease.last_words()
    }

    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// Asks, and waits for the answer, but only as long as was said, and as long
    /// as somebody is being asked something. When the server wants to know who
    /// asks, somebody can sign in, and it is asked again.
    pub(crate) async fn within<T, A>(&self, ask: impl Fn() -> A) -> Result<T, ClientError>
    where
        A: Future<Output = Result<T, ServiceError>>,
    {
        let mut sign_ins = 0;
        loop {
            let times = self.gate.as_ref().map_or(0, |gate| gate.times());
            let error = match self.answer(ask()).await? {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let challenge = match &error {
                ServiceError::TransportSend(error) => Challenge::find(&*error.error),
                _ => None,
            };
            match (&self.gate, challenge) {
                (Some(gate), Some(challenge)) if sign_ins < MOST_SIGN_INS => {
                    let _asking = self.conversation.asking();
                    gate.pass(times, &challenge).await?;
                }
                _ => {
                    if matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_)) {
                        self.lease.hear_out().await;
                    }
                    return Err(ClientError::from_service(error, &self.lease));
                }
            }
            sign_ins += 1;
        }
    }

    async fn answer<T>(&self, answer: impl Future<Output = T>) -> Result<T, ClientError> {
        let mut answer = std::pin::pin!(answer);
        loop {
            tokio::select! {
                answer = &mut answer => return Ok(answer),
                () = tokio::time::sleep(self.timeout) => {
                    if !self.conversation.is_asking() {
                        return Err(ClientError::TimedOut { after: self.timeout });
                    }
                }
            }
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("target", &self.target).finish_non_exhaustive()
    }
}

/// Hears of changes for as long as it is held.
#[derive(Debug)]
pub struct Changes {
    receiver: watch::Receiver<u64>,
    listening: Option<JoinHandle<()>>,
}

impl Changes {
    /// Waits for the next change; `false` when there will be none any more.
    pub async fn next(&mut self) -> bool {
        self.receiver.changed().await.is_ok()
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        if let Some(listening) = &self.listening {
            listening.abort();
        }
    }
}
