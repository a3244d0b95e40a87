//! A change becomes notifications, once, for whoever asked.
//!
//! A modern client asks with `subscriptions/listen` and gets everything tagged
//! with its request's id; a legacy client asks for nothing and gets list changes
//! untagged. Changes that come faster than a listener takes them become one.

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

/// The most resources that one subscription can follow.
const MAX_URIS: usize = 1_000;

const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";
const UPDATED: &str = "notifications/resources/updated";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const MESSAGE: &str = "notifications/message";

/// Somebody who listens.
#[derive(Debug)]
pub(crate) struct Subscription {
    server: Server,
    caller: Caller,
    changes: Receiver<Change>,
    /// Count it for as long as it exists: among all, and among those of its caller.
    _open: Open,
    _slot: Option<Slot>,
    /// When the caller stops being who it is (protocol requirement P19).
    expires: Option<Instant>,
    scope: Scope,
    told: Told,
}

/// Counts a subscription as open for as long as this exists.
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

/// What a listener has been told of the resources that it follows.
#[derive(Debug)]
enum Told {
    /// Of each, the change that it was told of last.
    Each(Vec<(Arc<Followed>, u64)>),
    /// Of those of its conversation, everything up to a change.
    Until(u64),
}

#[derive(Debug)]
enum Scope {
    /// What a `subscriptions/listen` request asked for.
    Request { id: RequestId, prompts: bool, resources: bool },
    /// What a legacy client has come to expect.
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

/// Reads URIs, and not many more than there may be: each takes many times the
/// bytes that a short one comes in.
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

/// The part of a filter that is honoured.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Honoured<'a> {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    prompts_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resources_list_changed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_subscriptions: Vec<&'a str>,
}

impl Subscription {
    /// Opens what a `subscriptions/listen` request asks for. The bytes are the
    /// acknowledgment, which has to be the first message of the subscription.
    pub(crate) async fn listen(
        server: &Server,
        caller: &Caller,
        id: &RequestId,
        filter: Option<&RawValue>,
    ) -> Result<(Subscription, Bytes), WireError> {
        let malformed = || WireError::invalid_params("`notifications` has to be an object that says what to listen to");
        let filter: Filter = filter.and_then(json::object).ok_or_else(malformed)?;
        if filter.resource_subscriptions.len() > MAX_URIS {
            return Err(WireError::invalid_params(format!("One subscription follows at most {MAX_URIS} resources")));
        }
        let slot = server
            .service()
            .subscribe(caller)
            .map_err(|rejection| WireError::rejected(&rejection, Revision::V2026_07_28))?;
        // From here on no change is missed: what changes while resources are
        // looked at is looked at again.
        let changes = server.service().changes();
        let view = server.service().view(caller);
        let mut told = Vec::new();
        for uri in filter.resource_subscriptions {
            if let Some(followed) = server.followed().follow(&view, &uri) {
                let changed = followed.changed(server.service()).await;
                told.push((followed, changed));
            }
        }
        let scope = Scope::Request {
            id: id.clone(),
            prompts: filter.prompts_list_changed,
            resources: filter.resources_list_changed,
        };
        let honoured = Honoured {
            prompts_list_changed: filter.prompts_list_changed,
            resources_list_changed: filter.resources_list_changed,
            resource_subscriptions: told.iter().map(|(followed, _)| followed.uri()).collect(),
        };
        let honoured = json!({ "notifications": honoured });
        let subscription = Subscription {
            server: server.clone(),
            caller: caller.clone(),
            changes,
            _open: Open::new(server),
            _slot: slot,
            expires: expiry(caller),
            scope,
            told: Told::Each(told),
        };
        let acknowledgment = subscription.message(ACKNOWLEDGED, honoured);
        Ok((subscription, acknowledgment))
    }

