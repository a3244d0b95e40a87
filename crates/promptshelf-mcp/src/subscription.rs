//! Subscriptions: catalog changes as notifications.
//!
//! A modern client opens one with `subscriptions/listen`, and its notifications carry the ID of that request. A
//! legacy client receives list changes without asking, and without an ID. Changes that arrive faster than a
//! subscription sends them are combined.
//!
//! Elsewhere: comparing the content of resources (`followed`), and sending (`http::events`, `stdio`).

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, atomic::Ordering},
    time::SystemTime,
};

use bytes::Bytes;
use promptshelf_core::{Change, cursor::ListKind};
use promptshelf_service::{Caller, Rejection, Slot};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::{json, value::RawValue};
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::{Instant, sleep_until},
};

use crate::{
    Server, conversation::Conversation, error_code::WireError, followed::Followed, json, jsonrpc, jsonrpc::RequestId,
    request::LOG_LEVELS, revision::Revision,
};

const MAX_URIS: usize = 1_000;

const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";
const TOOLS: &str = "notifications/tools/list_changed";
const UPDATED: &str = "notifications/resources/updated";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const MESSAGE: &str = "notifications/message";

#[derive(Debug)]
pub(crate) struct Subscription {
    server: Server,
    caller: Caller,
    changes: Receiver<Change>,
    /// Count the subscription as open: in total, and for its caller.
    _open: Open,
    _slot: Option<Slot>,
    /// The expiry of the caller's token (protocol requirement P19).
    expires: Option<Instant>,
    scope: Scope,
    last_sent: LastSent,
}

/// Counts a subscription as open until dropped.
#[derive(Debug)]
struct Open(Server);

impl Open {
    fn new(server: &Server) -> Open {
        server.subscribed().fetch_add(1, Ordering::Relaxed);
        Open(server.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.subscribed().fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
enum LastSent {
    PerResource(Vec<(Arc<Followed>, u64)>),
    UpTo(u64),
}

#[derive(Debug)]
enum Scope {
    /// The notifications that a `subscriptions/listen` request selected.
    Request {
        id: RequestId,
        prompts: bool,
        resources: bool,
        tools: bool,
    },
    Conversation(Arc<Conversation>),
}

/// `params.notifications` of `subscriptions/listen`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    prompts_list_changed: bool,
    resources_list_changed: bool,
    tools_list_changed: bool,
    #[serde(deserialize_with = "uris")]
    resource_subscriptions: BTreeSet<String>,
}

/// Reads at most one URI more than allowed: each takes many times the bytes that it arrives in.
fn uris<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    struct Uris;
    impl<'de> Visitor<'de> for Uris {
        type Value = BTreeSet<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("URIs")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<BTreeSet<String>, A::Error> {
            let mut uris = BTreeSet::new();
            while uris.len() <= MAX_URIS {
                match seq.next_element()? {
                    Some(uri) => uris.insert(uri),
                    None => return Ok(uris),
                };
            }
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(uris)
        }
    }
    deserializer.deserialize_seq(Uris)
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Accepted<'a> {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    prompts_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resources_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tools_list_changed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_subscriptions: Vec<&'a str>,
}

impl Subscription {
    /// Opens a subscription for a `subscriptions/listen` request. The bytes are the acknowledgment, which must be its
    /// first message.
    pub(crate) async fn listen(
        server: &Server,
        caller: &Caller,
        id: &RequestId,
        filter: Option<&RawValue>,
    ) -> Result<(Subscription, Bytes), WireError> {
        let malformed = || {
            WireError::invalid_params(
                "`notifications` must be an object of notifications such as {\"promptsListChanged\":true}",
            )
        };
        let filter: Filter = filter.and_then(json::object).ok_or_else(malformed)?;
        if filter.resource_subscriptions.len() > MAX_URIS {
            return Err(WireError::invalid_params(format!(
                "Too many resources; a subscription follows at most {MAX_URIS}"
            )));
        }
        let slot = server
            .service()
            .subscribe(caller)
            .map_err(|rejection| WireError::rejected(&rejection, Revision::V2026_07_28))?;
        // Subscribed before resources are read, so that a change in the meantime is not missed.
        let changes = server.service().changes();
        let view = server.service().view(caller);
        let mut last_sent = Vec::new();
        for uri in filter.resource_subscriptions {
            if let Some(followed) = server.followed().follow(&view, &uri) {
                let changed = followed.changed(server.service()).await;
                last_sent.push((followed, changed));
            }
        }
        let tools = filter.tools_list_changed && server.tools().has_tools();
        let scope = Scope::Request {
            id: id.clone(),
            prompts: filter.prompts_list_changed,
            resources: filter.resources_list_changed,
            tools,
        };
        let accepted = Accepted {
            prompts_list_changed: filter.prompts_list_changed,
            resources_list_changed: filter.resources_list_changed,
            tools_list_changed: tools,
            resource_subscriptions: last_sent.iter().map(|(followed, _)| followed.uri()).collect(),
        };
        let accepted = json!({ "notifications": accepted });
        let subscription = Subscription {
            server: server.clone(),
            caller: caller.clone(),
            changes,
            _open: Open::new(server),
            _slot: slot,
            expires: expiry(caller),
            scope,
            last_sent: LastSent::PerResource(last_sent),
        };
        let acknowledgment = subscription.message(ACKNOWLEDGED, accepted);
        Ok((subscription, acknowledgment))
    }

