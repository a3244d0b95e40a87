//! Resources of another server: the URIs that its prompts have linked to or that it lists, and reading them.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet, VecDeque},
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use promptshelf_client::{Client, ClientError, ReadResult, ResourceBody, ResourceInfo};
use promptshelf_core::{
    Blob, BoxFuture, ContentBlock, Message, MimeType, ReadBody, ReadError, RemoteOrigin, RemoteResources,
    ResourceBody as Body, invisible::stripped,
};
use tokio::time::timeout;

use crate::{
    connection::{Connection, reason},
    convert::check_uri,
};

/// The most linked URIs that are remembered; later ones replace the oldest.
const MAX_LINKED: usize = 1_000;

/// The most prompts that are remembered for one URI.
const MAX_PROMPTS: usize = 20;

/// The most listed URIs.
const MAX_LISTED: usize = 10_000;

/// The longest URI, in bytes.
const MAX_URI_BYTES: usize = 2_048;

/// The largest resource, in bytes.
const MAX_RESOURCE_BYTES: usize = 16 << 20;

/// The known URIs of one server.
#[derive(Debug, Default)]
pub(crate) struct KnownResources(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The prompts whose answers have linked to a URI.
    linked: BTreeMap<Arc<str>, BTreeSet<String>>,
    /// The linked URIs, the oldest one first.
    order: VecDeque<Arc<str>>,
    listed: HashSet<String>,
}

impl KnownResources {
    /// Remembers the links in an answer of a prompt, whose URIs have been checked.
    pub(crate) fn note(&self, prompt: &str, messages: &[Message]) {
        let uris = messages.iter().filter_map(|message| match &message.content {
            ContentBlock::Link(link) if link.uri.len() <= MAX_URI_BYTES => Some(&*link.uri),
            _ => None,
        });
        let mut uris = uris.peekable();
        if uris.peek().is_none() {
            return;
        }
        self.with(|known| {
            for uri in uris {
                if !known.linked.contains_key(uri) {
                    let uri: Arc<str> = uri.into();
                    known.linked.insert(Arc::clone(&uri), BTreeSet::new());
                    known.order.push_back(uri);
                    if known.order.len() > MAX_LINKED
                        && let Some(oldest) = known.order.pop_front()
                    {
                        known.linked.remove(&oldest);
                    }
                }
                if let Some(prompts) = known.linked.get_mut(uri).filter(|prompts| prompts.len() < MAX_PROMPTS) {
                    prompts.insert(prompt.to_owned());
                }
            }
        });
    }

    /// Takes over the list of the server, without URIs that must not be passed on.
    pub(crate) fn set_listed(&self, resources: Vec<ResourceInfo>) {
        let uris = resources.into_iter().take(MAX_LISTED).map(|resource| resource.uri);
        let listed = uris.filter(|uri| uri.len() <= MAX_URI_BYTES && check_uri(uri).is_ok()).collect();
        self.with(|known| known.listed = listed);
    }

    fn origin(&self, uri: &str) -> Option<RemoteOrigin> {
        self.with(|known| match known.linked.get(uri) {
            Some(prompts) => Some(RemoteOrigin::Linked(prompts.iter().cloned().collect())),
            None => known.listed.contains(uri).then_some(RemoteOrigin::Listed),
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Known) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The resources of one server.
pub(crate) struct ForeignResources(pub(crate) Arc<Connection>);

impl fmt::Debug for ForeignResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ForeignResources({})", self.0.name())
    }
}

impl RemoteResources for ForeignResources {
    fn origin(&self, uri: &str) -> Option<RemoteOrigin> {
        self.0.resources.origin(uri)
    }

    fn read(&self, uri: &str) -> BoxFuture<'_, Result<ReadBody, ReadError>> {
        let uri = uri.to_owned();
        Box::pin(async move { self.0.read(&uri).await })
    }
}

impl Connection {
    async fn read(&self, uri: &str) -> Result<ReadBody, ReadError> {
        let Some(client) = self.client().filter(|_| self.admits(Instant::now())) else {
            return Err(ReadError::Failed(format!("the server of the source {} does not answer", self.name())));
        };
        let answer = timeout(self.timeout(), read(&client, uri)).await;
        match answer.unwrap_or(Err(ClientError::TimedOut { after: self.timeout() })) {
            Ok(result) => {
                self.note_success();
                body(result, uri)
            }
            Err(ClientError::ErrorResponse { .. }) => {
                self.note_success();
                Err(ReadError::NotFound)
            }
            Err(error) => {
                self.note_failure();
                let problem = reason(&error);
                Err(ReadError::Failed(format!("the server of the source {} did not answer: {problem}", self.name())))
            }
        }
    }
}

/// Returns the contents with the requested URI, or else the first ones.
fn body(result: ReadResult, uri: &str) -> Result<ReadBody, ReadError> {
    let mut contents = result.contents;
    let at = contents.iter().position(|contents| contents.uri == uri).unwrap_or_default();
    if contents.is_empty() {
        return Err(ReadError::NotFound);
    }
    let contents = contents.swap_remove(at);
    let mime_type = MimeType::parse(&contents.mime_type);
    let body = match contents.body {
        ResourceBody::Text(text) => Body::Text(stripped(&text).into()),
        ResourceBody::Blob(bytes) => Body::Blob(Blob::new(bytes)),
    };
    match body.len() <= MAX_RESOURCE_BYTES {
        true => Ok(ReadBody { body, mime_type, modified: None }),
        false => Err(ReadError::TooLarge { limit: MAX_RESOURCE_BYTES as u64 }),
    }
}

/// Reads a resource, as a future whose type names no lifetime inside.
fn read<'a>(client: &'a Client, uri: &'a str) -> BoxFuture<'a, Result<ReadResult, ClientError>> {
    Box::pin(client.read(uri))
}

#[cfg(test)]
mod tests {
    use promptshelf_core::{Annotations, ResourceLink, Role};

    use super::*;

    fn link(uri: &str) -> Message {
        let link = ResourceLink {
            uri: uri.into(),
            name: uri.to_owned(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
            icons: Vec::new(),
            annotations: Annotations::default(),
            target: None,
        };
        Message { role: Role::User, content: ContentBlock::Link(Box::new(link)) }
    }

    // req: S-209
    #[test]
    fn linked_uris_are_bounded_and_name_their_prompts() {
        let known = KnownResources::default();
        known.note("a", &[link("docs://one"), Message::user("docs://text")]);
        known.note("b", &[link("docs://one")]);
        assert_eq!(known.origin("docs://one"), Some(RemoteOrigin::Linked(vec!["a".into(), "b".into()])));
        assert_eq!(known.origin("docs://text"), None);
        for number in 0..MAX_LINKED {
            known.note("c", &[link(&format!("docs://{number}"))]);
        }
        assert_eq!(known.origin("docs://one"), None, "the oldest one is forgotten");
        assert!(known.origin("docs://0").is_some());
    }
}
