//! Who asks.

use std::{
    hash::{Hash, Hasher},
    net::IpAddr,
    sync::Arc,
    time::SystemTime,
};

use tokio::sync::watch;

/// Who asks. Every question to the service names one, so that no face can
/// forget to. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    kind: Kind,
    address: Option<IpAddr>,
    request: Option<u64>,
    standing: Option<Revocation>,
}

/// Whether what callers have proved still counts: a token can be withdrawn while
/// a stream that was opened with it is open. Clones are withdrawn together.
#[derive(Clone, Debug)]
pub struct Revocation(watch::Sender<bool>);

impl Revocation {
    /// One that counts.
    #[must_use]
    pub fn new() -> Revocation {
        Revocation(watch::Sender::new(true))
    }

    /// From now on it counts no more.
    pub fn withdraw(&self) {
        self.0.send_replace(false);
    }

    /// Whether it is withdrawn together with another one.
    #[must_use]
    pub fn is(&self, other: &Revocation) -> bool {
        self.0.same_channel(&other.0)
    }

    /// Waits until it counts no more.
    pub async fn withdrawn(&self) {
        // The sender is here, so that this cannot fail.
        self.0.subscribe().wait_for(|counts| !counts).await.ok();
    }
}

impl Default for Revocation {
    fn default() -> Revocation {
        Revocation::new()
    }
}

/// It says nothing about who somebody is.
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
    Known(Arc<Identity>),
}

/// Somebody who has said who it is, and has proved it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Different for everybody: what a token was issued by, and for whom.
    pub key: String,
    /// The name that rules and records call it by.
    pub name: String,
    /// What its token permits, with everything that is implied.
    pub scopes: Vec<String>,
    /// What it is in the team.
    pub roles: Vec<String>,
    /// When what it has proved ends.
    pub expires: Option<SystemTime>,
}

impl Caller {
    /// The person at this machine: stdio, and the command line. Whoever can
    /// read the library's files is asked nothing.
    #[must_use]
    pub fn local() -> Caller {
        Caller::of(Kind::Local)
    }

    /// Somebody who reaches the server over a network and has not said who.
    #[must_use]
    pub fn anonymous() -> Caller {
        Caller::of(Kind::Anonymous)
    }

    /// Somebody who has proved who it is.
    #[must_use]
    pub fn known(identity: Arc<Identity>) -> Caller {
        Caller::of(Kind::Known(identity))
    }

    fn of(kind: Kind) -> Caller {
        Caller { kind, address: None, request: None, standing: None }
    }

    /// Says what tells when it is not believed any more.
    #[must_use]
    pub fn while_in(self, standing: Revocation) -> Caller {
        Caller { standing: Some(standing), ..self }
    }

    /// Waits until what it has proved is withdrawn, which may be never.
    pub async fn withdrawn(&self) {
        match &self.standing {
            Some(standing) => standing.withdrawn().await,
            None => std::future::pending().await,
        }
    }

    /// Says from where it asks.
    #[must_use]
    pub fn at(self, address: IpAddr) -> Caller {
        Caller { address: Some(address), ..self }
    }

    /// Says with which request it asks, by the number that logs know it by.
    #[must_use]
    pub fn with_request(self, request: u64) -> Caller {
        Caller { request: Some(request), ..self }
    }

    /// The caller, whatever it asks with and wherever from.
    #[must_use]
    pub fn by_itself(&self) -> Caller {
        Caller::of(self.kind.clone())
    }

    /// Whether it is the person at this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.kind == Kind::Local
    }

    /// Who it is, if it has proved it.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        match &self.kind {
            Kind::Known(identity) => Some(identity),
            Kind::Local | Kind::Anonymous => None,
        }
    }

    /// From where it asks, where that is known.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// The number of its request, where it has one.
    #[must_use]
    pub fn request(&self) -> Option<u64> {
        self.request
    }

    /// The same number as logs, records, traces and answers show it.
    #[must_use]
    pub fn request_id(&self) -> Option<String> {
        self.request.map(|request| format!("{request:016x}"))
    }

    /// When it stops being who it is.
    #[must_use]
    pub fn expires(&self) -> Option<SystemTime> {
        self.identity().and_then(|identity| identity.expires)
    }

    /// Who it is, as a key: equal for the same caller, different for others.
    #[must_use]
    pub fn key(&self) -> &str {
        match &self.kind {
            Kind::Local => "local",
            Kind::Anonymous => "anonymous",
            Kind::Known(identity) => &identity.key,
        }
    }

    /// Who it is, for records.
    #[must_use]
    pub fn name(&self) -> &str {
        self.identity().map_or(self.key(), |identity| &identity.name)
    }
}
