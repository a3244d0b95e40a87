//! List pages, serialised once a generation and revision.
//!
//! A page is the same bytes for everybody who sees the same and asks for it in
//! the same revision, until the catalog is replaced. Readers take no lock.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use foldhash::HashMap;
use promptshelf_core::cursor::ListKind;
use promptshelf_service::{Answer, ListPage, Visibility};

use crate::{revision::Revision, to_wire};

/// Pages of the newest catalog.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    current: ArcSwap<Written>,
}

#[derive(Clone, Debug, Default)]
struct Written {
    generation: u64,
    pages: HashMap<Key, Bytes>,
}

type Key = (ListKind, Revision, usize, Visibility);

/// The most pages that are kept; a client that walks a very long list does not
/// make the server keep all of it several times over.
const MAX_PAGES: usize = 256;

impl Pages {
    /// Writes a page, from what was written before where that still holds.
    pub(crate) fn write(&self, page: &Answer<ListPage>, revision: Revision, out: &mut Vec<u8>) {
        let ListPage { list, page: place } = page.value();
        let generation = page.view().catalog().generation();
        let key = (*list, revision, place.range.start, page.view().visibility().clone());
        let written = self.current.load();
        if written.generation == generation
            && let Some(bytes) = written.pages.get(&key)
        {
            // With room for what closes the answer: growing would copy the page again.
            out.reserve_exact(bytes.len() + 1);
            out.extend_from_slice(bytes);
            return;
        }
        let begin = out.len();
        to_wire::list(page, revision, out);
        self.keep(generation, key, Bytes::copy_from_slice(&out[begin..]));
    }

    fn keep(&self, generation: u64, key: Key, bytes: Bytes) {
        self.current.rcu(|written| {
            let mut next = match written.generation {
                // A page of an older catalog is of no use to anybody else.
                newer if newer > generation => return Arc::clone(written),
                same if same == generation && written.pages.len() < MAX_PAGES => Written::clone(written),
                _ => Written { generation, pages: HashMap::default() },
            };
            next.pages.insert(key.clone(), bytes.clone());
            Arc::new(next)
        });
    }
}
