//! The client side of a session: capabilities, elicitations, and notifications of changed lists.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorCode,
        FormElicitationCapability, Implementation, JsonRpcMessage, ProtocolVersion, ServerJsonRpcMessage,
        UrlElicitationCapability,
    },
    service::{NotificationContext, RequestContext},
};
use tokio::sync::watch;

use crate::elicitation::{Elicitation, ElicitationHandler, ElicitationResponse};

/// The state that all requests of a connection share. Sampling and roots are not declared.
#[derive(Clone)]
pub(crate) struct Handler {
    /// The label of the connection, which the server cannot choose.
    label: Arc<str>,
    elicitation: Option<Arc<dyn ElicitationHandler>>,
    interactions: Arc<AtomicUsize>,
    changes: Arc<watch::Sender<u64>>,
    wants_notifications: Arc<watch::Sender<bool>>,
    pub(crate) probe: ProbeOutcome,
    /// The revision that `initialize` offers. The newest one has no handshake.
    offered: ProtocolVersion,
}

impl Handler {
    pub(crate) fn new(label: String, elicitation: Option<Arc<dyn ElicitationHandler>>) -> Handler {
        // Some servers send elicitations on the notification stream, although they should not.
        let wants_notifications = Arc::new(watch::Sender::new(elicitation.is_some()));
        let changes = Arc::new(watch::Sender::new(0));
        let (label, interactions, offered) = (label.into(), Arc::default(), ProtocolVersion::V_2025_11_25);
        let probe = ProbeOutcome::default();
        Handler { label, elicitation, interactions, changes, wants_notifications, probe, offered }
    }

    /// Returns a handler with the same state that offers another revision.
    pub(crate) fn offering(&self, revision: Option<ProtocolVersion>) -> Handler {
        let handler = self.clone();
        Handler { offered: revision.unwrap_or(handler.offered), ..handler }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.wants_notifications.send_replace(true);
        self.changes.subscribe()
    }

    /// Returns where to note changes, without keeping the connection's subscribers waiting after its end.
    pub(crate) fn change_counter(&self) -> Weak<watch::Sender<u64>> {
        Arc::downgrade(&self.changes)
    }

    pub(crate) fn wants_notifications(&self) -> watch::Receiver<bool> {
        self.wants_notifications.subscribe()
    }

    pub(crate) fn note_change(&self) {
        count_change(&self.changes);
    }

    pub(crate) fn is_interacting(&self) -> bool {
        self.interactions.load(Ordering::Acquire) > 0
    }

    /// Counts as an interaction of the user until the guard is dropped.
    pub(crate) fn interaction(&self) -> Interaction {
        Interaction::begin(&self.interactions)
    }

    pub(crate) async fn elicit(&self, elicitation: Elicitation) -> ElicitationResponse {
        let Some(handler) = &self.elicitation else { return ElicitationResponse::Decline };
        let _interaction = self.interaction();
        handler.elicit(elicitation).await
    }

    pub(crate) fn elicitation(&self, params: &ElicitRequestParams) -> Elicitation {
        Elicitation::from_wire(&self.label, params)
    }
}

/// What the last answer to `server/discover` says of the server. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct ProbeOutcome(Arc<AtomicBool>);

impl ProbeOutcome {
    /// Notes an answer; `None` is a failure of the transport.
    pub(crate) fn note(&self, answer: Option<&ServerJsonRpcMessage>) {
        let has_failed = answer.is_none_or(
            |answer| matches!(answer, JsonRpcMessage::Error(error) if error.error.code == ErrorCode::INTERNAL_ERROR),
        );
        self.0.store(has_failed, Ordering::Relaxed);
    }

    /// Returns whether the probe has failed in a way that servers of every revision can fail.
    pub(crate) fn has_failed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) fn count_change(changes: &watch::Sender<u64>) {
    changes.send_modify(|count| *count += 1);
}

/// An interaction of the user. Dropping it ends it, also when a request is cancelled.
pub(crate) struct Interaction(Arc<AtomicUsize>);

impl Interaction {
    fn begin(count: &Arc<AtomicUsize>) -> Interaction {
        count.fetch_add(1, Ordering::AcqRel);
        Interaction(Arc::clone(count))
    }
}

impl Drop for Interaction {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl ClientHandler for Handler {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.elicit(self.elicitation(&request)).await.into_wire())
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.note_change();
    }

    async fn on_resource_list_changed(&self, context: NotificationContext<RoleClient>) {
        if context.peer.peer_info().is_some_and(|server| server.capabilities.supports_skills()) {
            self.note_change();
        }
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.elicitation.is_some() {
            let mut elicitation = ElicitationCapability::default();
            elicitation.form = Some(FormElicitationCapability::default());
            elicitation.url = Some(UrlElicitationCapability::default());
            capabilities.elicitation = Some(elicitation);
        }
        let program = Implementation::new("promptshelf", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, program).with_protocol_version(self.offered.clone())
    }
}
