//! Resources of other servers, which their prompts link to.
//!
//! Only URIs that no library of this server serves, and that exactly one source knows, so that no source takes over a
//! resource of another one. The access to a resource is that of the prompts that have linked to it.

use std::sync::Arc;

use promptshelf_core::{
    Catalog, CatalogPart, MimeType, ReadError, RemoteOrigin, RemoteResources, ResourceBody, ResourceContents,
};

use crate::{
    access,
    caller::Caller,
    rejection::{Rejection, echo},
    view::View,
};

pub(crate) struct ForeignResource {
    pub(crate) source: Arc<str>,
    resources: Arc<dyn RemoteResources>,
}

pub(crate) fn find(view: &View, uri: &str) -> Option<ForeignResource> {
    let parts = view.catalog().parts();
    if parts.iter().any(|part| part.catalog.content(uri).is_some()) {
        return None;
    }
    let known = |part: &CatalogPart| {
        let resources = part.catalog.remote_resources()?;
        Some((Arc::clone(resources), resources.origin(uri)?))
    };
    let mut found = parts.iter().filter_map(|part| known(part).map(|known| (part, known)));
    let (part, (resources, origin)) = found.next()?;
    if found.next().is_some() || !is_open(&part.catalog, view.caller(), uri, &origin) {
        return None;
    }
    Some(ForeignResource { source: Arc::clone(&part.source), resources })
}

fn is_open(catalog: &Catalog, caller: &Caller, uri: &str, origin: &RemoteOrigin) -> bool {
    let may_use = |index: usize| access::may_use(catalog, caller, index);
    let count = catalog.prompts().len();
    access::meets_rules_of(catalog, caller, uri)
        && match origin {
            RemoteOrigin::Linked(prompts) => prompts.iter().filter_map(|name| catalog.position(name)).any(may_use),
            // Any prompt could link to it, also one that is hidden.
            _ => count > 0 && (0..count).all(may_use),
        }
}

impl ForeignResource {
    pub(crate) async fn read(&self, view: &View, uri: &str) -> Result<ResourceContents, Rejection> {
        match self.resources.read(uri).await {
            Ok(found) => {
                let mime_type = found.mime_type.unwrap_or_else(|| match &found.body {
                    ResourceBody::Text(_) => MimeType::plain_text(),
                    ResourceBody::Blob(_) => MimeType::octet_stream(),
                });
                Ok(ResourceContents { uri: uri.into(), mime_type, body: found.body })
            }
            Err(ReadError::NotFound) => Err(Rejection::UnknownResource { uri: echo(uri) }),
            Err(ReadError::TooLarge { limit }) => Err(Rejection::ResourceTooLarge { uri: echo(uri), limit }),
            Err(error) => {
                let (request, source) = (view.caller().request_id(), &*self.source);
                tracing::warn!(request, source, %error, "a resource of another server cannot be read");
                Err(Rejection::Internal)
            }
        }
    }
}
