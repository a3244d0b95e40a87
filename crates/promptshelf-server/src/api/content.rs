//! Contents of files in requests and responses.
//!
//! A change may refer to an uploaded content by its digest, so that a proposal is not bounded by the size of one body.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use promptshelf_source::check_tree_path;
use promptshelf_store::{Change, ChannelName, Digest, MAX_PROPOSAL_BYTES, Store, StoreError};
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use utoipa::ToSchema;

use super::{
    operation::{Operation, Scope},
    problem::Problem,
    request::required,
};

/// The content of a file: text in UTF-8, or any bytes as Base64.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) enum FileContent {
    /// Text.
    Text(String),
    /// Bytes, in the standard alphabet of Base64 with padding.
    Base64(String),
}

impl FileContent {
    pub(super) fn of(bytes: &[u8]) -> FileContent {
        match std::str::from_utf8(bytes) {
            Ok(text) => FileContent::Text(text.to_owned()),
            Err(_) => FileContent::Base64(STANDARD.encode(bytes)),
        }
    }

    pub(super) fn into_bytes(self, what: &str) -> Result<Vec<u8>, Problem> {
        match self {
            FileContent::Text(text) => Ok(text.into_bytes()),
            FileContent::Base64(encoded) => STANDARD
                .decode(encoded)
                .map_err(|error| Problem::invalid(format!("{what} is not Base64 in the standard alphabet: {error}"))),
        }
    }
}

/// The new content of a file: text in UTF-8, any bytes as Base64, or the digest of an uploaded content.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) enum NewContent {
    /// Text.
    Text(String),
    /// Bytes, in the standard alphabet of Base64 with padding.
    Base64(String),
    /// The digest of a content that the store has.
    Digest(Digest),
}

/// The change of one file.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ChangeBody {
    /// Relative to the library, with `/` between its parts.
    path: String,
    /// The digest of the content that the author started from; null for a new file.
    #[serde(deserialize_with = "required")]
    #[schema(required = true)]
    before: Option<Digest>,
    /// The new content; null deletes the file.
    #[serde(deserialize_with = "required")]
    #[schema(required = true)]
    content: Option<NewContent>,
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
    operation: &Operation,
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
        let caller = operation.name().to_owned();
        let is_shown = |channel: &ChannelName| operation.has(Scope::Read) && operation.sees(channel);
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
        let kib = u32::try_from(of_all.div_ceil(1 << 10)).unwrap_or(REFERRED_KIB);
        // The semaphore is never closed.
        memory = Arc::clone(&referred.0).acquire_many_owned(kib.min(REFERRED_KIB)).await.ok();
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
            Some(NewContent::Base64(encoded)) => Some(FileContent::Base64(encoded).into_bytes(&what())?.into()),
            Some(NewContent::Digest(digest)) => {
                Some(Arc::clone(uploaded.get(&digest).ok_or_else(|| Problem::not_found(&what()))?))
            }
        };
        Ok(Change { path, before, after })
    };
    let changes = bodies.into_iter().map(change).collect::<Result<_, Problem>>()?;
    Ok(Changes { changes, memory })
}
