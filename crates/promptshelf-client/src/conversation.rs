//! Our side of a conversation: what a server may ask and tell us in between.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability,
        FormElicitationCapability, Implementation, UrlElicitationCapability,
    },
    service::{NotificationContext, RequestContext},
};
use tokio::sync::watch;

use super::question::{Answer, ElicitationHandler, Question};

/// What all requests of one connection share. Nothing here speaks for a model:
/// sampling and roots are not offered.
#[derive(Clone)]
pub(super) struct Conversation {
    /// Where we are connected to; the server has no say in it.
    target: Arc<str>,
    answerer: Option<Arc<dyn ElicitationHandler>>,
    asking: Arc<AtomicUsize>,
    changed: Arc<watch::Sender<u64>>,
    /// Whether anybody hears what the server says unasked.
    is_heard: Arc<watch::Sender<bool>>,
}

impl Conversation {
    pub(super) fn new(target: String, answerer: Option<Arc<dyn ElicitationHandler>>) -> Conversation {
        let changed = Arc::new(watch::Sender::new(0));
        // Many a server puts its questions on that stream, though it should not.
        let is_heard = Arc::new(watch::Sender::new(answerer.is_some()));
        Conversation { target: target.into(), answerer, asking: Arc::default(), changed, is_heard }
    }

    /// Changes from now on, which somebody hears.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.is_heard.send_replace(true);
        self.changed.subscribe()
    }

    /// Whether somebody hears what the server says unasked, now or later.
    pub(super) fn is_heard(&self) -> watch::Receiver<bool> {
        self.is_heard.subscribe()
    }

    pub(super) fn note_change(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Whether somebody is thinking about a question right now.
    pub(super) fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Acquire) > 0
    }

    /// Counts as a question for as long as it is held.
    pub(super) fn asking(&self) -> Asking {
        Asking::begin(&self.asking)
    }

    /// Puts a question to whoever answers.
    pub(super) async fn ask(&self, question: Question) -> Answer {
        let Some(answerer) = &self.answerer else { return Answer::Decline };
        let _asking = self.asking();
        answerer.answer(question).await
    }

    pub(super) fn question(&self, params: &ElicitRequestParams) -> Question {
        Question::from_wire(&self.target, params)
    }
}

/// Counts a question for as long as it is open, even if it is dropped.
pub(super) struct Asking(Arc<AtomicUsize>);

impl Asking {
    fn begin(count: &Arc<AtomicUsize>) -> Asking {
        count.fetch_add(1, Ordering::AcqRel);
        Asking(Arc::clone(count))
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl ClientHandler for Conversation {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.ask(self.question(&request)).await.into_wire())
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.note_change();
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.answerer.is_some() {
            let mut elicitation = ElicitationCapability::default();
            elicitation.form = Some(FormElicitationCapability::default());
            elicitation.url = Some(UrlElicitationCapability::default());
            capabilities.elicitation = Some(elicitation);
        }
        let program = Implementation::new("promptshelf", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, program)
    }
}
