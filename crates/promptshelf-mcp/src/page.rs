//! Encoded list pages, cached for one catalog.
//!
//! Figure: CPU time of `list` over HTTP (`prompts/list of 1,000, again` of `cargo xtask guard`).
//!
//! A page is the same for all callers with the same visibility, in one revision, until the catalog is replaced.
//! Readers take no lock.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
use bytes::Bytes;
use promptshelf_core::cursor::ListKind;
use promptshelf_service::{Answer, ListPage, RolloutGroup, Visibility};

use crate::{profile::Profile, revision::Revision, to_wire};

/// The pages of the newest catalog, with one profile or none.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    current: ArcSwap<CachedPages>,
    /// Those of the other channel of a rollout, whose catalogs have serial numbers of their own.
    candidate: ArcSwap<CachedPages>,
}

#[derive(Clone, Debug, Default)]
struct CachedPages {
    serial: u64,
    pages: HashMap<Key, Bytes>,
}

type Key = (ListKind, Revision, usize, Visibility);

/// Maximum number of cached pages, so that a client that reads a very long list does not fill the memory with it.
const MAX_PAGES: usize = 256;

impl Pages {
    /// Writes a page, from the cache if possible.
    pub(crate) fn write(
        &self,
        page: &Answer<ListPage>,
        profile: Option<&Profile>,
        revision: Revision,
        out: &mut Vec<u8>,
    ) {
        let ListPage { list, page: page_range } = page.value();
        let serial = page.view().catalog().serial();
        let key = (*list, revision, page_range.range.start, page.view().visibility().clone());
        let place = match page.view().rollout_group() {
            Some(RolloutGroup::Candidate) => &self.candidate,
            Some(RolloutGroup::Stable) | None => &self.current,
        };
        let cached = place.load();
        if cached.serial == serial
            && let Some(bytes) = cached.pages.get(&key)
        {
            // One byte more for the end of the response: growing would copy the page again.
            out.reserve_exact(bytes.len() + 1);
            out.extend_from_slice(bytes);
            return;
        }
        let begin = out.len();
        to_wire::list(page, revision, out);
        if let Some(profile) = profile {
            to_wire::apply(profile, page, out, begin);
        }
        store(place, serial, key, &Bytes::copy_from_slice(&out[begin..]));
    }
}

fn store(place: &ArcSwap<CachedPages>, serial: u64, key: Key, bytes: &Bytes) {
    place.rcu(|cached| {
        let mut next = match cached.serial {
            // Pages of an older catalog are not cached.
            newer if newer > serial => return Arc::clone(cached),
            same if same == serial && cached.pages.len() < MAX_PAGES => CachedPages::clone(cached),
            _ => CachedPages { serial, pages: HashMap::default() },
        };
        next.pages.insert(key.clone(), bytes.clone());
        Arc::new(next)
    });
}
