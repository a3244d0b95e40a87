//! The URIs that prompts of another server have linked to or that it lists.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use promptshelf_client::ResourceInfo;
use promptshelf_core::{ContentBlock, Message, RemoteOrigin};

use crate::convert::{Schemes, usable_scheme};

/// The most linked URIs that are remembered; later ones replace the oldest.
const MAX_LINKED: usize = 1_000;

const MAX_PROMPTS: usize = 20;

const MAX_LISTED: usize = 10_000;

/// The longest URI, in bytes.
const MAX_URI_BYTES: usize = 2_048;

#[derive(Debug, Default)]
pub(crate) struct KnownResources(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    linked: BTreeMap<Arc<str>, BTreeSet<String>>,
    order: VecDeque<Arc<str>>,
    listed: HashSet<String>,
    schemes: Arc<Schemes>,
}

impl KnownResources {
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
        let usable = resources.into_iter().take(MAX_LISTED).filter(|resource| resource.uri.len() <= MAX_URI_BYTES);
        let (mut listed, mut schemes) = (HashSet::new(), Schemes::new());
        for resource in usable {
            if let Ok(scheme) = usable_scheme(&resource.uri) {
                schemes.insert(scheme);
                if !resource.is_template {
                    listed.insert(resource.uri);
                }
            }
        }
        self.with(|known| (known.listed, known.schemes) = (listed, schemes.into()));
    }

    pub(crate) fn schemes(&self) -> Arc<Schemes> {
        self.with(|known| Arc::clone(&known.schemes))
    }

    /// Returns the origin of a URI; `None` for an unknown one.
    pub(crate) fn origin(&self, uri: &str) -> Option<RemoteOrigin> {
        self.with(|known| match known.linked.get(uri) {
            Some(prompts) => Some(RemoteOrigin::Linked(prompts.iter().cloned().collect())),
            None => known.listed.contains(uri).then_some(RemoteOrigin::Listed),
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Known) -> T) -> T {
        act(&mut self.0.lock())
    }
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