    pub(crate) fn of_conversation(
        server: &Server,
        caller: &Caller,
        conversation: &Arc<Conversation>,
    ) -> Result<Subscription, Rejection> {
        Ok(Subscription {
            caller: caller.clone(),
            _slot: server.service().subscribe(caller)?,
            _open: Open::new(server),
            server: server.clone(),
            changes: server.service().changes(),
            expires: expiry(caller),
            scope: Scope::Conversation(Arc::clone(conversation)),
            last_sent: LastSent::UpTo(server.service().tick()),
        })
    }

    /// Waits for the next notifications. `None` when the server shuts down and when the caller's token expires or is
    /// revoked.
    ///
    /// Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Vec<Bytes>> {
        loop {
            let change = tokio::select! {
                biased;
                () = self.server.shutdown_token().cancelled() => return None,
                () = sleep_or_pending(self.expires) => return None,
                () = self.caller.revoked() => return None,
                change = self.changes.recv() => match change {
                    Ok(change) => change,
                    Err(RecvError::Lagged(_)) => all_changed(),
                    Err(RecvError::Closed) => return None,
                },
            };
            let change = self.combined(change);
            let messages = self.messages(&change).await;
            if !messages.is_empty() {
                return Some(messages);
            }
        }
    }

    fn combined(&mut self, mut change: Change) -> Change {
        use tokio::sync::broadcast::error::TryRecvError;
        loop {
            let next = match self.changes.try_recv() {
                Ok(next) => next,
                Err(TryRecvError::Lagged(_)) => all_changed(),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return change,
            };
            change.generation = change.generation.max(next.generation);
            change.prompts |= next.prompts;
            change.resources |= next.resources;
            change.contents |= next.contents;
            change.tools |= next.tools;
        }
    }

    async fn messages(&mut self, change: &Change) -> Vec<Bytes> {
        let (prompts, resources, tools) = match &self.scope {
            Scope::Request { prompts, resources, tools, .. } => (*prompts, *resources, *tools),
            Scope::Conversation(_) => (true, true, self.server.tools().has_tools()),
        };
        let mut messages = Vec::new();
        if change.prompts && prompts {
            messages.push(self.message(PROMPTS, json!({})));
        }
        if change.resources && resources {
            messages.push(self.message(RESOURCES, json!({})));
        }
        if change.tools && tools {
            messages.push(self.message(TOOLS, json!({})));
        }
        if change.contents {
            for followed in self.updated().await {
                messages.push(self.message(UPDATED, json!({ "uri": followed.uri() })));
            }
        }
        messages.extend(self.log(change));
        messages
    }

