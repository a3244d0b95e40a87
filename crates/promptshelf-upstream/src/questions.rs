//! Answers of other servers that ask, and the connection for those of older revisions.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use promptshelf_client::{Client, PromptResult};
use promptshelf_core::RemoteQuestion;

use crate::{convert::Refused, replay::Replay};

/// The time after which the connection for questions is closed, if it is not used.
const IDLE_TIME: Duration = Duration::from_secs(60);

pub(crate) enum Reply {
    Complete(PromptResult),
    Asked(Result<RemoteQuestion, Refused>),
    /// The caller has no way to be asked in this way.
    Unaskable(&'static str),
    /// The earlier question does not fit any longer.
    Outdated,
}

/// The connection to an older server for prompts that ask: one request at a time, so that a question belongs to it.
#[derive(Default)]
pub(crate) struct Questions {
    pub(crate) replay: Arc<Replay>,
    pub(crate) client: tokio::sync::Mutex<Option<(Client, Instant)>>,
}

impl Questions {
    /// Closes the connection unless it is in use or was so lately.
    pub(crate) fn close_idle(&self) {
        if let Ok(mut client) = self.client.try_lock()
            && client.as_ref().is_some_and(|(_, used)| used.elapsed() > IDLE_TIME)
        {
            *client = None;
        }
    }
}
