//! Callers: their identity, address and request, and the revocation of tokens.
//!
//! Elsewhere: authentication (`promptshelf-server`), and access decisions (`access`).

use std::{
    collections::HashSet,
    hash::{Hash, Hasher},
    net::IpAddr,
    sync::Arc,
    time::SystemTime,
};

use promptshelf_core::identity;
use tokio::sync::watch;

use crate::{slot::SlotHolder, usage::ClientTag};

/// Returns the number of a request as logs, records, traces and responses show it.
#[must_use]
pub fn request_id(request: u64) -> String {
    format!("{request:016x}")
}

/// The origin of a request. Each operation of the service takes one, so that no front end can omit it. Cheap to clone.
///
/// ```
/// use std::sync::Arc;
/// use promptshelf_service::{Caller, Identity};
///
/// let ada = Identity { key: "issuer ada".to_owned(), name: "ada".to_owned(), ..Identity::default() };
/// let caller = Caller::authenticated(Arc::new(ada)).with_address([192, 0, 2, 1].into());
/// assert_eq!(caller.name(), "ada");
/// assert!(!caller.is_local());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    kind: Kind,
    address: Option<IpAddr>,
    request: Option<u64>,
    revocation: Option<Revocation>,
    slot_holder: Option<SlotHolder>,
    client: ClientTag,
}

/// The revocation state of a token: it can be revoked while a stream that was opened with it is open. Clones share the
/// state.
#[derive(Clone, Debug)]
pub struct Revocation {
    is_valid: watch::Sender<bool>,
    /// The names that end it too, once one of them is blocked.
    names: Option<(BlockedNames, Arc<[String]>)>,
}

impl Revocation {
    /// Creates a state that is not revoked.
    #[must_use]
    pub fn new() -> Revocation {
        Revocation { is_valid: watch::Sender::new(true), names: None }
    }

    /// Returns the same state for a caller with names that can be blocked.
    #[must_use]
    pub fn unless_blocked(self, blocked: &BlockedNames, names: Arc<[String]>) -> Revocation {
        Revocation { names: Some((blocked.clone(), names)), ..self }
    }

    /// Revokes the token.
    pub fn revoke(&self) {
        self.is_valid.send_replace(false);
    }

    /// Returns whether the two share one state.
    #[must_use]
    pub fn same_as(&self, other: &Revocation) -> bool {
        self.is_valid.same_channel(&other.is_valid)
    }

    /// Waits until the token is revoked, or one of its names is blocked.
    pub async fn revoked(&self) {
        let mut is_valid = self.is_valid.subscribe();
        let revoked = is_valid.wait_for(|is_valid| !is_valid);
        // Waiting fails only when the sender is dropped, and `self` has it.
        match &self.names {
            None => drop(revoked.await),
            Some((blocked, names)) => {
                let mut blocked = blocked.0.subscribe();
                tokio::select! {
                    _ = revoked => {}
                    _ = blocked.wait_for(|blocked| is_blocked(blocked, names)) => {}
                }
            }
        }
    }
}

/// Names of callers who are refused, compared without regard to case. Clones share them.
#[derive(Clone, Debug)]
pub struct BlockedNames(watch::Sender<Arc<HashSet<String>>>);

impl BlockedNames {
    /// Creates a list.
    #[must_use]
    pub fn new(names: &[String]) -> BlockedNames {
        BlockedNames(watch::Sender::new(folded(names)))
    }

    /// Replaces the list.
    pub fn replace(&self, names: &[String]) {
        self.0.send_replace(folded(names));
    }

    /// Returns whether one of the names is blocked.
    #[must_use]
    pub fn contains_any(&self, names: &[String]) -> bool {
        is_blocked(&self.0.borrow(), names)
    }
}

fn folded(names: &[String]) -> Arc<HashSet<String>> {
    Arc::new(names.iter().map(|name| identity(name)).filter(|name| !name.is_empty()).collect())
}

fn is_blocked(blocked: &HashSet<String>, names: &[String]) -> bool {
    !blocked.is_empty() && names.iter().any(|name| blocked.contains(&identity(name)))
}

impl Default for Revocation {
    fn default() -> Revocation {
        Revocation::new()
    }
}

