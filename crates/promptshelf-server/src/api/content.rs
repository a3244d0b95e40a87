//! Contents of files in requests and responses.
//!
//! A change may refer to an uploaded content by its digest, so that a proposal is not bounded by the size of one body.

use std::{collections::BTreeMap, sync::Arc};

use promptshelf_source::check_tree_path;
use promptshelf_store::{Change, ChannelName, Digest, MAX_PROPOSAL_BYTES, Store, StoreError};
use promptshelf_wire::{ChangeBody, FileContent, NewContent, Scope};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{call::Context, problem::Problem};

/// Decodes a content. `what` names it in the refusal.
pub(super) fn decoded(content: FileContent, what: &str) -> Result<Vec<u8>, Problem> {
    let bytes = content.into_bytes();
    bytes.map_err(|error| Problem::invalid(format!("{what} is not Base64 in the standard alphabet: {error}")))
}

/// The most bytes of an invalid path in the answer.
pub(super) const MAX_PATH: usize = 200;

/// The sum of the contents that requests refer to, in KiB: as much as one proposal may have.
const REFERRED_KIB: u32 = (MAX_PROPOSAL_BYTES >> 10) as u32;

/// The memory for contents that requests refer to by digest. Requests wait for it.
#[derive(Debug)]
pub(super) struct Referred(Arc<Semaphore>);

impl Default for Referred {
    fn default() -> Referred {
        Referred(Arc::new(Semaphore::new(REFERRED_KIB as usize)))
    }
}

impl Referred {
    /// Waits for the memory for some bytes.
    pub(super) async fn take(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(REFERRED_KIB).min(REFERRED_KIB);
        // The semaphore is never closed.
        Arc::clone(&self.0).acquire_many_owned(kib).await.ok()
    }
}

pub(super) struct Changes {
    pub(super) changes: Vec<Change>,
    pub(super) memory: Option<OwnedSemaphorePermit>,
}

/// Decodes changes, reads uploaded contents, and checks the paths of new contents. A file at another path can still be
/// deleted.
///
/// A digest of 64 characters can stand for megabytes, in each of thousands of changes: the sum is checked before
/// anything is read, and each content is read once.
pub(super) async fn changes(
    call: &Context,
    store: &Store,
    referred: &Referred,
    bodies: Vec<ChangeBody>,
) -> Result<Changes, Problem> {
    let mut uses: BTreeMap<Digest, u64> = BTreeMap::new();
    for body in &bodies {
        if let Some(NewContent::Digest(digest)) = body.content {
            *uses.entry(digest).or_default() += 1;
        }
    }
    let digests: Vec<Digest> = uses.keys().copied().collect();
    let (mut memory, mut uploaded) = (None, BTreeMap::new());
    if !digests.is_empty() {
        let caller = call.name().to_owned();
        let is_shown = |channel: &ChannelName| call.has(Scope::Read) && call.sees(channel);
        let sizes = store.sizes_known_to(&caller, &digests, is_shown).await.map_err(|error| match error {
            StoreError::NotFound { what } => Problem::not_found(&format!(
                "{what}, among those that you have uploaded and those of the channels that you may read,"
            )),
            error => error.into(),
        })?;
        let of_all = sizes.iter().map(|(digest, size)| size.saturating_mul(uses[digest])).fold(0, u64::saturating_add);
        if of_all > MAX_PROPOSAL_BYTES as u64 {
            let message = format!("The changes have {of_all} bytes: at most {MAX_PROPOSAL_BYTES} are accepted");
            return Err(Problem::invalid(message));
        }
        // Checks read each file by itself, so that the memory is that of all of them.
        memory = referred.take(of_all).await;
        uploaded = store.blobs(&digests).await?.into_iter().collect::<BTreeMap<Digest, Arc<[u8]>>>();
    }
    let change = |ChangeBody { path, before, content }: ChangeBody| {
        if content.is_some() {
            check_tree_path(&path).map_err(|error| {
                let shown = &path[..path.floor_char_boundary(MAX_PATH)];
                Problem::invalid(format!("The path {shown:?} is invalid: {error}"))
            })?;
        }
        let what = || format!("The content of {path}");
        let after = match content {
            None => None,
            Some(NewContent::Text(text)) => Some(text.into_bytes().into()),
            Some(NewContent::Base64(encoded)) => Some(decoded(FileContent::Base64(encoded), &what())?.into()),
            Some(NewContent::Digest(digest)) => {
                Some(Arc::clone(uploaded.get(&digest).ok_or_else(|| Problem::not_found(&what()))?))
            }
        };
        Ok(Change { path, before, after })
    };
    let changes = bodies.into_iter().map(change).collect::<Result<_, Problem>>()?;
    Ok(Changes { changes, memory })
}