    /// Follows what a legacy conversation gets to hear.
    ///
    /// # Errors
    ///
    /// When the caller has too many open already.
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
            told: Told::Until(server.service().tick()),
        })
    }

    /// Waits for something to tell. `None` when the server shuts down, and
    /// when what the caller has proved has expired or is withdrawn.
    ///
    /// May be dropped while it waits without losing anything.
    pub(crate) async fn next(&mut self) -> Option<Vec<Bytes>> {
        loop {
            let change = tokio::select! {
                biased;
                () = self.server.shutdown_token().cancelled() => return None,
                () = until(self.expires) => return None,
                () = self.caller.revoked() => return None,
                change = self.changes.recv() => match change {
                    Ok(change) => change,
                    Err(RecvError::Lagged(_)) => everything(),
                    Err(RecvError::Closed) => return None,
                },
            };
            let change = self.with_what_is_waiting(change);
            let messages = self.messages(&change).await;
            if !messages.is_empty() {
                return Some(messages);
            }
        }
    }

    /// Takes changes that are already there into one.
    fn with_what_is_waiting(&mut self, mut change: Change) -> Change {
        use tokio::sync::broadcast::error::TryRecvError;
        loop {
            let next = match self.changes.try_recv() {
                Ok(next) => next,
                Err(TryRecvError::Lagged(_)) => everything(),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return change,
            };
            change.generation = change.generation.max(next.generation);
            change.prompts |= next.prompts;
            change.resources |= next.resources;
            change.contents |= next.contents;
        }
    }

    async fn messages(&mut self, change: &Change) -> Vec<Bytes> {
        let (prompts, resources) = match &self.scope {
            Scope::Request { prompts, resources, .. } => (*prompts, *resources),
            Scope::Conversation(_) => (true, true),
        };
        let mut messages = Vec::new();
        if change.prompts && prompts {
            messages.push(self.message(PROMPTS, json!({})));
        }
        if change.resources && resources {
            messages.push(self.message(RESOURCES, json!({})));
        }
        if change.contents {
            for followed in self.updated().await {
                messages.push(self.message(UPDATED, json!({ "uri": followed.uri() })));
            }
        }
        messages.extend(self.log(change));
        messages
    }

    /// The followed resources that hold something else than before.
    async fn updated(&mut self) -> Vec<Arc<Followed>> {
        let (service, caller) = (self.server.service(), &self.caller);
        let mut updated = Vec::new();
        match (&mut self.told, &self.scope) {
            (Told::Each(each), _) => {
                for (followed, told) in each {
                    let changed = followed.changed(service).await;
                    if changed > *told {
                        *told = changed;
                        updated.push(Arc::clone(followed));
                    }
                }
            }
            (Told::Until(told), Scope::Conversation(conversation)) => {
                let now = service.tick();
                for followed in conversation.subscribed() {
                    if followed.changed(service).await > *told {
                        updated.push(followed);
                    }
                }
                *told = now;
            }
            (Told::Until(_), Scope::Request { .. }) => {}
        }
        // Others may follow what this caller must not even know of, and what a
        // caller may follow can change.
        let view = service.view(caller);
        updated.retain(|followed| view.permit(followed.uri()).is_ok());
        updated
    }

    /// A word about the change for a legacy client that asked for log messages.
    fn log(&self, change: &Change) -> Option<Bytes> {
        let Scope::Conversation(conversation) = &self.scope else { return None };
        let info = LOG_LEVELS.iter().position(|level| *level == "info")?;
        if !(change.prompts || change.resources) || !conversation.wants_log(info) {
            return None;
        }
        let view = self.server.service().view(&self.caller);
        let (prompts, resources) = (view.count(ListKind::Prompts), view.count(ListKind::Resources));
        let count = |number: usize, thing: &str| format!("{number} {thing}{}", if number == 1 { "" } else { "s" });
        let (prompts, resources) = (count(prompts, "prompt"), count(resources, "resource"));
        let text = format!("The library has changed: {prompts}, {resources}");
        Some(jsonrpc::notification(MESSAGE, &json!({ "level": "info", "logger": "library", "data": text })))
    }

    /// The answer to the `subscriptions/listen` request, which ends it: a
    /// result, and no cancellation (2026-07-28, *Subscriptions*).
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

/// Members, and the subscription that they belong to.
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

/// The moment at which a caller's token expires.
fn expiry(caller: &Caller) -> Option<Instant> {
    let left = caller.expires()?.duration_since(SystemTime::now()).unwrap_or_default();
    Instant::now().checked_add(left)
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// What a listener that lagged behind has to take as changed.
fn everything() -> Change {
    Change { generation: 0, prompts: true, resources: true, contents: true }
}