/// All are equal: a revocation is not part of a caller's identity.
impl PartialEq for Revocation {
    fn eq(&self, _: &Revocation) -> bool {
        true
    }
}

impl Eq for Revocation {}

impl Hash for Revocation {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Local,
    Anonymous,
    Authenticated(Arc<Identity>),
}

/// An authenticated caller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Unique: the issuer of the token and its subject.
    pub key: String,
    /// The name in access rules and audit records.
    pub name: String,
    /// The scopes of the token, including implied ones.
    pub scopes: Vec<String>,
    /// The roles that access rules refer to.
    pub roles: Vec<String>,
    /// The expiry of the token.
    pub expires: Option<SystemTime>,
}

impl Caller {
    /// Returns the local user (stdio and command line), who can read the library's files and passes all access rules.
    #[must_use]
    pub fn local() -> Caller {
        Caller::of(Kind::Local)
    }

    /// Returns a caller over the network that is not authenticated.
    #[must_use]
    pub fn anonymous() -> Caller {
        Caller::of(Kind::Anonymous)
    }

    /// Returns an authenticated caller.
    #[must_use]
    pub fn authenticated(identity: Arc<Identity>) -> Caller {
        Caller::of(Kind::Authenticated(identity))
    }

    fn of(kind: Kind) -> Caller {
        Caller { kind, address: None, request: None, revocation: None, slot_holder: None, client: ClientTag::default() }
    }

    /// Sets the revocation state of the caller's token.
    #[must_use]
    pub fn with_revocation(self, revocation: Revocation) -> Caller {
        Caller { revocation: Some(revocation), ..self }
    }

    /// Sets the holder of the request's slot.
    #[must_use]
    pub fn with_slot_holder(self, holder: SlotHolder) -> Caller {
        Caller { slot_holder: Some(holder), ..self }
    }

    pub(crate) fn slot_holder(&self) -> Option<&SlotHolder> {
        self.slot_holder.as_ref()
    }

    /// Waits until the caller's token is revoked; forever if it has none.
    pub async fn revoked(&self) {
        match &self.revocation {
            Some(revocation) => revocation.revoked().await,
            None => std::future::pending().await,
        }
    }

    /// Sets the network address.
    #[must_use]
    pub fn with_address(self, address: IpAddr) -> Caller {
        Caller { address: Some(address), ..self }
    }

    /// Sets the number of the request, which logs and records show.
    #[must_use]
    pub fn with_request(self, request: u64) -> Caller {
        Caller { request: Some(request), ..self }
    }

    /// Sets the client program, which usage metrics show.
    #[must_use]
    pub fn with_client(self, client: ClientTag) -> Caller {
        Caller { client, ..self }
    }

    /// Returns the client program.
    #[must_use]
    pub fn client(&self) -> &ClientTag {
        &self.client
    }

    /// Returns the same caller without address, request, revocation state and slot: equal for all its requests.
    #[must_use]
    pub fn principal(&self) -> Caller {
        Caller::of(self.kind.clone())
    }

    /// Returns whether this is the local user.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.kind == Kind::Local
    }

    /// Returns the identity, if authenticated.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        match &self.kind {
            Kind::Authenticated(identity) => Some(identity),
            Kind::Local | Kind::Anonymous => None,
        }
    }

    /// Returns the network address, if known.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Returns the number of the request, if set.
    #[must_use]
    pub fn request(&self) -> Option<u64> {
        self.request
    }

    /// Returns the number of the request as logs, records, traces and responses show it.
    #[must_use]
    pub fn request_id(&self) -> Option<String> {
        self.request.map(request_id)
    }

    /// Returns the expiry of the caller's token.
    #[must_use]
    pub fn expires(&self) -> Option<SystemTime> {
        self.identity().and_then(|identity| identity.expires)
    }

    /// Returns a key that is equal for all requests of one caller and different for other callers.
    #[must_use]
    pub fn key(&self) -> &str {
        match &self.kind {
            Kind::Local => "local",
            Kind::Anonymous => "anonymous",
            Kind::Authenticated(identity) => &identity.key,
        }
    }

    /// Returns the name for audit records.
    #[must_use]
    pub fn name(&self) -> &str {
        self.identity().map_or(self.key(), |identity| &identity.name)
    }
}
