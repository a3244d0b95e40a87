//! Contents of files in requests and responses.
//!
//! A change may refer to an uploaded content by its digest, so that a proposal is not bounded by the size of one body.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use promptshelf_source::check_tree_path;
use promptshelf_store::{Change, ChannelName, Digest, Store, StoreError};
use serde::{Deserialize, Serialize};
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

/// Decodes changes, reads uploaded contents, and checks the paths of new contents. A file at another path can still be
/// deleted.
pub(super) async fn changes(
    operation: &Operation,
    store: &Store,
    bodies: Vec<ChangeBody>,
) -> Result<Vec<Change>, Problem> {
    let uploaded: BTreeSet<Digest> = bodies
        .iter()
        .filter_map(|body| match body.content {
            Some(NewContent::Digest(digest)) => Some(digest),
            _ => None,
        })
        .collect();
    let uploaded: Vec<Digest> = uploaded.into_iter().collect();
    let uploaded: BTreeMap<Digest, Arc<[u8]>> = match uploaded.is_empty() {
        true => BTreeMap::new(),
        false => {
            let caller = operation.actor().name;
            let is_shown = |channel: &ChannelName| operation.has(Scope::Read) && operation.sees(channel);
            let contents = store.contents_known_to(&caller, &uploaded, is_shown).await;
            contents
                .map_err(|error| match error {
                    StoreError::NotFound { what } => Problem::not_found(&format!(
                        "{what}, among those that you have uploaded and those of the channels that you may read,"
                    )),
                    error => error.into(),
                })?
                .into_iter()
                .collect()
        }
    };
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
            Some(NewContent::Text(text)) => Some(text.into_bytes()),
            Some(NewContent::Base64(encoded)) => Some(FileContent::Base64(encoded).into_bytes(&what())?),
            Some(NewContent::Digest(digest)) => {
                Some(uploaded.get(&digest).ok_or_else(|| Problem::not_found(&what()))?.to_vec())
            }
        };
        Ok(Change { path, before, after })
    };
    bodies.into_iter().map(change).collect()
}