    async fn updated(&mut self) -> Vec<Arc<Followed>> {
        let (service, caller) = (self.server.service(), &self.caller);
        let mut updated = Vec::new();
        match (&mut self.last_sent, &self.scope) {
            (LastSent::PerResource(resources), _) => {
                for (followed, last_sent) in resources {
                    let changed = followed.changed(service).await;
                    if changed > *last_sent {
                        *last_sent = changed;
                        updated.push(Arc::clone(followed));
                    }
                }
            }
            (LastSent::UpTo(last_sent), Scope::Conversation(conversation)) => {
                let now = service.tick();
                for followed in conversation.subscribed() {
                    if followed.changed(service).await > *last_sent {
                        updated.push(followed);
                    }
                }
                // Several callers can follow one resource.
                updated.sort_unstable_by(|one, other| one.uri().cmp(other.uri()));
                updated.dedup_by(|one, other| one.uri() == other.uri());
                *last_sent = now;
            }
            (LastSent::UpTo(_), Scope::Request { .. }) => {}
        }
        // In a shared conversation others may follow resources that are hidden from this caller, and access rules can
        // change.
        let view = service.view(caller);
        updated.retain(|followed| view.permit(followed.uri()).is_ok());
        updated
    }

    /// Returns a log message about the change, if the legacy client has set a log level.
    fn log(&self, change: &Change) -> Option<Bytes> {
        let Scope::Conversation(conversation) = &self.scope else { return None };
        let info = LOG_LEVELS.iter().position(|level| *level == "info")?;
        if !(change.prompts || change.resources) || !conversation.wants_log(&self.caller, info) {
            return None;
        }
        let view = self.server.service().view(&self.caller);
        let (prompts, resources) = (view.count(ListKind::Prompts), view.count(ListKind::Resources));
        let count = |number: usize, thing: &str| format!("{number} {thing}{}", if number == 1 { "" } else { "s" });
        let (prompts, resources) = (count(prompts, "prompt"), count(resources, "resource"));
        let text = format!("The library has changed: {prompts}, {resources}");
        Some(jsonrpc::notification(MESSAGE, &json!({ "level": "info", "logger": "library", "data": text })))
    }

    /// Returns the result of the `subscriptions/listen` request, which ends the subscription (2026-07-28,
    /// *Subscriptions*).
    pub(crate) fn end(&self) -> Option<Bytes> {
        let Scope::Request { id, .. } = &self.scope else { return None };
        let mut out = jsonrpc::open_result(id);
        json::write(&mut out, &self.tagged(json!({ "resultType": "complete" })));
        Some(jsonrpc::close(out))
    }

    fn message(&self, method: &str, params: serde_json::Value) -> Bytes {
        jsonrpc::notification(method, &self.tagged(params))
    }

    fn tagged(&self, members: serde_json::Value) -> Tagged<'_> {
        let meta = match &self.scope {
            Scope::Request { id, .. } => Some(Tag { id }),
            Scope::Conversation(_) => None,
        };
        Tagged { members, meta }
    }
}

#[derive(Serialize)]
struct Tagged<'a> {
    #[serde(flatten)]
    members: serde_json::Value,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Tag<'a>>,
}

#[derive(Serialize)]
struct Tag<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    id: &'a RequestId,
}

fn expiry(caller: &Caller) -> Option<Instant> {
    let left = caller.expires()?.duration_since(SystemTime::now()).unwrap_or_default();
    Instant::now().checked_add(left)
}

async fn sleep_or_pending(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

fn all_changed() -> Change {
    Change { generation: 0, prompts: true, resources: true, contents: true, tools: true }
}
