//! Server-sent events of a channel's revisions.
//!
//! An event is sent when this server serves the revision, so that a request after it gets the new state. The id of an
//! event has the number and the digest of its revision; a stream with `Last-Event-ID` begins with the revisions after it,
//! or with the present one if a restored store does not have it.

use std::{
    collections::VecDeque,
    convert::Infallible,
    time::{Duration, SystemTime},
};

use axum::{
    body::{Body, Bytes},
    http::header,
    response::IntoResponse,
};
use futures_util::stream;
use promptshelf_service::{Caller, Slot};
use promptshelf_source::LoadReport;
use promptshelf_store::{PromptChange, PromptChangeKind, Revision};
use promptshelf_wire::{RevisionEvent, Scope, op};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::{
    super::{
        call::{Answer, Call},
        problem::Problem,
    },
    state::{ProgramState, ServedChannel},
    versions::RevisionId,
};

const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The first bytes of a stream: the time until a client connects again, in milliseconds.
const OPENING: Bytes = Bytes::from_static(b"retry: 2000\n\n");

const COMMENT: Bytes = Bytes::from_static(b":\n\n");

pub(super) async fn follow_channel(call: Call<op::FollowChannel, ProgramState>) -> Answer {
    let channel = &call.path.channel;
    let known = match call.headers.get("last-event-id").map(|id| id.to_str().ok().and_then(RevisionId::parse)) {
        Some(None) => {
            return Err(Problem::invalid("The header Last-Event-ID is invalid: expected the id of an event"));
        }
        known => known.flatten(),
    };
    let served = call.state.channel(call.caller(), Some(channel.as_str()))?;
    call.require_channel(channel)?;
    let slot = served.library.service().subscribe(call.caller())?;
    let reports = served.library.loader().reports();
    let feed = Feed {
        sees_all: call.has(Scope::Read) && call.sees(channel),
        channel: channel.to_string(),
        state: call.state.clone(),
        caller: call.caller().clone(),
        known,
        reports,
        pending: VecDeque::from([OPENING]),
        _slot: slot,
    };
    let events = stream::unfold(feed, async |mut feed| Some((Ok::<_, Infallible>(feed.next().await?), feed)));
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    // nginx would hold events back otherwise.
    Ok((headers, [("x-accel-buffering", "no")], Body::from_stream(events)).into_response())
}

struct Feed {
    state: ProgramState,
    channel: String,
    caller: Caller,
    sees_all: bool,
    known: Option<RevisionId>,
    reports: watch::Receiver<LoadReport>,
    pending: VecDeque<Bytes>,
    /// Counts the stream as one of the caller's subscriptions.
    _slot: Option<Slot>,
}

impl Feed {
    /// Returns the next bytes; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Bytes> {
        let keep_alive = Instant::now() + KEEP_ALIVE;
        loop {
            if let Some(bytes) = self.pending.pop_front() {
                return Some(bytes);
            }
            // Marked as seen before the revision is read, so that no change is missed.
            self.reports.borrow_and_update();
            let state = self.state.clone();
            // The operator's rule for the channel may have changed, but then this stream has another state.
            let served = state.channel(&self.caller, Some(&self.channel)).ok()?;
            let revision = served.revision()?;
            let is_known = self.known.as_ref().is_some_and(|known| *known == revision || known.is_number_of(&revision));
            if !is_known {
                self.pending = self.events(served, &revision).await;
                self.known = Some(revision);
                continue;
            }
            let server = served.library.server().clone();
            tokio::select! {
                changed = self.reports.changed() => changed.ok()?,
                () = tokio::time::sleep_until(keep_alive) => return Some(COMMENT),
                () = server.closing() => return None,
                () = self.caller.revoked() => return None,
                () = expiry(self.caller.expires()) => return None,
            }
        }
    }

    async fn events(&self, served: &ServedChannel, revision: &RevisionId) -> VecDeque<Bytes> {
        let known = self.known.as_ref();
        let recent = served.recent.between(self.state.versions(), &self.channel, known, revision).await;
        match recent.filter(|recent| !recent.is_empty()) {
            Some(recent) => recent.iter().map(|one| self.event(served, one)).collect(),
            None => {
                let (channel, number) = (&*self.channel, revision.number);
                let event = RevisionEvent { channel, revision: number, kind: None, at: None, prompts: None };
                VecDeque::from([write(revision, &event)])
            }
        }
    }

    fn event(&self, served: &ServedChannel, revision: &Revision) -> Bytes {
        let view = served.library.service().view(&self.caller);
        // The rules of a removed prompt are not known any more.
        let prefix = served.prefix();
        let change =
            |change: &PromptChange| PromptChange { name: format!("{prefix}{}", change.name), ..change.clone() };
        let is_visible = |change: &PromptChange| {
            self.sees_all || (change.change != PromptChangeKind::Removed && view.find(&change.name).is_ok())
        };
        let event = RevisionEvent {
            channel: &self.channel,
            revision: revision.number,
            kind: Some(revision.kind),
            at: Some(revision.at),
            prompts: Some(revision.prompts.iter().map(change).filter(is_visible).collect()),
        };
        write(&RevisionId::of(revision), &event)
    }
}

/// Encodes an event. JSON has no line breaks here.
fn write(id: &RevisionId, event: &RevisionEvent<'_>) -> Bytes {
    let data = serde_json::to_string(event).unwrap_or_default();
    format!("id: {id}\nevent: revision\ndata: {data}\n\n").into()
}

/// Waits until a token expires.
async fn expiry(expires: Option<SystemTime>) {
    match expires {
        Some(at) => sleep(at.duration_since(SystemTime::now()).unwrap_or_default()).await,
        None => std::future::pending().await,
    }
}
