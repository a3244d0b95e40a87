//! Many contents in one request: reading files, and uploading contents for later proposals.

use std::{collections::BTreeMap, sync::Arc};

use axum::{extract::State, http::StatusCode, response::Response};
use promptshelf_store::{ChannelName, Digest, FileEntry};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    channels::target_roles,
    content::{FileContent, MAX_PATH},
    etag,
    operation::{ApiCaller, ApiState, Scope},
    problem::Problem,
    request::{ApiPath, Unread},
};

/// The bytes that a page of contents has at most, unless one file is larger.
const PAGE_BYTES: u64 = 4 << 20;

const MAX_PATHS: usize = 5_000;

/// Which files to read.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FilesBody {
    /// The revision; the newest one by default.
    #[serde(default)]
    revision: Option<u64>,
    /// The paths of the files, at most 5,000.
    paths: Vec<String>,
}

/// Files with their contents.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileContents {
    /// The revision.
    revision: u64,
    /// The first of the requested files, in their order: one at least, and the others up to 4 MiB.
    files: Vec<FileWithContent>,
}

/// A file with its content.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileWithContent {
    /// Relative to the library.
    path: String,
    /// The digest of the bytes.
    digest: Digest,
    /// The bytes.
    content: FileContent,
}

/// Contents to upload.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct UploadBody {
    /// The contents.
    contents: Vec<FileContent>,
}

/// Uploaded contents.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Uploaded {
    /// The digest of each content, in their order.
    digests: Vec<Digest>,
}

/// Returns the contents of several files; fewer than requested if they are large
#[utoipa::path(post, path = "/channels/{channel}/contents", tag = "files", security(("token" = ["library:read"])),
    params(("channel" = ChannelName, Path)), request_body = FilesBody,
    responses((status = 200, body = FileContents),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "The channel, the revision or a file does not exist")))]
pub(super) async fn read_contents(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin_on(&channel, caller.0, "api/read-contents", &[Scope::Read])?;
    let answer = async {
        let body: FilesBody = request.json(&state.endpoint).await?;
        if body.paths.len() > MAX_PATHS {
            return Err(Problem::invalid(format!("{} paths: at most {MAX_PATHS} are accepted", body.paths.len())));
        }
        let store = state.store().await?;
        let (head, present) = store.files(&channel, body.revision).await?;
        operation.note_number("revision", head.revision);
        operation.note_number("files", body.paths.len() as u64);
        let page = page(&present, &body.paths).map_err(|path| {
            let path = &path[..path.floor_char_boundary(MAX_PATH)];
            Problem::not_found(&format!("The file {path:?} at revision {}", head.revision))
        })?;
        let digests: Vec<Digest> = page.iter().map(|file| file.digest).collect();
        let contents: BTreeMap<Digest, Arc<[u8]>> = store.blobs(&digests).await?.into_iter().collect();
        let content = |file: &FileEntry| {
            let content = FileContent::of(contents.get(&file.digest)?);
            Some(FileWithContent { path: file.path.clone(), digest: file.digest, content })
        };
        let files = page.iter().filter_map(|file| content(file)).collect();
        let answer = FileContents { revision: head.revision, files };
        etag::changed(StatusCode::OK, &answer, &answer)
    }
    .await;
    Ok(operation.end(answer))
}

/// Returns the first of the wanted files that fit a page; the path of one that does not exist as an error.
fn page<'f>(present: &'f [FileEntry], wanted: &[String]) -> Result<Vec<&'f FileEntry>, String> {
    let by_path: BTreeMap<&str, &FileEntry> = present.iter().map(|file| (file.path.as_str(), file)).collect();
    let mut bytes = 0;
    let mut page = Vec::new();
    for path in wanted {
        let file = by_path.get(path.as_str()).ok_or_else(|| path.clone())?;
        bytes += file.size;
        if bytes > PAGE_BYTES && !page.is_empty() {
            break;
        }
        page.push(*file);
    }
    Ok(page)
}

/// Stores contents for the changes of later proposals, which refer to them by digest; those that no proposal refers to
/// are removed by the operator's next `store gc`
#[utoipa::path(post, path = "/channels/{channel}/uploads", tag = "files", security(("token" = ["library:propose"])),
    params(("channel" = ChannelName, Path)), request_body = UploadBody,
    responses((status = 200, body = Uploaded)))]
pub(super) async fn upload(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin_on(&channel, caller.0, "api/upload", &[Scope::Propose])?;
    let answer = async {
        let body: UploadBody = request.json(&state.endpoint).await?;
        let roles = target_roles(&state, &operation, &channel).await?;
        operation.require_role(&roles.propose, "propose")?;
        let decoded = body.contents.into_iter().map(|content| content.into_bytes("A content"));
        let contents = decoded.collect::<Result<Vec<Vec<u8>>, Problem>>()?;
        operation.note_number("contents", contents.len() as u64);
        operation.note_number("bytes", contents.iter().map(|content| content.len() as u64).sum());
        let digests = state.store().await?.add_contents(contents, &operation.actor().name).await?;
        let answer = Uploaded { digests };
        etag::changed(StatusCode::OK, &answer, &answer)
    }
    .await;
    Ok(operation.end(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_one_file_and_more_while_they_fit() {
        let digest = Digest::of(b"");
        let file = |path: &str, size| FileEntry { path: path.to_owned(), digest, size };
        let present =
            [file("large", PAGE_BYTES + 1), file("a", PAGE_BYTES / 2), file("b", PAGE_BYTES / 2), file("c", 1)];
        let names = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|path| (*path).to_owned()).collect();
            page(&present, &wanted).map(|page| page.iter().map(|file| file.path.clone()).collect::<Vec<_>>())
        };
        assert_eq!(names(&["large", "a"]), Ok(vec!["large".to_owned()]));
        assert_eq!(names(&["a", "b", "c"]), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(names(&["c", "a"]), Ok(vec!["c".to_owned(), "a".to_owned()]));
        assert_eq!(names(&["c", "missing"]), Err("missing".to_owned()));
        assert_eq!(names(&[]), Ok(Vec::new()));
    }
}
